// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Options for Tapes. Nil and zero values are the defaults.
type Options struct {
	// Program is who merges, with its version, for the manifest.
	Program string
	// Progress is called now and then with events.
	Progress func(done, total uint64)
}

// Tapes writes the events of all tapes to tw, with their content and trees of files.
// It returns the manifest for tw.Close. The tapes' hosts follow each other in it.
//
// The snapshots of a host, and its final tree, are stored under trace.HostFile if
// there is more than one host.
func Tapes(ctx context.Context, tw *trace.TapeWriter, tapes []*trace.Tape, o *Options) (*trace.Manifest, error) {
	if len(tapes) == 0 {
		return nil, errors.New("no tapes to merge")
	}
	if o == nil {
		o = &Options{}
	}
	m := &trace.Manifest{Program: o.Program}
	chains, err := chain(tapes)
	if err != nil {
		return nil, err
	}
	j := merger{tw: tw, step: uint64(len(chains))}
	total := uint64(0)
	for i, parts := range chains {
		s := &source{index: i, host: uint32(len(m.Hosts)), parts: parts, key: math.MinInt64}
		s.open(tw)
		j.sources = append(j.sources, s)
		m.Hosts = append(m.Hosts, hostsOf(parts)...)
		for _, t := range parts {
			total += t.Manifest().Counts.Events
		}
	}
	j.clock(m.Hosts)
	describe(m, tapes)
	for _, s := range j.sources {
		for _, t := range s.parts {
			if err := s.trees(ctx, tw, t, len(m.Hosts)); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name(), err)
			}
		}
	}
	if err := trace.WriteHeads(tw, m.Hosts); err != nil {
		return nil, err
	}
	return m, j.run(ctx, total, o.Progress)
}

// LostKeys reports whether the tape with manifest m, merged of tapes, cannot be revealed though
// some of them could.
func LostKeys(m *trace.Manifest, tapes []*trace.Tape) bool {
	return m.Anonymised == nil &&
		slices.ContainsFunc(tapes, func(t *trace.Tape) bool { return t.Manifest().Anonymised != nil })
}

// describe puts together what the manifests say of their recordings. Of tapes that are
// anonymised in different ways none can be revealed any more.
func describe(m *trace.Manifest, tapes []*trace.Tape) {
	m.Anonymised = tapes[0].Manifest().Anonymised.Unsigned()
	losses := map[string]int{}
	var reasons []string
	for _, t := range tapes {
		one := t.Manifest()
		if m.ExitStatus == 0 && m.Signal == 0 { // the first that failed
			m.ExitStatus, m.Signal = one.ExitStatus, one.Signal
		}
		for _, l := range one.Losses {
			i, ok := losses[l.Reason]
			if !ok {
				i = len(m.Losses)
				losses[l.Reason] = i
				m.Losses = append(m.Losses, trace.Loss{Reason: l.Reason})
			}
			m.Losses[i].Records += l.Records
		}
		if !reflect.DeepEqual(one.Anonymised.Unsigned(), m.Anonymised) {
			m.Anonymised = nil
		}
		if one.Incomplete {
			reasons = append(reasons, fmt.Sprintf("%s: %s", t.Name(), one.Reason))
		}
	}
	m.Incomplete, m.Reason = len(reasons) > 0, strings.Join(reasons, "; ")
}

// merger is a merge under way: a heap of tapes by the time of their next event.
type merger struct {
	tw      *trace.TapeWriter
	sources []*source
	step    uint64 // number of tapes: what the numbers of open files are multiplied with
}

// source is one of the tapes, or the parts of a recording that was rotated.
type source struct {
	parts  []*trace.Tape
	part   int         // of them, that is read
	tape   *trace.Tape // that is it
	state  int64       // time of the events at its beginning that say the state, which are left out; 0: none
	index  int
	host   uint32  // number of its first host among all
	shift  []int64 // ns, by its hosts: from their clocks to the common one
	events *trace.EventReader
	copier *trace.Copier
	next   event.Event
	key    int64 // common clock: the latest return so far, next's included
}

// clock puts all hosts on one clock: that which is furthest ahead of the wall clock,
// so that no time becomes negative.
func (j *merger) clock(hosts []trace.Host) {
	if len(hosts) == 0 {
		return
	}
	ahead := hosts[0].ClockNS - hosts[0].WallNS
	for i := range hosts {
		ahead = max(ahead, hosts[i].ClockNS-hosts[i].WallNS)
	}
	shifts := make([]int64, len(hosts))
	for i := range hosts {
		h := &hosts[i]
		shifts[i] = ahead - (h.ClockNS - h.WallNS)
		h.ClockNS += shifts[i]
		if w := h.Window; w != nil && w.SinceNS != 0 {
			moved := *w
			moved.SinceNS += shifts[i]
			h.Window = &moved
		}
	}
	for _, s := range j.sources {
		s.shift = shifts[s.host : int(s.host)+len(s.parts[0].Manifest().Hosts)]
	}
}

func (j *merger) run(ctx context.Context, total uint64, progress func(done, total uint64)) error {
	live := j.sources
	j.sources = nil
	for _, s := range live {
		if err := j.advance(s); err != nil {
			return err
		}
	}
	for done := uint64(0); len(j.sources) > 0; done++ {
		if done%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(done, total)
			}
		}
		s := j.sources[0]
		if err := s.copier.Content(&s.next); err != nil {
			return fmt.Errorf("%s: %w", s.tape.Name(), err)
		}
		if err := j.tw.Write(&s.next); err != nil {
			return err
		}
		heap.Pop(j)
		if err := j.advance(s); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the next event of a tape and puts it into the heap.
func (j *merger) advance(s *source) error {
	ev := &s.next
	if err := s.read(j.tw, ev); err == io.EOF {
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", s.tape.Name(), err)
	}
	if int(ev.Host) < len(s.shift) { // an EventReader of a sound tape gives no others
		ev.Enter += s.shift[ev.Host]
		ev.Exit += s.shift[ev.Host]
	}
	ev.Host += s.host
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Open != 0 {
			f.Open = f.Open*event.OpenID(j.step) + event.OpenID(s.index)
		}
	}
	s.key = max(s.key, ev.Exit)
	heap.Push(j, s)
	return nil
}

func (j *merger) Len() int { return len(j.sources) }

func (j *merger) Less(a, b int) bool {
	x, y := j.sources[a], j.sources[b]
	return x.key < y.key || x.key == y.key && x.index < y.index
}

func (j *merger) Swap(a, b int) { j.sources[a], j.sources[b] = j.sources[b], j.sources[a] }

// Push is heap.Interface's.
func (j *merger) Push(x any) { j.sources = append(j.sources, x.(*source)) }

// Pop is heap.Interface's.
func (j *merger) Pop() any {
	s := j.sources[len(j.sources)-1]
	j.sources = j.sources[:len(j.sources)-1]
	return s
}

// trees copies the trees of files, under names by host if there are several hosts.
func (s *source) trees(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, hosts int) error {
	copier := trace.NewCopier(t, tw)
	for _, name := range slices.Sorted(maps.Keys(t.Manifest().Files)) {
		host, file := trace.SplitHostFile(name)
		if !seal.IsTree(file) {
			continue
		}
		to := file
		if hosts > 1 {
			to = trace.HostFile(int(s.host)+host, file)
		}
		if err := seal.CopyTree(ctx, copier, name, to); err != nil {
			return err
		}
	}
	return nil
}
