// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
)

// flat is memory at an address.
type flat struct {
	at uint64
	b  []byte
}

func (f flat) Read(addr uint64, b []byte) bool {
	if addr < f.at || addr-f.at > uint64(len(f.b)) || uint64(len(b)) > uint64(len(f.b))-(addr-f.at) {
		return false
	}
	copy(b, f.b[addr-f.at:])
	return true
}

func TestParseMaps(t *testing.T) {
	const text = `55d0c8a00000-55d0c8a21000 r-xp 00002000 fe:00 123456                     /usr/bin/a b
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
7f1000000000-7f1000001000 r--p 00000000 fe:00 7      /x\012y (deleted)
not a mapping
5000-4000 r-xp 00000000 00:00 0
`
	want := []Mapping{
		{Start: 0x55d0c8a00000, End: 0x55d0c8a21000, Off: 0x2000, Ino: 123456, Path: "/usr/bin/a b", Exec: true},
		{Start: 0x7f0000000000, End: 0x7f0000001000},
		{Start: 0x7ffc00000000, End: 0x7ffc00002000, Path: "[vdso]", Exec: true},
		{Start: 0x7f1000000000, End: 0x7f1000001000, Ino: 7, Path: "/x\ny (deleted)"},
	}
	if diff := cmp.Diff(want, ParseMaps(strings.NewReader(text))); diff != "" {
		t.Errorf("want - got +:\n%s", diff)
	}
}

// ehFrame is a section with one CIE and one FDE for addresses from 0x1000 to 0x1100, at address 0x2000.
func ehFrame(program ...byte) []byte {
	entry := func(body []byte) []byte {
		for len(body)%8 != 4 {
			body = append(body, cfaNop)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	b := entry([]byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, cfaDefCFA, 7, 8, 0x80 | 16, 1})
	fde := binary.LittleEndian.AppendUint32(nil, uint32(len(b)+4))
	from := 0x2000 + len(b) + 8
	fde = binary.LittleEndian.AppendUint32(fde, uint32(0x1000-from))
	fde = binary.LittleEndian.AppendUint32(fde, 0x100)
	fde = append(append(fde, 0), program...)
	return append(b, entry(fde)...)
}

func TestRow(t *testing.T) {
	// push rbp at 0x1000, mov rbp,rsp at 0x1001, leave at 0x1010
	program := []byte{0x41, cfaDefCFAOffset, 16, 0x86, 2, 0x43, cfaDefCFARegister, 6, 0x4c, cfaDefCFA, 7, 8, 0xc6}
	frames := parseFrames(ehFrame(program...), 0x2000, false)
	if len(frames.entries) != 1 || frames.find(0xfff) != nil || frames.find(0x1100) != nil {
		t.Fatalf("the entries are %+v, want one from 0x1000 to 0x1100", frames.entries)
	}
	for _, c := range []struct {
		addr    uint64
		reg     int
		off     int64
		savedFP bool
	}{
		{0x1000, 7, 8, false}, {0x1001, 7, 16, true}, {0x1004, 6, 16, true}, {0x100f, 6, 16, true},
		{0x1010, 7, 8, false},
	} {
		r, err := frames.row(frames.find(c.addr), c.addr)
		if err != nil {
			t.Fatal(err)
		}
		saved := r.rules[6].kind == ruleOffset && r.rules[6].n == -16
		if r.cfaReg != c.reg || r.cfaOff != c.off || saved != c.savedFP {
			t.Errorf("at %#x: CFA is r%d+%d, r6 is saved: %v; want r%d+%d, %v", c.addr, r.cfaReg, r.cfaOff,
				saved, c.reg, c.off, c.savedFP)
		}
	}
}

func TestEvaluate(t *testing.T) {
	var regs Registers
	regs.PC = 0x401016
	regs.Set(7, 0x8000)
	mem := flat{0x8000, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0}}
	for _, c := range []struct {
		name string
		expr []byte
		want uint64
		ok   bool
	}{
		// as linkers write it for the entries of the PLT
		{"PLT", []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x8008, true},
		{"load", []byte{0x77, 8, opDeref}, 9, true},
		{"no memory", []byte{0x77, 16, opDeref}, 0, false},
		{"empty stack", []byte{opPlus}, 0, false},
		{"unknown register", []byte{0x76, 0}, 0, false},
		{"unknown operation", []byte{0xe0}, 0, false},
		{"ends early", []byte{opConst1 + 6, 1}, 0, false},
	} {
		got, ok := evaluate(c.expr, &regs, AMD64.ra, mem)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %#x, %v; want %#x, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestWalkUnmapped ends a stack where no file is mapped, with the address.
func TestWalkUnmapped(t *testing.T) {
	s := NewSpace([]Mapping{{Start: 0x1000, End: 0x2000, Exec: true}}, "", nil, NewModules())
	for _, pc := range []uint64{0x1800, 0x9000} {
		regs := Registers{PC: pc}
		regs.Set(7, 0x8000)
		frames, end := s.Walk(AMD64, &regs, flat{}, 0)
		if diff := cmp.Diff([]event.Frame{{Offset: pc}}, frames); diff != "" || end != event.StackUnknown {
			t.Errorf("at %#x: ends with %s, frames want - got +:\n%s", pc, end, diff)
		}
	}
}

// TestSymbolizeOther names nothing of a file whose build-id is another one.
func TestSymbolizeOther(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := event.Frame{Module: self, BuildID: "00ff00ff", Offset: 0x2000}
	s := Symbolizer{Here: true}
	if s.Symbolize(&f); f.Function != "" || f.File != "" {
		t.Errorf("%+v is named, want no names: the file has another build-id", f)
	}
	f = event.Frame{Module: filepath.Join(t.TempDir(), "missing"), Offset: 0x2000}
	if s.Symbolize(&f); f.Function != "" {
		t.Errorf("%+v is named, want no names: there is no file", f)
	}
}

// FuzzUnwind takes a file, a stack and registers for what they may be.
func FuzzUnwind(f *testing.F) {
	if self, err := os.ReadFile("/bin/true"); err == nil && len(self) < 64<<10 {
		f.Add(self, bytes.Repeat([]byte{0x10, 0x10, 0, 0, 0, 0, 0, 0}, 64), uint64(0x10010))
	}
	f.Add(ehFrame(0x41, cfaDefCFAOffset, 16, 0x86, 2), make([]byte, 256), uint64(0x1001))
	f.Fuzz(func(t *testing.T, file, stack []byte, pc uint64) {
		const stackAt = 0x7fff0000
		for _, debug := range []bool{false, true} {
			frames := parseFrames(file, 0x2000, debug)
			for i := range frames.entries[:min(len(frames.entries), 100)] {
				e := &frames.entries[i]
				if r, err := frames.row(e, e.start+pc%(e.end-e.start)); err == nil && r.cfaExpr != nil {
					regs := Registers{PC: pc}
					regs.Set(7, stackAt)
					evaluate(r.cfaExpr, &regs, AMD64.ra, flat{stackAt, stack})
				}
			}
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		m := Mapping{Start: 0x10000, End: 0x10000 + uint64(len(file)) + 1, Path: vdsoPath, Exec: true}
		for _, arch := range []*Arch{AMD64, ARM64} {
			regs := Registers{PC: m.Start + pc%(m.End-m.Start)}
			for n := range numRegisters {
				regs.Set(n, stackAt)
			}
			s := NewSpace([]Mapping{m}, "", flat{m.Start, append(bytes.Clone(file), 0)}, NewModules())
			frames, _ := s.Walk(arch, &regs, flat{stackAt, stack}, 0)
			if len(frames) == 0 || len(frames) > MaxFrames {
				t.Fatalf("%d frames, want 1 to %d", len(frames), MaxFrames)
			}
			sym := Symbolizer{Here: true}
			for i := range frames {
				frames[i].Module, frames[i].BuildID = path, ""
				sym.Symbolize(&frames[i])
			}
		}
	})
}

// TestSourceNames: functions have the names that they have in the source.
func TestSourceNames(t *testing.T) {
	t.Parallel()
	deep := "_Z" + strings.Repeat("N1a", 1300) + "1bE"
	for name, want := range map[string]string{
		"main":                                   "main",
		"_ZN2db3Log6commitEi":                    "db::Log::commit",
		"_ZN2db3LogC1ERKSs":                      "db::Log::Log",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":      "std::vector<int, std::allocator<int> >::push_back",
		"_ZN12_GLOBAL__N_14workEv":               "(anonymous namespace)::work",
		"_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
		"_RNvCs1234_7mycrate3foo":                "mycrate::foo",
		"_Znot mangled":                          "_Znot mangled",
		"_ZN":                                    "_ZN",
		"runtime.main":                           "runtime.main",
		deep:                                     deep,
	} {
		s := symbol{name: name}
		if got := s.source(); got != want {
			t.Errorf("%.60s is %.100q; want %.100q", name, got, want)
		}
	}
}
