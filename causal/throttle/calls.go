// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/iotape/iotape/event"
)

// ops are the calls that are I/O here: they move bytes of a file or ask for its durability,
// and their first argument is its descriptor.
var ops = []event.Op{
	event.OpRead, event.OpWrite, event.OpPread64, event.OpPwrite64, event.OpReadv, event.OpWritev, event.OpPreadv, event.OpPwritev,
	event.OpPreadv2, event.OpPwritev2, event.OpFtruncate, event.OpFallocate, event.OpSyncFileRange, event.OpFsync, event.OpFdatasync,
}

// numbers returns the system calls of ops on this machine.
func numbers() (map[int]event.Op, error) {
	arch, ok := event.ParseArch(runtime.GOARCH)
	if !ok {
		return nil, fmt.Errorf("there is no operation table for %s", runtime.GOARCH)
	}
	list := map[int]event.Op{}
	for _, op := range ops {
		if nr := event.Number(arch, op); nr >= 0 {
			list[nr] = op
		}
	}
	return list, nil
}

// Scope says whose calls count: those on regular files and block devices below Under, if
// there are any, and otherwise on all but what systems are made of, and what launchers of
// MPI programs keep for themselves.
type Scope struct {
	Under []string // absolute directories
}

// system is what programs are loaded from, and what is no storage.
var system = []string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/run",
	"/var/lib/dpkg"}

// launchers are how directories begin, and end with a number, in which launchers of MPI
// programs, and the libraries, keep what they tell each other: what is in those files is
// another in each run, and nothing of it is the application's.
var launchers = []string{"ompi.", "openmpi-sessions-", "prte.", "pmix_dstor_", "pmix-"}

// ofLauncher reports whether a file is below such a directory.
func ofLauncher(path string) bool {
	for name := range strings.SplitSeq(path[:strings.LastIndexByte(path, '/')+1], "/") {
		for _, l := range launchers {
			if last := name[max(len(name)-1, 0):]; strings.HasPrefix(name, l) && last >= "0" && last <= "9" {
				return true
			}
		}
	}
	return false
}

// counts reports whether calls on a file count.
func (s *Scope) counts(mode uint32, path string) bool {
	switch event.FileType(mode) {
	case event.TypeRegular:
	case event.TypeBlock:
		return len(s.Under) == 0 || below(path, s.Under)
	default:
		return false
	}
	if len(s.Under) > 0 {
		return below(path, s.Under)
	}
	return !below(path, system) && !ofLauncher(path)
}

func below(path string, dirs []string) bool {
	for _, d := range dirs {
		if d == "/" || strings.HasPrefix(path, d) && (len(path) == len(d) || path[len(d)] == '/') {
			return true
		}
	}
	return false
}

// shape is what of a call's arguments is the same in all runs of one application: sizes
// and places, but no descriptors and addresses.
func shape(op event.Op, args *[event.MaxArgs]uint64) [2]uint64 {
	switch op {
	case event.OpFsync, event.OpFdatasync:
		return [2]uint64{}
	case event.OpFtruncate:
		return [2]uint64{args[1]}
	case event.OpSyncFileRange:
		return [2]uint64{args[2], args[1]}
	case event.OpFallocate:
		return [2]uint64{args[3], args[2]}
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return [2]uint64{args[2]}
	}
	return [2]uint64{args[2], args[3]}
}
