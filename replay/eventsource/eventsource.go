// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
)

// State is what the thread of an event has around it, as recorded.
type State struct {
	TID       uint32 // as recorded: the event's is one among all hosts
	Umask     uint32
	Cwd       uint64         // identity of the working directory before it
	SharedCwd bool           // other threads have the same working directory, and go with it
	CwdAfter  uint64         // and after it
	Released  []event.OpenID // open files that ended with it
	Closed    []effect.Inode // files of which its process lost a descriptor, and so its fcntl locks
	Second    event.OpenID   // the source of FICLONE or FICLONERANGE, which is passed as a number
	// Through are the open files that path arguments go through, as in
	// /proc/self/fd/7; 0 where none is known.
	Through [event.MaxArgs]event.OpenID
	// Doubt says what of the result no order of the calls explains.
	Unexplained linearize.Unexplained
	// Rest says that the event is what remained of the open of the same number, given
	// before, that emptied its file after others had used it.
	Rest bool
	// Root says that root made the call, whoever makes it in the replay.
	Root bool
	// Reduced says that entries of the access list that it sets are left out: see Owners.Only.
	Reduced bool
	// Overlaid says that the event is about files of an overlay that the recording mounted.
	Overlaid bool
}

// Reader reads a tape's events in linear order. It is used by one goroutine.
type Reader struct {
	events  *trace.EventReader
	models  []*posix.Model // of the hosts
	stage   stage
	order   *linearize.Order // that the stage finds
	states  []State          // of the last events, by number
	layout  Layout
	numbers Numbers
	arch    event.Arch
	bases   []string // of the event's paths
	cwd     string   // the working directory before the event, if a name may begin with it (here)
	// entered are the working directories that threads entered with a mount namespace, which a replay does not do.
	entered map[uint64]bool
	// overlays are the directories into which overlays stored; seen is how many of a host's overlays are among them.
	overlays []string
	seen     map[*posix.Model]int
}

// stage orders events.
type stage interface {
	Next(*event.Event) error
	Unexplained() linearize.Unexplained
}

// kept is how many events' states are kept: settling holds back fewer. It is a power of
// two.
const kept = 2 * linearize.DefaultMaxWindow

// NewReader returns a reader at the first event. arch is the recording's; names are those
// of the layout, nil for one host whose names are kept. The order is one that a reader with the same layout found
// before; if it is nil, it is found again.
func NewReader(t *trace.Tape, arch event.Arch, layout Layout, found *linearize.Order) *Reader {
	if len(layout) == 0 {
		layout = make(Layout, 1)
	}
	r := &Reader{
		layout: layout, numbers: layout.Numbers(), events: t.NewEventReader(), models: []*posix.Model{posix.New()},
		arch: arch, seen: map[*posix.Model]int{},
	}
	for range layout[1:] {
		r.models = append(r.models, r.models[0].Beside())
	}
	if found != nil {
		r.stage = linearize.NewGiven(r.next, arch, found)
		return r
	}
	r.order = new(linearize.Order)
	r.stage = linearize.New(r.next, &linearize.Options{Arch: arch, Content: t.Content, Found: r.order})
	return r
}

// state returns the place of an event's state. It moves when there are more.
func (r *Reader) state(seq uint64) *State {
	i := int(seq % kept)
	if i >= len(r.states) {
		r.states = slices.Grow(r.states, i+1-len(r.states))[:i+1]
	}
	return &r.states[i]
}

// Order returns the order of the events that Next gave; nil if it was given to NewReader.
func (r *Reader) Order() *linearize.Order { return r.order }

// Next puts the next event into ev, reuses the memory that ev had, and returns the
// state around it. Both, but for strings, are valid until the next call. It returns
// io.EOF at the end.
func (r *Reader) Next(ev *event.Event) (*State, error) {
	if err := r.stage.Next(ev); err != nil {
		return nil, err
	}
	s := r.state(ev.Seq)
	s.Unexplained = r.stage.Unexplained()
	if s.Rest = ev.Op == event.OpFtruncate && ev.Flags&event.Synthetic != 0; s.Rest {
		s.Released = s.Released[:0]
	}
	return s, nil
}

// next reads an event in the tape's order, and lets the model go on.
func (r *Reader) next(ev *event.Event) error {
	if err := r.events.Next(ev); err != nil {
		return err
	}
	if err := arguments(ev); err != nil {
		return err
	}
	s := r.state(ev.Seq)
	s.TID = ev.TID
	host := r.layout.Host(ev.Host)
	model := r.models[min(uint64(ev.Host), uint64(len(r.models)-1))]
	host.devices(ev)
	th := model.Thread(ev.PID, ev.TID)
	s.Umask, s.Cwd = th.FS.Umask, th.FS.CwdID
	s.Second, s.Through = 0, [event.MaxArgs]event.OpenID{}
	changed(model, th, ev)
	if ev.Op == event.OpBind {
		bound(th, ev)
	} else if ev.Op == event.OpMsync {
		synced(th, ev)
	} else if len(ev.Paths) > 0 || ev.Op == event.OpIoctl {
		linked(model, th, ev)
		s.findDescriptors(model, th, ev)
	}
	r.base(model, th, ev)
	own := th.FS.Mounts.Own()
	mounts, over := covered(own), overlays(own)
	s.Released = append(s.Released[:0], model.Apply(ev)...)
	s.byHandle(model, ev)
	r.stored(model, mounts, host.Renames)
	s.Closed = s.Closed[:0]
	for _, o := range model.Closed() {
		s.Closed = append(s.Closed, effect.Inode{Dev: o.Dev, Ino: o.Ino})
	}
	s.CwdAfter, s.SharedCwd = th.FS.CwdID, th.FS.Shared()
	if ev.Op == event.OpSetns && s.CwdAfter != s.Cwd && len(r.entered) < maxEntered {
		if r.entered == nil {
			r.entered = map[uint64]bool{}
		}
		r.entered[s.CwdAfter] = true
	}
	r.direct(s, ev)
	if ev.Op == event.OpGetcwd && ev.OK() {
		where(th.FS, ev)
		if r.entered[s.Cwd] {
			ev.Bufs = nil // a replay is elsewhere
		}
	}
	if len(mounts) > 0 {
		mounts.mount(ev, r.bases)
	}
	s.Overlaid = len(over) > 0 && within(over, ev)
	if len(host.Renames) > 0 {
		host.Renames.event(ev, r.bases)
	}
	s.Root = ev.UID == 0
	host.Owners.event(s, ev, r.arch)
	r.numbers.Event(ev)
	return nil
}

// base notes which directories an event's names begin at, before it changes that.
func (r *Reader) base(model *posix.Model, th *posix.Thread, ev *event.Event) {
	r.bases, r.cwd = r.bases[:0], ""
	spec := ev.Spec()
	for i := range ev.Paths {
		if name := ev.Paths[i].Raw; strings.HasPrefix(name, "/proc/") && model.Meant(th, name).FS == th.FS {
			r.cwd = th.Abs(event.AtFDCWD, "")
		}
		from := int32(event.AtFDCWD)
		if a := int(ev.Paths[i].Arg) - 1; a >= 0 && a < len(spec.Args) && spec.Args[a].Kind == event.KindDirFD {
			from = int32(ev.Args[a])
		}
		r.bases = append(r.bases, th.Abs(from, ""))
	}
}

// direct makes the names of an event absolute that a replay, which has neither the links
// nor the root directory of the recording, would not find by their text.
func (r *Reader) direct(s *State, ev *event.Event) {
	if effect.ResolvesWithin(ev) {
		return // there, an absolute name begins at the directory, or is refused
	}
	for i := range ev.Paths {
		p := &ev.Paths[i]
		r.here(ev, i)
		if p.Abs == "" || p.Raw == "" || p.Raw[0] != '/' && r.bases[i] == "" || p.Arg >= 0 && s.Through[p.Arg] != 0 {
			continue
		}
		plain := path.Clean(p.Raw)
		if p.Raw[0] != '/' {
			plain = path.Join(r.bases[i], p.Raw)
		}
		if plain == p.Abs && (p.Raw[0] == '/' || !r.entered[s.Cwd]) {
			continue
		}
		slash := ""
		if strings.HasSuffix(p.Raw, "/") || strings.HasSuffix(p.Raw, "/.") {
			slash = "/"
		}
		p.Raw = p.Abs + slash
	}
}

// here makes a name through the thread's own working directory in /proc one that begins there: the directory may have
// no other name any more.
func (r *Reader) here(ev *event.Event, i int) {
	p := &ev.Paths[i]
	if r.cwd == "" || effect.Virtual(p.Abs) {
		return
	}
	rest, ok := posix.CwdPath(p.Raw, ev.PID)
	if !ok {
		return
	}
	p.Raw, r.bases[i] = cmp.Or(rest, "."), r.cwd
	if a := int(p.Arg) - 1; a >= 0 && ev.Spec().Args[a].Kind == event.KindDirFD {
		at := int64(event.AtFDCWD)
		ev.Args[a] = uint64(at)
	}
}

// maxEntered bounds the working directories that are remembered.
const maxEntered = 1 << 12

// maxAbs is how long an absolute name may be, in bytes, to be followed name by name.
const maxAbs = 4 * event.MaxPath

// arguments reports whether an event has something of an argument that its call does
// not have.
func arguments(ev *event.Event) error {
	most := event.MaxArgs
	if ev.Kind == event.Call && ev.Op != event.OpUnknown {
		most = len(ev.Spec().Args)
	}
	wrong := func(what string, arg int8) error {
		return fmt.Errorf("event %d: %v with a %s of argument %d: %w", ev.Seq, ev.Op, what, arg, trace.ErrCorrupt)
	}
	for i := range ev.Files {
		if a := int(ev.Files[i].Arg); a < event.MemoryArg || a >= event.MaxArgs {
			return wrong("descriptor", ev.Files[i].Arg)
		}
	}
	for i := range ev.Paths {
		if a := int(ev.Paths[i].Arg); a < 0 || a >= max(most, 1) {
			return wrong("path", ev.Paths[i].Arg)
		}
		if n := len(ev.Paths[i].Raw); n > event.MaxPath {
			return fmt.Errorf("event %d: %v with a path of %d bytes, at most %d: %w", ev.Seq, ev.Op, n, event.MaxPath,
				trace.ErrCorrupt)
		}
		if len(ev.Paths[i].Abs) > maxAbs {
			ev.Paths[i].Abs = "" // as one that could not be resolved
		}
	}
	for i := range ev.Bufs {
		if ev.Bufs[i].Arg < 0 {
			return wrong("buffer", ev.Bufs[i].Arg)
		}
	}
	return nil
}

// bound gives the event of a bind, which made a name for a socket, that name as a path:
// of its second argument, the address.
func bound(th *posix.Thread, ev *event.Event) {
	if name, ok := effect.BoundName(ev); ok {
		ev.Paths = append(ev.Paths[:0], event.Path{Arg: 1, Raw: name, Abs: th.Abs(event.AtFDCWD, name)})
	}
}

// synced gives an msync the file that is mapped where it begins, as its first argument.
func synced(th *posix.Thread, ev *event.Event) {
	if o := th.Space.At(ev.Args[0]); o != nil {
		ev.Files = append(ev.Files[:0], event.File{
			Arg: 0, FD: -1, Open: o.ID, Dev: o.Dev, Ino: o.Ino, Mode: o.Mode, Path: o.Path, Known: o.Ino != 0,
		})
	}
}

// findDescriptors finds the descriptors that an event names without having them as arguments.
func (s *State) findDescriptors(model *posix.Model, th *posix.Thread, ev *event.Event) {
	for i := range ev.Paths {
		p := &ev.Paths[i]
		if p.Arg < 0 || !strings.HasPrefix(p.Raw, "/proc/") && !strings.HasPrefix(p.Raw, "/dev/fd/") {
			continue
		}
		if fd, _, ok := posix.DescriptorPath(p.Raw, ev.PID); ok {
			if d := model.Meant(th, p.Raw).Table.Lookup(fd); d != nil {
				s.Through[p.Arg] = d.Open.ID
			}
		}
	}
	if c, ok := ev.Cloned(); ok {
		if d := th.Table.Lookup(c.FD); d != nil {
			s.Second = d.Open.ID
		}
	}
}
