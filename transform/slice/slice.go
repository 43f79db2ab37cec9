// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Options say what to keep. The zero value keeps all.
type Options struct {
	// From and To are the first and the last event, To excluded; 0 is the tape's end.
	From, To uint64
	// FromNS and ToNS are wall-clock times, in ns since 1970: the slice begins with the
	// first event that returned at or after FromNS, and ends before the first that
	// returned after ToNS. 0 is no bound.
	FromNS, ToNS int64
	// Host is the number of the one host to keep, if OneHost is set.
	Host    uint32
	OneHost bool
	// Filter picks calls; nil keeps all.
	Filter *predicate.Graph
	// Program is who slices, with its version, for the manifest.
	Program string
	// Progress is called now and then with events.
	Progress func(phase string, done, total uint64)
}

// Result says what became of it.
type Result struct {
	Manifest *trace.Manifest // for TapeWriter.Close
	State    uint64          // events of the state before the slice
	Picked   uint64          // events that were wanted
	Context  uint64          // events that came with them
	LeftOut  []string        // files of the tape: trees that do not fit
}

// ErrEmpty is returned if no event is wanted.
var ErrEmpty = errors.New("no events are in the slice")

// Tape writes a slice of a tape. The caller closes tw with the Result's Manifest.
func Tape(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, o *Options) (*Result, error) {
	c := &slicer{ctx: ctx, t: t, tw: tw, o: o, copier: trace.NewCopier(t, tw), losses: map[uint32]uint64{},
		positions: positions{at: map[event.OpenID]int64{}}}
	if o.Filter != nil {
		c.chosen = newSelection(o.Filter)
		if err := c.choose(); err != nil {
			return nil, err
		}
	}
	if err := c.write(); err != nil {
		return nil, err
	}
	if c.res.Picked == 0 {
		return nil, ErrEmpty
	}
	c.describe()
	if err := trace.WriteHeads(tw, c.res.Manifest.Hosts); err != nil {
		return nil, err
	}
	return &c.res, c.trees()
}

// slicer is one slice under way.
type slicer struct {
	ctx    context.Context
	t      *trace.Tape
	tw     *trace.TapeWriter
	o      *Options
	copier *trace.Copier
	chosen *selection // nil: all
	res    Result
	losses map[uint32]uint64 // records, by reason

	positions positions
	delays    delays

	first, end uint64 // extent in the tape, once known
	stateNS    int64  // time of the state
}

// events iterates over the tape up to the end of the slice. in says whether the slice
// has begun.
func (c *slicer) events(phase string, each func(ev *event.Event, in bool) error) error {
	var ev event.Event
	r := c.t.NewEventReader()
	in, total := false, c.t.Manifest().Counts.Events
	for n := uint64(0); ; n++ {
		if n%4096 == 0 {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			if c.o.Progress != nil {
				c.o.Progress(phase, n, total)
			}
		}
		if err := r.Next(&ev); err == io.EOF {
			c.end = n
			return nil
		} else if err != nil {
			return err
		}
		wall := c.t.Host(ev.Host).Wall(ev.Exit)
		if c.o.To != 0 && ev.Seq >= c.o.To || c.o.ToNS != 0 && wall > c.o.ToNS {
			c.end = n
			return nil
		}
		if !in && ev.Seq >= c.o.From && (c.o.FromNS == 0 || wall >= c.o.FromNS) {
			in, c.first = true, n
		}
		if c.o.OneHost && ev.Host != c.o.Host {
			continue
		}
		if err := each(&ev, in); err != nil {
			return err
		}
	}
}

func (c *slicer) write() error {
	var before *priorState
	if c.chosen != nil {
		c.chosen.matcher = c.chosen.filter.NewMatcher()
	}
	return c.events("slicing", func(ev *event.Event, in bool) error {
		picked := c.chosen.picks(ev)
		if !in {
			if before == nil {
				before = newBefore()
			}
			before.see(ev)
			return nil
		}
		if before != nil {
			c.stateNS = min(ev.Enter, ev.Exit) - 1
			if err := c.state(before); err != nil {
				return err
			}
			before = nil
		}
		switch {
		case picked:
			c.res.Picked++
		case c.chosen.needs(ev):
			c.res.Context++
		default:
			c.delays.leftOut(ev)
			return nil
		}
		if c.chosen != nil {
			c.delays.kept(ev)
			arch, _ := event.ParseArch(c.t.Host(ev.Host).Arch)
			if stand := c.positions.before(ev, arch); stand != nil {
				c.res.Context++
				if err := c.put(stand); err != nil {
					return err
				}
			}
			c.positions.after(ev)
		}
		if ev.Kind == event.LossMark {
			loss := ev.Loss()
			c.losses[loss.Reason] += loss.Records
		}
		if err := c.copier.Content(ev); err != nil {
			return err
		}
		return c.put(ev)
	})
}

// state writes the events of the state.
func (c *slicer) state(b *priorState) error {
	for ev := range b.state() {
		if !c.chosen.needs(ev) {
			continue
		}
		ev.Enter, ev.Exit = c.stateNS, c.stateNS
		c.res.State++
		c.positions.after(ev)
		if err := c.put(ev); err != nil {
			return err
		}
	}
	return nil
}

func (c *slicer) put(ev *event.Event) error {
	if c.o.OneHost {
		ev.Host = 0
	}
	return c.tw.Write(ev)
}

// describe makes the manifest.
func (c *slicer) describe() {
	old := c.t.Manifest()
	m := &trace.Manifest{Program: c.o.Program, Hosts: slices.Clone(old.Hosts), ExitStatus: old.ExitStatus,
		Signal: old.Signal, Anonymised: old.Anonymised.Unsigned()}
	if c.o.OneHost {
		m.Hosts = []trace.Host{*c.t.Host(c.o.Host)}
	}
	what := fmt.Sprintf("slice: events %d to %d of %s", c.first, max(c.end, 1)-1, c.t.Name())
	if c.chosen != nil {
		what += ", of which some"
	}
	for i := range m.Hosts {
		m.Hosts[i].Rotation = nil // it is no part that can be joined with others
		m.Hosts[i].Window = &trace.Window{SinceNS: c.stateNS, Reason: what}
	}
	if m.Losses = trace.Losses(c.losses); len(m.Losses) > 0 {
		m.Incomplete, m.Reason = true, "records were lost"
	}
	if old.Incomplete && c.end == old.Counts.Events {
		m.Incomplete, m.Reason = true, old.Reason
	}
	c.res.Manifest = m
}

// trees copies the trees that fit.
func (c *slicer) trees() error {
	start := c.first == 0 && c.chosen == nil
	whole := start && c.end == c.t.Manifest().Counts.Events
	for _, name := range slices.Sorted(maps.Keys(c.t.Manifest().Files)) {
		host, file := trace.SplitHostFile(name)
		if !seal.IsTree(file) || c.o.OneHost && uint32(host) != c.o.Host {
			continue
		}
		if file == trace.FinalName && !whole || !start {
			c.res.LeftOut = append(c.res.LeftOut, name)
			continue
		}
		to := name
		if c.o.OneHost {
			to = file
		}
		if err := seal.CopyTree(c.ctx, c.copier, name, to); err != nil {
			return err
		}
	}
	return nil
}
