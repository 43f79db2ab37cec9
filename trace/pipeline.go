// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// blockWriter writes the blocks of one file. The caller fills jobs; they are
// compressed by a few goroutines and written in the caller's order by another, all
// of which end in finish or abort.
//
//	caller ──work──▶ compressors
//	   └────order────────────────▶ writer ──▶ file
//	   ▲                              │
//	   └────────────free──────────────┘
type blockWriter struct {
	kind   *blockKind
	f      *os.File
	work   chan *blockJob
	order  chan *blockJob
	free   chan *blockJob
	wg     sync.WaitGroup
	failed atomic.Pointer[error]
	closed bool

	number uint32 // of the next block, the caller's side
	next   uint64 // item, the caller's side

	// The writer's side, the caller's after finish.
	hash   *blake3.Hasher
	off    int64
	blocks []indexEntry
}

// blockJob is a block on its way. The caller fills header.items, the times, and
// table, and appends to plain or, to have it made by the compressor, sets encoder.
type blockJob struct {
	header  blockHeader
	encoder *blockEncoder // events only, kept with the job
	table   []byte
	plain   []byte
	out     []byte
	done    chan struct{}
}

// newBlockWriter creates the file and starts the goroutines.
func newBlockWriter(k *blockKind, path string, compressors int) (*blockWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	jobs := compressors + 2
	w := &blockWriter{
		kind: k, f: f, hash: blake3.New(), next: k.first,
		work: make(chan *blockJob, jobs), order: make(chan *blockJob, jobs), free: make(chan *blockJob, jobs),
	}
	for range jobs {
		w.free <- &blockJob{done: make(chan struct{}, 1)}
	}
	w.write(putFileHead(k))
	for range compressors {
		w.wg.Go(w.compress)
	}
	w.wg.Go(w.drain)
	return w, nil
}

// err returns the first error.
func (w *blockWriter) err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

func (w *blockWriter) fail(err error) { w.failed.CompareAndSwap(nil, &err) }

// job returns an empty job.
func (w *blockWriter) job() *blockJob {
	j := <-w.free
	j.header, j.table, j.plain = blockHeader{}, j.table[:0], j.plain[:0]
	return j
}

// submit sends a job on its way and numbers it.
func (w *blockWriter) submit(j *blockJob) error {
	j.header.number, j.header.first = w.number, w.next
	w.number++
	w.next += uint64(j.header.items)
	w.order <- j
	w.work <- j
	return w.err()
}

func (w *blockWriter) compress() {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false))
	if err != nil {
		panic("zstd options: " + err.Error()) // constants only
	}
	for j := range w.work {
		if j.encoder != nil {
			j.plain = j.encoder.appendPlain(j.plain)
		}
		j.build(w.kind, enc)
		j.done <- struct{}{}
	}
}

// build makes the block's bytes.
func (j *blockJob) build(k *blockKind, enc *zstd.Encoder) {
	var empty [blockHeaderBytes]byte
	out := append(j.out[:0], empty[:]...)
	out = append(out, j.table...)
	start := len(out)
	out = enc.EncodeAll(j.plain, out)
	h := &j.header
	h.codec = codecZstd
	if len(out)-start >= len(j.plain) {
		h.codec, out = codecPlain, append(out[:start], j.plain...)
	}
	h.plain, h.stored, h.table = uint32(len(j.plain)), uint32(len(out)-start), uint32(len(j.table))
	h.check = crc32.Checksum(out[blockHeaderBytes:], castagnoli)
	h.put(out, k.magic)
	j.out = out
}

func (w *blockWriter) drain() {
	for j := range w.order {
		<-j.done
		h := &j.header
		if h.plain > w.kind.maxPlain || h.table > w.kind.maxTable {
			w.fail(fmt.Errorf("write %s: block of %d bytes", w.kind.name, h.plain))
		}
		w.blocks = append(w.blocks, indexEntry{off: w.off, first: h.first, items: h.items, bytes: uint32(len(j.out)),
			min: h.min, max: h.max})
		w.write(j.out)
		w.free <- j
	}
}

// write appends to the file, unless there was an error before.
func (w *blockWriter) write(b []byte) {
	if w.err() != nil {
		return
	}
	if _, err := w.f.Write(b); err != nil {
		w.fail(fmt.Errorf("write tape: %w", err))
		return
	}
	w.hash.Write(b)
	w.off += int64(len(b))
}

// stop ends the goroutines.
func (w *blockWriter) stop() {
	if !w.closed {
		w.closed = true
		close(w.work)
		close(w.order)
		w.wg.Wait()
	}
}

// finish writes what is under way and the index, and makes the file durable.
func (w *blockWriter) finish() (FileSum, error) {
	w.stop()
	le, indexAt := binary.LittleEndian, w.off
	b := make([]byte, blockHeaderBytes, blockHeaderBytes+len(w.blocks)*indexEntryBytes+trailerBytes)
	for i := range w.blocks {
		b = w.blocks[i].append(b)
	}
	n := uint32(len(b) - blockHeaderBytes)
	h := blockHeader{number: w.number, first: w.next, plain: n, stored: n,
		check: crc32.Checksum(b[blockHeaderBytes:], castagnoli)}
	h.put(b, indexMagic)
	tr := le.AppendUint64(nil, uint64(indexAt))
	tr = le.AppendUint32(tr, trailerMagic)
	b = append(b, le.AppendUint32(tr, crc32.Checksum(tr, castagnoli))...)
	w.write(b)
	if err := w.err(); err != nil {
		return FileSum{}, errors.Join(err, w.f.Close())
	}
	sum := FileSum{Bytes: w.off, BLAKE3: hexSum(w.hash)}
	return sum, errors.Join(w.f.Sync(), w.f.Close())
}

// abort ends the goroutines and closes the file as it is.
func (w *blockWriter) abort() {
	if !w.closed {
		w.stop()
		w.f.Close()
	}
}
