// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// slicing is what to cut out of a tape.
type slicing struct {
	slice.Pick
	filter cli.FilterFlags
}

func newSlice(c *cli.Console) *cobra.Command {
	var s slicing
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "slice IN OUT",
		Short: "Cut a tape by time, process, path or call",
		Long: `Slice makes the tape OUT of a part of the tape IN.

--from and --to cut by time. They have one of these forms:

  1000                       the number of an event, as iotape print --json shows it
  2.5s, 1m30s                the time since the start of the recording
  2026-05-01T12:00:00.5Z     the time of the wall clock (RFC 3339)

A slice begins with the state that its events need: the processes, their open files
and their working directories. You can replay it.

The other flags select calls. A call must match all flags, and one value of each flag.
--filter selects by an expression (docs/filters.md). The slice also has the calls that
explain the descriptors and relative names of the selected calls. docs/tapes.md lists
these calls. A replay of such a slice finds the files as the first of its calls found
them.`,
		Example: `  iotape slice db.tape last-minute.tape --from 9m
  iotape slice make.tape cc.tape --pid 4711 --tree
  iotape slice db.tape wal.tape --path '*-wal' --class data,sync
  iotape slice db.tape slow.tape --filter 'path glob *.sst and latency > 10ms'
  iotape slice all.tape server.tape --host server`,
		Args: cobra.ExactArgs(2),
		Annotations: cli.Exits("0  sliced", "1  the slice would be empty; there is no new tape",
			"2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), c, args[0], args[1], !noIndex)
		},
	}
	f := cmd.Flags()
	s.add(f)
	f.StringSliceVar(&s.Paths, "path", nil,
		"only calls on files whose names match `GLOB`: *, ?, [a-z]; ** also matches slashes. A pattern without a "+
			"slash applies to the last part of the name; a directory includes all files in it")
	f.StringSliceVar(&s.Ops, "op", nil, "only calls of these operations, by `NAME` (iotape ops)")
	f.StringSliceVar(&s.Classes, "class", nil,
		"only calls of `CLASS` data, descriptor, meta, namespace, sync, lock, memory, process, socket or wait")
	f.StringVar(&s.Host, "host", "",
		"only this host, by its name or its number from 0; a slice of one host of a merged tape can be replayed")
	cli.AddNoIndex(f, &noIndex)
	return cmd
}

// add adds the flags that pick events, of slice and of replay.
func (s *slicing) add(f *pflag.FlagSet) {
	f.StringVar(&s.From, "from", "", "the first event, by number or `TIME`")
	f.StringVar(&s.To, "to", "", "the last event, by number or `TIME`")
	f.UintSliceVar(&s.PIDs, "pid", nil, "only calls of these processes")
	f.BoolVar(&s.Tree, "tree", false, "with --pid: also calls of the descendants of these processes")
	s.filter.Add(f)
}

// picks reports whether only a part of the tape is wanted.
func (s *slicing) picks() bool { return !s.All() || s.filter.Given() }

// options says what is wanted of a tape.
func (s *slicing) options(c *cli.Console, t *trace.Tape) (*slice.Options, error) {
	o := &slice.Options{Program: cli.Program()}
	var err error
	if o.Filter, err = s.filter.Graph(c, t); err != nil {
		return nil, err
	}
	if err := s.Apply(t, o); err != nil {
		return nil, cli.Usage(err)
	}
	return o, nil
}

// pickCalls makes filters of the flags that pick calls.
func (s *slicing) pickCalls() error {
	filters, err := s.Filters()
	if err != nil {
		return cli.Usage(err)
	}
	s.filter.Texts = append(s.filter.Texts, filters...)
	return nil
}

// temporary makes a slice that is gone when it is closed.
func (s *slicing) temporary(ctx context.Context, c *cli.Console, t *trace.Tape) (*trace.Tape, error) {
	if err := s.pickCalls(); err != nil {
		return nil, err
	}
	o, err := s.options(c, t)
	if err != nil {
		return nil, err
	}
	part, err := slice.Temporary(ctx, t, "", o)
	return part, cli.Found(err, slice.ErrEmpty)
}

func (s *slicing) run(ctx context.Context, c *cli.Console, in, out string, index bool) error {
	if err := s.pickCalls(); err != nil {
		return err
	}
	t, err := cli.OpenTape(ctx, in)
	if err != nil {
		return err
	}
	defer t.Close()
	o, err := s.options(c, t)
	if err != nil {
		return err
	}
	var res *slice.Result
	made, err := sealing.Make(ctx, out, c.Making(index, report.Count),
		func(tw *trace.TapeWriter, update sealing.Update) (_ *trace.Manifest, err error) {
			o.Progress = update
			if res, err = slice.Tape(ctx, tw, t, o); err != nil {
				return nil, err
			}
			return res.Manifest, nil
		})
	if err != nil {
		return cli.Found(err, slice.ErrEmpty)
	}
	for _, name := range res.LeftOut {
		c.Say("left out: %s, which is not that of the slice", name)
	}
	c.Say("%s of %s events, %s with them and %s of the state before: %s", report.Count(res.Picked),
		report.Count(t.Manifest().Counts.Events),
		report.Count(res.Context), report.Count(res.State), report.Bytes(uint64(made.Bytes)))
	return nil
}
