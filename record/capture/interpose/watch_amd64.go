// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"golang.org/x/sys/unix"
)

// While programs can store to files through mappings, the tracer sees the calls that make what they
// stored matter: it looks at the files then (ptrace.Recorder).

// looks are calls without descriptors that do.
var looks = []int{unix.SYS_MSYNC, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_SYNC, unix.SYS_TRUNCATE}

// watch tells all processes of a change of these files.
func (s *session) watch() {
	version, inodes := s.rec.Stored()
	if version == s.stores {
		return
	}
	s.stores = version
	told := map[*arena]bool{}
	for _, th := range s.threads {
		if th.space == nil || told[th.space.arena] || th.space.gone {
			continue
		}
		told[th.space.arena] = true
		th.space.arena.control().watch(s.tables, inodes)
	}
}

// watch makes a program's calls on files, by their inodes, stop behind the call.
func (c *control) watch(t *tables, inodes []uint64) {
	for _, nr := range looks {
		class, fast := t.class[nr], t.fast[nr]
		if len(inodes) > 0 && fast == classRecord {
			if fast = classLate; class == classRecord {
				class = classLate
			}
		}
		c.Fast[nr], c.Class[nr] = fast, class
	}
	copy(c.Inodes[:], inodes)
	c.Watched = uint64(len(inodes))
}
