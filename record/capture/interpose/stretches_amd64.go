// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"debug/elf"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"
)

// Files without unwinding information (musl) say at best where the functions are that others may call. What is between
// them, or all if the file was stripped, is read from the first instruction to the last: compilers put no data between
// code. A stretch that does not end with the end of an instruction, or has one that is not known, is left alone.

const mostText = 16 << 20 // bytes of code that are read

// findStretches adds what can be known of code that no frame covers.
func (im *image) findStretches(sp *space, r *region) {
	f := r.open(sp, im)
	if f == nil {
		return
	}
	defer f.Close()
	im.frames = withStretches(f, im.frames)
}

// withStretches returns frames with those that a file's dynamic symbols and its code add.
func withStretches(f io.ReaderAt, frames []frame) []frame {
	e, err := elf.NewFile(f)
	if err != nil || e.Machine != elf.EM_X86_64 {
		return frames
	}
	first := firstAddress(e)
	text := e.Section(".text")
	if text == nil || text.Type != elf.SHT_PROGBITS || text.Flags&elf.SHF_COMPRESSED != 0 || text.Size > mostText ||
		text.Addr-first != text.Offset {
		return frames
	}
	code, err := text.Data()
	if err != nil {
		return frames
	}
	if s := e.SectionByType(elf.SHT_DYNSYM); s != nil && s.Size <= mostBytes {
		if symbols, err := e.DynamicSymbols(); err == nil {
			frames = inOrder(append(frames, framesOf(symbols, first)...))
		}
	}
	return inOrder(append(frames, stretches(code, text.Offset, frames)...))
}

// stretches returns pieces of code, which begins at offset from, that no frame covers.
func stretches(code []byte, from uint64, frames []frame) (found []frame) {
	at, end := from, from+uint64(len(code))
	for _, f := range frames {
		if f.start > at && f.start <= end {
			found = append(found, pieces(code[at-from:f.start-from], at)...)
		}
		at = max(at, f.end)
		if at >= end {
			return found
		}
	}
	return append(found, pieces(code[at-from:], at)...)
}

// pieces divides code behind instructions that return, about every so many bytes. It returns nothing if there is an
// instruction that is not known, or that does not end before the code does.
func pieces(code []byte, start uint64) (found []frame) {
	const enough = 512
	begin := 0
	for at := 0; at < len(code); {
		if n := nop(code[at:]); n > 0 && at == begin { // what fills up is between pieces, not in them
			at += n
			begin = at
			continue
		}
		in, err := decode(code[at:])
		if err != nil {
			return nil
		}
		at += in.Len
		if at == len(code) || in.Op == x86asm.RET && at-begin >= enough {
			found = append(found, frame{start: start + uint64(begin), end: start + uint64(at)})
			begin = at
		}
	}
	return found
}

// covers reports whether a frame covers an offset.
func (im *image) covers(off uint64) bool {
	return slices.ContainsFunc(im.frames, func(f frame) bool { return off >= f.start && off < f.end })
}

// open opens the file of a region, nil if what has its name now is another.
func (r *region) open(sp *space, im *image) *os.File {
	proc := "/proc/" + strconv.Itoa(sp.pid)
	for _, name := range []string{proc + "/exe", proc + "/root" + r.name, r.name} {
		f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		head := make([]byte, headBytes)
		st, err := f.Stat()
		if err == nil && st.Mode().IsRegular() {
			if _, err = io.ReadFull(f, head); err == nil && im.isHead(head) {
				return f
			}
		}
		f.Close()
	}
	return nil
}
