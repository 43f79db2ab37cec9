// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The plain payload of a block of events is a sequence of columns in any order,
// each at most once:
//
//	column = id(uvarint) encoding(u8) length(uvarint) data(length bytes)
//
// A column has one value per event, or one per file, path, buffer, part or
// reference of the block's events in their order, as its level says. How many
// those are per owner is a column of the level above. Values are 64-bit patterns,
// signed ones sign-extended. A column that is absent is all zeros; one with an
// unknown id is skipped.
//
// colDict holds the block's strings: count(uvarint), count lengths (uvarint each),
// then the bytes. Columns of strings hold positions in it from 1; 0 is "".
// colInline is the bytes of all Buf.Inline, one after the other, colDigests those
// of all Buf.Hashes, colSketches those of all Buf.Sketch.
//
// The numbers are part of the tape format and must not be changed.
const (
	colOp = iota
	colKind
	colNR
	colHost
	colPID
	colTID
	colPPID
	colPGID
	colSID
	colUID
	colGID
	colComm // string
	colEnter
	colDuration // Exit - Enter
	colCPU
	colRet
	colErrno
	colArg0 // to colArg0+5
)

// The further columns of events.
const (
	colOffset = colArg0 + 6 + iota
	colCount
	colChild
	colFlags
	colFiles // number of files
	colPaths // number of paths
	colBufs  // number of buffers
	colNSPID
	colNSTID
	colDelayBefore
	colDelayWithin
	colStack // number in the file StacksName, 0: none
	numEventColumns
)

// The columns of files.
const (
	colFileArg = 40 + iota
	colFileFD
	colFileOpen
	colFileKnown
	colFileDev
	colFileIno
	colFileMode
	colFileFlags
	colFileNlink
	colFileUID
	colFileGID
	colFileSize
	colFilePos
	colFileRdev
	colFilePath // string
	colFileReal // string
)

// The columns of paths.
const (
	colPathArg  = 60 + iota
	colPathRaw  // string
	colPathAbs  // string
	colPathReal // string
)

// The columns of buffers.
const (
	colBufArg = 70 + iota
	colBufDir
	colBufKind
	colBufOmitted
	colBufLen
	colBufMissing
	colBufParts  // number of parts
	colBufInline // length of Inline + 1; 0 if it is nil
	colBufRefs   // number of references
	colBufHashes // number of hashes
)

// The columns of parts and references, and those that are no values.
const (
	colPart     = 80
	colSketch   = 83 // of buffers: length of Sketch
	colRefChunk = 90
	colRefOff   = 91
	colRefLen   = 92
	colDict     = 100
	colInline   = 101
	colDigests  = 102
	colSketches = 103
	numColumns  = 104
)

// level says what a column has one value of.
type level uint8

const (
	perNone level = iota // not a column of this version
	perEvent
	perFile
	perPath
	perBuf
	perPart
	perRef
	notValues // colDict, colInline, colDigests, colSketches
	numLevels
)

// column describes a column's values.
type column struct {
	level level
	bits  uint8 // width of an unsigned value, 0 if it is 64 or signed
	text  bool  // values are positions in the dictionary
}

var columnTable = func() (t [numColumns]column) {
	set := func(l level, bits uint8, ids ...int) {
		for _, id := range ids {
			t[id] = column{level: l, bits: bits}
		}
	}
	set(perEvent, 0, colEnter, colDuration, colCPU, colRet, colArg0, colArg0+1, colArg0+2, colArg0+3, colArg0+4,
		colArg0+5, colOffset, colCount)
	set(perEvent, 8, colKind)
	set(perEvent, 16, colOp, colFlags)
	set(perEvent, 32, colNR, colHost, colPID, colTID, colPPID, colPGID, colSID, colUID, colGID, colErrno, colChild,
		colComm, colNSPID, colNSTID, colDelayBefore, colDelayWithin, colStack)
	set(perEvent, 32, colFiles, colPaths, colBufs)
	set(perFile, 0, colFileArg, colFileFD, colFileOpen, colFileDev, colFileIno, colFileSize, colFilePos, colFileRdev)
	set(perFile, 1, colFileKnown)
	set(perFile, 32, colFileMode, colFileFlags, colFileNlink, colFileUID, colFileGID, colFilePath, colFileReal)
	set(perPath, 0, colPathArg)
	set(perPath, 32, colPathRaw, colPathAbs, colPathReal)
	set(perBuf, 0, colBufArg, colBufLen, colBufMissing)
	set(perBuf, 1, colBufOmitted)
	set(perBuf, 8, colBufDir, colBufKind)
	set(perBuf, 32, colBufParts, colBufInline, colBufRefs, colBufHashes, colSketch)
	set(perPart, 0, colPart)
	set(perRef, 0, colRefChunk)
	set(perRef, 32, colRefOff, colRefLen)
	set(notValues, 0, colDict, colInline, colDigests, colSketches)
	for _, id := range []int{colComm, colFilePath, colFileReal, colPathRaw, colPathAbs, colPathReal} {
		t[id].text = true
	}
	return t
}()

// Encodings of a column. A column of bytes (notValues) has encoding 0.
const (
	encConst  = 0 // one uvarint: all values
	encPlain  = 1 // a uvarint per value
	encZigzag = 2 // a uvarint per value: v<<1 ^ v>>63
	encDelta  = 3 // likewise, of the difference to the value before, which is 0 at first
)

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func uvarintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendColumn appends a column of values in the encoding that is smallest,
// nothing if they are all zero. scratch is reused.
func appendColumn(b []byte, id int, v []uint64, scratch *[]byte) []byte {
	if len(v) == 0 {
		return b
	}
	constant := true
	for _, x := range v {
		if x != v[0] {
			constant = false
			break
		}
	}
	if constant {
		if v[0] == 0 {
			return b
		}
		*scratch = binary.AppendUvarint((*scratch)[:0], v[0])
		return appendBytesColumn(b, id, encConst, *scratch)
	}
	enc, out := chooseEncoding(v), (*scratch)[:0]
	switch enc {
	case encPlain:
		for _, x := range v {
			out = binary.AppendUvarint(out, x)
		}
	case encZigzag:
		for _, x := range v {
			out = binary.AppendUvarint(out, zigzag(x))
		}
	case encDelta:
		last := uint64(0)
		for _, x := range v {
			out = binary.AppendUvarint(out, zigzag(x-last))
			last = x
		}
	}
	*scratch = out
	return appendBytesColumn(b, id, enc, out)
}

func appendBytesColumn(b []byte, id int, enc byte, data []byte) []byte {
	b = binary.AppendUvarint(b, uint64(id))
	b = append(b, enc)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// chooseEncoding estimates the sizes from every fourth value.
func chooseEncoding(v []uint64) byte {
	step := 1
	if len(v) > 256 {
		step = 4
	}
	plain, zig, delta := 0, 0, 0
	for i := 1; i < len(v); i += step {
		plain += uvarintBytes(v[i])
		zig += uvarintBytes(zigzag(v[i]))
		delta += uvarintBytes(zigzag(v[i] - v[i-1]))
	}
	// The plain form is the quickest to decode, so a draw goes to it.
	switch {
	case plain <= zig && plain <= delta:
		return encPlain
	case zig <= delta:
		return encZigzag
	}
	return encDelta
}

// decodeColumn fills v from the data of a column.
func decodeColumn(v []uint64, enc byte, data []byte) error {
	if len(v) == 0 {
		if len(data) > 0 && enc != encConst {
			return fmt.Errorf("%d bytes without values: %w", len(data), ErrCorrupt)
		}
		return nil
	}
	switch enc {
	case encConst:
		x, n := binary.Uvarint(data)
		if n <= 0 || n != len(data) {
			return fmt.Errorf("constant of %d bytes: %w", len(data), ErrCorrupt)
		}
		for i := range v {
			v[i] = x
		}
		return nil
	case encPlain, encZigzag, encDelta:
	default:
		return fmt.Errorf("encoding %d: %w", enc, ErrCorrupt)
	}
	if err := decodeUvarints(v, data); err != nil {
		return err
	}
	switch enc {
	case encZigzag:
		for i, x := range v {
			v[i] = unzigzag(x)
		}
	case encDelta:
		last := uint64(0)
		for i, x := range v {
			last += unzigzag(x)
			v[i] = last
		}
	}
	return nil
}

// decodeUvarints fills v from exactly len(data) bytes.
func decodeUvarints(v []uint64, data []byte) error {
	if len(data) < len(v) {
		return fmt.Errorf("%d values in %d bytes: %w", len(v), len(data), ErrCorrupt)
	}
	if len(data) == len(v) { // one byte each
		high := byte(0)
		for i, c := range data {
			high |= c
			v[i] = uint64(c)
		}
		if high >= 0x80 {
			return fmt.Errorf("values end early: %w", ErrCorrupt)
		}
		return nil
	}
	p := 0
	for i := range v {
		if p+10 > len(data) { // the last few, with care
			return decodeTail(v[i:], data[p:])
		}
		c := data[p]
		if c < 0x80 {
			v[i] = uint64(c)
			p++
			continue
		}
		x, shift := uint64(c&0x7f), 7
		for k := 1; ; k++ {
			if k == 10 {
				return fmt.Errorf("value of more than 64 bits: %w", ErrCorrupt)
			}
			c = data[p+k]
			x |= uint64(c&0x7f) << (shift & 63)
			if c < 0x80 {
				if k == 9 && c > 1 {
					return fmt.Errorf("value of more than 64 bits: %w", ErrCorrupt)
				}
				p += k + 1
				break
			}
			shift += 7
		}
		v[i] = x
	}
	if p != len(data) {
		return fmt.Errorf("%d bytes behind the values: %w", len(data)-p, ErrCorrupt)
	}
	return nil
}

func decodeTail(v []uint64, data []byte) error {
	for i := range v {
		x, n := binary.Uvarint(data)
		if n <= 0 {
			return fmt.Errorf("values end early: %w", ErrCorrupt)
		}
		v[i], data = x, data[n:]
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes behind the values: %w", len(data), ErrCorrupt)
	}
	return nil
}
