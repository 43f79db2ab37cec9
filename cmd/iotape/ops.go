package main

import (
	"bufio"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
)

func newOps(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "List the operations that iotape knows",
		Long: `Ops lists the operation table: every system call that iotape knows by its arguments, which
memory of it is recorded, and what a replay does with it. Any other call is recorded
with its number and raw arguments.`,
		Example: `  iotape ops
  iotape ops --json | jq -r 'select(.replay != "native") | "\(.name): \(.why)"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.print(func(w *bufio.Writer) error { return writeOps(w, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}

// opJSON is a line of ops --json; fields are only ever added.
type opJSON struct {
	Op     int      `json:"op"`
	Name   string   `json:"name"`
	Class  string   `json:"class"`
	Args   []string `json:"args"`
	AMD64  int      `json:"amd64"` // -1: no such call
	ARM64  int      `json:"arm64"`
	Replay string   `json:"replay"`
	Why    string   `json:"why,omitempty"`
	// Captured are the arguments whose memory is recorded, with the way it goes.
	Captured []string `json:"captured"`
}

func writeOps(w *bufio.Writer, asJSON bool) error {
	t := report.Table{Head: []string{"operation", "class", "amd64", "arm64", "replay", "captured", "arguments"}, Left: 7}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	number := func(n int) string {
		if n < 0 {
			return "–"
		}
		return strconv.Itoa(n)
	}
	for _, s := range event.Specs() {
		o := opJSON{int(s.Op), s.Name, s.Class.String(), []string{}, event.Number(event.AMD64, s.Op), event.Number(event.ARM64, s.Op), s.Replay.String(), s.Why, append([]string{}, s.Captured()...)}
		for _, a := range s.Args {
			o.Args = append(o.Args, a.Name)
		}
		if asJSON {
			if err := enc.Encode(o); err != nil {
				return err
			}
			continue
		}
		t.Add(o.Name, o.Class, number(o.AMD64), number(o.ARM64), o.Replay, strings.Join(o.Captured, ", "), strings.Join(o.Args, ", "))
	}
	if asJSON {
		return nil
	}
	return t.Write(w)
}
