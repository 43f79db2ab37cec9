// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// The files events and content have one frame work: a head, blocks, and an index
// that can be rebuilt by scanning the blocks.
//
//	file  = head(16) block* index trailer(16)
//	head  = "iotape E" or "iotape C", u32 version, u32 CRC-32C of the 12 bytes before
//	block = header(64) table payload
//	index = a block whose payload is an entry(40) per block, stored plain
//
//	header                               entry
//	 0 u32 magic "iotE", "iotC", "iotX"   0 u64 offset of the block in the file
//	 4 u32 number of the block, from 0    8 u64 first item
//	 8 u64 number of its first item      16 u32 items
//	16 u32 items                         20 u32 bytes of the block, header included
//	20 u32 codec: 0 plain, 1 zstd        24 i64 earliest time
//	24 u32 bytes of the plain payload    32 i64 latest time
//	28 u32 bytes of the payload
//	32 u32 bytes of the table            trailer
//	36 u32 0                              0 u64 offset of the index
//	40 i64 earliest time, ns              8 u32 magic "iotZ"
//	48 i64 latest time, ns               12 u32 CRC-32C of the 12 bytes before
//	56 u32 CRC-32C of table and payload
//	60 u32 CRC-32C of the 60 bytes before
//
// An item is an event or a chunk; events count from 0, chunks from 1. In the
// index's header number is the number of blocks, first the number of the item
// behind the last one, and items is 0. All integers are little-endian.
const (
	fileHeadBytes    = 16
	blockHeaderBytes = 64
	indexEntryBytes  = 40
	trailerBytes     = 16

	eventsMagic  = 0x45746f69 // "iotE"
	contentMagic = 0x43746f69 // "iotC"
	indexMagic   = 0x58746f69 // "iotX"
	trailerMagic = 0x5a746f69 // "iotZ"

	codecPlain = 0
	codecZstd  = 1
)

// blockKind says which of the two files it is.
type blockKind struct {
	name     string
	letter   byte
	magic    uint32
	first    uint64 // number of the first item
	maxItems uint32
	maxPlain uint32
	maxTable uint32 // bytes
}

var (
	eventsKind  = blockKind{name: EventsName, letter: 'E', magic: eventsMagic, maxItems: maxBlockEvents, maxPlain: maxBlockPlain}
	contentKind = blockKind{
		name: ContentName, letter: 'C', magic: contentMagic, first: 1,
		maxItems: maxPackChunks, maxPlain: maxPackBytes, maxTable: maxPackChunks * packEntryBytes,
	}
)

// blockHeader is a block's header, decoded.
type blockHeader struct {
	number   uint32
	first    uint64
	items    uint32
	codec    uint32
	plain    uint32 // bytes
	stored   uint32 // bytes
	table    uint32 // bytes
	min, max int64  // ns
	check    uint32
}

func (h *blockHeader) bytes() int64 {
	return blockHeaderBytes + int64(h.table) + int64(h.stored)
}

func (h *blockHeader) put(b []byte, magic uint32) {
	le := binary.LittleEndian
	le.PutUint32(b, magic)
	le.PutUint32(b[4:], h.number)
	le.PutUint64(b[8:], h.first)
	le.PutUint32(b[16:], h.items)
	le.PutUint32(b[20:], h.codec)
	le.PutUint32(b[24:], h.plain)
	le.PutUint32(b[28:], h.stored)
	le.PutUint32(b[32:], h.table)
	le.PutUint32(b[36:], 0)
	le.PutUint64(b[40:], uint64(h.min))
	le.PutUint64(b[48:], uint64(h.max))
	le.PutUint32(b[56:], h.check)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

func (h *blockHeader) parse(b []byte, magic uint32) error {
	le := binary.LittleEndian
	if m := le.Uint32(b); m != magic {
		return fmt.Errorf("block header: magic is %#x: %w", m, ErrCorrupt)
	}
	if le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return fmt.Errorf("block header: checksum differs: %w", ErrCorrupt)
	}
	*h = blockHeader{
		number: le.Uint32(b[4:]), first: le.Uint64(b[8:]), items: le.Uint32(b[16:]), codec: le.Uint32(b[20:]),
		plain: le.Uint32(b[24:]), stored: le.Uint32(b[28:]), table: le.Uint32(b[32:]),
		min: int64(le.Uint64(b[40:])), max: int64(le.Uint64(b[48:])), check: le.Uint32(b[56:]),
	}
	return nil
}

// validate checks a header against the limits of its file.
func (h *blockHeader) validate(k *blockKind) error {
	switch {
	case h.items == 0 || h.items > k.maxItems:
		return fmt.Errorf("block of %d items: %w", h.items, ErrCorrupt)
	case h.plain > k.maxPlain || h.stored > k.maxPlain || h.table > k.maxTable:
		return fmt.Errorf("block of %d bytes, %d stored, %d of table: %w", h.plain, h.stored, h.table, ErrCorrupt)
	case h.codec > codecZstd:
		return fmt.Errorf("codec %d: %w", h.codec, ErrNewer)
	case h.codec == codecPlain && h.plain != h.stored:
		return fmt.Errorf("plain block of %d bytes, %d stored: %w", h.plain, h.stored, ErrCorrupt)
	}
	return nil
}

// indexEntry says where a block is.
type indexEntry struct {
	off      int64
	first    uint64
	items    uint32
	bytes    uint32
	min, max int64
}

func (e *indexEntry) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(e.off))
	b = le.AppendUint64(b, e.first)
	b = le.AppendUint32(b, e.items)
	b = le.AppendUint32(b, e.bytes)
	b = le.AppendUint64(b, uint64(e.min))
	return le.AppendUint64(b, uint64(e.max))
}

// blockFile is an open events or content file.
type blockFile struct {
	kind   *blockKind
	r      io.ReaderAt
	size   int64
	blocks []indexEntry
	end    uint64 // the item behind the last one
	broken error  // why the index was rebuilt, nil if it was sound
	cut    error  // what ended the rebuilding, nil if that was the end of the file
}

// openBlockFile reads the file's head and index. Damage behind the head does not
// fail it: the blocks up to the damage are found by scanning.
func openBlockFile(k *blockKind, r io.ReaderAt, size int64) (*blockFile, error) {
	f := &blockFile{kind: k, r: r, size: size}
	var head [fileHeadBytes]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		if err == io.EOF {
			return nil, fmt.Errorf("%s: head: %w", k.name, ErrTruncated)
		}
		return nil, fmt.Errorf("read %s: %w", k.name, err)
	}
	le := binary.LittleEndian
	if string(head[:8]) != "iotape "+string(k.letter) || le.Uint32(head[12:]) != crc32.Checksum(head[:12], castagnoli) {
		return nil, fmt.Errorf("%s: head at offset 0: %w", k.name, ErrCorrupt)
	}
	if v := le.Uint32(head[8:]); v > TapeVersion {
		return nil, fmt.Errorf("%s: version %d, this program reads up to %d: %w", k.name, v, TapeVersion, ErrNewer)
	}
	if f.broken = f.readIndex(); f.broken != nil {
		f.cut = f.scan()
	}
	return f, nil
}

func putFileHead(k *blockKind) []byte {
	b := append([]byte("iotape "), k.letter)
	b = binary.LittleEndian.AppendUint32(b, TapeVersion)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readIndex loads the index by way of the trailer.
func (f *blockFile) readIndex() error {
	var tr [trailerBytes]byte
	at := f.size - trailerBytes
	if at < fileHeadBytes+blockHeaderBytes {
		return fmt.Errorf("%s: no index: %w", f.kind.name, ErrTruncated)
	}
	if _, err := f.r.ReadAt(tr[:], at); err != nil {
		return fmt.Errorf("read %s: %w", f.kind.name, err)
	}
	le := binary.LittleEndian
	if le.Uint32(tr[8:]) != trailerMagic || le.Uint32(tr[12:]) != crc32.Checksum(tr[:12], castagnoli) {
		return fmt.Errorf("%s: trailer at offset %d: %w", f.kind.name, at, ErrCorrupt)
	}
	off := le.Uint64(tr[:])
	if off < fileHeadBytes || off > uint64(at-blockHeaderBytes) {
		return fmt.Errorf("%s: trailer at offset %d: index at %d: %w", f.kind.name, at, off, ErrCorrupt)
	}
	b := make([]byte, at-int64(off))
	if _, err := f.r.ReadAt(b, int64(off)); err != nil {
		return fmt.Errorf("read %s: %w", f.kind.name, err)
	}
	if err := f.parseIndex(b, int64(off)); err != nil {
		f.blocks, f.end = nil, 0
		return fmt.Errorf("%s: index at offset %d: %w", f.kind.name, off, err)
	}
	return nil
}

// parseIndex decodes the index block b, which begins at off: the blocks must fill
// the file up to there without a gap.
func (f *blockFile) parseIndex(b []byte, off int64) error {
	var h blockHeader
	if len(b) < blockHeaderBytes {
		return fmt.Errorf("%d bytes: %w", len(b), ErrTruncated)
	}
	if err := h.parse(b, indexMagic); err != nil {
		return err
	}
	b = b[blockHeaderBytes:]
	if uint64(len(b)) != uint64(h.number)*indexEntryBytes || h.items != 0 || h.table != 0 || h.codec != codecPlain ||
		int64(h.stored) != int64(len(b)) || h.plain != h.stored || h.check != crc32.Checksum(b, castagnoli) {
		return fmt.Errorf("%d entries in %d bytes or a checksum: %w", h.number, len(b), ErrCorrupt)
	}
	le := binary.LittleEndian
	f.blocks = make([]indexEntry, h.number)
	next, at := f.kind.first, int64(fileHeadBytes)
	for i := range f.blocks {
		e := indexEntry{
			off: int64(le.Uint64(b)), first: le.Uint64(b[8:]), items: le.Uint32(b[16:]), bytes: le.Uint32(b[20:]),
			min: int64(le.Uint64(b[24:])), max: int64(le.Uint64(b[32:])),
		}
		b = b[indexEntryBytes:]
		if e.off != at || e.first != next || e.items == 0 || e.items > f.kind.maxItems || e.bytes < blockHeaderBytes ||
			int64(e.bytes) > off-at {
			return fmt.Errorf("entry %d: %w", i, ErrCorrupt)
		}
		f.blocks[i] = e
		at, next = at+int64(e.bytes), next+uint64(e.items)
	}
	if at != off || next != h.first {
		return fmt.Errorf("blocks end at %d with item %d: %w", at, next, ErrCorrupt)
	}
	f.end = next
	return nil
}

// scan rebuilds the index from the headers of the blocks. It returns what ended
// it, nil at a regular end.
func (f *blockFile) scan() error {
	f.blocks, f.end = nil, f.kind.first
	var b [blockHeaderBytes]byte
	for at := int64(fileHeadBytes); at < f.size; {
		if f.size-at < blockHeaderBytes {
			return fmt.Errorf("%s: block at offset %d: %w", f.kind.name, at, ErrTruncated)
		}
		if _, err := f.r.ReadAt(b[:], at); err != nil {
			return fmt.Errorf("read %s: %w", f.kind.name, err)
		}
		if binary.LittleEndian.Uint32(b[:]) == indexMagic {
			return nil
		}
		var h blockHeader
		err := h.parse(b[:], f.kind.magic)
		if err == nil {
			err = h.validate(f.kind)
		}
		if err == nil && (h.number != uint32(len(f.blocks)) || h.first != f.end) {
			err = fmt.Errorf("block %d from item %d, wanted %d from %d: %w", h.number, h.first, len(f.blocks), f.end,
				ErrCorrupt)
		}
		if err == nil && h.bytes() > f.size-at {
			err = ErrTruncated
		}
		if err != nil {
			return fmt.Errorf("%s: at offset %d: %w", f.kind.name, at, err)
		}
		f.blocks = append(f.blocks, indexEntry{off: at, first: h.first, items: h.items, bytes: uint32(h.bytes()),
			min: h.min, max: h.max})
		at, f.end = at+h.bytes(), f.end+uint64(h.items)
	}
	return nil
}

// find returns the position of the block that holds an item.
func (f *blockFile) find(item uint64) (int, bool) {
	if item < f.kind.first || item >= f.end {
		return 0, false
	}
	return sort.Search(len(f.blocks), func(i int) bool { return f.blocks[i].first > item }) - 1, true
}

// rawBlock is a block as read, its buffers reused.
type rawBlock struct {
	header  blockHeader
	buf     []byte
	table   []byte // within buf
	payload []byte // within buf, as stored
	plain   []byte // payload or within space
	space   []byte
}

// read reads and checks block i, without decompressing it.
func (f *blockFile) read(i int, rb *rawBlock) error {
	e := &f.blocks[i]
	if int64(e.bytes) > blockHeaderBytes+int64(f.kind.maxPlain)+int64(f.kind.maxTable) {
		return f.at(e, fmt.Errorf("block of %d bytes: %w", e.bytes, ErrCorrupt))
	}
	if cap(rb.buf) < int(e.bytes) {
		rb.buf = make([]byte, int(e.bytes)+int(e.bytes)/4)
	}
	b := rb.buf[:e.bytes]
	if _, err := f.r.ReadAt(b, e.off); err != nil {
		if err == io.EOF {
			err = ErrTruncated
		}
		return f.at(e, err)
	}
	h := &rb.header
	if err := h.parse(b, f.kind.magic); err != nil {
		return f.at(e, err)
	}
	if err := h.validate(f.kind); err != nil {
		return f.at(e, err)
	}
	if h.number != uint32(i) || h.first != e.first || h.items != e.items || h.bytes() != int64(e.bytes) ||
		h.min != e.min || h.max != e.max {
		return f.at(e, fmt.Errorf("block header differs from the index: %w", ErrCorrupt))
	}
	b = b[blockHeaderBytes:]
	if crc32.Checksum(b, castagnoli) != h.check {
		return f.at(e, fmt.Errorf("block: checksum differs: %w", ErrCorrupt))
	}
	rb.table, rb.payload = b[:h.table], b[h.table:]
	return nil
}

// expand decompresses the payload that read left.
func (f *blockFile) expand(rb *rawBlock, dec *zstd.Decoder) error {
	h := &rb.header
	if h.codec == codecPlain {
		rb.plain = rb.payload
		return nil
	}
	if cap(rb.space) < int(h.plain) {
		rb.space = make([]byte, 0, int(h.plain)+int(h.plain)/4)
	}
	out, err := dec.DecodeAll(rb.payload, rb.space[:0:h.plain])
	if err != nil || len(out) != int(h.plain) {
		return f.at(&f.blocks[h.number],
			fmt.Errorf("decompress %d bytes to %d, got %d (%v): %w", h.stored, h.plain, len(out), err, ErrCorrupt))
	}
	rb.plain = out
	return nil
}

func (f *blockFile) at(e *indexEntry, err error) error {
	return fmt.Errorf("%s: block at offset %d: %w", f.kind.name, e.off, err)
}

// newDecoder returns a decoder that never writes beyond the capacity it is given.
func newDecoder(concurrency int) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(concurrency), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxBlockPlain+1))
	if err != nil {
		panic("zstd options: " + err.Error()) // constants only
	}
	return d
}
