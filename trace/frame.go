// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is a 64-byte header and a payload. All fields are little-endian.
//
//	 0 u32 magic "iotf"          32 u64 until, ns: what the shard committed
//	 4 u16 version                         before is in this or earlier frames
//	 6 u16 kind                  40 u64 payload length, multiple of 8
//	 8 u64 stream id             48 u64 records lost on the shard since its last frame
//	16 u64 sequence number       56 u32 CRC-32C of the payload
//	24 u32 shard                 60 u32 CRC-32C of the header's first 60 bytes
//	28 u32 round
const (
	frameMagic       = 0x66746f69 // "iotf"
	StreamVersion    = 1
	FrameHeaderBytes = 64
	MaxFrameBytes    = 64 << 20
)

// FrameKind says what a frame's payload is.
type FrameKind uint16

// The kinds. A reader skips kinds that it does not know.
const (
	FrameHead    FrameKind = 1 // Head as JSON, padded with spaces: the first frame
	FrameRecords FrameKind = 2 // records
	FrameEnd     FrameKind = 3 // End as JSON, padded with spaces: the recording ended in order
	// FrameCounters is a JSON object, padded with spaces: how many calls of each operation,
	// by name, an agent counted and did not keep since the frame before.
	FrameCounters FrameKind = 4
	FrameFilter   FrameKind = 5 // FilterChange as JSON, padded with spaces
)

// Frame is a frame's header. Length and checksums are filled by the writer.
type Frame struct {
	Kind   FrameKind
	Stream uint64
	Seq    uint64
	Shard  uint32
	Round  uint32
	Until  uint64 // ns
	Length uint64 // bytes of payload
	Lost   uint64 // records
	check  uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Put encodes the header of a payload into b, which has FrameHeaderBytes.
func (f *Frame) Put(b []byte, payload []byte) {
	le := binary.LittleEndian
	f.Length, f.check = uint64(len(payload)), crc32.Checksum(payload, castagnoli)
	le.PutUint32(b, frameMagic)
	le.PutUint16(b[4:], StreamVersion)
	le.PutUint16(b[6:], uint16(f.Kind))
	le.PutUint64(b[8:], f.Stream)
	le.PutUint64(b[16:], f.Seq)
	le.PutUint32(b[24:], f.Shard)
	le.PutUint32(b[28:], f.Round)
	le.PutUint64(b[32:], f.Until)
	le.PutUint64(b[40:], f.Length)
	le.PutUint64(b[48:], f.Lost)
	le.PutUint32(b[56:], f.check)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

// parse decodes and checks a header.
func (f *Frame) parse(b []byte) error {
	le := binary.LittleEndian
	if le.Uint32(b) != frameMagic {
		return ErrNotATrace
	}
	if v := le.Uint16(b[4:]); v > StreamVersion {
		return fmt.Errorf("stream version %d, this program reads up to %d: %w", v, StreamVersion, ErrNewer)
	}
	if le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return fmt.Errorf("frame header: checksum differs: %w", ErrCorrupt)
	}
	*f = Frame{
		Kind: FrameKind(le.Uint16(b[6:])), Stream: le.Uint64(b[8:]), Seq: le.Uint64(b[16:]),
		Shard: le.Uint32(b[24:]), Round: le.Uint32(b[28:]), Until: le.Uint64(b[32:]),
		Length: le.Uint64(b[40:]), Lost: le.Uint64(b[48:]), check: le.Uint32(b[56:]),
	}
	if f.Length > MaxFrameBytes || f.Length%8 != 0 {
		return fmt.Errorf("frame of %d bytes: %w", f.Length, ErrCorrupt)
	}
	return nil
}

// FrameReader reads frames in order.
type FrameReader struct {
	r       io.Reader
	off     int64 // of the next frame
	payload []byte
	header  [FrameHeaderBytes]byte
}

// NewFrameReader returns a reader of the frames in r.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{r: r} }

// Offset returns the position after the last good frame: where a torn stream is
// to be cut.
func (fr *FrameReader) Offset() int64 { return fr.off }

// Next returns the next frame and its checked payload, valid until the next
// call. It returns io.EOF at an end between frames, ErrTruncated at one within a
// frame and ErrCorrupt for damage, after which reading cannot go on.
func (fr *FrameReader) Next() (Frame, []byte, error) {
	var f Frame
	if n, err := io.ReadFull(fr.r, fr.header[:]); err != nil {
		if n == 0 && err == io.EOF {
			return f, nil, io.EOF
		}
		return f, nil, fr.short(err)
	}
	if err := f.parse(fr.header[:]); err != nil {
		return f, nil, fmt.Errorf("at offset %d: %w", fr.off, err)
	}
	if uint64(cap(fr.payload)) < f.Length {
		fr.payload = make([]byte, f.Length)
	}
	p := fr.payload[:f.Length]
	if _, err := io.ReadFull(fr.r, p); err != nil {
		return f, nil, fr.short(err)
	}
	if crc32.Checksum(p, castagnoli) != f.check {
		return f, nil, fmt.Errorf("frame %d at offset %d: checksum differs: %w", f.Seq, fr.off, ErrCorrupt)
	}
	fr.off += FrameHeaderBytes + int64(f.Length)
	return f, p, nil
}

func (fr *FrameReader) short(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("frame at offset %d: %w", fr.off, ErrTruncated)
	}
	return fmt.Errorf("read frame at offset %d: %w", fr.off, err)
}

// Word bits of a record within a payload, as the kernel's ring buffer sets them
// (include/uapi/linux/bpf.h, BPF_RINGBUF_*), so that ring memory is written to a
// stream as it is.
const (
	WordBusy    = 1 << 31
	WordDiscard = 1 << 30
	WordBytes   = 8
)

// NextRecord returns the record body at an offset of a payload, nil if it was
// discarded, and the offset of the next record.
func NextRecord(payload []byte, off int) (body []byte, next int, err error) {
	b := payload[off:]
	if len(b) < WordBytes {
		return nil, 0, fmt.Errorf("record word of %d bytes: %w", len(b), ErrCorrupt)
	}
	word := binary.LittleEndian.Uint32(b)
	n := uint64(word &^ (WordBusy | WordDiscard))
	padded := (n + 7) &^ 7
	if padded > uint64(len(b)-WordBytes) {
		return nil, 0, fmt.Errorf("record of %d bytes in a payload with %d left: %w", n, len(b)-WordBytes, ErrCorrupt)
	}
	next = off + WordBytes + int(padded)
	if word&(WordDiscard|WordBusy) != 0 {
		return nil, next, nil
	}
	return b[WordBytes : WordBytes+n], next, nil
}

// Discard marks the record at an offset of a payload as one to be skipped.
func Discard(payload []byte, off int) {
	b := payload[off : off+4]
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|WordDiscard)
}

// TypeOf returns the type of a record's body, 0 if the body is too short to have one.
func TypeOf(body []byte) RecordType {
	if len(body) < 2 {
		return 0
	}
	return RecordType(binary.LittleEndian.Uint16(body))
}

// Records iterates over the record bodies of a payload. It yields an error once,
// as the last item, if the payload does not parse.
func Records(payload []byte) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for off := 0; off < len(payload); {
			body, next, err := NextRecord(payload, off)
			if err != nil {
				yield(nil, err)
				return
			}
			if off = next; body != nil && !yield(body, nil) {
				return
			}
		}
	}
}

// AppendRecord appends a record with its word to a payload.
func AppendRecord(payload []byte, r *Record) []byte {
	start := len(payload)
	payload = append(payload, 0, 0, 0, 0, 0, 0, 0, 0)
	payload = r.Append(payload)
	for len(payload)%8 != 0 {
		payload = append(payload, 0)
	}
	binary.LittleEndian.PutUint32(payload[start:], uint32(len(payload)-start-WordBytes))
	return payload
}

// ParseFrame reads the header of a frame, FrameHeaderBytes long. The payload follows it.
func ParseFrame(header []byte) (f Frame, err error) {
	if len(header) < FrameHeaderBytes {
		return f, fmt.Errorf("frame header of %d bytes: %w", len(header), ErrTruncated)
	}
	err = f.parse(header[:FrameHeaderBytes])
	return f, err
}
