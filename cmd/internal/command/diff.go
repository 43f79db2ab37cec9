// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/diff"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/printtape"
)

func newDiff(c *cli.Console) *cobra.Command {
	var o diff.Options
	var classes []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two tapes call by call",
		Long: `Diff shows the changes between two recordings of a program: of two versions, or of two
runs. It prints how calls, bytes, time and errors differ by operation, the first call
that differs, and the files that only one of the recordings used. Then it prints the
calls that differ, thread by thread, as diff -u does with lines.

Two calls are the same if they have the same operation, error, names, flags, sizes,
offsets and objects of their descriptors. Diff ignores the numbers of processes and
descriptors, addresses, times, the random part of temporary names and, without
--content, the bytes in buffers. It compares names below the initial working directory
relative to that directory. For pipes and sockets, it ignores how the bytes are split
into calls.`,
		Example: `  iotape diff old.tape new.tape
  iotape diff --content --unified 0 old.tape new.tape
  iotape diff --class data,sync --json old.tape new.tape | jq .ops`,
		Args:        cobra.ExactArgs(2),
		Annotations: cli.Exits("0  all compared calls are the same", "1  some calls differ", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range classes {
				if name == "all" {
					for class := event.Raw; int(class) < event.NumClasses; class++ {
						o.Classes = append(o.Classes, class)
					}
					continue
				}
				class, ok := event.ClassByName(name)
				if !ok {
					return cli.Usage(fmt.Errorf("--class %s: this class does not exist", name))
				}
				o.Classes = append(o.Classes, class)
			}
			if o.Context < 0 {
				return cli.Usage(fmt.Errorf("--unified %d: the value is negative", o.Context))
			}
			tapes, closeAll, err := cli.OpenTapes(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			progress := c.Progress(report.Count)
			defer progress.Done()
			o.Progress = func(phase string, done, total uint64) { progress.Update(phase, int64(done), int64(total)) }
			o.Render = printtape.Calls()
			rep, err := diff.Tapes(cmd.Context(), tapes[0], tapes[1], &o)
			progress.Done()
			if err != nil {
				return err
			}
			return c.Result(cli.Either(asJSON, rep.JSON, rep.Text), rep.Same())
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Context, "unified", "U", 3, "show `N` equal calls around the calls that differ")
	f.BoolVar(&o.Content, "content", false, "also compare the content of calls")
	f.StringSliceVar(&classes, "class", nil,
		"compare only calls of `CLASS` data, descriptor, meta, namespace, sync, lock, memory, process, socket, wait "+
			"or all (default: all except memory, wait and block)")
	f.IntVar(&o.MaxCalls, "max-calls", 1000, "show at most `N` calls that differ; 0 means all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
