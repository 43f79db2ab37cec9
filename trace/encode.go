// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"

	"github.com/iotape/iotape/event"
)

// Limits of a block of events. They are part of the tape format.
const (
	maxBlockEvents = 4096
	maxBlockOwned  = 1 << 18  // files, paths, buffers: of each
	maxBlockItems  = 1 << 21  // parts, references, strings: of each
	maxBlockPlain  = 64 << 20 // bytes

	// blockWeight is about how many plain bytes end a block before it is full of
	// events. It is not part of the format.
	blockWeight = 1 << 20
)

const digestBytes = len(event.Digest{})

// blockEncoder collects the events of one block by column.
type blockEncoder struct {
	n        int    // events
	stack    uint32 // number of the stack of the next event
	weight   int    // bytes, roughly
	min, max int64

	perEvent [numEventColumns][]uint64 // of one length, which grows up to maxBlockEvents
	below    [numColumns][]uint64      // the columns of the lower levels
	inline   []byte
	digests  []byte
	sketches []byte

	dict      map[string]uint32
	dictLen   []uint64
	dictBytes []byte
	lastComm  string
	lastIdx   uint32

	scratch []byte
}

func newBlockEncoder() *blockEncoder { return &blockEncoder{dict: make(map[string]uint32)} }

func (e *blockEncoder) reset() {
	e.n, e.weight, e.min, e.max, e.stack = 0, 0, 0, 0, 0
	for i := range e.below {
		e.below[i] = e.below[i][:0]
	}
	e.inline, e.digests, e.sketches, e.dictLen, e.dictBytes = e.inline[:0], e.digests[:0], e.sketches[:0],
		e.dictLen[:0], e.dictBytes[:0]
	clear(e.dict)
	e.lastComm, e.lastIdx = "", 0
}

func (e *blockEncoder) full() bool { return e.n >= maxBlockEvents || e.weight >= blockWeight }

// str returns the dictionary position of s.
func (e *blockEncoder) str(s string) uint64 {
	if s == "" {
		return 0
	}
	if i, ok := e.dict[s]; ok {
		return uint64(i)
	}
	e.dictLen = append(e.dictLen, uint64(len(s)))
	e.dictBytes = append(e.dictBytes, s...)
	e.dict[s] = uint32(len(e.dictLen))
	e.weight += len(s)
	return uint64(len(e.dictLen))
}

// checkSize refuses an event that alone would break a block's limits.
func checkSize(ev *event.Event) error {
	bytes, refs, parts := 0, 0, 0
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; b.Arg < 0 || uint64(b.Len) > event.MaxBytes || uint64(b.Missing) > event.MaxBytes {
			return fmt.Errorf("event of %s with a buffer of argument %d, %d bytes, %d of them missing", ev.Op, b.Arg,
				b.Len, b.Missing)
		}
		bytes += len(ev.Bufs[i].Inline) + digestBytes*len(ev.Bufs[i].Hashes) + len(ev.Bufs[i].Sketch)
		refs += len(ev.Bufs[i].Refs)
		parts += len(ev.Bufs[i].Parts)
	}
	for i := range ev.Paths {
		if arg := ev.Paths[i].Arg; arg < 0 || int(arg) >= event.MaxArgs {
			return fmt.Errorf("event of %s with a name of argument %d", ev.Op, arg)
		}
		bytes += len(ev.Paths[i].Raw) + len(ev.Paths[i].Abs) + len(ev.Paths[i].Real)
	}
	for i := range ev.Files {
		bytes += len(ev.Files[i].Path) + len(ev.Files[i].Real)
	}
	// A block that takes one more event holds less than blockWeight before it.
	const itemMax, byteMax = maxBlockItems - blockWeight, maxBlockPlain/2 - 24*(1<<19)
	if max(refs, parts) > itemMax || max(len(ev.Files), len(ev.Paths), len(ev.Bufs)) > 512 || bytes > byteMax ||
		len(ev.Comm) > 4096 {
		return fmt.Errorf("event of %s with %d bytes and %d references in itself is too large for a block", ev.Op,
			bytes, refs)
	}
	return nil
}

// add appends an event. The caller has checked its size and that the block is not
// full.
func (e *blockEncoder) add(ev *event.Event) {
	i, c := e.n, &e.perEvent
	if i == 0 {
		e.min, e.max = ev.Enter, ev.Exit
	}
	if i == len(c[0]) {
		for id := range c {
			c[id] = append(c[id], make([]uint64, min(max(i, 64), maxBlockEvents-i))...)
		}
	}
	e.min, e.max = min(e.min, ev.Enter), max(e.max, ev.Exit)
	if ev.Comm != e.lastComm {
		e.lastComm, e.lastIdx = ev.Comm, uint32(e.str(ev.Comm))
	}
	c[colOp][i] = uint64(ev.Op)
	c[colKind][i] = uint64(ev.Kind)
	c[colNR][i] = uint64(ev.NR)
	c[colHost][i] = uint64(ev.Host)
	c[colPID][i] = uint64(ev.PID)
	c[colTID][i] = uint64(ev.TID)
	c[colPPID][i] = uint64(ev.PPID)
	c[colPGID][i] = uint64(ev.PGID)
	c[colSID][i] = uint64(ev.SID)
	c[colNSPID][i] = uint64(ev.NSPID)
	c[colNSTID][i] = uint64(ev.NSTID)
	c[colUID][i] = uint64(ev.UID)
	c[colGID][i] = uint64(ev.GID)
	c[colComm][i] = uint64(e.lastIdx)
	c[colEnter][i] = uint64(ev.Enter)
	c[colDuration][i] = uint64(ev.Exit - ev.Enter)
	c[colCPU][i] = uint64(ev.CPU)
	c[colDelayBefore][i] = uint64(ev.DelayBefore)
	c[colDelayWithin][i] = uint64(ev.DelayWithin)
	c[colRet][i] = uint64(ev.Ret)
	c[colErrno][i] = uint64(uint32(ev.Errno))
	for k, a := range ev.Args {
		c[colArg0+k][i] = a
	}
	c[colOffset][i] = uint64(ev.Offset)
	c[colCount][i] = uint64(ev.Count)
	c[colStack][i] = uint64(e.stack)
	c[colChild][i] = uint64(ev.Child)
	c[colFlags][i] = uint64(ev.Flags)
	c[colFiles][i] = uint64(len(ev.Files))
	c[colPaths][i] = uint64(len(ev.Paths))
	c[colBufs][i] = uint64(len(ev.Bufs))
	e.weight += 64
	for k := range ev.Files {
		e.addFile(&ev.Files[k])
	}
	for k := range ev.Paths {
		p := &ev.Paths[k]
		e.put(colPathArg, uint64(p.Arg))
		e.put(colPathRaw, e.str(p.Raw))
		e.put(colPathAbs, e.str(p.Abs))
		e.put(colPathReal, e.str(p.Real))
		e.weight += 8
	}
	for k := range ev.Bufs {
		e.addBuf(&ev.Bufs[k])
	}
	e.n++
}

func (e *blockEncoder) put(id int, v uint64) { e.below[id] = append(e.below[id], v) }

func (e *blockEncoder) addFile(f *event.File) {
	e.put(colFileArg, uint64(f.Arg))
	e.put(colFileFD, uint64(f.FD))
	e.put(colFileOpen, uint64(f.Open))
	e.put(colFileKnown, bit(f.Known))
	e.put(colFileDev, f.Dev)
	e.put(colFileIno, f.Ino)
	e.put(colFileMode, uint64(f.Mode))
	e.put(colFileFlags, uint64(f.Flags))
	e.put(colFileNlink, uint64(f.Nlink))
	e.put(colFileUID, uint64(f.UID))
	e.put(colFileGID, uint64(f.GID))
	e.put(colFileSize, uint64(f.Size))
	e.put(colFilePos, uint64(f.Pos))
	e.put(colFileRdev, f.Rdev)
	e.put(colFilePath, e.str(f.Path))
	e.put(colFileReal, e.str(f.Real))
	e.weight += 40
}

func (e *blockEncoder) addBuf(b *event.Buf) {
	inline := uint64(0)
	if b.Inline != nil {
		inline = uint64(len(b.Inline)) + 1
	}
	e.put(colBufArg, uint64(b.Arg))
	e.put(colBufDir, uint64(b.Dir))
	e.put(colBufKind, uint64(b.Kind))
	e.put(colBufOmitted, bit(b.Omitted))
	e.put(colBufLen, uint64(b.Len))
	e.put(colBufMissing, uint64(b.Missing))
	e.put(colBufParts, uint64(len(b.Parts)))
	e.put(colBufInline, inline)
	e.put(colBufRefs, uint64(len(b.Refs)))
	e.put(colBufHashes, uint64(len(b.Hashes)))
	e.put(colSketch, uint64(len(b.Sketch)))
	e.inline = append(e.inline, b.Inline...)
	e.sketches = append(e.sketches, b.Sketch...)
	for i := range b.Hashes {
		e.digests = append(e.digests, b.Hashes[i][:]...)
	}
	for _, n := range b.Parts {
		e.put(colPart, uint64(n))
	}
	for _, r := range b.Refs {
		e.put(colRefChunk, r.Chunk)
		e.put(colRefOff, uint64(r.Off))
		e.put(colRefLen, uint64(r.Len))
	}
	e.weight += 16 + len(b.Inline) + 4*len(b.Parts) + 8*len(b.Refs) + digestBytes*len(b.Hashes) + len(b.Sketch)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// appendPlain appends the block's payload before compression.
func (e *blockEncoder) appendPlain(b []byte) []byte {
	for id := range numEventColumns {
		b = appendColumn(b, id, e.perEvent[id][:e.n], &e.scratch)
	}
	for id := range e.below {
		b = appendColumn(b, id, e.below[id], &e.scratch)
	}
	if len(e.dictLen) > 0 {
		d := binary.AppendUvarint(e.scratch[:0], uint64(len(e.dictLen)))
		for _, n := range e.dictLen {
			d = binary.AppendUvarint(d, n)
		}
		e.scratch = append(d, e.dictBytes...)
		b = appendBytesColumn(b, colDict, 0, e.scratch)
	}
	if len(e.inline) > 0 {
		b = appendBytesColumn(b, colInline, 0, e.inline)
	}
	if len(e.digests) > 0 {
		b = appendBytesColumn(b, colDigests, 0, e.digests)
	}
	if len(e.sketches) > 0 {
		b = appendBytesColumn(b, colSketches, 0, e.sketches)
	}
	return b
}
