// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/zeebo/blake3"
)

// A stream is a header, blocks, and a final block. All numbers are little-endian.
//
//	header                                      block
//	 0 8 bytes "iotape P"                        0 u32 magic "iotb"
//	 8 u16 version                               4 u16 flags; bit 0: final
//	10 u16 number of layers                      6 u16 0
//	12 u32 bytes of the header                   8 u64 number, from 0
//	16 u64 serial of the stream                 16 u64 serial of the stream
//	24 u32 plain bytes in a block, at most      24 u32 bytes of the payload
//	28 u32 0                                    28 u32 CRC-32C of the first 28 bytes
//	32 for each layer                           32 payload
//	     u8 length, name
//	     u32 length, parameters
//	-32 BLAKE3 of all before
const (
	Magic            = "iotape P"
	Version          = 1
	headerFixed      = 32
	headerSum        = 32
	BlockHeaderBytes = 32
	blockMagic       = 0x62746f69 // "iotb"
	flagFinal        = 1
)

// Limits of what is written and read.
const (
	MaxHeaderBytes    = 64 << 10
	MaxLayers         = 16
	MinBlockBytes     = 1 << 10
	MaxBlockBytes     = 16 << 20
	DefaultBlockBytes = 256 << 10

	maxName = 64
	// growth is what a layer may add to a block.
	growth = 64
)

// ErrNotPiped is returned for what does not begin like a stream of this package.
var ErrNotPiped = errors.New("not a piped stream")

// ErrNewer is wrapped for streams of a later version of the format.
var ErrNewer = errors.New("made by a newer version")

// ErrHeader is wrapped for a damaged header, without which nothing can be read.
var ErrHeader = errors.New("damaged header")

// Header describes a stream.
type Header struct {
	Serial     uint64 // random: no two streams have the same
	BlockBytes int
	Layers     []LayerHeader // in the order in which they were applied
	Sum        [32]byte      // of the encoded header; layers bind blocks to it
}

// LayerHeader is what a stream says of a layer, in clear.
type LayerHeader struct {
	Name   string // "zstd:3"
	Params []byte // of the layer's own format; no secrets
}

// Chain returns the layers as a text, "none" without any.
func (h *Header) Chain() string {
	if len(h.Layers) == 0 {
		return "none"
	}
	names := make([]string, len(h.Layers))
	for i, l := range h.Layers {
		names[i] = l.Name
	}
	return strings.Join(names, ",")
}

// MaxPayload returns the largest payload that a block of the stream can have.
func (h *Header) MaxPayload() int { return h.BlockBytes + growth*len(h.Layers) }

// MaxPlain returns the most bytes that undoing layer i may give.
func (h *Header) MaxPlain(i int) int { return h.BlockBytes + growth*i }

// Append encodes the header and sets its Sum.
func (h *Header) Append(b []byte) ([]byte, error) {
	if len(h.Layers) > MaxLayers {
		return nil, fmt.Errorf("a chain of %d layers: at most %d", len(h.Layers), MaxLayers)
	}
	start := len(b)
	le := binary.LittleEndian
	b = append(b, Magic...)
	b = le.AppendUint16(b, Version)
	b = le.AppendUint16(b, uint16(len(h.Layers)))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, h.Serial)
	b = le.AppendUint32(b, uint32(h.BlockBytes))
	b = le.AppendUint32(b, 0)
	for _, l := range h.Layers {
		if len(l.Name) == 0 || len(l.Name) > maxName {
			return nil, fmt.Errorf("layer name of %d bytes: 1 to %d", len(l.Name), maxName)
		}
		b = append(append(b, byte(len(l.Name))), l.Name...)
		b = append(le.AppendUint32(b, uint32(len(l.Params))), l.Params...)
	}
	if n := len(b) - start + headerSum; n > MaxHeaderBytes {
		return nil, fmt.Errorf("header of %d bytes (too many recipients?): at most %d", n, MaxHeaderBytes)
	}
	le.PutUint32(b[start+12:], uint32(len(b)-start+headerSum))
	h.Sum = blake3.Sum256(b[start:])
	return append(b, h.Sum[:]...), nil
}

// ReadHeader reads the header of a stream.
func ReadHeader(r io.Reader) (*Header, error) {
	fixed := make([]byte, headerFixed)
	if n, err := io.ReadFull(r, fixed); err != nil {
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("read header: %w", err)
		}
		if n >= len(Magic) && string(fixed[:len(Magic)]) == Magic {
			return nil, fmt.Errorf("%w: cut off after %d bytes", ErrHeader, n)
		}
		return nil, ErrNotPiped
	}
	n, err := headerLength(fixed)
	if err != nil {
		return nil, err
	}
	b := append(fixed, make([]byte, n-headerFixed)...)
	if m, err := io.ReadFull(r, b[headerFixed:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%w: cut off after %d bytes", ErrHeader, headerFixed+m)
	} else if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	return ParseHeader(b)
}

// headerLength returns the length of the header that begins with these 32 bytes.
func headerLength(b []byte) (int, error) {
	if string(b[:len(Magic)]) != Magic {
		return 0, ErrNotPiped
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v > Version {
		return 0, fmt.Errorf("piped stream of version %d, this program reads up to %d: %w", v, Version, ErrNewer)
	}
	n := binary.LittleEndian.Uint32(b[12:])
	if n < headerFixed+headerSum || n > MaxHeaderBytes {
		return 0, fmt.Errorf("%w: it says that it has %d bytes", ErrHeader, n)
	}
	return int(n), nil
}

// ParseHeader decodes a whole header and checks it.
func ParseHeader(b []byte) (*Header, error) {
	if len(b) < headerFixed+headerSum {
		return nil, fmt.Errorf("%w: %d bytes", ErrHeader, len(b))
	}
	if n, err := headerLength(b); err != nil {
		return nil, err
	} else if n != len(b) {
		return nil, fmt.Errorf("%w: %d bytes of %d", ErrHeader, len(b), n)
	}
	le := binary.LittleEndian
	body := b[:len(b)-headerSum]
	h := &Header{Serial: le.Uint64(b[16:]), BlockBytes: int(le.Uint32(b[24:])), Sum: blake3.Sum256(body)}
	if !bytes.Equal(h.Sum[:], b[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum differs", ErrHeader)
	}
	layers := int(le.Uint16(b[10:]))
	if layers > MaxLayers || h.BlockBytes < MinBlockBytes || h.BlockBytes > MaxBlockBytes || le.Uint16(b[8:]) == 0 ||
		le.Uint32(b[28:]) != 0 {
		return nil, fmt.Errorf("%w: %d layers, blocks of %d bytes", ErrHeader, layers, h.BlockBytes)
	}
	for rest := body[headerFixed:]; ; layers-- {
		if layers == 0 {
			if len(rest) > 0 {
				return nil, fmt.Errorf("%w: %d bytes too many", ErrHeader, len(rest))
			}
			return h, nil
		}
		var l LayerHeader
		var ok bool
		if l, rest, ok = parseLayer(rest); !ok {
			return nil, fmt.Errorf("%w: a layer is cut off", ErrHeader)
		}
		h.Layers = append(h.Layers, l)
	}
}

func parseLayer(b []byte) (l LayerHeader, rest []byte, ok bool) {
	if len(b) < 1 || b[0] == 0 || b[0] > maxName || len(b) < 1+int(b[0])+4 {
		return l, nil, false
	}
	l.Name, b = string(b[1:1+b[0]]), b[1+b[0]:]
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return l, nil, false
	}
	l.Params = bytes.Clone(b[:n])
	return l, b[n:], true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BlockHeader is what stands before a block's payload, in clear.
type BlockHeader struct {
	Number uint64
	Serial uint64 // of the stream
	Length int    // bytes of the payload
	Final  bool
}

// Put encodes the header into b, which has BlockHeaderBytes.
func (h *BlockHeader) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, blockMagic)
	var flags uint32
	if h.Final {
		flags = flagFinal
	}
	le.PutUint32(b[4:], flags)
	le.PutUint64(b[8:], h.Number)
	le.PutUint64(b[16:], h.Serial)
	le.PutUint32(b[24:], uint32(h.Length))
	le.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
}

// Parse decodes a header. It reports whether b, of BlockHeaderBytes, is one.
func (h *BlockHeader) Parse(b []byte) bool {
	le := binary.LittleEndian
	if le.Uint32(b) != blockMagic || le.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) {
		return false
	}
	flags, n := le.Uint32(b[4:]), le.Uint32(b[24:])
	*h = BlockHeader{Number: le.Uint64(b[8:]), Serial: le.Uint64(b[16:]), Length: int(n), Final: flags&flagFinal != 0}
	return flags&^flagFinal == 0 && n <= MaxBlockBytes+MaxLayers*growth
}

// Is reports whether a file begins like a piped stream.
func Is(f io.ReaderAt) bool {
	var b [len(Magic)]byte
	_, err := f.ReadAt(b[:], 0)
	return err == nil && string(b[:]) == Magic
}
