package seal

import (
	"bytes"
	"slices"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// maxInline is the largest content that stands in the event itself: below it, a
// reference costs more than it saves.
const maxInline = 64

// maxErrno bounds the results that are errors on every Linux architecture
// (MAX_ERRNO, linux/err.h).
const maxErrno = 4095

// record takes one record of the stream.
func (s *sealer) record(r *trace.Record) error {
	switch r.Type {
	case trace.RecCall:
		return s.call(r)
	case trace.RecData:
		return s.data(r)
	case trace.RecEnter:
		if r.Op != 0 { // a request, of which a thread may have many
			s.requests[callKey{r.TID, r.Enter}] = request{r.PID, r.Op, clonePieces(r.Pieces)}
			return nil
		}
		s.thread(r.TID).enter(r)
	case trace.RecTask:
		t := s.thread(r.TID)
		t.announced = true
		t.ppid, t.pgid, t.sid, t.uid, t.gid = r.PPID, r.PGID, r.SID, r.UID, r.GID
		t.nspid, t.nstid = r.NSPID, r.NSTID
		comm, _, _ := bytes.Cut(r.Comm[:], []byte{0})
		t.comm = string(comm)
	case trace.RecFork:
		it := s.simple(r, event.Forked)
		it.ev.Child, it.ev.Ret = r.ChildTID, int64(r.Child)
		it.ev.Args[0] = r.Share
		s.inherit(r)
		s.queue.push(it)
	case trace.RecExit:
		s.finishCall(s.thread(r.TID), r.TID)
		it := s.simple(r, event.Exited)
		it.ev.Ret = r.Ret
		s.queue.push(it)
		delete(s.threads, r.TID)
		for k := range s.requests { // few or none
			if k.tid == r.TID {
				delete(s.requests, k)
			}
		}
	case trace.RecWake:
		it := s.simple(r, event.Woken)
		it.ev.Child, it.ev.Ret = r.ChildTID, int64(r.Child)
		it.ev.Args[0] = uint64(r.Op)
		s.queue.push(it)
	case trace.RecLoss:
		s.lost(r.Exit, r.Count, r.Reason)
	case trace.RecFile:
		it := s.simple(r, event.Inherited)
		if r.Flags&trace.FileOwn != 0 {
			it.ev.Args[0] = event.OwnFile
		}
		for i := range r.Objects {
			f := file(&r.Objects[i])
			f.Arg, f.Open = 0, event.OpenID(r.Objects[i].Open)
			if len(r.Pieces) > 0 {
				f.Path = string(r.Pieces[0].Data)
			}
			it.ev.Files = append(it.ev.Files, f)
		}
		s.queue.push(it)
	case trace.RecStart:
		it := s.simple(r, event.Started)
		it.ev.Args[0] = uint64(r.Umask)
		if len(r.Pieces) > 0 {
			dir := string(r.Pieces[0].Data)
			it.ev.Paths = append(it.ev.Paths, event.Path{Raw: dir, Abs: dir})
		}
		s.queue.push(it)
	case trace.RecNote:
		it := s.simple(r, event.NoteMark)
		if len(r.Pieces) > 0 {
			text := bytes.Clone(r.Pieces[0].Data)
			it.ev.Bufs = append(it.ev.Bufs, event.Buf{Kind: event.KindText, Len: int64(len(text)), Inline: text})
		}
		s.queue.push(it)
	}
	return nil // a type of a newer version
}

// inherit gives a new thread its maker's identity until it says its own, which it
// may have done already on another shard.
func (s *sealer) inherit(r *trace.Record) {
	if t := s.threads[r.ChildTID]; t != nil && t.announced {
		return
	}
	child := *s.thread(r.TID)
	child.entries, child.announced, child.unfinished = nil, false, 0
	if r.Share&trace.ShareThread == 0 {
		child.ppid = r.PID
	}
	s.threads[r.ChildTID] = &child
}

// maxEntries bounds the RecEnter records that wait for their call: all but the last
// are of calls that were lost, or have not been seen yet.
const maxEntries = 8

// enter keeps what was read at the entry of a call.
func (t *thread) enter(r *trace.Record) {
	e := entry{time: r.Enter, pieces: clonePieces(r.Pieces)}
	t.entries = slices.DeleteFunc(t.entries, func(old entry) bool { return old.time == e.time })
	if len(t.entries) >= maxEntries {
		t.entries = slices.Delete(t.entries, 0, 1)
	}
	t.entries = append(t.entries, e)
}

func clonePieces(pieces []trace.Piece) []trace.Piece {
	c := slices.Clone(pieces)
	for i := range c {
		c[i].Data = bytes.Clone(c[i].Data)
	}
	return c
}

// entered returns what was read at the entry of the call that began at a time, and
// forgets what came before.
func (t *thread) entered(at uint64) []trace.Piece {
	var pieces []trace.Piece
	for _, e := range t.entries {
		if e.time == at {
			pieces = e.pieces
		}
	}
	t.entries = slices.DeleteFunc(t.entries, func(e entry) bool { return e.time <= at })
	return pieces
}

func (s *sealer) thread(tid uint32) *thread {
	t := s.threads[tid]
	if t == nil {
		t = &thread{}
		s.threads[tid] = t
	}
	return t
}

// newItem returns an empty item that is due at a time.
func (s *sealer) newItem(key uint64) *item {
	it := &item{}
	if n := len(s.free); n > 0 {
		it = s.free[n-1]
		s.free = s.free[:n-1]
		ev := event.Event{Files: it.ev.Files[:0], Paths: it.ev.Paths[:0], Bufs: it.ev.Bufs[:0]}
		*it = item{ev: ev}
	}
	s.order++
	it.key, it.arrival, it.at = key, s.order, s.at
	it.ev.Offset, it.ev.Count = -1, -1
	return it
}

// simple starts an event that is no call.
func (s *sealer) simple(r *trace.Record, kind event.EventKind) *item {
	it := s.newItem(r.Exit)
	it.ev.Kind = kind
	s.identify(&it.ev, r)
	it.ev.Enter, it.ev.Exit = int64(r.Exit), int64(r.Exit)
	return it
}

func (s *sealer) identify(ev *event.Event, r *trace.Record) {
	t := s.thread(r.TID)
	ev.PID, ev.TID = r.PID, r.TID
	ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.Comm = t.ppid, t.pgid, t.sid, t.uid, t.gid, t.comm
	ev.NSPID, ev.NSTID = t.nspid, t.nstid
}

// call builds the event of a RecCall.
func (s *sealer) call(r *trace.Record) error {
	it := s.newItem(r.Exit)
	ev := &it.ev
	s.identify(ev, r)
	ev.Op, ev.NR = event.Op(r.Op), r.NR
	ev.Enter, ev.Exit, ev.CPU = int64(r.Enter), int64(r.Exit), int64(r.CPU)
	ev.Args = r.Args
	ev.Ret = r.Ret
	if r.Ret < 0 && r.Ret >= -maxErrno {
		ev.Errno, ev.Ret = syscall.Errno(-r.Ret), -1
	}
	if r.Flags&trace.CallInterrupted != 0 {
		ev.Flags |= event.Interrupted
	}
	if r.Flags&trace.CallDelays != 0 {
		ev.Flags |= event.Delays
		ev.DelayBefore, ev.DelayWithin = r.DelayBefore, r.DelayWithin
	}
	spec := ev.Spec()
	s.files(ev, spec, r)
	if r.Flags&trace.CallCompat != 0 {
		s.widen(ev)
	}
	ev.Offset, _ = posix.Extent(ev)
	it.base = max(ev.Offset, 0)
	if o := object(r, 0); o != nil {
		it.past = o.Past
	}
	if t := s.thread(r.TID); len(t.entries) > 0 {
		it.entry = t.entered(r.Enter)
		if err := s.pieces(it, it.entry); err != nil {
			return err
		}
	}
	if q, ok := s.requests[callKey{r.TID, r.Enter}]; ok {
		it.entry = q.pieces
		if err := s.pieces(it, q.pieces); err != nil {
			return err
		}
		delete(s.requests, callKey{r.TID, r.Enter})
	}
	if err := s.pieces(it, r.Pieces); err != nil {
		return err
	}
	ordinary := event.Number(s.arch, ev.Op) >= 0
	if ordinary {
		s.finishCall(s.thread(r.TID), r.TID)
	}
	if r.Flags&trace.CallMore != 0 {
		it.pending = true
		s.open[callKey{r.TID, r.Enter}] = it
		if ordinary {
			s.thread(r.TID).unfinished = r.Enter
		}
	}
	s.queue.push(it)
	return nil
}

// finishCall gives up waiting for the content of a thread's last call: what the
// thread did next is here, and all of the call was written before that.
func (s *sealer) finishCall(t *thread, tid uint32) {
	if t.unfinished == 0 {
		return
	}
	if it := s.open[callKey{tid, t.unfinished}]; it != nil {
		s.partial(it)
	}
	t.unfinished = 0
}

// partial takes a call as it is, although its content has not all arrived.
func (s *sealer) partial(it *item) {
	delete(s.open, callKey{it.ev.TID, uint64(it.ev.Enter)})
	it.pending = false
	it.ev.Flags |= event.Incomplete
	s.stats.nLosses[trace.LossPartial]++
	s.stats.Lost++
}

// widen makes a 32-bit call one of its operation.
func (s *sealer) widen(ev *event.Event) {
	ev.Flags |= event.Compat
	if ev.Op == event.OpUnknown {
		return
	}
	event.Widen(s.arch, ev.NR, &ev.Args)
	if f := ev.FileArg(0); event.Name32(s.arch, ev.NR) == "_llseek" && ev.Errno == 0 && f != nil && f.Known {
		ev.Ret = f.Pos // the call says it in memory
	}
}

// files lists the descriptors of a call with what the kernel said of them.
func (s *sealer) files(ev *event.Event, spec *event.Spec, r *trace.Record) {
	for i := range spec.Args {
		if k := spec.Args[i].Kind; k != event.KindFD && k != event.KindDirFD {
			continue
		}
		fd := int32(r.Args[i])
		if fd < 0 {
			continue
		}
		f := event.File{Arg: int8(i), FD: fd}
		if o := object(r, int8(i)); o != nil {
			f = file(o)
			f.FD = fd
		}
		ev.Files = append(ev.Files, f)
	}
	if ev.Errno != 0 {
		return
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		if o.Arg < 0 || ev.FileArg(int(o.Arg)) == nil {
			ev.Files = append(ev.Files, file(o))
		}
	}
}

func object(r *trace.Record, arg int8) *trace.Object {
	for i := range r.Objects {
		if r.Objects[i].Arg == arg {
			return &r.Objects[i]
		}
	}
	return nil
}

func file(o *trace.Object) event.File {
	return event.File{
		Arg: o.Arg, FD: o.FD, Known: o.Ino != 0 || o.Mode != 0,
		Dev: statDev(o.Dev), Ino: o.Ino, Mode: o.Mode, Flags: o.Flags, Nlink: o.Nlink, UID: o.UID, GID: o.GID,
		Size: o.Size, Pos: o.Pos, Rdev: statDev(o.Rdev),
	}
}

// statDev turns the kernel's device number into stat's (new_encode_dev in
// linux/kdev_t.h, glibc's makedev).
func statDev(d uint32) uint64 {
	major, minor := uint64(d>>20), uint64(d&0xfffff)
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12
}

// data adds a RecData record to its call.
func (s *sealer) data(r *trace.Record) error {
	key := callKey{r.TID, r.Enter}
	it := s.open[key]
	if it == nil {
		return nil // its call was lost, and that is counted
	}
	if err := s.pieces(it, r.Pieces); err != nil {
		return err
	}
	if r.Flags&trace.DataLast != 0 {
		it.pending = false
		delete(s.open, key)
	}
	return nil
}

// pieces adds memory to an event.
func (s *sealer) pieces(it *item, pieces []trace.Piece) error {
	for i := range pieces {
		if err := s.piece(it, &pieces[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sealer) piece(it *item, p *trace.Piece) error {
	ev := &it.ev
	kind, dir := meaning(ev, int(p.Arg))
	if kind == event.KindPath {
		ev.Paths = append(ev.Paths, event.Path{Arg: int8(p.Arg), Raw: strings.TrimRight(string(p.Data), "\x00")})
		return nil
	}
	b := ev.BufArg(int(p.Arg))
	if b == nil {
		ev.Bufs = append(ev.Bufs, event.Buf{Arg: int8(p.Arg), Dir: dir, Kind: kind})
		b = &ev.Bufs[len(ev.Bufs)-1]
	}
	switch {
	case p.Flags&trace.PieceHash != 0:
		s.digest(it, b, p)
	case p.Flags&trace.PieceSketch != 0:
		if len(b.Sketch)+len(p.Data) <= maxSketch {
			b.Sketch = append(b.Sketch, p.Data...)
		}
	case p.Flags&trace.PieceOmitted != 0:
		b.Omitted = true
		it.before = it.before || p.Flags&trace.PieceBefore != 0
		b.Len += int64(p.Len)
	case p.Flags&trace.PieceShape != 0:
		for v := p.Data; len(v) >= 16; v = v[16:] {
			b.Parts = append(b.Parts, int64(le64(v[8:])))
		}
	case p.Flags&trace.PieceMissing != 0:
		b.Len += int64(p.Len)
		b.Missing += int64(p.Len)
		ev.Flags |= event.Incomplete
		if len(b.Inline) > 0 {
			if err := s.spill(b, it.base); err != nil {
				return err
			}
		}
		b.Refs = append(b.Refs, event.Ref{Len: p.Len})
	default:
		b.Len += int64(len(p.Data))
		return s.content(b, it.base, p)
	}
	return nil
}

// meaning returns what the memory of an argument, or of one of its parts, is.
func meaning(ev *event.Event, index int) (event.Kind, event.Dir) {
	part, i := event.SplitPart(index)
	spec := ev.Spec()
	if index == event.RequestArg {
		return event.KindStruct, event.In
	}
	if i >= len(spec.Args) {
		return event.KindBuf, event.In
	}
	a := spec.Argument(i, &ev.Args)
	switch part {
	case event.PartWhole:
		if a.Kind.IsMemory() {
			return a.Kind, a.Dir
		}
		return event.KindBuf, a.Dir
	case event.PartBefore:
		return event.KindStruct, event.In
	case event.PartData:
		return event.KindVec, a.Dir
	case event.PartTarget:
		if spec.Class == event.Meta {
			return event.KindBuf, a.Dir // the value of an extended attribute
		}
	}
	return event.KindStruct, a.Dir
}

// maxSketch bounds the sketches of a buffer: what is behind has signatures only.
const maxSketch = 2 << 20

// maxStruct is the largest structure or array of them that stands in the event itself.
const maxStruct = 4096

// content appends bytes to a buffer, in the event while they are few.
func (s *sealer) content(b *event.Buf, base int64, p *trace.Piece) error {
	inline := b.Kind == event.KindStruct && len(b.Inline)+len(p.Data) <= maxStruct || b.Kind == event.KindText || b.Kind == event.KindStrings
	if s.watched != nil && !inline {
		b.Inline = append(b.Inline, p.Data[:min(len(p.Data), max(maxInline-len(b.Inline), 0))]...)
		return nil
	}
	if len(b.Refs) == 0 && (inline || len(b.Inline)+len(p.Data) <= maxInline) {
		b.Inline = append(b.Inline, p.Data...)
		return nil
	}
	if err := s.spill(b, base); err != nil {
		return err
	}
	return s.store(b, base+int64(p.Off), p.Data)
}

// digest appends the hash of a part that is not in the tape.
func (s *sealer) digest(it *item, b *event.Buf, p *trace.Piece) {
	var d event.Digest
	copy(d[:], p.Data)
	if p.Flags&trace.PieceMissing != 0 {
		b.Missing += int64(p.Len)
		it.ev.Flags |= event.Incomplete
	}
	b.Omitted = true
	b.Len += int64(p.Len)
	b.Hashes = append(b.Hashes, d)
}

// spill moves bytes out of the event, which has grown.
func (s *sealer) spill(b *event.Buf, base int64) error {
	data := b.Inline
	b.Inline = nil
	return s.store(b, base, data)
}

// store cuts bytes at multiples of the chunk size in file offsets, so that the
// same page has the same chunk however it was moved.
func (s *sealer) store(b *event.Buf, off int64, data []byte) error {
	if s.tw == nil {
		return nil
	}
	for len(data) > 0 {
		// Unsigned: a damaged stream may say any offset.
		n := min(int64(len(data)), trace.ChunkBytes-int64(uint64(off)%trace.ChunkBytes))
		id, err := s.tw.AddChunk(data[:n])
		if err != nil {
			return err
		}
		b.Refs = append(b.Refs, event.Ref{Chunk: id, Len: uint32(n)})
		data, off = data[n:], off+n
	}
	return nil
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
