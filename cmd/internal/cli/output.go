// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/record/session"
)

// OutputFlags say through what a recording passes, and where it goes.
type OutputFlags struct{ pipe, to string }

func (o *OutputFlags) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.pipe, "pipe", "",
		"pass the recording through the layers of `CHAIN`, such as async,zstd:3,encrypt:age1…,checksum:@FILE")
	f.StringVar(&o.to, "to", "",
		"write the recording to `WHERE`, and make no tape: a file, device:PATH, unix:PATH, tcp://HOST:PORT, "+
			"tls://HOST:PORT, or - for standard output")
}

// Plan reads the chain. The command does not get the variables that keys were in.
func (o *OutputFlags) Plan(p *session.Plan, _ func(string) bool) (err error) {
	p.To = o.to
	if o.pipe != "" {
		if p.Pipe, err = chain.Parse(o.pipe); err != nil {
			return fmt.Errorf("--pipe: %w", err)
		}
		for _, name := range p.Pipe.Variables {
			_ = os.Unsetenv(name)
		}
	}
	return nil
}

// AddNoIndex adds the flag of all commands that make a tape.
func AddNoIndex(f *pflag.FlagSet, noIndex *bool) {
	f.BoolVar(noIndex, "no-index", false,
		"do not make the tape's Parquet files; iotape query and iotape index make them later")
}
