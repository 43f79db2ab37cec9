package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

func newVersion(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and those of the formats",
		Example: "  iotape version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.print(func(w *bufio.Writer) error {
				if asJSON {
					return json.NewEncoder(w).Encode(map[string]any{
						"version": version(), "go": runtime.Version(), "arch": runtime.GOARCH,
						"stream_version": trace.StreamVersion, "tape_version": trace.TapeVersion, "operations": len(event.Specs()),
					})
				}
				_, err := fmt.Fprintf(w, "iotape %s (%s, %s); streams up to version %d, tapes up to %d, %d operations\n",
					version(), runtime.Version(), runtime.GOARCH, trace.StreamVersion, trace.TapeVersion, len(event.Specs()))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// program is the name and version that goes into recordings.
func program() string { return "iotape " + version() }

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(len(s.Value), 12)]
		}
	}
	if v == "" {
		return "devel"
	}
	return strings.Trim(v, "()")
}
