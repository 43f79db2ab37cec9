package seal

import (
	"strings"

	"iotape/event"
	"iotape/posix"
	"iotape/trace"
)

// Follower applies a stream to the model as Seal does, but keeps no events: only
// the state of processes and descriptors, which it can write as the records that a
// stream begins with. So a stream can be cut and still be sealed as if all of it
// had been there.
//
// Events are applied in their order, which may be some frames after their records
// were read. Until then the records are still needed.
type Follower struct {
	s       sealer
	applied func(at uint64)
	opens   map[event.OpenID]*openFacts
	inodes  map[fileID]*inodeFacts
}

// openFacts is what is known of an open file, beyond the model.
type openFacts struct {
	id    fileID
	path  string // its present name, as far as the stream tells; "" if it has none
	pos   int64
	flags uint32 // from the kernel; 0 if it did not say
}

// inodeFacts is what was last seen of a file that is open.
type inodeFacts struct {
	file  event.File
	opens int
}

// followSlackNS is slackNS for a Follower, for which less time is less memory. What
// back ends say of their clocks (trace.Frame.Until) is exact by itself.
const followSlackNS = 2e6

// noRecord is where the record of an event is that has none.
const noRecord = ^uint64(0)

// NewFollower returns a Follower that has seen nothing. applied is told when an
// event was applied: where its record was, as passed to Frame.
func NewFollower(applied func(at uint64)) *Follower {
	f := &Follower{applied: applied, opens: map[event.OpenID]*openFacts{}, inodes: map[fileID]*inodeFacts{}}
	f.s = sealer{
		slack: followSlackNS, model: posix.New(), stats: &Stats{Head: &trace.Head{}, nLosses: map[uint32]uint64{}},
		threads: map[uint32]*thread{}, requests: map[callKey]request{}, open: map[callKey]*item{}, positions: newPositions(),
		applied: f.apply,
	}
	return f
}

// Frame reads the next frame of records, whose payload begins at a place of the
// caller's numbering. It returns how many events it will report as applied.
func (f *Follower) Frame(h *trace.Frame, payload []byte, at uint64) (events int, err error) {
	f.s.at = noRecord
	if err := f.s.begin(h); err != nil {
		return 0, err
	}
	for off := 0; off < len(payload); {
		body, next, err := trace.NextRecord(payload, off)
		if err != nil {
			return events, err
		}
		if body != nil {
			before := f.s.order
			f.s.at = at + uint64(off)
			if err := f.s.rec.Decode(body); err != nil {
				return events, err
			}
			if err := f.s.record(&f.s.rec); err != nil {
				return events, err
			}
			f.s.at = noRecord
			if f.s.rec.Type != trace.RecLoss {
				events += int(f.s.order - before)
			}
		}
		off = next
	}
	return events, nil
}

// Flush applies events that were read until none is left whose record is before a
// place. If records of the same time are still to come, those are out of order.
func (f *Follower) Flush(before uint64) error {
	until := uint64(0)
	for _, it := range f.s.queue.h {
		if it.at < before {
			until = max(until, it.key)
		}
	}
	return f.s.emit(until, true)
}

// apply follows an event that the model has applied.
func (f *Follower) apply(it *item, released []event.OpenID) {
	ev := &it.ev
	if ev.Kind == event.Call && ev.OK() {
		f.renamed(ev)
	}
	for i := range ev.Files {
		if o := &ev.Files[i]; o.Open != 0 {
			f.see(o)
		}
	}
	f.forget(released)
	if it.at != noRecord && ev.Kind != event.LossMark {
		f.applied(it.at)
	}
}

// see notes what an event says of an open file.
func (f *Follower) see(file *event.File) {
	o := f.opens[file.Open]
	if o == nil {
		o = &openFacts{path: file.Path}
		f.opens[file.Open] = o
	}
	if !file.Known {
		return
	}
	o.pos, o.flags = file.Pos, file.Flags
	if id := (fileID{file.Dev, file.Ino}); o.id != id {
		f.letGo(o)
		o.id = id
		n := f.inodes[id]
		if n == nil {
			n = &inodeFacts{}
			f.inodes[id] = n
		}
		n.opens++
	}
	f.inodes[o.id].file = *file
}

// letGo takes an open file away from its inode.
func (f *Follower) letGo(o *openFacts) {
	if n := f.inodes[o.id]; n != nil {
		if n.opens--; n.opens == 0 {
			delete(f.inodes, o.id)
		}
	}
}

// forget drops open files that nobody has open any more.
func (f *Follower) forget(ids []event.OpenID) {
	for _, id := range ids {
		if o := f.opens[id]; o != nil {
			f.letGo(o)
			delete(f.opens, id)
		}
	}
}

// renamed follows the names of open files.
func (f *Follower) renamed(ev *event.Event) {
	switch ev.Op {
	case event.OpUnlink, event.OpUnlinkat, event.OpRmdir:
		if len(ev.Paths) == 1 {
			f.gone(ev.Paths[0].Abs)
		}
	case event.OpRename, event.OpRenameat, event.OpRenameat2:
		if len(ev.Paths) != 2 {
			return
		}
		from, to := ev.Paths[0].Abs, ev.Paths[1].Abs
		if from == "" || to == "" || from == to {
			return
		}
		const exchange = 2
		swap := ev.Op == event.OpRenameat2 && ev.Args[4]&exchange != 0
		if !swap {
			f.gone(to)
		}
		for _, o := range f.opens {
			if rest, ok := below(o.path, from); ok {
				o.path = to + rest
			} else if rest, ok := below(o.path, to); ok && swap {
				o.path = from + rest
			}
		}
	}
}

func (f *Follower) gone(path string) {
	for _, o := range f.opens {
		if path != "" && o.path == path {
			o.path = ""
		}
	}
}

// below takes the name of a directory, or of the file itself, off a path.
func below(path, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}
