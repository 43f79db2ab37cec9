// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// Tree is the initial tree that a replay needs, with paths relative to the
// replay's root.
type Tree struct {
	// Tainted are the files with content that was read and that the tape does not have:
	// they have zeros there.
	Tainted []effect.FileRanges
	// Elsewhere are recorded names, absolute and sorted, that led into what the kernel
	// makes up, through a symbolic link: /etc/mtab leads to /proc/mounts. A replay cannot
	// follow them.
	Elsewhere []string
	// Specials are recorded names, absolute and sorted, of FIFOs, sockets and devices. What a foreign trace
	// says of an open does not tell them from files.
	Specials []string
	// LeftOut are kinds of calls that a trace by another tool has none of, and may have left out:
	// what depends on them is not known.
	LeftOut []string
	// Others are names, absolute and sorted, of files that processes which were not recorded changed
	// meanwhile.
	Others []string
	// Overlays are directories, by the replay's names, into which overlays of the recording stored: a replay does not
	// make what the kernel made there.
	Overlays []string
	// Written is how many bytes the calls wrote, copied and stored.
	Written int64
	// Mounted is where the files are, in a replay, that the recording left below mounts.
	Mounted eventsource.Renames

	// Order is the order of the tape's events, nil of a tree that was stored.
	Order *linearize.Order

	tape   *trace.Tape
	kept   *stored // nil of a tree that was found just now
	names  *names
	living map[*object]int // names after the last event, of objects with several before the first
	pieces []piece         // by id-1 of the chunks
	inline [][]byte        // small content that stands in events, by id-1 with inlineBit
}

const inlineBit = 1 << 63

// maxCallBytes is the most that one call moves (read(2)), whatever a tape says.
const maxCallBytes = 0x7ffff000

// Content returns the bytes of one of the manifest's chunks.
func (s *Tree) Content(id uint64) ([]byte, error) {
	if id == 0 || id > uint64(len(s.pieces)) {
		return nil, fmt.Errorf("chunk %d of %d of the initial tree: %w", id, len(s.pieces), trace.ErrCorrupt)
	}
	p := s.pieces[id-1]
	b, err := s.stored(p.chunk)
	if err != nil {
		return nil, err
	}
	if uint64(p.skip)+uint64(p.len) > uint64(len(b)) {
		return nil, fmt.Errorf("chunk %d is shorter than its reference: %w", p.chunk, trace.ErrCorrupt)
	}
	return b[p.skip : p.skip+p.len], nil
}

func (s *Tree) stored(chunk uint64) ([]byte, error) {
	if chunk&inlineBit != 0 && chunk&^inlineBit < uint64(len(s.inline)) {
		return s.inline[chunk&^inlineBit], nil
	}
	return s.tape.Chunk(chunk)
}

// Infer finds the tree that a tape's events need: its snapshots, and beyond them
// everything that a call found although nothing in the trace had made it, with the
// content that was read before it was written. final, which may be nil, is the
// state after the recording; it decides only what the trace leaves open. All names are
// those of the layout.
func Infer(
	ctx context.Context, t *trace.Tape, snapshots []*tree.Manifest, final *tree.Manifest, layout eventsource.Layout,
) (*Tree, error) {
	in := newInference(t, final)
	in.layout = layout
	for _, s := range snapshots {
		in.snapshot(s)
	}
	if err := in.readAll(ctx); err != nil {
		return nil, err
	}
	in.decide()
	return in.result, nil
}

func newInference(t *trace.Tape, final *tree.Manifest) *inference {
	return &inference{
		result: &Tree{tape: t},
		names:  newNames(final), final: final, foreign: foreign(t),
		arch: Arch(t), open: map[event.OpenID]*object{}, openedAtStart: map[string]effect.Inode{},
		elsewhere: map[string]bool{}, toEnd: map[event.OpenID]bool{}, unseen: map[uint32]bool{}, others: newOthers(),
	}
}

// readAll learns from all events.
func (in *inference) readAll(ctx context.Context) error {
	er := eventsource.NewReader(in.result.tape, in.arch, in.layout, nil)
	var ev event.Event
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s, err := er.Next(&ev)
		if err == io.EOF {
			in.result.Mounted, in.result.Others = er.Mounted(), in.others.result()
			in.result.Overlays, in.result.Order = er.Overlays(), er.Order()
			return nil
		} else if err != nil {
			return err
		}
		effect.AsCall(&ev)
		in.state = s
		in.succeeded.Add(&ev)
		in.result.Written += min(ev.Traffic().Written, maxCallBytes)
		if in.foreign {
			in.process(&ev)
		} else {
			in.others.observe(&ev, in.arch)
		}
		in.observe(&ev)
		for _, id := range s.Released {
			delete(in.open, id)
			delete(in.toEnd, id)
		}
	}
}

// Arch returns the architecture that a tape was recorded on.
func Arch(t *trace.Tape) event.Arch {
	if hosts := t.Manifest().Hosts; len(hosts) > 0 {
		if a, ok := event.ParseArch(hosts[0].Arch); ok {
			return a
		}
	}
	return event.AMD64
}

// foreign reports whether a tape is of another tool's trace; its user chose which calls it has.
func foreign(t *trace.Tape) bool { return t != nil && t.Manifest().Foreign() }

type inference struct {
	layout        eventsource.Layout
	state         *eventsource.State // of the present event
	result        *Tree
	names         *names
	final         *tree.Manifest
	arch          event.Arch
	open          map[event.OpenID]*object
	toEnd         map[event.OpenID]bool   // those of open that append, where only their open says it
	openedAtStart map[string]effect.Inode // names of files that were open at the start
	// elsewhere are names that lead to what the kernel makes up.
	elsewhere map[string]bool
	succeeded effect.Succeeded
	foreign   bool            // the tape is of another tool's trace, which may have left out who changed a file
	cutNames  bool            // of extended attributes
	unseen    map[uint32]bool // processes that were made and of which there are no calls so far
	others    *others
}

// maxUnseen bounds how many processes without calls are remembered.
const maxUnseen = 1 << 16

// process notes which processes the trace has calls of.
func (in *inference) process(ev *event.Event) {
	switch ev.Kind {
	case event.Forked:
		if made := ev.Fork().PID; made != ev.PID && len(in.unseen) < maxUnseen {
			in.unseen[made] = true
		}
	case event.Call:
		delete(in.unseen, ev.PID)
	}
}

// snapshot makes everything in a snapshot known.
func (in *inference) snapshot(m *tree.Manifest) {
	for i := range m.Entries {
		e := &m.Entries[i]
		c := in.names.lookup("/"+e.Path, false)
		if c == nil {
			continue
		}
		o := in.names.exist(c, e.Type)
		o.typ, o.known, o.mode, o.uid, o.gid, o.size = e.Type, e.Known, e.Mode, e.UID, e.GID, e.Size
		d := o.detail()
		d.target, d.rdev, d.xattrs, d.entry = e.Target, e.Rdev, e.Xattrs, e
		in.names.identify(c, effect.Inode{Dev: e.Dev, Ino: e.Ino})
	}
	// Only now: a name that is not in a listed directory is known not to exist.
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Type == tree.Dir && e.Has(tree.KnownListing) {
			if c := in.names.lookup("/"+e.Path, false); c != nil && c.obj != nil {
				in.names.below(c).listed = true
			}
		}
	}
}

// decide decides what the trace left open.
func (in *inference) decide() {
	n := in.names
	n.emptyFilled()
	if in.final != nil {
		for i := range in.final.Entries {
			last := &in.final.Entries[i]
			if c := n.find(last.Path); c != nil && c.obj != nil && c.obj.initial &&
				(c.obj.typ == 0 || c.obj.typ == last.Type) {
				c.obj.fill(last)
			}
		}
	}
	several := false
	for _, block := range n.objects.blocks {
		for i := range block {
			if o := &block[i]; o.initial && o.first != nil {
				in.complete(o)
				in.noteSpecial(o)
				several = several || len(o.details().others) > 0
			}
		}
	}
	sk := in.result
	sk.names, sk.living = n, map[*object]int{}
	for _, c := range n.current() {
		if several && len(c.obj.details().others) > 0 {
			sk.living[c.obj]++
		}
	}
	sk.LeftOut = in.leftOut()
	sk.Elsewhere = slices.Sorted(maps.Keys(in.elsewhere))
	slices.Sort(sk.Specials)
	n.byIno, n.hint = index[object]{}, nil
}

// noteSpecial notes the name of an initial object that is a FIFO, a socket or a device.
func (in *inference) noteSpecial(o *object) {
	if in.foreign && o.typ != tree.File && o.typ != tree.Dir && o.typ != tree.Symlink {
		in.result.Specials = append(in.result.Specials, "/"+o.first.initialPath())
	}
}

// leftOut returns the kinds of calls that a foreign trace may have left out.
func (in *inference) leftOut() []string {
	if !in.foreign {
		return nil
	}
	kinds := in.succeeded.LeftOut()
	if len(in.unseen) > 0 {
		kinds = append(kinds, effect.UnseenProcesses)
	}
	if in.cutNames {
		kinds = append(kinds, effect.CutNames)
	}
	return kinds
}

// complete decides on what is still unknown of an initial object, and numbers its
// content.
func (in *inference) complete(o *object) {
	switch {
	case o.typ == 0 && o.enters && !o.data:
		o.typ = tree.Dir
	case o.typ == 0:
		o.typ = tree.File
	}
	if o.enters && o.known&tree.KnownMode == 0 {
		o.mode, o.known = 0o755, o.known|tree.KnownMode
	}
	if o.more == nil || o.typ != tree.File {
		return
	}
	d := o.more
	if tainted := d.content.tainted(); len(tainted) > 0 {
		ranges := effect.Ranges{}
		if o.id.Ino != 0 {
			ranges[o.id] = &tainted
		}
		if foreign(in.result.tape) { // calls other than stat have no numbers of inodes
			ranges[effect.ContentByName("/"+o.first.initialPath())] = &tainted
		}
		in.result.Tainted = append(in.result.Tainted, ranges.List()...)
	}
	if u := d.content.unknown; len(u) > 0 {
		o.size = max(o.size, u[len(u)-1].To)
	}
	for _, p := range d.content.pieces {
		o.size = max(o.size, p.off+int64(p.len))
	}
	pieces := d.content.data()
	if d.entry != nil {
		pieces = pieces[:0]
		for _, c := range d.entry.Chunks {
			pieces = append(pieces, piece{off: c.Off, chunk: c.ID, len: c.Len})
		}
	}
	d.from = len(in.result.pieces)
	in.result.pieces = append(in.result.pieces, pieces...)
	d.end = len(in.result.pieces)
	d.content = extents{}
}

// fill takes what the trace left open from the state after the trace.
func (o *object) fill(last *tree.Entry) {
	if o.details().entry != nil && o.known&tree.KnownContent != 0 {
		return // from a snapshot
	}
	o.typ = last.Type
	if last.Target != "" && o.details().target == "" {
		o.detail().target = last.Target
	}
	if !o.changed {
		o.fillAttributes(last)
	}
	if last.Type != tree.File {
		return
	}
	if last.Has(tree.KnownSize) {
		o.hadSize(last.Size)
	}
	if o.details().entry != nil {
		return
	}
	for _, c := range last.Chunks {
		x := &o.detail().content
		for _, s := range x.settled.Missing(c.Off, c.Off+int64(c.Len)) {
			x.pieces = append(x.pieces, piece{
				off: s.From, chunk: c.ID, skip: uint32(s.From - c.Off), len: uint32(s.To - s.From),
			})
		}
		x.settled.Add(c.Off, c.Off+int64(c.Len))
	}
}

// fillAttributes takes mode, owner, extended attributes and device from the state after
// the trace, where the trace neither changed nor reported them.
func (o *object) fillAttributes(last *tree.Entry) {
	missing := func(k tree.Known, set bool) bool { return last.Has(k) && o.known&k == 0 && !set }
	if missing(tree.KnownMode, o.modeSet) {
		o.mode, o.known = last.Mode, o.known|tree.KnownMode
	}
	if missing(tree.KnownOwner, o.ownerSet) {
		o.uid, o.gid, o.known = last.UID, last.GID, o.known|tree.KnownOwner
	}
	if missing(tree.KnownXattrs, o.xattrsSet) {
		if o.known |= tree.KnownXattrs; len(last.Xattrs) > 0 {
			o.detail().xattrs = last.Xattrs
		}
	}
	if last.Rdev != 0 {
		o.detail().rdev = last.Rdev
	}
}
