// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/internal/wallclock"
)

// ClockFlags say how a command writes moments: in local time (TZ), in UTC, or in seconds since 1970.
type ClockFlags struct {
	form wallclock.Form
	line string // --time of commands that print events
}

// Add adds the flags of a command whose tables and headings have moments.
func (k *ClockFlags) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&k.form.UTC, "utc", false, "show times in UTC, not in the local time zone (TZ)")
	f.BoolVar(&k.form.Epoch, "epoch", false, "show times in seconds since 1970")
	cmd.MarkFlagsMutuallyExclusive("utc", "epoch")
}

// Form returns how moments are written.
func (k *ClockFlags) Form() wallclock.Form { return k.form }

// AddLines adds the flags of a command that prints events.
func (k *ClockFlags) AddLines(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&k.line, "time", "elapsed",
		"`WHICH` time to show at the start of each line: elapsed, wall, unix or none")
	f.BoolVar(&k.form.UTC, "utc", false,
		"show wall-clock times in UTC, not in the local time zone (TZ); implies --time wall")
	f.BoolVar(&k.form.Epoch, "epoch", false, "show seconds since 1970, as --time unix does")
	cmd.MarkFlagsMutuallyExclusive("utc", "epoch")
}

// Lines returns the time at the start of each line, and its zone.
func (k *ClockFlags) Lines(cmd *cobra.Command) (clock stracetext.Clock, zone *time.Location, err error) {
	clock = stracetext.Clock(k.line)
	if !clock.Known() {
		return "", nil, Usage(fmt.Errorf("--time %q: the value must be elapsed, wall, unix or none", k.line))
	}
	switch given := cmd.Flags().Changed("time"); {
	case given && k.form.Epoch && clock != stracetext.Unix:
		return "", nil, Usage(errors.New("--epoch means --time unix: give only one of them"))
	case k.form.Epoch:
		clock = stracetext.Unix
	case k.form.UTC && !given:
		clock = stracetext.Wall
	}
	return clock, k.form.Location(), nil
}
