package replay

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// A read is compared with what the tape says by XXH3-128 hashes of the chunks that it is
// made of. What a replay reads it has mostly written itself, in calls whose content was
// taken out of the tape for that: then the hashes are known, and the bytes need not be
// decompressed once more from wherever they are, kept until they are compared, or looked at
// in memory that no cache has any longer. A tape's own hashes of its chunks are BLAKE3,
// which takes longer for a page than reading it does.
//
// Who makes a tape can make two chunks of one XXH3-128 hash. He would deceive a replay of
// his own tape about a read; the files in the end are compared by other means.

// known has the hashes of chunks that were taken out of a tape. It is the planner's alone.
type known struct {
	pages map[uint64]*knownPage // by chunk / knownChunks
	order []uint64              // of the pages, the oldest at next
	next  int
	space []byte
}

// knownPage is what is known of a run of chunks. A chunk of no bytes is not known.
type knownPage [knownChunks]struct {
	sum xxh3.Uint128
	len uint32
}

const (
	knownChunks = 512
	// maxKnownPages bounds the memory: 48 MiB, for two million chunks.
	maxKnownPages = 4096
)

func newKnown() *known { return &known{pages: map[uint64]*knownPage{}} }

// sum returns the hash of the bytes that a reference names.
func (k *known) sum(r event.Ref) (xxh3.Uint128, bool) {
	p := k.pages[r.Chunk/knownChunks]
	if p == nil || r.Off != 0 || r.Len == 0 {
		return xxh3.Uint128{}, false
	}
	c := &p[r.Chunk%knownChunks]
	return c.sum, c.len == r.Len
}

// note remembers the hash of the bytes that a reference names, if they begin a chunk.
func (k *known) note(r event.Ref, sum xxh3.Uint128) {
	if r.Off != 0 {
		return
	}
	n := r.Chunk / knownChunks
	p := k.pages[n]
	if p == nil {
		p = new(knownPage)
		if len(k.order) < maxKnownPages {
			k.order = append(k.order, n)
		} else {
			delete(k.pages, k.order[k.next])
			k.order[k.next] = n
			k.next = (k.next + 1) % maxKnownPages
		}
		k.pages[n] = p
	}
	c := &p[r.Chunk%knownChunks]
	c.sum, c.len = sum, r.Len
}

// see remembers the hashes of a buffer's chunks, whose bytes are data.
func (k *known) see(b *event.Buf, data []byte) {
	data = data[min(len(b.Inline), len(data)):]
	for _, r := range b.Refs {
		if uint64(r.Len) > uint64(len(data)) {
			return
		}
		if r.Chunk != 0 {
			if _, ok := k.sum(r); !ok {
				k.note(r, xxh3.Hash128(data[:r.Len]))
			}
		}
		data = data[r.Len:]
	}
}

// part is a part of what a read should give.
type part struct {
	sum xxh3.Uint128
	ref event.Ref
}

// parts appends what a buffer is made of. It reports false if that is not to be known in
// this way: bytes of it are in the event itself, or are not in the tape.
func (k *known) parts(t *trace.Tape, b *event.Buf, dst []part) ([]part, bool) {
	if len(b.Inline) > 0 || len(b.Refs) == 0 {
		return dst, false
	}
	left := b.Len
	for _, r := range b.Refs {
		if left -= int64(r.Len); r.Chunk == 0 {
			return dst, false
		}
	}
	if left != 0 {
		return dst, false
	}
	out := dst
	for _, r := range b.Refs {
		sum, ok := k.sum(r)
		if !ok {
			one := event.Buf{Len: int64(r.Len), Refs: []event.Ref{r}}
			data, err := t.Content(&one, k.space[:0])
			if err != nil {
				return dst, false
			}
			k.space = data
			sum = xxh3.Hash128(data)
			k.note(r, sum)
		}
		out = append(out, part{sum, r})
	}
	return out, true
}

const partBytes = int64(unsafe.Sizeof(part{}))

// same reports whether bytes are those that they should be.
func same(parts []part, got []byte) bool {
	for i := range parts {
		n := uint64(parts[i].ref.Len)
		if n > uint64(len(got)) || xxh3.Hash128(got[:n]) != parts[i].sum {
			return false
		}
		got = got[n:]
	}
	return len(got) == 0
}

// compareParts is firstDifference for what is known by its hashes. The bytes that there
// should be are taken out of the tape now.
func (r *runner) compareParts(parts []part, bytesGot []byte) (want, got string, differ bool) {
	if same(parts, bytesGot) {
		return "", "", false
	}
	b := event.Buf{}
	for i := range parts {
		b.Refs = append(b.Refs, parts[i].ref)
		b.Len += int64(parts[i].ref.Len)
	}
	if b.Len != int64(len(bytesGot)) {
		return fmt.Sprintf("%d bytes", b.Len), fmt.Sprintf("%d bytes", len(bytesGot)), true
	}
	data, err := r.planner.tape.Content(&b, nil)
	if err != nil || bytes.Equal(data, bytesGot) {
		return "what the tape has", "other bytes", true
	}
	want, got = firstDifference(data, bytesGot)
	return want, got, true
}

// content loads what a task writes, and what it should read or the hashes of that.
func (r *runner) content(t *task) {
	switch b := t.content(event.Out); {
	case t.action == copyIn: // the planner had to
		return
	case t.action == call && t.ev.Spec().Hold: // the kernel copies it
		return
	case b == nil:
	case r.checks&CheckData == 0 || t.madeUp:
		return // it is not compared
	default:
		var ok bool
		if t.parts, ok = r.known.parts(r.planner.tape, b, t.parts[:0]); ok {
			return
		}
	}
	r.planner.content(t)
	if b := t.content(event.In); b != nil && r.checks&CheckData != 0 && !t.noWant {
		r.known.see(b, t.data)
	}
}

// content returns the only buffer of a task with a file's content, if it goes in this
// direction; nil if there are none or several.
func (t *task) content(d event.Dir) *event.Buf {
	ev := &t.ev
	if ev.Kind != event.Call || ev.Spec().Class != event.Data || t.action != call && t.action != copyOut {
		return nil
	}
	var found *event.Buf
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindBuf && b.Kind != event.KindVec {
			continue
		}
		if found != nil {
			return nil
		}
		found = b
	}
	// What moves inside the kernel is read where it is copied out.
	if found == nil || (found.Dir == event.In && !ev.Spec().Hold) != (d == event.In) {
		return nil
	}
	return found
}

// load takes the content of a plain step.
func (r *runner) load(t *task, s *step, b *batch) {
	s.data, s.size, s.parts, s.compare = nil, 0, 0, false
	if s.kind == stepWrite && r.data.data.Made {
		if part, ok := r.data.part(int(s.count), t.ev.Offset, s.seq); ok {
			s.holds(part)
			return
		}
		b.bytes = b.room(int64(s.count))
		at := len(b.bytes)
		b.bytes = b.bytes[:at+int(s.count)]
		s.holds(b.bytes[at:])
		r.data.fill(s.bytes(), t.ev.Offset, s.seq)
		return
	}
	if len(t.ev.Bufs) == 0 || s.ret == 0 {
		return
	}
	buf := &t.ev.Bufs[0]
	if s.kind == stepRead {
		if r.checks&CheckData != 0 {
			r.loadRead(t, s, b)
		}
		return
	}
	if knownPrefix(buf) == 0 {
		return // zeros are written
	}
	b.bytes = b.room(min(knownPrefix(buf), maxScratch))
	at := len(b.bytes)
	out, err := r.planner.tape.Content(buf, b.bytes)
	if err != nil {
		if out, _, err = r.planner.tape.ContentZero(buf, b.bytes); err != nil {
			return
		}
	} else if r.checks&CheckData != 0 {
		r.known.see(buf, out[at:])
	}
	b.bytes = out
	s.holds(out[at:])
}

// loadRead finds out what a plain read is to be compared with.
func (r *runner) loadRead(t *task, s *step, b *batch) {
	buf := &t.ev.Bufs[0]
	if t.madeUp || knownPrefix(buf) == 0 || buf.Len != s.ret {
		r.uncompared()
		return
	}
	at := len(b.parts)
	if out, ok := r.known.parts(r.planner.tape, buf, b.parts); ok {
		b.parts = out
		s.part, s.parts = uint32(at), uint32(len(out)-at)
		s.compare = true
		return
	}
	b.bytes = b.room(min(knownPrefix(buf), maxScratch))
	at = len(b.bytes)
	if out, err := r.planner.tape.Content(buf, b.bytes); err == nil && int64(len(out)-at) == s.ret {
		b.bytes = out
		s.holds(out[at:])
		s.compare = true
		return
	}
	r.uncompared()
}
