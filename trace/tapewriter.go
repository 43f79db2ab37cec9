// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/pipe/wholefile"
)

// ChunkBytes is the usual size of a chunk: content is cut at multiples of it in
// file offsets. MaxChunkBytes is the largest.
const (
	ChunkBytes    = 4096
	MaxChunkBytes = 1 << 20
)

// The blocks of the content file are packs of chunks. The table of a pack has an
// entry per chunk: 32 bytes BLAKE3-256, u32 length in bytes. Its plain payload is
// the chunks' bytes, one after the other.
const (
	packEntryBytes = 36
	maxPackChunks  = 1 << 16
	maxPackBytes   = 4 << 20

	// A pack is closed when it holds so much. Not part of the format.
	packBytes  = 1 << 20
	packChunks = 1 << 13
)

// TapeWriter writes a tape. Its methods must not be called concurrently. After an
// error every call returns it again; then Abort. It keeps a few goroutines and a few
// megabytes busy until Close or Abort.
type TapeWriter struct {
	// Sign, if it is set, is called by Close with the complete manifest, which it may
	// change, before that is written.
	Sign func(m *Manifest) error

	dir     string
	events  *blockWriter
	content *blockWriter
	block   *blockJob // being filled, nil if there is none
	pack    *blockJob
	chunks  *dedup
	tally   tally
	totals  ContentTotals
	files   map[string]FileSum
	stacks  stackTable
	open    int // files of Create that were not closed
	err     error
	closed  bool
}

// errTapeClosed is returned for use after Close or Abort.
var errTapeClosed = errors.New("tape is closed")

// CreateTape starts a tape in dir, which is made if it does not exist and refused
// if it is not empty. Until Close the tape has no manifest and is recognisably
// incomplete.
func CreateTape(dir string) (*TapeWriter, error) {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create tape: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("create tape: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("create tape: %s is not empty: %w", dir, fs.ErrExist)
	}
	w := &TapeWriter{dir: dir, chunks: newDedup(), files: make(map[string]FileSum)}
	w.tally.init()
	if w.events, err = newBlockWriter(&eventsKind, filepath.Join(dir, EventsName), 1); err != nil {
		return nil, fmt.Errorf("create tape: %w", err)
	}
	if w.content, err = newBlockWriter(&contentKind, filepath.Join(dir, ContentName),
		min(2, runtime.GOMAXPROCS(0))); err != nil {
		w.events.abort()
		return nil, fmt.Errorf("create tape: %w", err)
	}
	return w, nil
}

func (w *TapeWriter) usable() error {
	if w.closed {
		return errTapeClosed
	}
	return w.err
}

// Write appends an event and sets its Seq. The event may be reused afterwards. Its
// references must be to chunks that were added before.
func (w *TapeWriter) Write(ev *event.Event) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := checkSize(ev); err != nil {
		return err
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		for _, r := range b.Refs {
			if r.Chunk > uint64(w.chunks.n) {
				return fmt.Errorf("event %d refers to chunk %d of %d", w.tally.counts.Events, r.Chunk, w.chunks.n)
			}
		}
		if b.Kind == event.KindBuf || b.Kind == event.KindVec {
			w.totals.MovedBytes += uint64(max(b.Len, 0))
		}
	}
	if w.block == nil {
		w.block = w.events.job()
		if w.block.encoder == nil {
			w.block.encoder = newBlockEncoder()
		}
		w.block.encoder.reset()
	}
	ev.Seq = w.tally.counts.Events
	w.tally.add(ev)
	w.block.encoder.stack = w.stacks.number(ev.Stack)
	w.block.encoder.add(ev)
	if w.block.encoder.full() {
		w.err = w.flushEvents()
	}
	return w.err
}

func (w *TapeWriter) flushEvents() error {
	j := w.block
	if j == nil {
		return nil
	}
	w.block = nil
	j.header.items = uint32(j.encoder.n)
	j.header.min, j.header.max = j.encoder.min, j.encoder.max
	return w.events.submit(j)
}

// AddChunk stores 1 to MaxChunkBytes bytes, once however often they are added, and
// returns their number. Numbers count from 1 in the order of first appearance.
func (w *TapeWriter) AddChunk(data []byte) (id uint64, err error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	if len(data) == 0 || len(data) > MaxChunkBytes {
		return 0, fmt.Errorf("chunk of %d bytes, wants 1 to %d", len(data), MaxChunkBytes)
	}
	if w.chunks.n >= maxDedupKeys {
		w.err = fmt.Errorf("tape holds %d chunks, which is its limit", w.chunks.n)
		return 0, w.err
	}
	hash := blake3.Sum256(data)
	n, fresh := w.chunks.add(&hash)
	if !fresh {
		return uint64(n), nil
	}
	if w.pack != nil && len(w.pack.plain)+len(data) > packBytes+ChunkBytes {
		if w.err = w.flushPack(); w.err != nil {
			return 0, w.err
		}
	}
	if w.pack == nil {
		w.pack = w.content.job()
	}
	j := w.pack
	j.header.items++
	j.table = append(j.table, hash[:]...)
	j.table = binary.LittleEndian.AppendUint32(j.table, uint32(len(data)))
	j.plain = append(j.plain, data...)
	w.totals.UniqueBytes += uint64(len(data))
	if len(j.plain) >= packBytes || j.header.items >= packChunks {
		w.err = w.flushPack()
	}
	return uint64(n), w.err
}

func (w *TapeWriter) flushPack() error {
	j := w.pack
	if j == nil {
		return nil
	}
	w.pack = nil
	return w.content.submit(j)
}

// Create starts another file of the tape, to be closed before the tape. Its hash
// goes into the manifest.
func (w *TapeWriter) Create(name string) (io.WriteCloser, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	if err := validName(name); err != nil {
		return nil, err
	}
	if reservedName(name) {
		return nil, fmt.Errorf("file name %q is taken in a tape", name)
	}
	return w.create(name)
}

func (w *TapeWriter) create(name string) (io.WriteCloser, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create file of tape: %w", err)
	}
	w.open++
	return &tapeFile{w: w, f: f, name: name, hash: blake3.New()}, nil
}

// reservedName reports names that the tape itself uses.
func reservedName(name string) bool {
	switch name {
	case ManifestName, EventsName, ContentName, IndexName, AnnotationsName, TimelineName, StacksName,
		InitialName, OrderName:
		return true
	}
	return filepath.Ext(name) == ".parquet" || filepath.Ext(name) == ".tmp"
}

// tapeFile is a file of TapeWriter.Create.
type tapeFile struct {
	w    *TapeWriter
	f    *os.File
	name string
	hash *blake3.Hasher
	n    int64
	done bool
}

func (f *tapeFile) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	f.hash.Write(b[:n])
	f.n += int64(n)
	return n, err
}

func (f *tapeFile) Close() error {
	if f.done {
		return fmt.Errorf("close %s: %w", f.name, fs.ErrClosed)
	}
	f.done = true
	f.w.open--
	err := errors.Join(f.f.Sync(), f.f.Close())
	f.w.files[f.name] = FileSum{Bytes: f.n, BLAKE3: hexSum(f.hash)}
	if err != nil && f.w.err == nil {
		f.w.err = fmt.Errorf("write tape: %w", err)
	}
	return err
}

func hexSum(h *blake3.Hasher) string { return hex.EncodeToString(h.Sum(nil)) }

// Close completes the tape. The caller fills in what the writer cannot know:
// Program, Hosts, ExitStatus, Signal, Losses, Incomplete and Reason; Close fills in
// the rest (Counts, Content, FirstNS, LastNS, Files).
func (w *TapeWriter) Close(m *Manifest) error {
	if err := w.usable(); err != nil {
		w.Abort()
		return err
	}
	defer w.Abort() // after an error
	if w.open > 0 {
		return fmt.Errorf("close tape: %d of its files are still open", w.open)
	}
	if n := len(m.Hosts); w.tally.hosts > uint64(n) {
		return fmt.Errorf("close tape: events of host %d, but %d hosts in the manifest", w.tally.hosts-1, n)
	}
	if err := errors.Join(w.flushEvents(), w.flushPack(), w.writeStacks()); err != nil {
		return err
	}
	w.closed = true
	var err error
	if w.files[EventsName], err = w.events.finish(); err != nil {
		return fmt.Errorf("close tape: %w", err)
	}
	if w.files[ContentName], err = w.content.finish(); err != nil {
		return fmt.Errorf("close tape: %w", err)
	}
	w.totals.Chunks, w.totals.StoredBytes = uint64(w.chunks.n), uint64(w.files[ContentName].Bytes)
	m.Counts, m.Content, m.Files = w.tally.total(), w.totals, w.files
	m.FirstNS, m.LastNS = w.tally.first, w.tally.last
	if w.Sign != nil {
		if err := w.Sign(m); err != nil {
			return fmt.Errorf("close tape: %w", err)
		}
	}
	b, err := m.Encode()
	if err != nil {
		return err
	}
	if err := wholefile.WriteBytes(filepath.Join(w.dir, ManifestName), b); err != nil {
		return fmt.Errorf("close tape: %w", err)
	}
	return nil
}

// Abort gives up and leaves an incomplete tape behind. After Close it does
// nothing, so it can be deferred.
func (w *TapeWriter) Abort() {
	w.closed = true
	w.events.abort()
	w.content.abort()
}
