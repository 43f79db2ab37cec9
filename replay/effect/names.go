// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"encoding/binary"
	"path"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/tree"
)

const (
	AtNoFollow = 0x100
	ODirectory = 0o200000
	ONoFollow  = 0o400000
)

// OpenFlags returns the flags that an open asked for, 0 of a request.
func OpenFlags(ev *event.Event) uint64 {
	if ev.Op != ev.Op.Like() {
		return 0
	}
	return ev.OpenFlags()
}

// ResolvesWithin reports whether an openat2 looks its name up within its directory
// (RESOLVE_BENEATH, RESOLVE_IN_ROOT).
func ResolvesWithin(ev *event.Event) bool {
	const resolveAt, within = 16, 0x08 | 0x10
	if ev.Op.Like() != event.OpOpenat2 {
		return false
	}
	how := ev.BufArg(2)
	return how != nil && len(how.Inline) > resolveAt && how.Inline[resolveAt]&within != 0
}

// SeeksDirectory reports whether an event is an lseek of a directory.
func SeeksDirectory(ev *event.Event) bool {
	f := ev.FileArg(0)
	return ev.Op == event.OpLseek && f != nil && f.Known && TypeOf(f.Mode) == tree.Dir
}

// Virtual reports whether a path lies where the kernel makes up the files: replay
// does not repeat what happens there.
func Virtual(abs string) bool {
	abs = path.Clean(abs)
	for _, dir := range [...]string{"/proc", "/sys", "/dev"} {
		if abs == dir || strings.HasPrefix(abs, dir+"/") {
			return !strings.HasPrefix(abs, "/dev/shm/") && abs != "/dev/shm"
		}
	}
	return false
}

// LeavesVirtual reports whether a name goes through a directory where the kernel makes up the files,
// and out of it by "..", such as "/dev/../etc": replay does not have that directory.
func LeavesVirtual(name string) bool {
	if !strings.HasPrefix(name, "/") || Virtual(name) {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimLeft(name, "/"), "/")
	return Virtual("/" + first)
}

// BoundName returns the name that a bind gave to a socket in the file system: a
// relative one begins at the working directory (unix(7)).
func BoundName(ev *event.Event) (string, bool) {
	const unix = 1 // AF_UNIX
	b := ev.BufArg(1)
	if ev.Op != event.OpBind || !ev.OK() || b == nil || len(b.Inline) < 3 ||
		binary.LittleEndian.Uint16(b.Inline) != unix {
		return "", false
	}
	name := CString(b.Inline[2:])
	return name, name != "" // an abstract address begins with a NUL
}
