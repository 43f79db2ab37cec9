// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
)

// objectKey tells objects apart that are not streams.
type objectKey struct {
	host     uint32
	dev, ino uint64
	open     event.OpenID // of what has no inode
	write    bool
}

// scanner reads the events of all tapes.
type scanner struct {
	f     *Flow
	known map[objectKey]uint32
	paths map[pathKey]uint32 // the file that a name is of
	gone  map[uint32]*removal
	last  []event.OpenID // of each host: the last open file
	host  uint32         // of the tape's first host, in the order
	tape  int
	event uint32
}

type pathKey struct {
	host uint32
	path string
}

// removal is the end of a file's name, by which another file may get its number.
type removal struct {
	host uint32
	last event.OpenID // the last open file on the host
	wall int64
	next uint32 // the other file, 0: none yet
}

// before reports whether a call is about the other file: on the same host it was opened
// after the removal.
func (r *removal) before(ev *event.Event, file *event.File, wall int64) bool {
	if ev.Host == r.host && file.Open != 0 {
		return file.Open > r.last
	}
	return wall > r.wall
}

// oNew are the flags with which an open that succeeds made the file.
const oNew = event.OpenCreat | event.OpenExcl

// scan finds the moves, and puts them into causal order.
func (f *Flow) scan(ctx context.Context) error {
	s := scanner{f: f, known: map[objectKey]uint32{}, paths: map[pathKey]uint32{}, gone: map[uint32]*removal{},
		last: make([]event.OpenID, len(f.order.Hosts()))}
	f.contents.init(f.tapes)
	for t, tape := range f.tapes {
		s.tape = t
		for ev, err := range tape.Events() {
			if err != nil {
				return fmt.Errorf("%s: %w", tape.Name(), err)
			}
			if s.event&0xfff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := s.see(ev); err != nil {
				return fmt.Errorf("%s: event %d: %w", tape.Name(), ev.Seq, err)
			}
			s.event++
		}
		s.host += uint32(len(tape.Manifest().Hosts))
	}
	f.stats.Events, f.stats.Hosts = f.order.Len(), len(f.order.Hosts())
	f.placeStreams()
	f.inOrder()
	f.placeWrites()
	f.packetsOf()
	f.groupByObject()
	if err := f.recognise(); err != nil {
		return err
	}
	f.contents.chunksDone()
	fa := f.order.Faults()
	f.stats.Contradictions = fa.Unsents + f.order.Circular()
	f.stats.Objects = len(f.objects)
	return nil
}

// see takes an event.
func (s *scanner) see(ev *event.Event) error {
	if ev.Kind == event.NoteMark {
		s.catSignature(ev)
	}
	if ev.Kind != event.Call || !ev.OK() {
		return nil
	}
	f := s.f
	if ev.Effect() == event.EffectExecute {
		f.execs = append(f.execs, s.event)
	}
	ev.Host += s.host
	for i := range ev.Files {
		s.last[ev.Host] = max(s.last[ev.Host], ev.Files[i].Open)
	}
	s.forget(ev)
	io := ev.Traffic()
	n := io.Bytes()
	if n == 0 {
		s.ended(ev, &io)
		return nil
	}
	class, err := s.class(ev, n)
	if err != nil {
		return err
	}
	if class == 0 && ev.Op == event.OpMmapPread {
		return nil // pages that were there: an earlier event has them
	}
	add := func(file *event.File, write bool, at int64) {
		m := move{at: at, event: s.event, object: s.object(ev, file, write), class: class, n: uint32(min(n, writes-1))}
		if write {
			m.n |= writes
		}
		if f.objects[m.object].Kind != File {
			m.at = -1
		}
		f.moves = append(f.moves, m)
		f.stats.Bytes += n
	}
	both := io.From != nil && io.To != nil
	if io.From != nil {
		add(io.From, false, s.at(ev, io.From, both, n))
	}
	if io.To != nil {
		add(io.To, true, s.at(ev, io.To, both, n))
	}
	return nil
}

// ended notes a read that found the end of a file.
func (s *scanner) ended(ev *event.Event, io *event.Traffic) {
	if io.From != nil && io.To == nil && ev.Count > 0 && ev.Offset >= 0 && isFile(io.From) {
		s.f.ends = append(s.f.ends, fileEnd{event: s.event, object: s.object(ev, io.From, false), at: ev.Offset})
	}
}

// at returns where in a file a call began. Of a call that moved bytes between two, the
// file positions after it tell, where it was they that moved.
func (s *scanner) at(ev *event.Event, file *event.File, both bool, n int64) int64 {
	if !both {
		return ev.Offset
	}
	offset := -1 // the argument that points to an offset, which has to be NULL
	switch {
	case ev.Op.Like() == event.OpSendfile:
		if offset = 2; file.Arg == 0 {
			offset = -1
		}
	case file.Arg == 0:
		offset = 1
	default:
		offset = 3
	}
	if offset >= 0 && ev.Args[offset] != 0 {
		if b := ev.BufArg(offset); b != nil && len(b.Inline) >= 8 {
			at := int64(0)
			for i := 7; i >= 0; i-- {
				at = at<<8 | int64(b.Inline[i])
			}
			if b.Dir == event.Out {
				at -= n
			}
			return max(at, -1)
		}
		return ev.Offset
	}
	if file.Known && file.Pos >= n {
		return file.Pos - n
	}
	return -1
}

// class returns the class of the content that a call moved. Whoever made the tape may have given it another length:
// what compares moves relies on theirs.
func (s *scanner) class(ev *event.Event, n int64) (uint32, error) {
	spec := ev.Spec()
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if spec.IsContent(int(b.Arg)) && b.Len == n {
			return s.f.contents.class(s.tape, ev.Host-s.host, b)
		}
	}
	return 0, nil
}

// object returns the number of what a call wrote to or read from.
func (s *scanner) object(ev *event.Event, file *event.File, write bool) uint32 {
	f := s.f
	k := objectKey{host: f.order.Machine(ev.Host), dev: file.Dev, ino: file.Ino}
	o := Object{Kind: File, Name: file.Name(), Host: ev.Host}
	if !isFile(file) {
		k = objectKey{host: ev.Host, open: file.Open, write: write}
		o.Kind = Socket
	} else if !file.Known || file.Ino == 0 {
		k = objectKey{host: k.host, open: s.named(k.host, file)}
	}
	id, ok := s.known[k]
	if !ok {
		id = s.add(o)
		s.known[k] = id
	}
	for r := s.gone[id]; r != nil && r.before(ev, file, f.order.Wall(int(s.event))); r = s.gone[id] {
		if r.next == 0 {
			r.next = s.add(o)
		}
		id = r.next
	}
	if o.Kind == File && file.Path != "" {
		s.paths[pathKey{f.order.Machine(ev.Host), file.Path}] = id
		if f.objects[id].Name != file.Path {
			f.objects[id].Name = file.Path
		}
	}
	return id
}

// add numbers a new object.
func (s *scanner) add(o Object) uint32 {
	s.f.objects = append(s.f.objects, o)
	return uint32(len(s.f.objects) - 1)
}

// named numbers files of which a foreign trace tells the name alone.
func (s *scanner) named(host uint32, file *event.File) event.OpenID {
	if id, ok := s.paths[pathKey{host, file.Path}]; ok && file.Path != "" {
		return event.OpenID(1<<40 + uint64(id))
	}
	return event.OpenID(1<<40 + uint64(len(s.f.objects)))
}

// isFile reports whether what is written can be read again.
func isFile(file *event.File) bool {
	if file.Known || event.FileType(file.Mode) != 0 {
		t := event.FileType(file.Mode)
		return t == event.TypeRegular || t == event.TypeBlock
	}
	return strings.HasPrefix(file.Path, "/")
}

// forget notes that a file's content is gone: it was cut off, or lost its name, so that
// another may get its number.
func (s *scanner) forget(ev *event.Event) {
	f := s.f
	gone := func(id uint32, from int64) {
		f.moves = append(f.moves, move{at: reset, event: s.event, object: id, n: uint32(min(from, writes-1)) | writes})
	}
	switch ev.Effect() {
	case event.EffectTruncate:
		if file := ev.FileArg(0); file != nil && isFile(file) {
			gone(s.object(ev, file, true), int64(ev.Args[1]))
		}
	case event.EffectOpen:
		flags := ev.OpenFlags()
		file := ev.FileArg(event.ResultArg)
		switch {
		case file == nil || !isFile(file):
		case ev.Op.Like() == event.OpOpenat2 && ev.BufArg(2) == nil: // its flags are not known
			f.objects[s.object(ev, file, true)].vague = true
		case flags&event.OpenTrunc != 0 || flags&oNew == oNew:
			gone(s.object(ev, file, true), 0)
		}
	case event.EffectUnlink, event.EffectRmdir, event.EffectRename:
		host := f.order.Machine(ev.Host)
		for i := range ev.Paths {
			k := pathKey{host, ev.Paths[i].Abs}
			id, ok := s.paths[k]
			if !ok {
				continue
			}
			delete(s.paths, k)
			if i == len(ev.Paths)-1 && len(ev.Paths) <= 2 { // what is removed, or replaced
				gone(id, 0)
				s.gone[id] = &removal{host: ev.Host, last: s.last[ev.Host], wall: f.order.Wall(int(s.event))}
			} else if to := ev.Paths[len(ev.Paths)-1].Abs; to != "" {
				defer func() {
					s.paths[pathKey{host, to}] = id
					f.objects[id].Name = to
				}()
			}
		}
	}
}

// groupByObject puts the moves of each object together.
func (f *Flow) groupByObject() {
	f.byObject = group(len(f.objects), len(f.moves), func(i int) uint32 { return f.moves[i].object })
	for i := range f.objects {
		if f.objects[i].Kind == Stream {
			f.sortStream(uint32(i))
		}
	}
}

// placeStreams tells the moves on streams where in them they are.
func (f *Flow) placeStreams() {
	at := 0
	place := func(object uint32, write bool, m causal.Move, messages bool) {
		// Moves are in the order of events; a stream's are nearly so.
		if at >= len(f.moves) || f.moves[at].event > m.Event || f.moves[at].event+4096 < m.Event {
			at, _ = slices.BinarySearchFunc(f.moves, m.Event,
				func(v move, e uint32) int { return int(int64(v.event) - int64(e)) })
		}
		for at < len(f.moves) && f.moves[at].event < m.Event {
			at++
		}
		for i := at; i < len(f.moves) && f.moves[i].event == m.Event; i++ {
			if v := &f.moves[i]; v.write() == write && v.at != reset && f.objects[v.object].Kind != File {
				v.object, v.at = object, m.At
			}
		}
	}
	for _, s := range f.order.TakeStreams() {
		id := uint32(len(f.objects))
		o := Object{Kind: Stream, Name: s.Name(), Host: s.From(), Known: s.Known(), Messages: s.Messages()}
		s.Writes(func(m causal.Move) { o.ends[0]++; place(id, true, m, o.Messages) })
		s.Reads(func(m causal.Move) { o.ends[1]++; place(id, false, m, o.Messages) })
		o.OneSided = o.ends[0] == 0 || o.ends[1] == 0
		f.objects = append(f.objects, o)
		f.stats.Streams++
		if o.OneSided {
			f.stats.OneSided++
		} else if !o.Known {
			f.stats.Loose++
		}
	}
}

// inOrder puts the moves into causal order.
func (f *Flow) inOrder() {
	first := make([]uint32, f.order.Len()+1)
	for i := range f.moves {
		first[f.moves[i].event+1]++
	}
	for i := 1; i < len(first); i++ {
		first[i] += first[i-1]
	}
	sorted := make([]move, 0, len(f.moves))
	ends := make(map[uint32]int, len(f.ends))
	for i := range f.ends {
		ends[f.ends[i].event] = i
	}
	for _, e := range f.order.Schedule() {
		sorted = append(sorted, f.moves[first[e]:first[e+1]]...)
		if i, ok := ends[e]; ok {
			f.ends[i].before = len(sorted)
		}
	}
	f.moves = sorted
	slices.SortStableFunc(f.ends, func(a, b fileEnd) int { return cmp.Compare(a.before, b.before) })
	for i := range f.moves {
		m := &f.moves[i]
		if m.at == reset {
			continue
		}
		f.stats.Moves++
		switch {
		case m.class == 0:
			f.stats.Unknown++
		case f.contents.classes[m.class].hashed():
			f.stats.Signed++
		}
	}
}

// placeWrites puts what was written to files of which no call says where behind each other:
// foreign traces of write(2) have no positions.
func (f *Flow) placeWrites() {
	said := make([]bool, len(f.objects))
	for i := range f.moves {
		m := &f.moves[i]
		said[m.object] = said[m.object] || m.at != -1
	}
	ends := map[uint32]int64{}
	for i := range f.moves {
		if m := &f.moves[i]; m.write() && !said[m.object] && f.objects[m.object].Kind == File {
			m.at = ends[m.object]
			ends[m.object] += m.bytes()
		}
	}
}

// packetsOf finds the receivers of datagrams.
func (f *Flow) packetsOf() {
	var sent map[uint32]uint32
	for i := range f.moves {
		m := &f.moves[i]
		if m.at == reset || f.objects[m.object].Kind != Socket {
			continue
		}
		if m.write() {
			if sent == nil {
				sent = map[uint32]uint32{}
			}
			sent[m.event] = uint32(i)
			continue
		}
		from, why := f.order.Before(int(m.event))
		for k := range from {
			if s, ok := sent[from[k]]; ok && why[k] == causal.Bytes {
				f.packets[s] = append(f.packets[s], uint32(i))
				f.packets[uint32(i)] = append(f.packets[uint32(i)], s)
			}
		}
	}
}

// sortStream puts the moves of a stream in the order of their positions: what was
// written, then what was read.
func (f *Flow) sortStream(object uint32) {
	slices.SortStableFunc(f.byObject.of(object), func(a, b uint32) int {
		x, y := &f.moves[a], &f.moves[b]
		switch {
		case x.write() != y.write():
			if x.write() {
				return -1
			}
			return 1
		case x.at != y.at:
			if x.at < y.at {
				return -1
			}
			return 1
		}
		return 0
	})
}
