// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strconv"
)

// frame is the range of a function, by unwinding information (.eh_frame) or the table of symbols.
type frame struct {
	start, end uint64
	furthest   uint64 // end of it, and of all before it
}

// Limits of what is read of a program, which may say anything.
const (
	mostFrames = 1 << 20
	mostBytes  = 64 << 20 // of unwinding information, or of symbols
)

const pcrel4 = 0x1b // an encoding of addresses: 4 bytes with sign, relative to their own place

// functions returns the ranges of a mapped file's functions, in order. A file that is linked
// statically has no table of its unwinding information that would be mapped: then its sections are
// read, and its symbols, since the C library may have no unwinding information (musl).
func functions(sp *space, bias uint64) []frame {
	frames := readFrames(sp, bias)
	if frames == nil {
		frames = programFrames(sp, bias)
	}
	return inOrder(frames)
}

// inOrder sorts frames.
func inOrder(frames []frame) []frame {
	slices.SortFunc(frames, func(a, b frame) int { return int(int64(a.start) - int64(b.start)) })
	last := uint64(0)
	for i := range frames {
		last = max(last, frames[i].end)
		frames[i].furthest = last
	}
	return frames
}

// programFrames reads the ranges of functions from the program's file, if that is what is mapped.
func programFrames(sp *space, bias uint64) []frame {
	f, err := os.Open("/proc/" + strconv.Itoa(sp.pid) + "/exe")
	if err != nil {
		return nil
	}
	defer f.Close()
	var mapped, file [headBytes]byte
	if _, err := io.ReadFull(f, file[:]); err != nil || !sp.read(mapped[:], bias) || mapped != file {
		return nil
	}
	return fileFrames(f)
}

// fileFrames reads the ranges of functions from the sections of a program's file.
func fileFrames(f io.ReaderAt) []frame {
	e, err := elf.NewFile(f)
	if err != nil || e.Machine != elf.EM_X86_64 {
		return nil
	}
	first := firstAddress(e)
	var frames []frame
	if s := e.Section(".eh_frame"); s != nil && s.Flags&elf.SHF_COMPRESSED == 0 && s.Size <= mostBytes {
		if data, err := s.Data(); err == nil {
			frames = parseFrames(data, s.Addr-first)
		}
	}
	return append(frames, symbolFrames(e, first)...)
}

// symbolFrames returns the ranges of functions by the table of symbols.
func symbolFrames(e *elf.File, first uint64) (frames []frame) {
	if s := e.SectionByType(elf.SHT_SYMTAB); s == nil || s.Size > mostBytes {
		return nil
	}
	symbols, err := e.Symbols()
	if err != nil {
		return nil
	}
	return framesOf(symbols, first)
}

// firstAddress returns where a file's beginning is to be mapped.
func firstAddress(e *elf.File) (first uint64) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			first = p.Vaddr
		}
	}
	return first
}

// framesOf returns the ranges of functions among symbols.
func framesOf(symbols []elf.Symbol, first uint64) (frames []frame) {
	for _, s := range symbols {
		end := s.Value + s.Size
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && s.Value >= first && end > s.Value {
			frames = append(frames, frame{start: s.Value - first, end: end - first})
		}
	}
	return frames
}

// parseFrames reads the ranges of functions from unwinding information that is at an offset of its
// file, as far as it is in the usual form: Linux Standard Base, "Exception Frames".
func parseFrames(section []byte, at uint64) (frames []frame) {
	le := binary.LittleEndian
	usual := map[int]bool{} // CIEs, by place
	for pos := 0; pos+8 <= len(section) && len(frames) < mostFrames; {
		size := int64(le.Uint32(section[pos:]))
		if size < 4 || size > int64(len(section)-pos-4) {
			break // the end, or 64-bit lengths
		}
		entry := section[pos+4 : pos+4+int(size)]
		cie := int64(le.Uint32(entry))
		switch {
		case cie == 0:
			usual[pos] = usualCIE(entry)
		case int64(pos)+4 >= cie && usual[pos+4-int(cie)] && len(entry) >= 12:
			start := at + uint64(pos+8) + uint64(int64(int32(le.Uint32(entry[4:]))))
			length := uint64(le.Uint32(entry[8:]))
			if int64(start) >= 0 && length > 0 {
				frames = append(frames, frame{start: start, end: start + length})
			}
		}
		pos += 4 + int(size)
	}
	return frames
}

// usualCIE reports whether the functions of a CIE have addresses of 4 bytes that are relative to
// their own place.
func usualCIE(entry []byte) bool {
	if len(entry) < 5 || entry[4] != 1 && entry[4] != 3 { // version
		return false
	}
	letters, rest, ok := bytes.Cut(entry[5:], []byte{0})
	if !ok || !bytes.HasPrefix(letters, []byte("z")) {
		return false
	}
	// Alignment of code, of data, the return address's register, and the length of what follows.
	for range 4 {
		if rest, ok = skipLEB(rest); !ok {
			return false
		}
	}
	for _, letter := range letters[1:] {
		switch letter {
		case 'R':
			return len(rest) > 0 && rest[0] == pcrel4
		case 'S': // frames of signals
		case 'L':
			rest = rest[min(1, len(rest)):]
		case 'P':
			n := personalityBytes(rest)
			if n == 0 || n > len(rest) {
				return false
			}
			rest = rest[n:]
		default:
			return false
		}
	}
	return false
}

// personalityBytes returns the length of an encoding and the address in it, 0 if it is not known.
func personalityBytes(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] & 0x0f {
	case 0x03, 0x0b:
		return 1 + 4
	case 0x00, 0x04, 0x0c:
		return 1 + 8
	}
	return 0
}

// skipLEB skips a number of variable length.
func skipLEB(b []byte) ([]byte, bool) {
	for i, c := range b {
		if c < 0x80 {
			return b[i+1:], true
		}
	}
	return nil, false
}

// readFrames reads the ranges of functions from a mapped file's unwinding information
// (Linux Standard Base, .eh_frame_hdr and .eh_frame), nil if it has no table of it in the usual form.
func readFrames(sp *space, bias uint64) []frame {
	at, ok := frameHeader(sp, bias)
	if !ok {
		return nil
	}
	const udata4, datarel4 = 0x03, 0x3b
	var head [12]byte
	if !sp.read(head[:], at) || head[0] != 1 || head[1] != pcrel4 || head[2] != udata4 || head[3] != datarel4 {
		return nil
	}
	n := binary.LittleEndian.Uint32(head[8:])
	if n > mostFrames {
		return nil
	}
	table := make([]byte, 8*n)
	if !sp.read(table, at+12) {
		return nil
	}
	frames := make([]frame, 0, n)
	lo, hi := ^uint64(0), uint64(0)
	entries := make([][2]uint64, n)
	for i := range entries {
		e := table[8*i:]
		start := at + uint64(int64(int32(binary.LittleEndian.Uint32(e))))
		fde := at + uint64(int64(int32(binary.LittleEndian.Uint32(e[4:]))))
		entries[i] = [2]uint64{start, fde}
		lo, hi = min(lo, fde), max(hi, fde)
	}
	const fdeBytes = 16 // length, CIE, begin, range
	if n == 0 || hi-lo > mostBytes {
		return nil
	}
	section := make([]byte, hi-lo+fdeBytes)
	if !sp.read(section, lo) {
		return nil
	}
	for _, e := range entries {
		fde := section[e[1]-lo:]
		begin := e[1] + 8 + uint64(int64(int32(binary.LittleEndian.Uint32(fde[8:]))))
		length := uint64(binary.LittleEndian.Uint32(fde[12:]))
		if begin != e[0] {
			return nil // not in the usual form
		}
		frames = append(frames, frame{start: begin - bias, end: begin - bias + length})
	}
	return frames
}

// frameHeader returns the address of a mapped file's .eh_frame_hdr.
func frameHeader(sp *space, bias uint64) (uint64, bool) {
	var head [64]byte
	if !sp.read(head[:], bias) || head[elf.EI_CLASS] != byte(elf.ELFCLASS64) {
		return 0, false
	}
	le := binary.LittleEndian
	at, size, n := le.Uint64(head[32:]), le.Uint16(head[54:]), le.Uint16(head[56:])
	if size != 56 || n > 64 || at > headBytes*8 {
		return 0, false
	}
	segments := make([]byte, 56*int(n))
	if !sp.read(segments, bias+at) {
		return 0, false
	}
	first, frameAt, found := uint64(0), uint64(0), false
	for ; len(segments) > 0; segments = segments[56:] {
		kind, off, vaddr := elf.ProgType(le.Uint32(segments)), le.Uint64(segments[8:]), le.Uint64(segments[16:])
		switch {
		case kind == elf.PT_LOAD && off == 0:
			first = vaddr
		case kind == elf.PT_GNU_EH_FRAME:
			frameAt, found = vaddr, true
		}
	}
	return bias + frameAt - first, found
}
