package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// slicing is what to cut out of a tape.
type slicing struct {
	in, out  string
	from, to string
	host     string
	pids     []uint
	tree     bool
	paths    []string
	ops      []string
	classes  []string
	filter   filterFlags
	noIndex  bool
}

func newSlice(c *console) *cobra.Command {
	var s slicing
	cmd := &cobra.Command{
		Use:   "slice IN OUT",
		Short: "Cut a tape by time, process, path or call",
		Long: `Slice makes the tape OUT of a part of the tape IN.

--from and --to cut by time. One of these is given:

  1000                       the number of an event, as iotape print --json has it
  2.5s, 1m30s                time since the recording's start
  2026-05-01T12:00:00.5Z     time of the wall clock (RFC 3339)

A slice begins with what the events in it need to be understood: the processes, what
they had open and where they were. It can be replayed.

The other flags pick calls; those of different flags have to fit all, those of one
flag any. --filter picks by an expression (docs/filters.md). With the picked calls come those that say what their descriptors and
relative names stand for. docs/tapes.md says which. A replay of such a slice finds the
files as the first of its calls found them.`,
		Example: `  iotape slice db.tape last-minute.tape --from 9m
  iotape slice make.tape cc.tape --pid 4711 --tree
  iotape slice db.tape wal.tape --path '*-wal' --class data,sync
  iotape slice db.tape slow.tape --filter 'path glob *.sst and latency > 10ms'
  iotape slice all.tape server.tape --host server`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  sliced", "1  nothing is in the slice; there is no new tape", "2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.in, s.out = args[0], args[1]
			return s.run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	s.add(f)
	f.StringSliceVar(&s.paths, "path", nil, "only calls on files whose name fits `GLOB`: *, ?, [a-z]; ** fits slashes too. Without a slash it is for the last part of the name; a directory stands for what is in it")
	f.StringSliceVar(&s.ops, "op", nil, "only these calls, by `NAME` (iotape ops)")
	f.StringSliceVar(&s.classes, "class", nil, "only calls of `CLASS` data, descriptor, meta, namespace, sync, lock, memory, process, socket or wait")
	f.StringVar(&s.host, "host", "", "only this host, by its name or its number from 0; a slice of one host of a merged tape can be replayed")
	f.BoolVar(&s.noIndex, "no-index", false, "do not make the tape's Parquet files; iotape query and iotape index make them later")
	return cmd
}

// add adds the flags that pick events, of slice and of replay.
func (s *slicing) add(f *pflag.FlagSet) {
	f.StringVar(&s.from, "from", "", "the first event, by number or `TIME`")
	f.StringVar(&s.to, "to", "", "the last event, by number or `TIME`")
	f.UintSliceVar(&s.pids, "pid", nil, "only calls of these processes")
	f.BoolVar(&s.tree, "tree", false, "and of their descendants")
	s.filter.add(f)
}

// picks reports whether only a part of the tape is wanted.
func (s *slicing) picks() bool {
	return s.from != "" || s.to != "" || len(s.pids) > 0 || s.tree || s.filter.given()
}

// temporary makes a slice that lasts until the returned function is called.
func (s *slicing) temporary(ctx context.Context, c *console, t *trace.Tape) (*trace.Tape, func(), error) {
	if err := s.selection(); err != nil {
		return nil, nil, err
	}
	o := &slice.Options{Program: program()}
	var err error
	if o.Filter, err = s.filter.graph(c, t); err != nil {
		return nil, nil, err
	}
	if err := s.bounds(t, o); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "iotape-replay-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a place for the part that is replayed: %w", err)
	}
	remove := func() { os.RemoveAll(dir) }
	mk, err := c.stage(filepath.Join(dir, "part.tape"), false)
	if err != nil {
		remove()
		return nil, nil, err
	}
	defer mk.Abandon()
	err = mk.Write(func(tw *trace.TapeWriter) (*trace.Manifest, error) {
		res, err := slice.Tape(ctx, tw, t, o)
		if err != nil {
			return nil, err
		}
		return res.Manifest, nil
	})
	if err == nil {
		_, err = mk.Publish(ctx)
	}
	var part *trace.Tape
	if err == nil {
		part, err = trace.OpenTape(filepath.Join(dir, "part.tape"))
	}
	if err != nil {
		remove()
		if err == slice.ErrEmpty {
			return nil, nil, &statusError{exitFound, err}
		}
		return nil, nil, err
	}
	return part, func() { part.Close(); remove() }, nil
}

func (s *slicing) run(ctx context.Context, c *console) error {
	if err := s.selection(); err != nil {
		return err
	}
	t, err := openTape(ctx, s.in)
	if err != nil {
		return err
	}
	defer t.Close()
	o := &slice.Options{Program: program()}
	if o.Filter, err = s.filter.graph(c, t); err != nil {
		return err
	}
	if err := s.bounds(t, o); err != nil {
		return err
	}
	if err := s.pickHost(t, o); err != nil {
		return err
	}
	mk, err := c.stage(s.out, !s.noIndex)
	if err != nil {
		return err
	}
	defer mk.Abandon()
	progress := c.progress(report.Count)
	defer progress.Done()
	o.Progress = func(phase string, done, total uint64) { progress.Update(phase, int64(done), int64(total)) }
	var res *slice.Result
	err = mk.Write(func(tw *trace.TapeWriter) (_ *trace.Manifest, err error) {
		if res, err = slice.Tape(ctx, tw, t, o); err != nil {
			return nil, err
		}
		return res.Manifest, nil
	})
	progress.Done()
	if err == slice.ErrEmpty {
		return &statusError{exitFound, err}
	}
	if err != nil {
		return err
	}
	size, err := mk.Publish(ctx)
	if err != nil {
		return err
	}
	for _, name := range res.LeftOut {
		c.say("left out: %s, which is not that of the slice", name)
	}
	c.say("%s of %s events, %s with them and %s of the state before: %s", report.Count(res.Picked), report.Count(t.Manifest().Counts.Events),
		report.Count(res.Context), report.Count(res.State), report.Bytes(uint64(size)))
	return nil
}

// selection makes filters of the flags that pick calls.
func (s *slicing) selection() error {
	if s.tree && len(s.pids) == 0 {
		return usageError{fmt.Errorf("--tree is for the processes of --pid")}
	}
	for _, p := range s.paths {
		if _, err := path.Match(p, ""); err != nil {
			return usageError{fmt.Errorf("--path %s: %w", p, err)}
		}
	}
	for _, name := range s.ops {
		if event.ByName(name) == event.OpUnknown {
			return usageError{fmt.Errorf("--op %s: there is no such call; iotape ops lists them", name)}
		}
	}
	for _, name := range s.classes {
		if _, ok := classByName(name); !ok {
			return usageError{fmt.Errorf("--class %s: there is no such class", name)}
		}
	}
	var pids []string
	for _, pid := range s.pids {
		pids = append(pids, strconv.FormatUint(uint64(pid), 10))
	}
	if s.tree {
		s.filter.texts = append(s.filter.texts, "descendant of "+strings.Join(pids, " or descendant of "))
		pids = nil
	}
	var paths []string
	for _, p := range s.paths {
		paths = append(paths, predicate.Quote(p))
	}
	for _, pick := range []struct {
		test   string
		values []string
	}{{"pid in", pids}, {"path glob", paths}, {"op in", s.ops}, {"class in", s.classes}} {
		if len(pick.values) > 0 {
			s.filter.texts = append(s.filter.texts, pick.test+" {"+strings.Join(pick.values, ", ")+"}")
		}
	}
	return nil
}

func classByName(name string) (event.Class, bool) {
	for c := event.Raw; c <= event.Wait; c++ {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// bounds reads --from and --to.
func (s *slicing) bounds(t *trace.Tape, o *slice.Options) error {
	for _, b := range []struct {
		flag, text string
		seq        *uint64
		ns         *int64
	}{{"from", s.from, &o.From, &o.FromNS}, {"to", s.to, &o.To, &o.ToNS}} {
		if b.text == "" {
			continue
		}
		if n, err := strconv.ParseUint(b.text, 10, 63); err == nil {
			if b.flag == "to" {
				n++ // the last, that is
			}
			*b.seq = n
			continue
		}
		if d, err := time.ParseDuration(b.text); err == nil {
			*b.ns = t.Host(0).Wall(t.Manifest().FirstNS) + d.Nanoseconds()
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, b.text)
		if err != nil {
			return usageError{fmt.Errorf("--%s %s: neither the number of an event, nor 2.5s, nor a time as 2026-05-01T12:00:00Z", b.flag, b.text)}
		}
		*b.ns = at.UnixNano()
	}
	return nil
}

// pickHost reads --host.
func (s *slicing) pickHost(t *trace.Tape, o *slice.Options) error {
	if s.host == "" {
		return nil
	}
	var found []int
	var names []string
	for i := range t.Manifest().Hosts {
		name := t.Host(uint32(i)).Host
		names = append(names, name)
		if name == s.host || strconv.Itoa(i) == s.host {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return usageError{fmt.Errorf("--host %s: the tape is of %s", s.host, report.Printable(strings.Join(names, ", ")))}
	case 1:
		o.Host, o.OneHost = uint32(found[0]), true
		return nil
	}
	return usageError{fmt.Errorf("--host %s: several recordings in the tape are of it; give one of the numbers %v", s.host, found)}
}
