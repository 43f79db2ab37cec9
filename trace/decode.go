// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
)

// blockDecoder holds the columns of one block and hands out its events.
type blockDecoder struct {
	n, next int // events
	first   uint64

	perEvent [numEventColumns][]uint64 // as long as the largest block so far
	below    [numColumns][]uint64
	stacks   func(n uint64) *event.Stack // by its number; nil: there are none
	stack    uint64                      // number of the last event's
	constant [numEventColumns]bool       // all values are equal
	inline   []byte
	digests  []byte   // not yet handed out
	sketches []byte   // likewise
	dict     []string // [0] is ""

	file, path, buf, part, ref, in int // next of each
}

// span is where a column lies in the payload.
type span struct {
	present bool
	enc     byte
	data    []byte
}

// decode takes the plain payload of a block of n events, the first of which has
// number first. The decoder keeps pointing into payload.
func (d *blockDecoder) decode(payload []byte, n int, first uint64) error {
	d.n, d.next, d.first = 0, 0, first
	d.file, d.path, d.buf, d.part, d.ref, d.in = 0, 0, 0, 0, 0, 0
	if n < 0 || n > maxBlockEvents {
		return fmt.Errorf("block of %d events, at most %d: %w", n, maxBlockEvents, ErrCorrupt)
	}
	var spans [numColumns]span
	if err := findColumns(payload, &spans); err != nil {
		return err
	}
	if err := d.decodeDict(&spans[colDict]); err != nil {
		return err
	}
	for id := range numEventColumns {
		if err := d.decodeEventColumn(id, n, &spans[id]); err != nil {
			return fmt.Errorf("column %d: %w", id, err)
		}
	}
	if err := d.decodeBelow(n, &spans); err != nil {
		return err
	}
	d.n = n
	return nil
}

func findColumns(b []byte, spans *[numColumns]span) error {
	for len(b) > 0 {
		id, k := binary.Uvarint(b)
		if k <= 0 || len(b) == k {
			return fmt.Errorf("column header: %w", ErrCorrupt)
		}
		enc := b[k]
		b = b[k+1:]
		length, k := binary.Uvarint(b)
		if k <= 0 || length > uint64(len(b)-k) {
			return fmt.Errorf("column %d of %d bytes with %d left: %w", id, length, len(b), ErrCorrupt)
		}
		data := b[k : k+int(length)]
		b = b[k+int(length):]
		if id >= numColumns || columnTable[id].level == perNone {
			continue // of a newer version
		}
		if spans[id].present {
			return fmt.Errorf("column %d comes twice: %w", id, ErrCorrupt)
		}
		spans[id] = span{present: true, enc: enc, data: data}
	}
	return nil
}

func (d *blockDecoder) decodeDict(s *span) error {
	clear(d.dict) // let go of the strings of the block before
	d.dict = append(d.dict[:0], "")
	if !s.present {
		return nil
	}
	count, k := binary.Uvarint(s.data)
	if k <= 0 || count > maxBlockItems || count > uint64(len(s.data)-k) {
		return fmt.Errorf("dictionary of %d strings in %d bytes: %w", count, len(s.data), ErrCorrupt)
	}
	lens := s.data[k:]
	rest, total := lens, uint64(0)
	for range count {
		n, k := binary.Uvarint(rest)
		if k <= 0 || n > maxBlockPlain {
			return fmt.Errorf("dictionary: length of a string: %w", ErrCorrupt)
		}
		rest, total = rest[k:], total+n
	}
	if total != uint64(len(rest)) {
		return fmt.Errorf("dictionary: %d bytes of strings, %d wanted: %w", len(rest), total, ErrCorrupt)
	}
	text := string(rest) // one allocation for all strings of the block
	for range count {
		n, k := binary.Uvarint(lens)
		lens = lens[k:]
		d.dict = append(d.dict, text[:n])
		text = text[n:]
	}
	return nil
}

func (d *blockDecoder) decodeEventColumn(id, n int, s *span) error {
	all := d.perEvent[id]
	if len(all) < n {
		all = make([]uint64, min(max(n, 2*len(all)), maxBlockEvents))
		d.perEvent[id], d.constant[id] = all, false
	}
	if !s.present || s.enc == encConst {
		x := uint64(0)
		if s.present {
			var k int
			if x, k = binary.Uvarint(s.data); k <= 0 || k != len(s.data) {
				return fmt.Errorf("constant of %d bytes: %w", len(s.data), ErrCorrupt)
			}
		}
		if n > 0 && (!d.constant[id] || all[0] != x) {
			for i := range all {
				all[i] = x
			}
			d.constant[id] = true
		}
		return d.checkValues(id, all[:min(n, 1)])
	}
	d.constant[id] = false
	if err := decodeColumn(all[:n], s.enc, s.data); err != nil {
		return err
	}
	return d.checkValues(id, all[:n])
}

// checkValues checks that values fit their field or the dictionary.
func (d *blockDecoder) checkValues(id int, v []uint64) error {
	c := columnTable[id]
	if c.text {
		n := uint64(len(d.dict))
		for _, x := range v {
			if x >= n {
				return fmt.Errorf("string %d of %d: %w", x, n, ErrCorrupt)
			}
		}
		return nil
	}
	if c.bits == 0 {
		return nil
	}
	or := uint64(0)
	for _, x := range v {
		or |= x
	}
	if or>>c.bits != 0 {
		return fmt.Errorf("value of more than %d bits: %w", c.bits, ErrCorrupt)
	}
	return nil
}

func (d *blockDecoder) decodeBelow(n int, spans *[numColumns]span) error {
	var count [numLevels]int
	sum := func(l level, v []uint64) error {
		limit, total := uint64(maxBlockOwned), uint64(0)
		if l >= perPart {
			limit = maxBlockItems
		}
		for _, x := range v {
			if total += x; total > limit {
				return fmt.Errorf("block of more than %d items of level %d: %w", limit, l, ErrCorrupt)
			}
		}
		count[l] = int(total)
		return nil
	}
	for _, c := range []struct {
		level level
		id    int
	}{{perFile, colFiles}, {perPath, colPaths}, {perBuf, colBufs}} {
		if err := sum(c.level, d.perEvent[c.id][:n]); err != nil {
			return err
		}
	}
	for _, l := range []level{perFile, perPath, perBuf, perPart, perRef} {
		if err := d.decodeLevel(l, count[l], spans); err != nil {
			return err
		}
		if l != perBuf {
			continue
		}
		if err := sum(perPart, d.below[colBufParts]); err != nil {
			return err
		}
		if err := sum(perRef, d.below[colBufRefs]); err != nil {
			return err
		}
	}
	if err := d.checkMeaning(); err != nil {
		return err
	}
	total := uint64(0)
	for _, x := range d.below[colBufInline] {
		total += max(x, 1) - 1 // fits 32 bits, so the sum cannot overflow
	}
	d.inline = spans[colInline].data
	if total != uint64(len(d.inline)) {
		return fmt.Errorf("%d inline bytes, %d wanted: %w", len(d.inline), total, ErrCorrupt)
	}
	total = 0
	for _, x := range d.below[colBufHashes] {
		total += x // likewise
	}
	d.digests = spans[colDigests].data
	if have := uint64(len(d.digests)); have%uint64(digestBytes) != 0 || total != have/uint64(digestBytes) {
		return fmt.Errorf("%d bytes of hashes, %d hashes wanted: %w", have, total, ErrCorrupt)
	}
	total = 0
	for _, x := range d.below[colSketch] {
		total += x // likewise
	}
	d.sketches = spans[colSketches].data
	if total != uint64(len(d.sketches)) {
		return fmt.Errorf("%d bytes of sketches, %d wanted: %w", len(d.sketches), total, ErrCorrupt)
	}
	return nil
}

// checkMeaning checks the values that all readers rely on. Whoever makes a tape can give the block a right checksum.
func (d *blockDecoder) checkMeaning() error {
	for _, id := range []int{colBufLen, colBufMissing} {
		for _, x := range d.below[id] {
			if x > event.MaxBytes {
				return fmt.Errorf("buffer of %d bytes: %w", int64(x), ErrCorrupt)
			}
		}
	}
	for _, x := range d.below[colBufArg] {
		if x > math.MaxInt8 {
			return fmt.Errorf("buffer of argument %d: %w", int64(x), ErrCorrupt)
		}
	}
	for _, x := range d.below[colPathArg] {
		if x >= event.MaxArgs {
			return fmt.Errorf("name of argument %d: %w", int64(x), ErrCorrupt)
		}
	}
	return nil
}

func (d *blockDecoder) decodeLevel(l level, n int, spans *[numColumns]span) error {
	for id := range columnTable {
		if columnTable[id].level != l {
			continue
		}
		v := slices.Grow(d.below[id][:0], n)[:n]
		d.below[id] = v
		if !spans[id].present {
			clear(v)
			continue
		}
		if err := decodeColumn(v, spans[id].enc, spans[id].data); err != nil {
			return fmt.Errorf("column %d: %w", id, err)
		}
		if err := d.checkValues(id, v); err != nil {
			return fmt.Errorf("column %d: %w", id, err)
		}
	}
	return nil
}

// event decodes the next event of the block, of which there must be one. All
// positions were checked by decode.
func (d *blockDecoder) event(ev *event.Event) {
	i, c := d.next, &d.perEvent
	d.next++
	ev.Seq = d.first + uint64(i)
	ev.Op = event.Op(c[colOp][i])
	ev.Kind = event.EventKind(c[colKind][i])
	ev.NR = uint32(c[colNR][i])
	ev.Host = uint32(c[colHost][i])
	ev.PID = uint32(c[colPID][i])
	ev.TID = uint32(c[colTID][i])
	ev.PPID = uint32(c[colPPID][i])
	ev.PGID = uint32(c[colPGID][i])
	ev.SID = uint32(c[colSID][i])
	ev.NSPID = uint32(c[colNSPID][i])
	ev.NSTID = uint32(c[colNSTID][i])
	ev.UID = uint32(c[colUID][i])
	ev.GID = uint32(c[colGID][i])
	ev.Comm = d.dict[c[colComm][i]]
	ev.Enter = int64(c[colEnter][i])
	ev.Exit = ev.Enter + int64(c[colDuration][i])
	ev.CPU = int64(c[colCPU][i])
	ev.DelayBefore = uint32(c[colDelayBefore][i])
	ev.DelayWithin = uint32(c[colDelayWithin][i])
	ev.Ret = int64(c[colRet][i])
	ev.Errno = syscall.Errno(c[colErrno][i])
	for k := range ev.Args {
		ev.Args[k] = c[colArg0+k][i]
	}
	ev.Offset = int64(c[colOffset][i])
	ev.Count = int64(c[colCount][i])
	ev.Child = uint32(c[colChild][i])
	ev.Flags = event.EventFlags(c[colFlags][i])
	if d.stack, ev.Stack = c[colStack][i], nil; d.stack != 0 && d.stacks != nil {
		ev.Stack = d.stacks(d.stack)
	}

	ev.Files = resize(ev.Files, int(c[colFiles][i]))
	for k := range ev.Files {
		d.fileOf(&ev.Files[k])
	}
	ev.Paths = resize(ev.Paths, int(c[colPaths][i]))
	for k := range ev.Paths {
		j := d.path
		d.path++
		ev.Paths[k] = event.Path{
			Arg:  int8(d.below[colPathArg][j]),
			Raw:  d.dict[d.below[colPathRaw][j]],
			Abs:  d.dict[d.below[colPathAbs][j]],
			Real: d.dict[d.below[colPathReal][j]],
		}
	}
	ev.Bufs = resize(ev.Bufs, int(c[colBufs][i]))
	for k := range ev.Bufs {
		d.bufOf(&ev.Bufs[k])
	}
}

// skip passes over the next event.
func (d *blockDecoder) skip() {
	i, c := d.next, &d.perEvent
	d.next++
	d.file += int(c[colFiles][i])
	d.path += int(c[colPaths][i])
	for range int(c[colBufs][i]) {
		d.part += int(d.below[colBufParts][d.buf])
		d.ref += int(d.below[colBufRefs][d.buf])
		d.in += max(int(d.below[colBufInline][d.buf]), 1) - 1
		d.digests = d.digests[digestBytes*int(d.below[colBufHashes][d.buf]):]
		d.sketches = d.sketches[d.below[colSketch][d.buf]:]
		d.buf++
	}
}

// resize returns s with n elements, those within its capacity as they were.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}

func (d *blockDecoder) fileOf(f *event.File) {
	j, c := d.file, &d.below
	d.file++
	f.Arg = int8(c[colFileArg][j])
	f.FD = int32(c[colFileFD][j])
	f.Open = event.OpenID(c[colFileOpen][j])
	f.Known = c[colFileKnown][j] != 0
	f.Dev = c[colFileDev][j]
	f.Ino = c[colFileIno][j]
	f.Mode = uint32(c[colFileMode][j])
	f.Flags = uint32(c[colFileFlags][j])
	f.Nlink = uint32(c[colFileNlink][j])
	f.UID = uint32(c[colFileUID][j])
	f.GID = uint32(c[colFileGID][j])
	f.Size = int64(c[colFileSize][j])
	f.Pos = int64(c[colFilePos][j])
	f.Rdev = c[colFileRdev][j]
	f.Path = d.dict[c[colFilePath][j]]
	f.Real = d.dict[c[colFileReal][j]]
}

func (d *blockDecoder) bufOf(b *event.Buf) {
	j, c := d.buf, &d.below
	d.buf++
	b.Arg = int8(c[colBufArg][j])
	b.Dir = event.Dir(c[colBufDir][j])
	b.Kind = event.Kind(c[colBufKind][j])
	b.Omitted = c[colBufOmitted][j] != 0
	b.Len = int64(c[colBufLen][j])
	b.Missing = int64(c[colBufMissing][j])
	b.Inline = nil
	if n := int(c[colBufInline][j]); n > 0 {
		b.Inline = d.inline[d.in : d.in+n-1 : d.in+n-1]
		d.in += n - 1
	}
	b.Parts = resize(b.Parts, int(c[colBufParts][j]))
	for k := range b.Parts {
		b.Parts[k] = int64(c[colPart][d.part])
		d.part++
	}
	b.Refs = resize(b.Refs, int(c[colBufRefs][j]))
	for k := range b.Refs {
		b.Refs[k] = event.Ref{Chunk: c[colRefChunk][d.ref], Off: uint32(c[colRefOff][d.ref]),
			Len: uint32(c[colRefLen][d.ref])}
		d.ref++
	}
	b.Hashes = resize(b.Hashes, int(c[colBufHashes][j]))
	for k := range b.Hashes {
		d.digests = d.digests[copy(b.Hashes[k][:], d.digests):]
	}
	b.Sketch = nil
	if n := int(c[colSketch][j]); n > 0 {
		b.Sketch, d.sketches = d.sketches[:n:n], d.sketches[n:]
	}
}
