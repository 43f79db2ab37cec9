// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"slices"
	"sort"

	"golang.org/x/arch/x86/x86asm"
)

// image is a program or library, as it is mapped. All offsets are from its beginning.
type image struct {
	plans map[uint64]plan // by place
	taken map[uint64]bool // bytes of padding that a jump has

	head [sha256.Size]byte // of its first bytes

	frames []frame // of functions, in order; none if the file does not say
	read   bool    // frames were looked for
	swept  bool    // what has no frame was looked at
	gogo   bool    // made by the Go linker, which fills with breakpoints
}

// imageKey tells files apart, also one that was replaced in place.
type imageKey struct {
	dev  uint32
	ino  uint64
	head [sha256.Size]byte
}

const headBytes = 4096 // of a file, with its build ID

// image returns what is known of the file of a region, nil if it is no ELF file.
func (s *session) image(sp *space, r *region, m *mapping) *image {
	head := make([]byte, headBytes)
	if !sp.read(head, r.bias) || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return nil
	}
	key := imageKey{m.dev, m.ino, sha256.Sum256(head)}
	if im := s.images[key]; im != nil {
		return im
	}
	im := &image{plans: map[uint64]plan{}, taken: map[uint64]bool{}, head: key.head}
	im.gogo = bytes.Contains(head, []byte("Go\x00\x00"))
	s.images[key] = im
	return im
}

// mappedAt reports whether the file is still mapped where it was: we are not told when it is unmapped.
func (im *image) mappedAt(sp *space, bias uint64) bool {
	head := make([]byte, headBytes)
	return sp.read(head, bias) && im.isHead(head)
}

// isHead reports whether the file begins with some bytes.
func (im *image) isHead(head []byte) bool { return sha256.Sum256(head) == im.head }

// plan decides how a place is patched, and remembers it.
func (im *image) plan(sp *space, r *region, site uint64) plan {
	if !im.read {
		im.read = true
		im.frames = functions(sp, r.bias)
	}
	if !im.swept && !im.gogo && !im.covers(site) {
		im.swept = true
		im.findStretches(sp, r)
	}
	const reach = 4096 // bytes on each side that are looked at, for whole functions
	from := max(site-min(site, reach), r.start-r.bias)
	to := min(site+reach, r.end-r.bias)
	text := make([]byte, to-from)
	var p plan
	if sp.read(text, r.bias+from) {
		im.unpatch(text, from)
		p.steps = im.route(padding(text, from, im), site)
		if p.steps == nil {
			if n := im.movable(text, from, site); n > 0 {
				p = plan{steps: []step{{off: site - uint64(n), near: true}}, moved: n}
			}
		}
	}
	for i := range p.steps {
		st := &p.steps[i]
		n := uint64(st.bytes())
		copy(st.was[:n], text[st.off-from:])
		for k := range n {
			im.taken[st.off+k] = true
		}
	}
	im.plans[site] = p
	return p
}

// unpatch makes code what it was without our jumps.
func (im *image) unpatch(text []byte, from uint64) {
	put := func(b []byte, off uint64) {
		for i, c := range b {
			if at := off + uint64(i) - from; at < uint64(len(text)) {
				text[at] = c
			}
		}
	}
	for site, p := range im.plans {
		if len(p.steps) > 0 {
			put(syscallBytes, site)
		}
		for i := range p.steps {
			st := &p.steps[i]
			put(st.was[:st.bytes()], st.off)
		}
	}
}

// movable returns the length of the instruction before a place if a near jump can take its
// place: it is long enough, means the same elsewhere, and no jump of its function leads into
// it. Otherwise 0.
func (im *image) movable(text []byte, from, site uint64) int {
	i := sort.Search(len(im.frames), func(i int) bool { return im.frames[i].furthest > site })
	if i == len(im.frames) || im.frames[i].end != im.frames[i].furthest {
		return 0
	}
	f := im.frames[i]
	if f.start < from || f.end > from+uint64(len(text)) || f.start >= site {
		return 0
	}
	var before x86asm.Inst
	fn, ok := disassemble(text[f.start-from:f.end-from], f.start, func(at uint64, in *x86asm.Inst) {
		if at+uint64(in.Len) == site {
			before = *in
		}
	})
	const jump = 5 // bytes
	if !ok || before.Len < jump || !anywhere(&before) {
		return 0
	}
	for at := site - uint64(before.Len) + 1; at < site; at++ {
		if fn.targets[at] {
			return 0
		}
	}
	return before.Len
}

// anywhere reports whether an instruction does the same at another address, and goes on to the
// next.
func anywhere(in *x86asm.Inst) bool {
	switch in.Op {
	case x86asm.MOV, x86asm.LEA, x86asm.XOR, x86asm.OR, x86asm.AND, x86asm.ADD, x86asm.SUB, x86asm.CMP,
		x86asm.TEST, x86asm.MOVZX, x86asm.MOVSXD:
	default:
		return false
	}
	for _, a := range in.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			return false
		case x86asm.Mem:
			if a.Base == x86asm.RIP {
				return false
			}
		}
	}
	return true
}

// gap is a run of bytes that are never executed.
type gap struct{ start, end uint64 }

// padding finds the gaps in a part of a file's code, which begins at offset from: between
// functions, and within those that can be disassembled.
func padding(text []byte, from uint64, im *image) (gaps []gap) {
	to := from + uint64(len(text))
	if im.gogo {
		// What the C compiler made has frames, what the Go compiler made has none.
		gaps = slices.DeleteFunc(breakpoints(text, from), func(g gap) bool { return im.framed(g) })
	}
	i := sort.Search(len(im.frames), func(i int) bool { return im.frames[i].furthest > from })
	for ; i < len(im.frames) && im.frames[i].start < to; i++ {
		f := im.frames[i]
		if f.start >= from && f.end <= to && f.furthest == f.end {
			gaps = append(gaps, within(text[f.start-from:f.end-from], f.start)...)
		}
		if i+1 == len(im.frames) {
			break
		}
		g := gap{f.furthest, im.frames[i+1].start}
		if g.start < g.end && g.start >= from && g.end <= to &&
			allNops(text[g.start-from:g.end-from]) && leaves(text[:g.start-from]) {
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// framed reports whether a gap has bytes of a function with a frame.
func (im *image) framed(g gap) bool {
	i := sort.Search(len(im.frames), func(i int) bool { return im.frames[i].furthest > g.start })
	return i < len(im.frames) && im.frames[i].start < g.end
}

// within finds the gaps of a function: nothing comes to them from the instruction before, and
// no jump of the function leads there. A function with an instruction that is not known, or
// that ends within one, has none.
func within(text []byte, start uint64) []gap {
	fn, ok := disassemble(text, start, func(uint64, *x86asm.Inst) {})
	if !ok {
		return nil
	}
	return slices.DeleteFunc(fn.gaps, func(g gap) bool {
		for at := g.start; at < g.end; at++ {
			if fn.targets[at] {
				return true
			}
		}
		return false
	})
}

// function is what a disassembly shows.
type function struct {
	gaps    []gap           // of instructions that do nothing, behind one that never goes on
	targets map[uint64]bool // of its direct jumps and calls
}

// disassemble reads a function from its first instruction to its last, and calls see for each, which must not keep
// the instruction.
func disassemble(text []byte, start uint64, see func(at uint64, in *x86asm.Inst)) (fn function, ok bool) {
	fn.targets = map[uint64]bool{}
	left := false      // the instruction before never goes on to the next
	var in x86asm.Inst // one for all: functions have thousands
	for at := 0; at < len(text); {
		if left {
			end := at
			for end < len(text) && nop(text[end:]) > 0 {
				end += nop(text[end:])
			}
			if end > at {
				fn.gaps = append(fn.gaps, gap{start + uint64(at), start + uint64(end)})
				at = end
				continue
			}
		}
		var err error
		if in, err = decode(text[at:]); err != nil {
			return fn, false
		}
		see(start+uint64(at), &in)
		at += in.Len
		for _, a := range in.Args {
			if rel, ok := a.(x86asm.Rel); ok {
				fn.targets[start+uint64(int64(at)+int64(rel))] = true
			}
		}
		switch in.Op {
		case x86asm.RET, x86asm.JMP, x86asm.UD2, x86asm.HLT:
			left = true
		default:
			left = false
		}
	}
	return fn, true
}

// decode reads an instruction.
func decode(b []byte) (x86asm.Inst, error) {
	if endbr := []byte{0xf3, 0x0f, 0x1e, 0xfa}; bytes.HasPrefix(b, endbr) {
		return x86asm.Inst{Op: x86asm.NOP, Len: len(endbr)}, nil
	}
	in, err := x86asm.Decode(b, 64)
	if err == nil && in.Op == 0 { // a prefix, of an instruction that is not known or cut short
		err = x86asm.ErrUnrecognized
	}
	return in, err
}

// breakpoints finds the gaps of a program of the Go linker, which fills with breakpoints.
func breakpoints(text []byte, from uint64) (gaps []gap) {
	const align = 16
	for i := 1; i < len(text); i++ {
		if text[i] != 0xcc {
			continue
		}
		k := i
		for k < len(text) && text[k] == 0xcc {
			k++
		}
		if (from+uint64(k))%align == 0 && leaves(text[:i]) {
			gaps = append(gaps, gap{from + uint64(i), from + uint64(k)})
		}
		i = k
	}
	return gaps
}

// leaves reports whether code ends with an instruction that never goes on to the next.
func leaves(b []byte) bool {
	n := len(b)
	switch {
	case n < 5:
		return false
	case b[n-1] == 0xc3, b[n-1] == 0xf4, b[n-2] == 0xeb, b[n-5] == 0xe9: // ret, hlt, jmp
		return true
	case b[n-2] == 0x0f && b[n-1] == 0x0b, b[n-2] == 0xff && b[n-1]&0xf8 == 0xe0: // ud2, jmp *%reg
		return true
	case b[n-5] == 0xe8: // call of a function that does not return
		return true
	case n >= 6 && b[n-6] == 0xff && b[n-5] == 0x25: // jmp *address
		return true
	}
	return false
}

// allNops reports whether bytes are instructions that do nothing, as compilers fill with.
func allNops(b []byte) bool {
	for len(b) > 0 {
		n := nop(b)
		if n == 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// nop returns the length of an instruction that does nothing, 0 if it is another.
func nop(b []byte) int {
	if b[0] == 0xcc {
		return 1
	}
	i := 0
	for i < len(b) && (b[i] == 0x66 || b[i] == 0x2e || b[i] == 0x64) {
		i++
	}
	if i < len(b) && b[i] == 0x90 {
		return i + 1
	}
	if i+2 >= len(b) || b[i] != 0x0f || b[i+1] != 0x1f {
		return 0
	}
	size := map[byte]int{0x00: 3, 0x40: 4, 0x44: 5, 0x80: 7, 0x84: 8}[b[i+2]]
	if size == 0 || i+size > len(b) {
		return 0
	}
	return i + size
}

// route finds the shortest way from a place over padding to room for a near jump.
func (im *image) route(gaps []gap, site uint64) []step {
	type way struct {
		from  uint64 // where the jump ends that leads on
		steps []step
	}
	const most = 5
	queue := []way{{from: site + 2}}
	seen := map[uint64]bool{}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		for _, g := range gaps {
			if at, ok := im.room(g, w.from, 5, seen); ok {
				return append(slices.Clone(w.steps), step{off: at, near: true})
			}
		}
		if len(w.steps) == most {
			continue
		}
		for _, g := range gaps {
			if at, ok := im.room(g, w.from, 2, seen); ok {
				seen[at] = true
				queue = append(queue, way{at + 2, append(slices.Clone(w.steps), step{off: at})})
			}
		}
	}
	return nil
}

// room finds n free bytes of a gap that a short jump reaches which ends at from.
func (im *image) room(g gap, from uint64, n uint64, seen map[uint64]bool) (uint64, bool) {
next:
	for at := g.start; at+n <= g.end; at++ {
		if d := int64(at) - int64(from); d < -128 || d > 127 || seen[at] {
			continue
		}
		for k := range n {
			if im.taken[at+k] || seen[at+k] || k > 0 && seen[at+k-1] {
				continue next
			}
		}
		return at, true
	}
	return 0, false
}
