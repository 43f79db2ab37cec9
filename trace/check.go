// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/pipe/wholefile"
)

// Damage is one thing that is wrong with a tape.
type Damage struct {
	File    string // within the tape
	Offset  int64  // in the file; -1 if it concerns the file as a whole
	Derived bool   // the file can be rebuilt from the others: by iotape index, annotate or replay
	Err     error
}

func (d Damage) String() string {
	if d.Offset < 0 {
		return fmt.Sprintf("%s: %v", d.File, d.Err)
	}
	return fmt.Sprintf("%s at %d: %v", d.File, d.Offset, d.Err)
}

// CheckReport is the result of Check.
type CheckReport struct {
	Files   int   // files read
	Bytes   int64 // of these
	Events  uint64
	Chunks  uint64
	Missing int64    // bytes of content that the recording does not have
	Notes   []string // oddities that are no damage
	Damage  []Damage // at most MaxDamage
	More    uint64   // damages beyond these
}

// MaxDamage limits the damages that a CheckReport lists.
const MaxDamage = 1000

// OK reports whether nothing is wrong.
func (r *CheckReport) OK() bool { return len(r.Damage) == 0 }

// checker is one run of Check.
type checker struct {
	ctx         context.Context
	t           *Tape
	r           CheckReport
	progress    func(done, total int64)
	done, total int64
	chunkBytes  []uint32 // by number - 1; 0 where damaged
}

// Check verifies every hash, checksum, count and reference of the tape. It returns
// an error only if it could not go on; damage is in the report. If progress is not
// nil, it is called now and then with bytes.
func (t *Tape) Check(ctx context.Context, progress func(done, total int64)) (*CheckReport, error) {
	c := &checker{ctx: ctx, t: t, progress: progress, total: t.events.size + t.content.size}
	for _, f := range t.manifest.Files {
		c.total += f.Bytes
	}
	for _, step := range []func() error{c.manifest, c.files, c.content, c.events, c.derived, c.strangers} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("check %s: %w", t.dir, err)
		}
	}
	return &c.r, nil
}

func (c *checker) damage(file string, off int64, err error) {
	if len(c.r.Damage) >= MaxDamage {
		c.r.More++
		return
	}
	c.r.Damage = append(c.r.Damage, Damage{File: file, Offset: off, Err: err, Derived: file == IndexName ||
		file == AnnotationsName || filepath.Ext(file) == ".parquet" || derivedMagics[file] != ""})
}

func (c *checker) advance(n int64) error {
	c.done += n
	if c.progress != nil {
		c.progress(min(c.done, c.total), c.total)
	}
	return c.ctx.Err()
}

func (c *checker) manifest() error {
	b, err := readLimited(c.t.dir, ManifestName, maxManifestBytes)
	if err == nil {
		_, err = ParseManifest(b)
	}
	if err == nil && sealOf(b) != c.t.seal {
		err = fmt.Errorf("not the one that the tape was opened with: %w", ErrCorrupt)
	}
	if err != nil {
		c.damage(ManifestName, -1, err)
	}
	return c.ctx.Err()
}

func (c *checker) files() error {
	for _, name := range slices.Sorted(maps.Keys(c.t.manifest.Files)) {
		if err := c.file(name, c.t.manifest.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// file compares a file with its size and hash.
func (c *checker) file(name string, want FileSum) error {
	got, err := sumFile(c.ctx, c.t.dir, name, c.advance)
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case err != nil:
		c.damage(name, -1, err)
	case got.Bytes < want.Bytes:
		c.damage(name, got.Bytes, fmt.Errorf("%d bytes of %d: %w", got.Bytes, want.Bytes, ErrTruncated))
	case got.Bytes > want.Bytes:
		c.damage(name, want.Bytes, fmt.Errorf("%d bytes, wants %d: %w", got.Bytes, want.Bytes, ErrCorrupt))
	case got.BLAKE3 != want.BLAKE3:
		c.damage(name, -1, fmt.Errorf("hash differs: %w", ErrCorrupt))
	}
	c.r.Files++
	c.r.Bytes += got.Bytes
	return nil
}

// sumFile hashes a file of a tape.
func sumFile(ctx context.Context, dir, name string, advance func(int64) error) (FileSum, error) {
	var sum FileSum
	f, err := wholefile.Open(dir, name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h, buf := blake3.New(), make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		sum.Bytes += int64(n)
		if advance != nil {
			if err := advance(int64(n)); err != nil {
				return sum, err
			}
		}
		if err == io.EOF {
			sum.BLAKE3 = hexSum(h)
			return sum, ctx.Err()
		}
		if err != nil {
			return sum, err
		}
	}
}

// frame reports damage to a file's index.
func (c *checker) frame(f *blockFile) {
	if f.cut != nil {
		last := int64(fileHeadBytes)
		if n := len(f.blocks); n > 0 {
			last = f.blocks[n-1].off + int64(f.blocks[n-1].bytes)
		}
		c.damage(f.kind.name, last, f.cut)
	} else if f.broken != nil {
		c.damage(f.kind.name, -1, f.broken)
	}
}

// count compares a number with the manifest's.
func (c *checker) count(file, what string, got, want uint64) {
	if got != want {
		c.damage(file, -1, fmt.Errorf("%d %s, the manifest says %d: %w", got, what, want, ErrCorrupt))
	}
}

func (c *checker) content() error {
	f := c.t.content
	c.frame(f)
	c.chunkBytes = make([]uint32, f.end-f.kind.first)
	var rb rawBlock
	var ends []uint32
	unique := uint64(0)
	for i := range f.blocks {
		e := &f.blocks[i]
		err := f.read(i, &rb)
		if err == nil {
			err = f.expand(&rb, c.t.decoder)
		}
		if err == nil {
			ends, err = packEnds(ends, &rb.header, rb.table)
		}
		if err != nil {
			c.damage(f.kind.name, e.off, err)
			continue
		}
		for k := range int(e.items) {
			id := e.first + uint64(k)
			if blake3.Sum256(rb.plain[ends[k]:ends[k+1]]) != [32]byte(rb.table[k*packEntryBytes:][:32]) {
				c.damage(f.kind.name, e.off, fmt.Errorf("chunk %d: hash differs: %w", id, ErrCorrupt))
				continue
			}
			c.chunkBytes[id-1] = ends[k+1] - ends[k]
		}
		unique += uint64(rb.header.plain)
		c.r.Chunks += uint64(e.items)
		if err := c.advance(int64(e.bytes)); err != nil {
			return err
		}
	}
	m := &c.t.manifest.Content
	if c.r.OK() {
		c.count(f.kind.name, "chunks", c.r.Chunks, m.Chunks)
		c.count(f.kind.name, "bytes of content", unique, m.UniqueBytes)
		c.count(f.kind.name, "bytes stored", uint64(f.size), m.StoredBytes)
	}
	return nil
}

func (c *checker) events() error {
	if _, err := c.t.Stacks(); err != nil {
		c.damage(StacksName, -1, err)
	}
	f, m := c.t.events, c.t.manifest
	c.frame(f)
	var ta tally
	ta.init()
	var ev event.Event
	r := c.t.NewEventReader()
	moved, block := uint64(0), -1
	sound := c.r.OK()
	for {
		err := r.Next(&ev)
		if r.block-1 > block && r.block > 0 {
			block = r.block - 1
			if err := c.advance(int64(f.blocks[block].bytes)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			sound = false
			off := int64(-1)
			if !r.short && block >= 0 {
				off = f.blocks[block].off
			}
			c.damage(f.kind.name, off, err)
			continue
		}
		ta.add(&ev)
		if stacks, err := c.t.Stacks(); err == nil && r.dec.stack > uint64(len(stacks)) && block >= 0 {
			c.damage(f.kind.name, f.blocks[block].off,
				fmt.Errorf("event %d has stack %d of %d: %w", ev.Seq, r.dec.stack, len(stacks), ErrCorrupt))
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			c.r.Missing += b.Missing
			if b.Kind == event.KindBuf || b.Kind == event.KindVec {
				moved += uint64(max(b.Len, 0))
			}
			c.refs(&ev, b, f.blocks[block].off)
		}
	}
	c.r.Events = ta.counts.Events
	if !sound {
		return nil
	}
	got := ta.total()
	c.count(f.kind.name, "events", got.Events, m.Counts.Events)
	c.count(f.kind.name, "calls", got.Calls, m.Counts.Calls)
	c.count(f.kind.name, "threads", got.Threads, m.Counts.Threads)
	c.count(f.kind.name, "processes", got.Processes, m.Counts.Processes)
	c.count(f.kind.name, "files", got.Files, m.Counts.Files)
	c.count(f.kind.name, "bytes moved", moved, m.Content.MovedBytes)
	if ta.first != m.FirstNS || ta.last != m.LastNS {
		c.damage(f.kind.name, -1, fmt.Errorf("times %d to %d, the manifest says %d to %d: %w", ta.first, ta.last,
			m.FirstNS, m.LastNS, ErrCorrupt))
	}
	return nil
}

// refs checks the references of a buffer.
func (c *checker) refs(ev *event.Event, b *event.Buf, off int64) {
	for _, r := range b.Refs {
		if r.Chunk == 0 {
			continue
		}
		if r.Chunk > uint64(len(c.chunkBytes)) {
			c.damage(c.t.events.kind.name, off,
				fmt.Errorf("event %d refers to chunk %d of %d: %w", ev.Seq, r.Chunk, len(c.chunkBytes), ErrCorrupt))
			continue
		}
		if n := c.chunkBytes[r.Chunk-1]; n > 0 && uint64(r.Off)+uint64(r.Len) > uint64(n) { // 0: reported already
			c.damage(c.t.events.kind.name, off,
				fmt.Errorf("event %d refers to bytes %d to %d of chunk %d, which has %d: %w",
					ev.Seq, r.Off, uint64(r.Off)+uint64(r.Len), r.Chunk, n, ErrCorrupt))
		}
	}
}

func (c *checker) derived() error {
	if b, err := c.t.Annotations(); err == nil {
		c.r.Files++
		c.r.Bytes += int64(len(b))
	} else if !errors.Is(err, fs.ErrNotExist) {
		c.damage(AnnotationsName, -1, err)
	}
	for _, name := range slices.Sorted(maps.Keys(derivedMagics)) {
		_, b, err := readEnvelope(c.t.DerivedDir(), name, derivedMagics[name], MaxDerivation)
		if err == nil {
			c.r.Files++
			c.r.Bytes += int64(len(b))
		} else if !errors.Is(err, fs.ErrNotExist) {
			c.damage(name, -1, err)
		}
	}
	d, err := c.t.Derived()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		c.damage(IndexName, -1, err)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		if err := c.file(name, d.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// strangers notes files that do not belong to the tape.
func (c *checker) strangers() error {
	entries, err := os.ReadDir(c.t.dir)
	if err != nil {
		return err
	}
	d, err := c.t.Derived()
	if err != nil {
		d = new(Derived)
	}
	for _, e := range entries {
		name := e.Name()
		_, listed := c.t.manifest.Files[name]
		_, derived := d.Files[name]
		if !listed && !derived && name != ManifestName && name != IndexName && name != AnnotationsName &&
			name != TimelineName && derivedMagics[name] == "" {
			c.r.Notes = append(c.r.Notes, fmt.Sprintf("%s does not belong to the tape", name))
		}
	}
	return nil
}
