// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"strings"

	"github.com/iotape/iotape/event/socket"
)

// kept are names that stay what they are wherever they stand, because the kernel, and so a
// replay, gives them a meaning.
var kept = map[string]bool{
	"proc": true, "sys": true, "dev": true, "tmp": true, "shm": true,
	"self": true, "thread-self": true, "task": true, "fd": true, "fdinfo": true,
	"null": true, "zero": true, "full": true, "random": true, "urandom": true, "tty": true, "ptmx": true, "pts": true,
	"stdin": true, "stdout": true, "stderr": true,
}

const (
	deleted    = " (deleted)" // what the kernel appends to the name of a file that has none any more
	memfd      = "memfd:"     // what it puts in front of that of memfd_create
	maxCached  = 1 << 17      // names, and paths, that are remembered
	maxCachedS = 512          // bytes of these
)

// path maps a path name by name. Slashes stay where they are, and so do "." and "..".
func (m *mapper) path(s string) string {
	if !m.mapsNames() || s == "" {
		return s
	}
	if to, ok := m.paths[s]; ok {
		return to
	}
	var to string
	if e, ok := socket.Parse(s); ok {
		to = m.socketName(&e)
	} else {
		b := []byte(s)
		m.pathBytes(b)
		to = string(b)
	}
	if len(s) <= maxCachedS {
		if len(m.paths) >= maxCached {
			clear(m.paths)
		}
		m.paths[strings.Clone(s)] = to
	}
	return to
}

// mapsNames reports whether anything that stands in names of files is mapped.
func (m *mapper) mapsNames() bool {
	for _, f := range [...]Field{Path, PID, UID, Inode, Address, Port} {
		if m.fields.Has(f) {
			return true
		}
	}
	return false
}

// pathBytes is path, in place.
func (m *mapper) pathBytes(b []byte) {
	if kind, number, ok := kernelName(b); ok { // pipe:[4711]
		if kind {
			m.digits(Inode, number)
		}
		return
	}
	var above [2][]byte // the first two names of an absolute path, as they were
	n, rooted := 0, len(b) > 0 && b[0] == '/'
	var before []byte
	for len(b) > 0 {
		name := b
		if i := bytes.IndexByte(b, '/'); i >= 0 {
			name, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(name) == 0 {
			continue
		}
		switch inKernel := rooted && n > 0 && allDigits(name); {
		case inKernel && isProcess(string(above[0]), string(before), n):
			m.digits(PID, name)
		case inKernel && isDescriptor(string(above[0]), string(before), n):
		default:
			m.name(name)
		}
		if n < len(above) {
			above[n] = name // only names that stay are looked for
		}
		before = name
		n++
	}
}

// isProcess reports whether a number in a path is one of a process or a thread, as in
// /proc/1/task/2. top is the path's first name, before the one before the number, n how
// many there are before it.
func isProcess(top, before string, n int) bool {
	return top == "proc" && (n == 1 || before == "task")
}

// isDescriptor does the same for one of a descriptor, as in /proc/self/fd/3 and /dev/fd/3.
func isDescriptor(top, before string, n int) bool {
	return (top == "proc" || top == "dev" && n <= 2) && (before == "fd" || before == "fdinfo")
}

// kernelName takes apart what the kernel calls a file that has no name: pipe:[4711]. inode
// is false for those whose number says nothing, such as anon_inode:[eventfd].
func kernelName(b []byte) (inode bool, number []byte, ok bool) {
	if bytes.HasPrefix(b, []byte("anon_inode:")) {
		return false, nil, bytes.IndexByte(b, '/') < 0
	}
	kind, rest, found := bytes.Cut(b, []byte(":["))
	if !found || len(rest) < 2 || rest[len(rest)-1] != ']' || !allDigits(rest[:len(rest)-1]) {
		return false, nil, false
	}
	switch string(kind) {
	case "pipe", "socket", "net", "mnt", "pid", "user", "uts", "ipc", "cgroup", "time":
		return true, rest[:len(rest)-1], true
	}
	return false, nil, false
}

func allDigits(b []byte) bool { return len(b) > 0 && digits.holds(b) }

// name maps one name of a path in place. Names of a kind stay of that kind.
func (m *mapper) name(b []byte) {
	if !m.fields.Has(Path) {
		return
	}
	for bytes.HasPrefix(b, []byte(memfd)) {
		b = b[len(memfd):]
	}
	for bytes.HasSuffix(b, []byte(deleted)) {
		b = b[:len(b)-len(deleted)]
	}
	if len(b) == 0 || special(b) {
		return
	}
	if to, ok := m.names[string(b)]; ok {
		copy(b, to)
		return
	}
	from := ""
	if len(b) <= maxCachedS {
		from = string(b)
	}
	stem := b
	if m.keepExtensions {
		stem = b[:len(b)-extension(b)]
	}
	ext := len(b) - len(stem)
	m.text[Path].walk(stem, inNames, m.back, func([]byte) bool {
		return !special(b) && (!m.keepExtensions || extension(b) == ext) &&
			!bytes.HasPrefix(b, []byte(memfd)) && !bytes.HasSuffix(b, []byte(deleted))
	})
	if from != "" {
		if len(m.names) >= maxCached {
			clear(m.names)
		}
		m.names[from] = string(b)
	}
}

// special reports names that are not mapped.
func special(b []byte) bool {
	if _, _, ok := kernelName(b); ok {
		return true
	}
	return string(b) == "." || string(b) == ".." || kept[string(b)]
}

// maxExtension is the longest extension that --keep-extensions keeps, with its dot.
const maxExtension = 8

// extension returns the length of a name's extension with its dot: of letters and digits
// behind the last dot, but the first byte of the name.
func extension(b []byte) int {
	i := bytes.LastIndexByte(b, '.')
	if i <= 0 || len(b)-i > maxExtension || i == len(b)-1 {
		return 0
	}
	for _, c := range b[i+1:] {
		if !isPlain(c) || c == '_' || c == '-' {
			return 0
		}
	}
	return len(b) - i
}
