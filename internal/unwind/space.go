// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Mapping is a part of a process's address space.
type Mapping struct {
	Start, End uint64
	Off        uint64 // in the file
	Ino        uint64
	Path       string // as the process names it, or "[vdso]" and the like; "" if it has no file
	Exec       bool
}

// maxMappings is vm.max_map_count's default and more.
const maxMappings = 1 << 18

// Space is the address space of a process, as far as it is known.
type Space struct {
	maps    []Mapping // by address
	cache   *Modules
	root    string // in front of paths
	memory  Memory // of the process, for the vdso; nil if there is none
	modules map[moduleKey]*Module
}

// NewSpace returns the address space that has mappings. Files are opened by their paths behind root.
func NewSpace(maps []Mapping, root string, mem Memory, cache *Modules) *Space {
	slices.SortFunc(maps, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return &Space{maps: maps, root: root, memory: mem, cache: cache, modules: map[moduleKey]*Module{}}
}

// ReadSpace returns the address space of a process that lives.
func ReadSpace(pid int, mem Memory, cache *Modules) (*Space, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return NewSpace(ParseMaps(f), dir+"/root", mem, cache), nil
}

// ParseMaps reads the lines of /proc/PID/maps. Lines that are not such are left out.
func ParseMaps(r io.Reader) (list []Mapping) {
	in := bufio.NewScanner(r)
	for in.Scan() && len(list) < maxMappings {
		if m, ok := parseMapping(in.Text()); ok {
			list = append(list, m)
		}
	}
	return list
}

// parseMapping reads "start-end perms offset dev inode   path".
func parseMapping(line string) (m Mapping, ok bool) {
	f := strings.SplitN(line, " ", 6)
	if len(f) < 5 || len(f[1]) < 4 {
		return m, false
	}
	start, end, _ := strings.Cut(f[0], "-")
	var errs [4]error
	m.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	m.End, errs[1] = strconv.ParseUint(end, 16, 64)
	m.Off, errs[2] = strconv.ParseUint(f[2], 16, 64)
	m.Ino, errs[3] = strconv.ParseUint(f[4], 10, 64)
	for _, err := range errs {
		if err != nil {
			return m, false
		}
	}
	m.Exec = f[1][2] == 'x'
	if len(f) == 6 {
		m.Path = unescape(strings.TrimLeft(f[5], " "))
	}
	return m, m.Start < m.End
}

// unescape undoes what the kernel does to newlines in paths.
func unescape(path string) string { return strings.ReplaceAll(path, `\012`, "\n") }

func (s *Space) find(addr uint64) *Mapping {
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].Start > addr })
	if i == 0 || addr >= s.maps[i-1].End {
		return nil
	}
	return &s.maps[i-1]
}

func (s *Space) executable(addr uint64) bool {
	m := s.find(addr)
	return m != nil && m.Exec
}

// code reads a program from its file: the process may have ended.
func (s *Space) code(addr uint64, b []byte) bool {
	m := s.find(addr)
	if m == nil || !m.Exec || uint64(len(b)) > m.End-addr {
		return false
	}
	mod := s.module(m)
	if mod == nil {
		return false
	}
	n, err := mod.file.ReadAt(b, int64(addr-m.Start+m.Off))
	return n == len(b) && (err == nil || err == io.EOF)
}

// frame describes an address.
func (s *Space) frame(m *Mapping, pc uint64, exact bool) event.Frame {
	if m == nil || m.Path == "" {
		return event.Frame{Offset: pc, Exact: exact}
	}
	f := event.Frame{Module: m.Path, Offset: pc - m.Start + m.Off, Exact: exact}
	if m.Ino == 0 && m.Path != vdsoPath { // [heap], [stack] and the like: the address says more
		f.Offset = pc
	}
	if mod := s.module(m); mod != nil {
		f.BuildID = mod.BuildID
	}
	return f
}

const vdsoPath = "[vdso]"

// module returns the file of a mapping, nil if it cannot be read.
func (s *Space) module(m *Mapping) *Module {
	key := moduleKey{path: m.Path, ino: m.Ino}
	if mod, ok := s.modules[key]; ok {
		return mod
	}
	var mod *Module
	switch {
	case m.Ino != 0:
		if mod = s.cache.open(s.root, key); mod == nil && s.root != "" { // the process has ended
			mod = s.cache.open("", key)
		}
	case m.Path == vdsoPath:
		mod = s.vdso(m)
	}
	s.modules[key] = mod
	return mod
}

// vdso reads the ELF file that the kernel maps into each process.
func (s *Space) vdso(m *Mapping) *Module {
	const most = 1 << 20
	b := make([]byte, min(m.End-m.Start, most))
	if s.memory == nil || !s.memory.Read(m.Start, b) {
		b = ownVDSO()
	}
	return s.cache.image(b)
}
