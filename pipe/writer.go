// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Options for NewWriter. Nil and zero values are the defaults.
type Options struct {
	// BlockBytes is how many bytes a block has before its layers, MinBlockBytes to
	// MaxBlockBytes; 0 is DefaultBlockBytes.
	BlockBytes int
	// FlushAfter is how long bytes wait at most for their block to become full; 0 is
	// 200 ms, less than 0 is for ever.
	FlushAfter time.Duration
}

const defaultFlushAfter = 200 * time.Millisecond

// Async is a layer that puts a queue and a goroutine between the layers before it and
// those after it. It does not change what is written. When the queue is full,
// writing waits.
type Async struct {
	Blocks int // length of the queue, 1 to MaxQueue
}

// Limits of a queue.
const (
	DefaultQueue = 16
	MaxQueue     = 1024
)

// Name implements Layer. It is not in any header.
func (a Async) Name() string { return fmt.Sprintf("async:%d", a.Blocks) }

// Begin implements Layer.
func (a Async) Begin() (Encoder, []byte, error) { return nil, nil, nil }

// Writer cuts what is written to it into blocks. Its methods are safe for concurrent
// use. After an error, every call returns it again.
type Writer struct {
	mu    sync.Mutex
	block *block // being filled; nil is none
	next  uint64 // number of the next block
	timer *time.Timer
	o     Options

	head   Header
	sink   io.Writer
	stages []*stage
	free   chan *block
	ended  sync.WaitGroup
	closed bool

	failed atomic.Pointer[error] // sticky
}

// block is a block on its way. Layers read data and write spare, in turns.
type block struct {
	data, spare []byte
	number      uint64
	final       bool
}

// stage is layers that run in one goroutine: the first one in the caller's.
type stage struct {
	in       chan *block // nil for the first
	encoders []Encoder
	place    Place
	layer    uint8 // number of the first
}

var errClosed = errors.New("pipe: write after close")

// NewWriter starts a stream with its header. Each header and each block is one call
// of w's Write. The caller closes w after the Writer.
func NewWriter(w io.Writer, layers []Layer, o *Options) (*Writer, error) {
	pw := &Writer{sink: w}
	if o != nil {
		pw.o = *o
	}
	if pw.o.BlockBytes == 0 {
		pw.o.BlockBytes = DefaultBlockBytes
	}
	if pw.o.BlockBytes < MinBlockBytes || pw.o.BlockBytes > MaxBlockBytes {
		return nil, fmt.Errorf("blocks of %d bytes: %d to %d", pw.o.BlockBytes, MinBlockBytes, MaxBlockBytes)
	}
	if pw.o.FlushAfter == 0 {
		pw.o.FlushAfter = defaultFlushAfter
	}
	var serial [8]byte
	rand.Read(serial[:])
	pw.head = Header{Serial: binary.LittleEndian.Uint64(serial[:]), BlockBytes: pw.o.BlockBytes}
	blocks, err := pw.begin(layers)
	if err != nil {
		return nil, err
	}
	header, err := pw.head.Append(nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, fmt.Errorf("write the header: %w", err)
	}
	pw.free = make(chan *block, blocks)
	for range blocks {
		pw.free <- &block{}
	}
	for i, s := range pw.stages {
		s.place.Stream = pw.head.Sum
		if i > 0 {
			pw.ended.Go(func() { pw.run(i) })
		}
	}
	return pw, nil
}

// begin starts the layers. It returns how many blocks can be under way.
func (w *Writer) begin(layers []Layer) (blocks int, err error) {
	s := &stage{}
	w.stages, blocks = []*stage{s}, 2
	for _, l := range layers {
		if a, ok := l.(Async); ok {
			if a.Blocks < 1 || a.Blocks > MaxQueue {
				return 0, fmt.Errorf("a queue of %d blocks: 1 to %d", a.Blocks, MaxQueue)
			}
			s = &stage{in: make(chan *block, a.Blocks), layer: uint8(len(w.head.Layers))}
			w.stages = append(w.stages, s)
			blocks += a.Blocks + 1
			continue
		}
		e, params, err := l.Begin()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", l.Name(), err)
		}
		s.encoders = append(s.encoders, e)
		w.head.Layers = append(w.head.Layers, LayerHeader{l.Name(), params})
	}
	return blocks, nil
}

// Header returns the stream's header.
func (w *Writer) Header() *Header { return &w.head }

// Write takes bytes into blocks. It waits where a queue is full.
func (w *Writer) Write(b []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) > 0 {
		if err := w.err(); err != nil {
			return n, err
		}
		if w.block == nil {
			w.start()
		}
		part := b[:min(len(b), w.o.BlockBytes-len(w.block.data))]
		w.block.data = append(w.block.data, part...)
		n, b = n+len(part), b[len(part):]
		if len(w.block.data) == w.o.BlockBytes {
			w.push(false)
		}
	}
	return n, w.err()
}

// Flush writes what waits for a block to become full. What is in queues may still be
// under way when it returns.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.block != nil && len(w.block.data) > 0 && !w.closed {
		w.push(false)
	}
	return w.err()
}

// Close writes the final block and waits until all is written. Without it the stream
// counts as cut off.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err()
	}
	if w.err() == nil {
		if w.block == nil {
			w.start()
		}
		w.push(true)
	}
	return w.end()
}

// Abort ends the Writer without a final block: what it wrote will be known to be cut
// off.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.fail(errors.New("pipe: aborted"))
		_ = w.end()
	}
}

// end stops the goroutines and poisons the Writer.
func (w *Writer) end() error {
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if len(w.stages) > 1 {
		close(w.stages[1].in)
	}
	w.ended.Wait()
	err := w.err()
	w.fail(errClosed)
	return err
}

func (w *Writer) err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// fail keeps the first error.
func (w *Writer) fail(err error) { w.failed.CompareAndSwap(nil, &err) }

// start begins a block, and sees to it that it does not stay for long.
func (w *Writer) start() {
	w.block = <-w.free
	if cap(w.block.data) < w.o.BlockBytes {
		w.block.data = make([]byte, 0, w.head.MaxPayload()+BlockHeaderBytes)
	}
	w.block.data = w.block.data[:0]
	switch {
	case w.o.FlushAfter < 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.o.FlushAfter, func() { _ = w.Flush() })
	default:
		w.timer.Reset(w.o.FlushAfter)
	}
}

// push sends the block on its way.
func (w *Writer) push(final bool) {
	if w.timer != nil {
		w.timer.Stop()
	}
	b := w.block
	w.block = nil
	b.number, b.final = w.next, final
	w.next++
	w.pass(0, b)
}

// run is a stage with a queue.
func (w *Writer) run(i int) {
	for b := range w.stages[i].in {
		w.pass(i, b)
	}
	if i+1 < len(w.stages) {
		close(w.stages[i+1].in)
	}
}

// pass takes a block through a stage, and to the next queue or the sink.
func (w *Writer) pass(i int, b *block) {
	s := w.stages[i]
	if w.err() == nil {
		if err := w.encode(s, b); err != nil {
			w.fail(err)
		}
	}
	if i+1 < len(w.stages) {
		w.stages[i+1].in <- b
		return
	}
	if w.err() == nil {
		if err := w.put(b); err != nil {
			w.fail(err)
		}
	}
	w.free <- b
}

func (w *Writer) encode(s *stage, b *block) (err error) {
	s.place.Number, s.place.Final = b.number, b.final
	for i, e := range s.encoders {
		s.place.Layer = s.layer + uint8(i)
		if b.spare, err = e.Encode(b.spare[:0], b.data, &s.place); err != nil {
			return fmt.Errorf("%s: block %d: %w", w.head.Layers[s.place.Layer].Name, b.number, err)
		}
		b.data, b.spare = b.spare, b.data
	}
	return nil
}

var emptyHeader = make([]byte, BlockHeaderBytes)

// put writes a block with its header, in one piece.
func (w *Writer) put(b *block) error {
	if len(b.data) > w.head.MaxPayload() {
		return fmt.Errorf("block %d has grown to %d bytes", b.number, len(b.data))
	}
	h := BlockHeader{Number: b.number, Serial: w.head.Serial, Length: len(b.data), Final: b.final}
	b.spare = append(append(b.spare[:0], emptyHeader...), b.data...)
	h.Put(b.spare)
	_, err := w.sink.Write(b.spare)
	return err
}
