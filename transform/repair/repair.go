// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Options for Tape. Nil and zero values are the defaults.
type Options struct {
	Program  string                   // who repairs, with its version
	Progress func(done, total uint64) // is called now and then with events; it may be nil
}

// Result says what became of it.
type Result struct {
	Manifest   *trace.Manifest // for TapeWriter.Close
	Events     uint64          // kept
	Lost       uint64          // events, as far as it is known
	Tail       bool            // how many are gone at the end is not known
	Bytes      int64           // of content that are gone
	Trees      []string        // files that are gone
	NoManifest bool            // how the command ended is gone, and what the recording had lost
	Unknown    bool            // and machine, command and clock
}

// OK reports whether nothing was lost.
func (r *Result) OK() bool {
	return r.Lost == 0 && !r.Tail && r.Bytes == 0 && len(r.Trees) == 0 && !r.NoManifest
}

// Open opens a tape for repair: as it is if its manifest is sound, else by
// trace.Salvage.
func Open(dir string) (*trace.Tape, error) {
	t, err := trace.Open(dir)
	if err == nil {
		return t, nil
	}
	if !errors.Is(err, trace.ErrCorrupt) && !errors.Is(err, trace.ErrTruncated) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s, salvageErr := trace.Salvage(dir)
	if salvageErr != nil {
		return nil, fmt.Errorf("%w; %w", err, salvageErr)
	}
	return s, nil
}

// Tape writes what is good of a tape to tw. The caller closes tw with the Result's
// Manifest.
func Tape(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, o *Options) (*Result, error) {
	if o == nil {
		o = &Options{}
	}
	old := t.Manifest()
	f := &fix{ctx: ctx, t: t, tw: tw, o: o, copier: trace.NewCopier(t, tw)}
	f.copier.Salvage, f.res.NoManifest = true, t.NoManifest()
	if err := f.events(old.Counts.Events); err != nil {
		return nil, err
	}
	m := &trace.Manifest{Program: o.Program, Hosts: slices.Clone(old.Hosts), ExitStatus: old.ExitStatus,
		Signal: old.Signal, Losses: slices.Clone(old.Losses), Anonymised: old.Anonymised.Unsigned()}
	if len(m.Hosts) < f.hosts {
		f.res.Unknown = true
		for len(m.Hosts) < f.hosts {
			m.Hosts = append(m.Hosts, trace.Host{Head: trace.Head{Host: "unknown", Arch: event.AMD64.String()}})
		}
	}
	if err := trace.WriteHeads(tw, m.Hosts); err != nil {
		return nil, err
	}
	if err := f.trees(); err != nil {
		return nil, err
	}
	f.res.Bytes = f.copier.Lost
	if f.res.Lost > 0 {
		m.Losses = append(m.Losses, trace.Loss{Reason: trace.LossReason(trace.LossDamage), Records: f.res.Lost})
	}
	m.Incomplete, m.Reason = old.Incomplete, old.Reason
	if !f.res.OK() {
		m.Incomplete, m.Reason = true, f.res.reason()
	}
	f.res.Manifest = m
	return &f.res, nil
}

// reason says in words what was lost.
func (r *Result) reason() string {
	var lost []string
	if r.Lost > 0 {
		lost = append(lost, fmt.Sprintf("%d events", r.Lost))
	}
	if r.Tail {
		lost = append(lost, "an unknown number of events at the end")
	}
	if r.Bytes > 0 {
		lost = append(lost, fmt.Sprintf("%d bytes of content", r.Bytes))
	}
	lost = append(lost, r.Trees...)
	switch {
	case r.Unknown:
		lost = append(lost, "all that is known of the recording but its events")
	case r.NoManifest:
		lost = append(lost, "the exit status, and what had been lost before")
	}
	return "the tape was damaged, and repaired; lost are " + strings.Join(lost, ", ")
}

// fix is one repair under way.
type fix struct {
	ctx    context.Context
	t      *trace.Tape
	tw     *trace.TapeWriter
	o      *Options
	copier *trace.Copier
	res    Result
	hosts  int // highest of an event + 1
}

// events copies the events; total is how many there should be, as far as it is known.
func (f *fix) events(total uint64) error {
	r := f.t.NewEventReader()
	var ev event.Event
	next, last := uint64(0), int64(0) // number of the event that should come, time of the last
	torn := false
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := f.ctx.Err(); err != nil {
				return err
			}
			if f.o.Progress != nil {
				f.o.Progress(next, total)
			}
		}
		err := r.Next(&ev)
		if err == io.EOF {
			break
		}
		if err != nil {
			if !errors.Is(err, trace.ErrCorrupt) && !errors.Is(err, trace.ErrTruncated) {
				return err
			}
			torn = true
			continue
		}
		if ev.Seq > next {
			if err := f.gap(ev.Seq-next, ev.Host, ev.Exit); err != nil {
				return err
			}
		}
		next, last = ev.Seq+1, ev.Exit
		f.hosts = max(f.hosts, int(min(ev.Host, maxHosts))+1)
		if err := f.copier.Content(&ev); err != nil {
			return err
		}
		if err := f.tw.Write(&ev); err != nil {
			return err
		}
		f.res.Events++
	}
	if f.hosts > maxHosts {
		return fmt.Errorf("events of more than %d hosts: %w", maxHosts, trace.ErrCorrupt)
	}
	if total > next {
		return f.gap(total-next, 0, last)
	}
	f.res.Tail = f.t.Torn() || torn && f.res.Lost == 0
	return nil
}

// maxHosts is as many as a tape can have.
const maxHosts = 1 << 16

// gap marks lost events.
func (f *fix) gap(n uint64, host uint32, at int64) error {
	f.res.Lost += n
	f.hosts = max(f.hosts, int(min(host, maxHosts))+1)
	ev := event.Event{Host: host, Enter: at, Exit: at, Offset: -1, Count: -1}
	ev.SetLoss(event.Loss{Records: n, Reason: trace.LossDamage})
	return f.tw.Write(&ev)
}

// trees copies the trees that are whole.
func (f *fix) trees() error {
	for _, name := range slices.Sorted(maps.Keys(f.t.Manifest().Files)) {
		if _, file := trace.SplitHostFile(name); !seal.IsTree(file) {
			continue
		}
		// A tree that is not whole leaves no file behind: it is read before it is written.
		err := seal.CopyTree(f.ctx, f.copier, name, name)
		if f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		if err != nil {
			f.res.Trees = append(f.res.Trees, name)
		}
	}
	return nil
}
