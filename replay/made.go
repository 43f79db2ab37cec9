package replay

import (
	"fmt"

	"github.com/zeebo/blake3"

	"iotape/event"
)

// madeUp is which ranges of files hold, at one moment of the replay, what the tape
// does not have: the recording kept no bytes of what was read or written there, and
// the replay has zeros. What a call reads there cannot be compared.
type madeUp map[inode]*spans

func (m madeUp) add(id inode, from, to int64) {
	s := m[id]
	if s == nil {
		s = &spans{}
		m[id] = s
	}
	s.add(from, to)
}

func (m madeUp) remove(id inode, from, to int64) {
	if s := m[id]; s != nil {
		if s.remove(from, to); len(*s) == 0 {
			delete(m, id)
		}
	}
}

// overlaps reports whether a part of a range is made up.
func (m madeUp) overlaps(id inode, from, to int64) bool {
	s := m[id]
	return s != nil && s.overlap(from, to)
}

// wholeFile is the end of a range that nothing is known of.
const wholeFile = 1 << 62

// see notes what a task does to the content of files, and whether what it reads can
// be compared.
func (m madeUp) see(t *task) {
	ev, spec := &t.ev, t.ev.Spec()
	if !ev.OK() {
		return
	}
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && (openFlags(ev)&oTrunc != 0 || f.Flags&oCreat != 0) {
		delete(m, idOf(f))
		return
	}
	if spec.Class != event.Data {
		return
	}
	if spec.Hold {
		m.copied(t)
		return
	}
	f := ev.FileArg(0)
	if f == nil || !f.Known {
		return
	}
	id := idOf(f)
	switch ev.Op {
	case event.OpFtruncate:
		m.remove(id, ev.Offset, wholeFile)
		return
	case event.OpFallocate:
		const keepSize = 1
		if m[id] != nil && ev.Args[1]&^keepSize != 0 { // content moves, or is cleared
			m.add(id, ev.Offset, wholeFile)
		}
		return
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if !spec.IsContent(int(b.Arg)) {
			continue
		}
		from, to := ev.Offset, ev.Offset+b.Len
		if ev.Offset < 0 {
			from, to = 0, wholeFile
		}
		if b.Dir == event.Out {
			t.madeUp = t.madeUp || m.overlaps(id, from, to)
		} else {
			m.wrote(id, from, to, b)
		}
	}
}

// wrote notes a write of what the tape has of b.
func (m madeUp) wrote(id inode, from, to int64, b *event.Buf) {
	known := knownPrefix(b)
	if to == wholeFile {
		if known < b.Len {
			m.add(id, from, to)
		}
		return
	}
	m.remove(id, from, from+known)
	m.add(id, from+known, to)
}

// copied follows content that moves between two descriptors.
func (m madeUp) copied(t *task) {
	ev := &t.ev
	src, dst := copySides(ev.Op)
	in, out := ev.FileArg(src), ev.FileArg(dst)
	if in == nil || out == nil || ev.Ret <= 0 {
		return
	}
	from, to := sourceOffset(ev), targetOffset(ev)
	if out.Flags&oAppend != 0 {
		to = -1
	}
	unknown := false
	if in.Known && t.fds[src] != nil {
		if from < 0 {
			unknown = m[idOf(in)] != nil
		} else {
			unknown = m.overlaps(idOf(in), from, from+ev.Ret)
		}
	}
	t.madeUp = t.madeUp || unknown
	if t.fds[dst] == nil || !out.Known {
		return
	}
	if t.action == copyIn {
		unknown = t.noWant
	}
	switch {
	case unknown && to < 0:
		m.add(idOf(out), 0, wholeFile)
	case unknown:
		m.add(idOf(out), to, to+ev.Ret)
	case to >= 0:
		m.remove(idOf(out), to, to+ev.Ret)
	}
}

func idOf(f *event.File) inode { return inode{f.Dev, f.Ino} }

// knownPrefix returns how many of a buffer's bytes, from the first on, the tape has.
func knownPrefix(b *event.Buf) int64 {
	n := int64(len(b.Inline))
	for _, r := range b.Refs {
		if r.Chunk == 0 {
			break
		}
		n += int64(r.Len)
	}
	return n
}

// checkContent compares what a call read with what the tape has of it.
func (w *worker) checkContent(t *task, b *event.Buf, got []byte) {
	if t.madeUp {
		w.uncompared()
		return
	}
	if len(b.Hashes) > 0 {
		w.checkHashes(t, b, got)
		return
	}
	if !t.noWant {
		w.checkBytes(t, "content", t.want, got)
		return
	}
	if len(got) > 0 {
		w.uncompared()
	}
	n := min(int64(len(got)), knownPrefix(b))
	w.checkBytes(t, "content", t.want[:min(n, int64(len(t.want)))], got[:n])
}

// checkHashes compares parts of a buffer by their hashes.
func (w *worker) checkHashes(t *task, b *event.Buf, got []byte) {
	for i := range b.Hashes {
		want := &b.Hashes[i]
		part := got[:min(len(got), event.HashBytes)]
		got = got[len(part):]
		if want.Missing() {
			w.uncompared()
			return
		}
		if sum := event.Digest(blake3.Sum256(part)); sum != *want {
			w.mismatch(t, "content", digestName(want, i), digestName(&sum, i))
			return
		}
	}
}

// digestName names the hash of part i of a buffer.
func digestName(d *event.Digest, i int) string {
	return fmt.Sprintf("blake3:%x at byte %d", d[:8], i*event.HashBytes)
}

// uncompared counts a read that could not be compared, or not all of it.
func (w *worker) uncompared() {
	w.mu.Lock()
	w.report.Uncompared++
	w.mu.Unlock()
}

// A madeFile is a file with made-up content, as the confined child is told of it,
// and tells.
type madeFile struct {
	Dev, Ino uint64
	Spans    [][2]int64 `json:",omitempty"`
}

func (m madeUp) list() []madeFile {
	var all []madeFile
	for id, s := range m {
		f := madeFile{Dev: id.dev, Ino: id.ino}
		for _, r := range *s {
			f.Spans = append(f.Spans, [2]int64{r.from, r.to})
		}
		all = append(all, f)
	}
	return all
}

func newMadeUp(files []madeFile) madeUp {
	m := madeUp{}
	for _, f := range files {
		for _, s := range f.Spans {
			m.add(inode{f.Dev, f.Ino}, s[0], s[1])
		}
	}
	return m
}
