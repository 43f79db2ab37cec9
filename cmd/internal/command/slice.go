// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/transform/slice"
)

func newSlice(c *cli.Console) *cobra.Command {
	var s cli.Part
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "slice IN OUT",
		Short: "Cut a tape by time, process, path or call",
		Long: `Slice makes the tape OUT of a part of the tape IN.

--from and --to cut by time. They have one of these forms:

  1000                       the number of an event, as iotape print --json shows it
  2.5s, 1m30s                the time since the start of the recording
  2026-05-01T12:00:00.5Z     the time of the wall clock (RFC 3339)
  note:TEXT                  the first note with this text (docs/notes.md)

A slice begins with the state that its events need: the processes, their open files
and their working directories. You can replay it.

The other flags select calls. A call must match all flags, and one value of each flag.
--filter selects by an expression (docs/filters.md). The slice also has the calls that
explain the descriptors and relative names of the selected calls. docs/tapes.md lists
these calls. A replay of such a slice finds the files as the first of its calls found
them.`,
		Example: `  iotape slice db.tape last-minute.tape --from 9m
  iotape slice make.tape cc.tape --pid 4711 --tree
  iotape slice db.tape load.tape --between-notes 'load,load done'
  iotape slice db.tape wal.tape --path '*-wal' --class data,sync
  iotape slice db.tape slow.tape --filter 'path glob *.sst and latency > 10ms'
  iotape slice all.tape server.tape --host server`,
		Args: cobra.ExactArgs(2),
		Annotations: cli.Exits("0  sliced", "1  the slice would be empty; there is no new tape",
			"2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			o, err := s.Options(c, t)
			if err != nil {
				return err
			}
			return cli.Found(remake.Slice(cmd.Context(), args[1], t, o, c.Remaking(!noIndex)), slice.ErrEmpty)
		},
	}
	f := cmd.Flags()
	s.Add(f)
	f.StringSliceVar(&s.Paths, "path", nil,
		"only calls on files whose names match `GLOB`: *, ?, [a-z]; ** also matches slashes. A pattern without a "+
			"slash applies to the last part of the name; a directory includes all files in it")
	f.StringSliceVar(&s.Ops, "op", nil, "only calls of these operations, by `NAME` (iotape ops)")
	f.StringSliceVar(&s.Classes, "class", nil,
		"only calls of `CLASS` data, descriptor, meta, namespace, sync, lock, memory, process, socket or wait")
	f.StringVar(&s.Host, "host", "",
		"only the host `NAME`, or the host with this number, from 0; a slice of one host of a merged tape can be "+
			"replayed")
	cli.AddNoIndex(f, &noIndex)
	return cmd
}
