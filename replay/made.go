package replay

import (
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// madeUp is which ranges of files hold, at one moment of the replay, what the tape
// does not have: the recording kept no bytes of what was read or written there, and
// the replay has zeros. What a call reads there cannot be compared.
type madeUp struct {
	effect.Ranges
	all     bool // nothing that is written is as recorded
	altered bool // no content of the tape is what files held, byte by byte: trace.ContentEncrypted
}

func newMadeUp(t *trace.Tape, ranges []effect.FileRanges, all bool) madeUp {
	return madeUp{effect.NewRanges(ranges), all, contentOf(t) == trace.ContentEncrypted}
}

// see notes what a task does to the content of files, and whether what it reads can
// be compared.
func (m madeUp) see(t *task) {
	ev, spec := &t.ev, t.ev.Spec()
	if !ev.OK() {
		return
	}
	asked := effect.OpenFlags(ev) // of calls that open: duplicates have flags of the past
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && (asked&effect.OTrunc != 0 || asked&uint64(f.Flags)&effect.OCreat != 0) {
		delete(m.Ranges, effect.InodeOf(f))
		return
	}
	if c, ok := ev.Cloned(); ok && t.action == clone {
		m.cloned(&c)
	}
	if spec.Class != event.Data {
		return
	}
	t.madeUp = t.madeUp || m.altered
	if spec.Hold {
		m.copied(t)
		return
	}
	f := ev.FileArg(0)
	if f == nil || !f.Known {
		return
	}
	id := effect.InodeOf(f)
	switch ev.Op {
	case event.OpFtruncate:
		m.Remove(id, ev.Offset, effect.WholeFile)
		return
	case event.OpFallocate:
		const keepSize = 1
		if m.Ranges[id] != nil && ev.Args[1]&^keepSize != 0 { // content moves, or is cleared
			m.Add(id, ev.Offset, effect.WholeFile)
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
			from, to = 0, effect.WholeFile
		}
		if b.Dir == event.Out {
			t.madeUp = t.madeUp || m.Overlaps(id, from, to)
		} else {
			m.wrote(id, from, to, b)
		}
	}
}

// wrote notes a write of what the tape has of b.
func (m madeUp) wrote(id effect.Inode, from, to int64, b *event.Buf) {
	known := knownPrefix(b)
	if m.all {
		known = 0
	}
	if to == effect.WholeFile {
		if known < b.Len {
			m.Add(id, from, to)
		}
		return
	}
	m.Remove(id, from, from+known)
	m.Add(id, from+known, to)
}

// copied follows content that moves between two descriptors.
func (m madeUp) copied(t *task) {
	ev := &t.ev
	src, dst := effect.CopySides(ev.Op)
	in, out := ev.FileArg(src), ev.FileArg(dst)
	if in == nil || out == nil || ev.Ret <= 0 {
		return
	}
	from, to := effect.SourceOffset(ev), effect.TargetOffset(ev)
	if out.Flags&effect.OAppend != 0 {
		to = -1
	}
	unknown := false
	if in.Known && t.fds[src] != nil {
		if from < 0 {
			unknown = m.Ranges[effect.InodeOf(in)] != nil
		} else {
			unknown = m.Overlaps(effect.InodeOf(in), from, from+ev.Ret)
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
		m.Add(effect.InodeOf(out), 0, effect.WholeFile)
	case unknown:
		m.Add(effect.InodeOf(out), to, to+ev.Ret)
	case to >= 0:
		m.Remove(effect.InodeOf(out), to, to+ev.Ret)
	}
}

// cloned follows content that one file took over of another.
func (m madeUp) cloned(c *event.Cloned) {
	id, end := effect.InodeOf(c.To), effect.CloneEnd(c, c.At)
	switch {
	case c.From != nil && c.From.Known && !m.Overlaps(effect.InodeOf(c.From), c.Off, effect.CloneEnd(c, c.Off)):
		if end != effect.WholeFile {
			m.Remove(id, c.At, end)
		}
	case len(m.Ranges) > 0:
		m.Add(id, c.At, end)
	}
}

// contentOf says what became of a tape's content.
func contentOf(t *trace.Tape) trace.AnonymisedContent {
	if a := t.Manifest().Anonymised; a != nil {
		return a.Content
	}
	return trace.ContentKept
}

// hashHolds reports whether the hash in the entry of a tape's tree is that of what a
// replay makes: when content was replaced (package anon) only where all of it is there.
func hashHolds(content trace.AnonymisedContent, e *tree.Entry) bool {
	return content == trace.ContentKept || content == trace.ContentSubstituted && e.Has(tree.KnownContent)
}

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

// prefix returns the first bytes of a buffer that the tape has, as a buffer.
func prefix(b *event.Buf) event.Buf {
	p := event.Buf{Arg: b.Arg, Dir: b.Dir, Kind: b.Kind, Len: knownPrefix(b), Inline: b.Inline}
	for i := range b.Refs {
		if b.Refs[i].Chunk == 0 {
			break
		}
		p.Refs = b.Refs[:i+1]
	}
	return p
}

// checkContent compares what a call read with what the tape has of it.
func (w *worker) checkContent(t *task, b *event.Buf, got []byte) {
	if t.Unexplained&linearize.UnexplainedContent != 0 {
		w.doubted()
		return
	}
	if t.madeUp {
		w.uncompared()
		return
	}
	if len(b.Hashes) > 0 {
		w.checkHashes(t, b, got)
		return
	}
	if len(t.parts) > 0 {
		if want, got, differ := w.compareParts(t.parts, got); differ {
			w.mismatch(t, "content", want, got)
		}
		return
	}
	if !t.noWant {
		w.checkBytes(t, "content", t.want, got)
		return
	}
	if len(got) > 0 {
		w.uncompared()
	}
	n := min(len(got), len(t.want)) // the tape has these
	w.checkBytes(t, "content", t.want[:n], got[:n])
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
		// Of a signature the first 8 bytes are the hash's, the others say what it is like.
		if sum := event.Digest(blake3.Sum256(part)); [8]byte(sum[:]) != [8]byte(want[:]) {
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
func (r *runner) uncompared() {
	r.mu.Lock()
	r.report.Uncompared++
	r.mu.Unlock()
}

// plain is see for a plain read or write.
func (m madeUp) plain(t *task) {
	ev := &t.ev
	if len(m.Ranges) == 0 && !m.all && !m.altered && (t.step.kind == stepRead || len(ev.Bufs) == 1 && knownPrefix(&ev.Bufs[0]) == ev.Bufs[0].Len) {
		return
	}
	m.see(t)
}
