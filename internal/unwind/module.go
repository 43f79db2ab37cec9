// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// Limits of ELF files.
const (
	maxFrameBytes  = 256 << 20 // of call frame information
	maxNoteBytes   = 64 << 10
	maxBuildID     = 64
	maxModules     = 256
	maxCachedBytes = 512 << 20
)

// Module is an ELF file: a program, a library, the vdso.
type Module struct {
	// BuildID identifies the file's content, hexadecimal; "" if it has none.
	BuildID string

	machine elf.Machine
	golang  bool
	loads   []load
	frames  []*frameTable
	file    io.ReaderAt
	bytes   int // kept
}

// load is a part of the file that is mapped.
type load struct{ off, size, addr uint64 }

type moduleKey struct {
	path string
	ino  uint64
}

// fileKey identifies what a file holds.
type fileKey struct {
	dev, ino    uint64
	size, mtime int64
	ctime       int64
}

// Modules are the ELF files that were read. It is safe for concurrent use.
type Modules struct {
	mu     sync.Mutex
	files  map[fileKey]*Module
	images map[uint64]*Module // by hash
	bytes  int
}

// NewModules returns an empty cache.
func NewModules() *Modules {
	return &Modules{files: map[fileKey]*Module{}, images: map[uint64]*Module{}}
}

// open reads the file of a mapping. It has to be the one that is mapped.
func (c *Modules) open(root string, key moduleKey) *Module {
	f, err := os.OpenFile(root+strings.TrimSuffix(key.path, " (deleted)"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Ino != key.ino || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil
	}
	id := fileKey{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
	c.mu.Lock()
	defer c.mu.Unlock()
	mod, ok := c.files[id]
	if !ok {
		mod = readModule(f)
		c.keep(mod)
		c.files[id] = mod
	}
	if ok || mod == nil {
		f.Close() // else it stays open with the module
	}
	return mod
}

// image does the same for a file in memory.
func (c *Modules) image(b []byte) *Module {
	h := xxh3.Hash(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	mod, ok := c.images[h]
	if !ok {
		mod = readModule(bytes.NewReader(b))
		c.keep(mod)
		c.images[h] = mod
	}
	return mod
}

// keep makes room for one more.
func (c *Modules) keep(m *Module) {
	if len(c.files)+len(c.images) >= maxModules || c.bytes > maxCachedBytes {
		clear(c.files)
		clear(c.images)
		c.bytes = 0
	}
	if m != nil {
		c.bytes += m.bytes
	}
}

// readModule reads what a walk needs of an ELF file, nil if it is none.
func readModule(r io.ReaderAt) *Module {
	f, err := elf.NewFile(r)
	if err != nil || f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return nil
	}
	m := &Module{machine: f.Machine, BuildID: buildID(f), file: r}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && len(m.loads) < 64 {
			m.loads = append(m.loads, load{off: p.Off, size: p.Filesz, addr: p.Vaddr})
		}
	}
	m.golang = f.Section(".gopclntab") != nil || f.Section(".data.rel.ro.gopclntab") != nil
	for _, name := range [...]string{".eh_frame", ".debug_frame"} {
		s := f.Section(name)
		if s == nil || s.Type == elf.SHT_NOBITS || s.Size > maxFrameBytes || s.FileSize > maxFrameBytes {
			continue
		}
		data, err := s.Data()
		if err != nil || len(data) == 0 {
			continue
		}
		m.frames = append(m.frames, parseFrames(data, s.Addr, name == ".debug_frame"))
		m.bytes += len(data)
	}
	return m
}

// address returns where a position in the file is, by the addresses in it.
func (m *Module) address(off uint64) (uint64, bool) {
	for _, l := range m.loads {
		if off >= l.off && off-l.off < l.size {
			return off - l.off + l.addr, true
		}
	}
	return 0, false
}

// buildID returns the identity that the linker wrote: GNU's, or Go's as the hash of its text.
func buildID(f *elf.File) string {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.Size > maxNoteBytes {
			continue
		}
		b, err := s.Data()
		if err != nil {
			continue
		}
		if id := noteID(b); id != "" {
			return id
		}
	}
	return ""
}

// noteID looks for NT_GNU_BUILD_ID among notes.
func noteID(b []byte) string {
	for len(b) >= 12 {
		le := binary.LittleEndian
		names, desc, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		b = b[12:]
		at := (names + 3) &^ 3
		if at > uint64(len(b)) || desc > uint64(len(b))-at {
			return ""
		}
		if kind == 3 && string(b[:min(names, 4)]) == "GNU\x00" && desc <= maxBuildID {
			return hex.EncodeToString(b[at : at+desc])
		}
		b = b[min(at+(desc+3)&^3, uint64(len(b))):]
	}
	return ""
}
