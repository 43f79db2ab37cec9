package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/diff"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/printtape"
)

func newDiff(c *console) *cobra.Command {
	var o diff.Options
	var classes []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two tapes call by call",
		Long: `Diff says what has changed between two recordings of a program: of two versions of
it, or of two runs. It writes how calls, bytes, time and errors differ by operation,
the first call that differs, the files that only one of them used, and the calls that
differ, thread by thread, as diff -u does with lines.

Calls are the same if operation, error, names, flags, sizes and offsets are, and what
their descriptors stand for. Numbers of processes and descriptors, addresses, times
and the random part of temporary names do not count, nor does what is in buffers
without --content. Names in the directory where the command was started are taken
relative to it. Of pipes and sockets it does not count in what pieces bytes arrive.`,
		Example: `  iotape diff old.tape new.tape
  iotape diff --content --unified 0 old.tape new.tape
  iotape diff --class data,sync --json old.tape new.tape | jq .ops`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  all calls that are compared are the same", "1  some differ", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range classes {
				if name == "all" {
					for class := event.Raw; class <= event.Wait; class++ {
						o.Classes = append(o.Classes, class)
					}
					continue
				}
				class, ok := event.ClassByName(name)
				if !ok {
					return usageError{fmt.Errorf("--class %s: there is no such class", name)}
				}
				o.Classes = append(o.Classes, class)
			}
			if o.Context < 0 {
				return usageError{fmt.Errorf("--unified %d: less than none", o.Context)}
			}
			tapes, closeAll, err := openTapes(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			progress := c.progress(report.Count)
			defer progress.Done()
			o.Progress = func(phase string, done, total uint64) { progress.Update(phase, int64(done), int64(total)) }
			o.Render = printtape.Calls()
			rep, err := diff.Tapes(cmd.Context(), tapes[0], tapes[1], &o)
			progress.Done()
			if err != nil {
				return err
			}
			return c.result(either(asJSON, rep.JSON, rep.Text), rep.Same())
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Context, "unified", "U", 3, "show `N` calls that are the same around those that differ")
	f.BoolVar(&o.Content, "content", false, "compare the bytes that were moved, too")
	f.StringSliceVar(&classes, "class", nil, "compare only calls of `CLASS` data, descriptor, meta, namespace, sync, lock, memory, process, socket, wait or all; all but memory and wait if not given")
	f.IntVar(&o.MaxCalls, "max-calls", 1000, "show at most `N` calls that differ; 0 is all")
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}
