// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bytes"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/ianlancetaylor/demangle"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// Limits of what is read of a file for its names.
const (
	maxSymbols    = 1 << 22
	maxTextBytes  = 1 << 30 // of debug information, of all sections
	maxMiniBytes  = 64 << 20
	maxSymbolized = 64 // files whose names are kept
	maxName       = 4096
)

// Symbolizer finds the function and the line of frames. It is not safe for concurrent use.
type Symbolizer struct {
	// Here says that the files are those that were recorded. Otherwise one is used only if its build-id is the
	// frame's.
	Here bool
	// Debug are directories of separate debug information, with .build-id/ in them. Nil: /usr/lib/debug.
	Debug []string

	files map[symbolKey]*symbols
}

type symbolKey struct{ path, id string }

// symbols are the names of a file.
type symbols struct {
	loads []load
	funcs []symbol // by address
	lines *lineTable
	pcln  *gosym.Table
}

// symbol is a function.
type symbol struct {
	addr, size uint64
	name       string
	weight     int // of names of one address, the one that has the least is used
	plain      bool
}

// source returns the name as the source has it: names of C++, Rust and D are demangled, without the types of
// parameters. Names that are hostile, or too long, stay as they are.
func (s *symbol) source() string {
	const mostBits = 12 // of a name of this many bytes, as a power of 2
	if !s.plain {
		s.plain = true
		guard(func() {
			if name, err := demangle.ToString(s.name, demangle.NoParams, demangle.MaxLength(mostBits)); err == nil {
				s.name = name
			}
		})
	}
	return s.name
}

// Symbolize sets the names of a frame, as far as they are known.
func (s *Symbolizer) Symbolize(f *event.Frame) {
	if f.Module == "" || f.BuildID == "" && !s.Here {
		return
	}
	key := symbolKey{f.Module, f.BuildID}
	syms, ok := s.files[key]
	if !ok {
		if len(s.files) >= maxSymbolized || s.files == nil {
			s.files = map[symbolKey]*symbols{}
		}
		syms = s.read(key)
		s.files[key] = syms
	}
	if syms != nil {
		syms.apply(f)
	}
}

// Stack sets the names of all frames of a stack.
func (s *Symbolizer) Stack(st *event.Stack) {
	for i := range st.Frames {
		s.Symbolize(&st.Frames[i])
	}
	if n := len(st.Frames); n > 0 && st.End == event.StackBroken {
		switch strings.TrimSuffix(st.Frames[n-1].Function, ".abi0") {
		case "runtime.goexit", "runtime.mstart": // where threads and goroutines begin, which only the name tells
			st.End = event.StackComplete
		}
	}
}

// apply names a frame. Nothing is known of it if the file's debug information is such that its reader fails.
func (s *symbols) apply(f *event.Frame) {
	off := f.Offset
	if !f.Exact && off > 0 {
		off--
	}
	m := Module{loads: s.loads}
	addr, ok := m.address(off)
	if !ok {
		return
	}
	behind := f.Offset - off
	if i := sort.Search(len(s.funcs), func(i int) bool { return s.funcs[i].addr > addr }); i > 0 {
		if fn := &s.funcs[i-1]; addr-fn.addr < fn.size {
			f.Function, f.Delta = fn.source(), addr-fn.addr+behind
		}
	}
	s.line(f, addr)
	if s.pcln == nil || f.Function != "" && f.File != "" {
		return
	}
	guard(func() {
		file, line, fn := s.pcln.PCToLine(addr)
		if fn == nil {
			return
		}
		if f.Function == "" {
			f.Function, f.Delta = fn.Name, addr-fn.Entry+behind
		}
		if f.File == "" {
			f.File, f.Line = file, line
		}
	})
}

// guard calls what reads a stranger's file with the standard library's readers, which have failed on some.
func guard(f func()) {
	defer func() { _ = recover() }()
	f()
}

func (s *symbols) line(f *event.Frame, addr uint64) {
	if s.lines == nil {
		return
	}
	guard(func() { f.File, f.Line = s.lines.find(addr) })
}

// read reads the names of a file and of its debug information; nil if the file is not the one.
func (s *Symbolizer) read(key symbolKey) *symbols {
	var r io.ReaderAt
	if key.path == vdsoPath {
		b := ownVDSO()
		if b == nil {
			return nil
		}
		r = bytes.NewReader(b)
	} else {
		f, err := os.OpenFile(key.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			defer f.Close()
			r = f
		}
	}
	syms := &symbols{}
	found := false
	if r != nil {
		found = syms.add(r, key.id, true)
	}
	if key.id != "" && len(syms.loads) > 0 {
		s.separate(syms, key.id)
	}
	if !found {
		return nil
	}
	syms.sort()
	return syms
}

// separate adds debug information that is kept in files of its own.
func (s *Symbolizer) separate(syms *symbols, id string) {
	dirs := s.Debug
	if dirs == nil {
		dirs = []string{"/usr/lib/debug"}
	}
	if len(id) < 4 {
		return
	}
	for _, dir := range dirs {
		f, err := os.Open(filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
		if err != nil {
			continue
		}
		syms.add(f, id, false)
		f.Close()
	}
}

// add adds the names that an ELF file has. program says that it is the file itself, whose parts are mapped.
func (s *symbols) add(r io.ReaderAt, id string, program bool) (found bool) {
	guard(func() {
		f, err := elf.NewFile(r)
		if err != nil || f.Class != elf.ELFCLASS64 || buildID(f) != id && id != "" {
			return
		}
		found = true
		if program {
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && len(s.loads) < 64 {
					s.loads = append(s.loads, load{off: p.Off, size: p.Filesz, addr: p.Vaddr})
				}
			}
			s.mini(f)
			s.goTable(f)
		}
		s.functions(f)
		if s.lines == nil && debugBytes(f) <= maxTextBytes {
			s.lines = readLines(f)
		}
	})
	return found
}

// readLines opens the debug information of a file, nil if it has none.
func readLines(f *elf.File) *lineTable {
	sec := f.Section(".debug_info")
	if sec == nil || sec.Type == elf.SHT_NOBITS {
		return nil
	}
	info, err := sec.Data()
	if err != nil {
		return nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil
	}
	return &lineTable{data: d, info: info}
}

func debugBytes(f *elf.File) (n uint64) {
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
			n += max(s.Size, s.FileSize)
		}
	}
	return n
}

// functions adds the functions of the symbol tables.
func (s *symbols) functions(f *elf.File) {
	for _, table := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		list, err := table()
		if err != nil {
			continue
		}
		for i := range list {
			y := &list[i]
			t := elf.ST_TYPE(y.Info)
			if y.Section == elf.SHN_UNDEF || y.Name == "" || len(y.Name) > maxName || len(s.funcs) >= maxSymbols ||
				int(y.Section) >= len(f.Sections) || f.Sections[y.Section].Flags&elf.SHF_EXECINSTR == 0 ||
				t != elf.STT_FUNC && t != elf.STT_GNU_IFUNC && t != elf.STT_NOTYPE {
				continue
			}
			weight := 4 * (len(y.Name) - len(strings.TrimLeft(y.Name, "_")))
			if elf.ST_BIND(y.Info) == elf.STB_LOCAL {
				weight++
			}
			if t == elf.STT_NOTYPE {
				weight += 1000
			}
			s.funcs = append(s.funcs, symbol{addr: y.Value, size: y.Size, name: strings.Clone(y.Name), weight: weight})
		}
	}
}

// sort orders the functions, one name for each address. One without a size ends at the next.
func (s *symbols) sort() {
	slices.SortFunc(s.funcs, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.weight, b.weight),
			cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
	})
	s.funcs = slices.CompactFunc(s.funcs, func(a, b symbol) bool { return a.addr == b.addr })
	for i := range s.funcs {
		if fn := &s.funcs[i]; fn.size == 0 && i+1 < len(s.funcs) {
			fn.size = s.funcs[i+1].addr - fn.addr
		}
	}
}

// mini adds the symbols of .gnu_debugdata, which is a compressed ELF file.
func (s *symbols) mini(f *elf.File) {
	sec := f.Section(".gnu_debugdata")
	if sec == nil || sec.Size > maxMiniBytes {
		return
	}
	data, err := sec.Data()
	if err != nil {
		return
	}
	r, err := xz.ReaderConfig{DictCap: maxMiniBytes}.NewReader(bytes.NewReader(data))
	if err != nil {
		return
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxMiniBytes))
	if err != nil {
		return
	}
	if inner, err := elf.NewFile(bytes.NewReader(plain)); err == nil {
		s.functions(inner)
	}
}

// goTable reads the table of functions and lines that programs of Go have, also without symbols.
func (s *symbols) goTable(f *elf.File) {
	sec, text := f.Section(".gopclntab"), f.Section(".text")
	if sec == nil {
		sec = f.Section(".data.rel.ro.gopclntab")
	}
	if sec == nil || text == nil || sec.Size > maxTextBytes {
		return
	}
	data, err := sec.Data()
	if err != nil {
		return
	}
	if t, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr)); err == nil {
		s.pcln = t
	}
}

// ownVDSO reads the vdso that the kernel gave this process: that of all others, if its build-id is the same.
func ownVDSO() []byte {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, m := range ParseMaps(f) {
		if m.Path != vdsoPath {
			continue
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil
		}
		defer mem.Close()
		b := make([]byte, min(m.End-m.Start, 1<<20))
		if _, err := mem.ReadAt(b, int64(m.Start)); err != nil {
			return nil
		}
		return b
	}
	return nil
}
