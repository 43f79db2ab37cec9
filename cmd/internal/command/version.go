// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/buildinfo"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/trace"
)

// formats are the versions of the formats that this program writes, and the newest that it reads.
var formats = []struct {
	name    string // as in docs/compatibility.md
	version int
}{
	{"stream", trace.StreamVersion},
	{"tape", trace.TapeVersion},
	{"piped stream", pipe.Version},
	{"index", trace.IndexVersion},
	{"staged stream", staging.Version},
	{"fleet protocol", batch.Version},
}

func newVersion(c *cli.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of iotape and of its formats",
		Example: `  iotape version
  iotape version --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Print(func(w *bufio.Writer) error {
				if asJSON {
					return jsonout.Line(w, versions())
				}
				var list []string
				for _, f := range formats {
					list = append(list, fmt.Sprintf("%s %d", f.name, f.version))
				}
				fmt.Fprintf(w, "%s; streams up to version %d, tapes up to %d, %d operations\n",
					buildinfo.Line("iotape"), trace.StreamVersion, trace.TapeVersion, len(event.Specs()))
				_, err := fmt.Fprintf(w, "formats: %s\n", strings.Join(list, ", "))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func versions() map[string]any {
	byName := map[string]int{}
	for _, f := range formats {
		byName[strings.ReplaceAll(f.name, " ", "_")] = f.version
	}
	return map[string]any{
		"version": buildinfo.Version, "revision": buildinfo.Revision(), "go": runtime.Version(), "arch": runtime.GOARCH,
		"stream_version": trace.StreamVersion, "tape_version": trace.TapeVersion,
		"formats": byName, "operations": len(event.Specs()),
	}
}

// takeVersion gives a program's root command the flag --version. It has no letter: -v is for
// the flags of commands.
func takeVersion(root *cobra.Command) {
	root.Version = buildinfo.Line("iotape")
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("{{.Version}}\n")
}
