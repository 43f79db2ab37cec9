package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"runtime"

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
