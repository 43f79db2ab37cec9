// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// listing is what objdump shows of a file's code. Addresses are offsets of the file.
type listing struct {
	addrs   []uint64 // of instructions, in order
	names   []string // what they are, without operands
	targets map[uint64]bool
}

// list disassembles the executable segment p of a file. Without a system call the listing is empty.
func list(t *testing.T, path string, p *elf.Prog) *listing {
	t.Helper()
	l := &listing{targets: map[uint64]bool{}}
	out, err := exec.CommandContext(t.Context(), "objdump", "-d", "-w", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatalf("objdump of %s: %v", path, err)
	}
	if !bytes.Contains(out, []byte(":\tsyscall")) {
		return l
	}
	known := map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		addr, text, ok := strings.Cut(strings.TrimLeft(sc.Text(), " "), ":\t")
		if !ok {
			continue
		}
		at, err := strconv.ParseUint(addr, 16, 64)
		if err != nil {
			continue
		}
		name, operand, _ := strings.Cut(text, "%")
		fields := strings.Fields(name)
		if len(fields) > 1 && (strings.Contains(fields[len(fields)-2], "call") || fields[len(fields)-2][0] == 'j' ||
			strings.HasPrefix(fields[len(fields)-2], "loop")) {
			fields = fields[:len(fields)-1]
		}
		if f := strings.Fields(text); len(f) > 1 && operand == "" {
			for _, x := range f[1:] {
				if to, err := strconv.ParseUint(strings.TrimPrefix(x, "0x"), 16, 64); err == nil && branches(text) {
					l.targets[to-p.Vaddr+p.Off] = true
				}
			}
		}
		short := strings.Join(fields, " ")
		if text == "xchg   %ax,%ax" {
			short = "nop"
		}
		if known[short] == "" {
			known[short] = strings.Clone(short)
		}
		l.addrs, l.names = append(l.addrs, at-p.Vaddr+p.Off), append(l.names, known[short])
	}
	return l
}

// branches reports whether an instruction of objdump's text goes elsewhere.
func branches(text string) bool {
	for _, word := range strings.Fields(text) {
		if word[0] == 'j' || strings.HasPrefix(word, "call") || strings.HasPrefix(word, "loop") || word == "xbegin" {
			return true
		}
	}
	return false
}

// filler reports whether an instruction does nothing.
func filler(name string) bool {
	f := strings.Fields(name)
	if len(f) == 0 {
		return false
	}
	for i, word := range f {
		if strings.HasPrefix(word, "nop") || word == "int3" {
			return true
		}
		if word != "data16" && word != "cs" && word != "fs" || i == len(f)-1 {
			return false
		}
	}
	return false
}

// ends reports whether an instruction never goes on to the next, or may not: a call.
func ends(name string) bool {
	for _, word := range strings.Fields(name) {
		switch word {
		case "ret", "jmp", "ud2", "hlt", "call", "int3":
			return true
		}
	}
	return false
}

// wrong says what is wrong about a plan's step, "" if nothing is.
func (l *listing) wrong(p plan, st step, site uint64) string {
	n := uint64(2)
	if st.near {
		n = 5
	}
	i, whole := slices.BinarySearch(l.addrs, st.off)
	if p.moved > 0 {
		switch {
		case !whole || i+1 >= len(l.addrs) || l.addrs[i+1] != site || site-st.off != uint64(p.moved) || p.moved < 5:
			return "it does not replace one instruction before the place"
		case ends(l.names[i]) || branches(l.names[i]):
			return "it replaces " + l.names[i]
		}
		for at := st.off + 1; at < site; at++ {
			if l.targets[at] {
				return "there is a jump into what it replaces"
			}
		}
		return ""
	}
	if !whole {
		i--
	}
	if i < 0 {
		return "it is outside the code"
	}
	for k := i; k < len(l.addrs) && l.addrs[k] < st.off+n; k++ {
		if !filler(l.names[k]) {
			return "it replaces " + l.names[k]
		}
	}
	for at := st.off; at < st.off+n; at++ {
		if l.targets[at] {
			return "there is a jump to what it replaces"
		}
	}
	for ; i >= 0 && filler(l.names[i]); i-- {
		if l.targets[l.addrs[i]] {
			return "there is a jump to the padding before"
		}
		if l.names[i] == "int3" {
			return ""
		}
	}
	if i >= 0 && !ends(l.names[i]) {
		return "what comes before goes on to it: " + l.names[i]
	}
	return ""
}

// numbered reports whether the code before a place puts a constant into %eax that may be the number
// of a system call. Most pairs of bytes that look like a system call are parts of other instructions.
func numbered(code []byte, at int) bool {
	before := code[max(at-48, 0):at]
	for i := 0; i+5 <= len(before); i++ {
		if before[i] == 0xb8 && before[i+2] < 2 && before[i+3] == 0 && before[i+4] == 0 {
			return true
		}
	}
	return false
}

// checkImage plans for all system calls of a file, and compares with objdump. It returns the
// number of system calls and of those with a plan.
func checkImage(t *testing.T, path string) (all, planned int) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	mem, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	sp := &space{mem: mem}
	head := make([]byte, headBytes)
	sp.read(head, 0)
	im := &image{plans: map[uint64]plan{}, taken: map[uint64]bool{}, head: sha256.Sum256(head)}
	im.gogo = bytes.Contains(head, []byte("Go\x00\x00"))
	var code *elf.Prog
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			code = p
		}
	}
	if code == nil || f.Machine != elf.EM_X86_64 {
		return 0, 0
	}
	text := make([]byte, code.Filesz)
	if _, err := code.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	r := region{start: code.Off, end: code.Off + code.Filesz, name: path}
	var places []uint64
	for i := 0; ; i += 2 {
		k := bytes.Index(text[i:], syscallBytes)
		if k < 0 {
			break
		}
		i += k
		places = append(places, code.Off+uint64(i))
	}
	if !slices.ContainsFunc(places, func(site uint64) bool { return numbered(text, int(site-code.Off)) }) {
		return 0, 0 // to disassemble them all takes minutes
	}
	l := list(t, path, code)
	used := map[uint64]uint64{}
	for _, site := range places {
		if i, ok := slices.BinarySearch(l.addrs, site); !ok || l.names[i] != "syscall" {
			continue // bytes that look like one: no thread stops there
		}
		all++
		p := im.plan(sp, &r, site)
		if len(p.steps) == 0 {
			continue
		}
		planned++
		for _, st := range p.steps {
			if why := l.wrong(p, st, site); why != "" {
				t.Errorf("%s: step %+v of %#x: %s", path, st, site, why)
			}
			n := uint64(2)
			if st.near {
				n = 5
			}
			for at := st.off; at < st.off+n; at++ {
				if other, ok := used[at]; ok {
					t.Errorf("%s: byte %#x is of the ways of %#x and %#x", path, at, other, site)
				}
				used[at] = site
			}
		}
	}
	return all, planned
}

// TestPlans compares the plans for real files with another disassembler.
func TestPlans(t *testing.T) {
	testenv.Short(t, "it disassembles large files")
	if _, err := exec.LookPath("objdump"); err != nil {
		testenv.Lacks(t, "objdump (binutils) is not installed")
	}
	const libraries = "/usr/lib/x86_64-linux-gnu"
	for _, path := range []string{libraries + "/libc.so.6", "/lib64/ld-linux-x86-64.so.2"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("not the files of Debian for amd64: %v", err)
		}
		all, planned := checkImage(t, path)
		if planned*10 < all*9 || all == 0 {
			t.Errorf("%s: plans for %d of %d system calls, want nine of ten", path, planned, all)
		}
	}
	// Files without unwinding information, and without symbols.
	for _, path := range []string{
		"/usr/lib/x86_64-linux-musl/libc.so", builtProgram(t, "musl-gcc", "connections", "-static", "-s"),
	} {
		if all, planned := checkImage(t, path); planned*10 < all*9 || all < 10 {
			t.Errorf("%s: plans for %d of %d system calls, want nine of ten", path, planned, all)
		}
	}
	if exe, err := exec.LookPath("gofmt"); err == nil { // a Go program
		if all, planned := checkImage(t, exe); planned*10 < all*9 || all == 0 {
			t.Errorf("%s: plans for %d of %d system calls, want nine of ten", exe, planned, all)
		}
	}
	if testing.Short() {
		t.Log("-short: other libraries are not looked at")
		return
	}
	const most = 4 << 20 // bytes: objdump takes long for more
	paths, _ := filepath.Glob(libraries + "/*.so*")
	seen, files, total, ways := map[string]bool{}, 0, 0, 0
	for _, path := range paths {
		path, err := filepath.EvalSymlinks(path)
		if err != nil || seen[path] {
			continue
		}
		seen[path] = true
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		if st.Size() > most {
			t.Logf("%s has %d bytes: left out", path, st.Size())
			continue
		}
		if all, planned := checkImage(t, path); all > 0 {
			files, total, ways = files+1, total+all, ways+planned
		}
	}
	t.Logf("%d libraries with %d system calls, %d with a way", files, total, ways)
}

func TestNop(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want int
	}{
		{"int3", []byte{0xcc}, 1},
		{"nop", []byte{0x90}, 1},
		{"xchg %ax,%ax", []byte{0x66, 0x90}, 2},
		{"nopl (%rax)", []byte{0x0f, 0x1f, 0x00}, 3},
		{"nopl 0(%rax)", []byte{0x0f, 0x1f, 0x40, 0}, 4},
		{"nopl 0(%rax,%rax)", []byte{0x0f, 0x1f, 0x44, 0, 0}, 5},
		{"nopw 0(%rax,%rax)", []byte{0x66, 0x0f, 0x1f, 0x44, 0, 0}, 6},
		{"nopl 0(%rax), long", []byte{0x0f, 0x1f, 0x80, 0, 0, 0, 0}, 7},
		{"nopl 0(%rax,%rax), long", []byte{0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 8},
		{"cs nopw", []byte{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10},
		{"a nop cut short", []byte{0x0f, 0x1f, 0x84, 0, 0}, 0},
		{"prefixes alone", []byte{0x66, 0x66, 0x2e}, 0},
		{"two bytes of a nop", []byte{0x0f, 0x1f}, 0},
		{"pause", []byte{0xf3, 0x90}, 0},
		{"ret", []byte{0xc3}, 0},
		{"syscall", []byte{0x0f, 0x05, 0x90}, 0},
		{"zeros", []byte{0, 0, 0, 0}, 0},
		{"xchg %r8,%rax", []byte{0x49, 0x90}, 0},
	} {
		if got := nop(c.b); got != c.want {
			t.Errorf("%s: %d bytes do nothing, want %d", c.name, got, c.want)
		}
	}
	if !allNops([]byte{0x66, 0x90, 0xcc, 0x0f, 0x1f, 0x00}) {
		t.Error("several instructions that do nothing are not taken for padding")
	}
	if allNops([]byte{0x66, 0x90, 0xc3, 0x90}) || allNops([]byte{0x90, 0x0f, 0x1f}) {
		t.Error("other instructions are taken for padding")
	}
}

func TestLeaves(t *testing.T) {
	before := []byte{0x48, 0x89, 0xc3, 0x31, 0xc0} // mov %rax,%rbx; xor %eax,%eax
	for _, c := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"ret", []byte{0xc3}, true},
		{"hlt", []byte{0xf4}, true},
		{"ud2", []byte{0x0f, 0x0b}, true},
		{"short jump", []byte{0xeb, 0x10}, true},
		{"near jump", []byte{0xe9, 1, 2, 3, 4}, true},
		{"jump to a register", []byte{0xff, 0xe0}, true},
		{"jump by memory", []byte{0xff, 0x25, 1, 2, 3, 4}, true},
		{"call at the end", []byte{0xe8, 1, 2, 3, 4}, true},
		{"conditional jump", []byte{0x74, 0x10}, false},
		{"near conditional jump", []byte{0x0f, 0x84, 1, 2, 3, 4}, false},
		{"call of a register", []byte{0xff, 0xd0}, false},
		{"syscall", []byte{0x0f, 0x05}, false},
		{"mov", []byte{0x48, 0x89, 0xd8}, false},
	} {
		if got := leaves(append(slices.Clone(before), c.b...)); got != c.want {
			t.Errorf("after %s the next instruction is never reached: %v, want %v", c.name, got, c.want)
		}
	}
	if leaves(nil) || leaves([]byte{0xc3}) {
		t.Error("code without a beginning is trusted")
	}
}

func TestWithin(t *testing.T) {
	nops := []byte{0x0f, 0x1f, 0x44, 0, 0}
	code := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for _, c := range []struct {
		name string
		b    []byte
		want []gap
	}{
		{"behind a jump", code([]byte{0xeb, 5}, nops, []byte{0xc3}), []gap{{0x1002, 0x1007}}},
		{"behind a return", code([]byte{0xc3}, nops, []byte{0xc3}), []gap{{0x1001, 0x1006}}},
		{"reached from before", code([]byte{0x31, 0xc0}, nops, []byte{0xc3}), nil},
		{"reached from a conditional jump", code([]byte{0x74, 5}, nops, []byte{0xc3}), nil},
		{"reached from a call", code([]byte{0xe8, 0, 0, 0, 0}, nops, []byte{0xc3}), nil},
		{"a jump to its start", code([]byte{0x74, 1, 0xc3}, nops, []byte{0xc3}), nil},
		{"a jump into its midst", code([]byte{0x74, 4, 0xc3}, nops, []byte{0xc3}), nil},
		{"a jump back into it", code([]byte{0xc3}, nops, []byte{0x74, 0xfc, 0xc3}), nil},
		{"a jump behind it", code([]byte{0x74, 6, 0xc3}, nops, []byte{0xc3}), []gap{{0x1003, 0x1008}}},
		{"bytes that are no instruction", code([]byte{0xeb, 5}, nops, []byte{0x06, 0xc3}), nil},
		{"an instruction cut short", code([]byte{0xeb, 5}, nops, []byte{0x48, 0xb8, 1}), nil},
		{"a nop within an immediate", code([]byte{0x48, 0xb8, 0xeb, 5}, nops, []byte{0, 0xc3}), nil},
		{"nothing", nil, nil},
	} {
		if got := within(c.b, 0x1000); !slices.Equal(got, c.want) {
			t.Errorf("%s: gaps %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestMovable(t *testing.T) {
	sys := []byte{0x0f, 0x05}
	for _, c := range []struct {
		name   string
		before []byte // to the place
		after  []byte
		want   int
	}{
		{"mov $1,%eax", []byte{0x31, 0xff, 0xb8, 1, 0, 0, 0}, []byte{0xc3}, 5},
		{"lea 8(%rsp),%rsi, long", []byte{0x48, 0x8d, 0xb4, 0x24, 8, 0, 0, 0}, []byte{0xc3}, 8},
		{"short instruction", []byte{0x31, 0xff, 0x31, 0xc0}, []byte{0xc3}, 0},
		{"lea 8(%rip),%rsi", []byte{0x48, 0x8d, 0x35, 8, 0, 0, 0}, []byte{0xc3}, 0},
		{"mov 8(%rip),%eax", []byte{0x8b, 0x05, 8, 0, 0, 0}, []byte{0xc3}, 0},
		{"call", []byte{0xe8, 0, 0, 0, 0}, []byte{0xc3}, 0},
		{"jump", []byte{0xe9, 0, 0, 0, 0}, []byte{0xc3}, 0},
		{"jump back to it", []byte{0xb8, 1, 0, 0, 0}, []byte{0x75, 0xf7, 0xc3}, 5},
		{"jump back into it", []byte{0xb8, 1, 0, 0, 0}, []byte{0x75, 0xf8, 0xc3}, 0},
		{"jump to the place", []byte{0x75, 5, 0xb8, 1, 0, 0, 0}, []byte{0xc3}, 5},
		{"function with unknown bytes", []byte{0xb8, 1, 0, 0, 0}, []byte{0x06, 0xc3}, 0},
		{"the place is no instruction", []byte{0xb8, 1, 0}, []byte{0xc3}, 0},
	} {
		text := slices.Concat(c.before, sys, c.after)
		const start = 0x1000
		im := &image{frames: []frame{{start, start + uint64(len(text)), start + uint64(len(text))}}}
		if got := im.movable(text, start, start+uint64(len(c.before))); got != c.want {
			t.Errorf("%s: %d bytes can be moved, want %d", c.name, got, c.want)
		}
	}
}

// TestRoute checks that places do not share bytes, and that jumps reach.
func TestRoute(t *testing.T) {
	im := &image{taken: map[uint64]bool{}}
	if got := im.route([]gap{{0x1100, 0x1110}}, 0x1000); got != nil {
		t.Errorf("steps %+v over more than a short jump's reach", got)
	}
	if got := im.route([]gap{{0x1010, 0x1014}}, 0x1000); got != nil {
		t.Errorf("steps %+v into four bytes", got)
	}
	got := im.route([]gap{{0x1060, 0x1062}, {0x10d0, 0x10d8}}, 0x1000)
	if want := []step{{off: 0x1060}, {off: 0x10d0, near: true}}; !slices.Equal(got, want) {
		t.Errorf("steps %+v, want %+v", got, want)
	}
	im.taken[0x1061] = true
	if got := im.route([]gap{{0x1060, 0x1062}, {0x10d0, 0x10d8}}, 0x1000); got != nil {
		t.Errorf("steps %+v over bytes that another place has", got)
	}
}

// FuzzPadding looks for code that makes the reading of code fail, and for gaps that are not
// of padding.
func FuzzPadding(f *testing.F) {
	f.Add([]byte{0xeb, 5, 0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x05, 0xc3}, uint8(7), uint8(0), false)
	f.Add([]byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0xc3}, uint8(11), uint8(6), true)
	f.Add([]byte{0x66, 0x66, 0x2e, 0x0f, 0x1f}, uint8(1), uint8(3), false)
	f.Fuzz(func(t *testing.T, text []byte, site, split uint8, gogo bool) {
		const from = 0x1000
		to, mid := from+uint64(len(text)), from+min(uint64(split), uint64(len(text)))
		im := &image{taken: map[uint64]bool{}, gogo: gogo}
		if !gogo {
			im.frames = []frame{{from, mid, mid}, {mid, to, to}}
		}
		gaps := padding(text, from, im)
		for _, g := range gaps {
			if g.start < from || g.end > to || g.start >= g.end || !allNops(text[g.start-from:g.end-from]) {
				t.Errorf("gap %+v of % x is not of padding", g, text)
			}
		}
		place := from + uint64(site)
		if place+2 > to {
			return
		}
		for _, st := range im.route(gaps, place) {
			if !slices.ContainsFunc(gaps, func(g gap) bool { return st.off >= g.start && st.off+2 <= g.end }) {
				t.Errorf("step %+v is not in a gap of %+v", st, gaps)
			}
		}
		if n := im.movable(text, from, place); n != 0 && (n < 5 || uint64(n) > place-from) {
			t.Errorf("%d bytes before %#x of % x can be moved", n, place, text)
		}
	})
}
