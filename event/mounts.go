// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strings"
)

// MountState is what a Started event in the middle of a recording says of the mounts that the names of a process lead
// through. Numbers of bind mounts are from 1 on; 0 is none.
type MountState struct {
	Namespace uint32 // number of the mount namespace; 1 is that of the processes that made none
	Cwd       uint32 // number of the bind mount that the working directory was reached through
	Root      uint32 // that of the root directory
	Top       uint32 // that of the namespace's root directory
	Entered   uint32 // number of the last file system that was mounted when the working directory was entered
	// Begins is where the names of the namespace begin; the zero Path: where those of the machine do.
	Begins Path
	Mounts []MountPoint // those of the namespace, in the order in which they were made; one event has them
}

// MountPoint is a bind mount, or a file system that the recorded programs mounted.
type MountPoint struct {
	Number uint32
	Over   uint32 // number of the bind mount that At was reached through
	Own    bool   // it is no bind mount: its files have no other names
	Unsaid bool   // it is an overlay of which the directories that it stores into are not known
	Type   string // such as tmpfs, of one with Own; "" if it is not known
	Given  string // the name by which a program found At, of a bind mount; else an overlay's work directory
	At     string // where it is mounted, without symbolic links
	To     string // what the names below At lead to, of a bind mount; else an overlay's upper directory
}

// mountPaths is the index of the first of a Started event's names that say mounts: before it are working and root
// directories.
const mountPaths = 2

// SetMounts completes a Started event, which has its two directories.
func (ev *Event) SetMounts(s *MountState) {
	b := fmt.Appendf(nil, "%d %d %d %d %d\n", s.Namespace, s.Cwd, s.Root, s.Top, s.Entered)
	for len(ev.Paths) < mountPaths {
		ev.Paths = append(ev.Paths, Path{})
	}
	begins := s.Begins
	begins.Arg = mountPaths
	ev.Paths = append(ev.Paths[:mountPaths], begins)
	for i := range s.Mounts {
		m := &s.Mounts[i]
		b = fmt.Appendf(b, "%d %d %t %t %q\n", m.Number, m.Over, m.Own, m.Unsaid, m.Type)
		ev.Paths = append(ev.Paths, Path{Arg: mountPaths, Raw: m.Given, Abs: m.At, Real: m.To})
	}
	ev.Bufs = append(ev.Bufs[:0], Buf{Kind: KindText, Len: int64(len(b)), Inline: b})
}

// Mounts returns what SetMounts said of an event, nil if nothing was.
func (ev *Event) Mounts() *MountState {
	if ev.Kind != Started || len(ev.Bufs) == 0 || len(ev.Paths) <= mountPaths {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(ev.Bufs[0].Inline), "\n"), "\n")
	s := &MountState{Begins: ev.Paths[mountPaths]}
	if n, _ := fmt.Sscanf(lines[0], "%d %d %d %d %d", &s.Namespace, &s.Cwd, &s.Root, &s.Top, &s.Entered); n < 5 {
		return nil
	}
	names := ev.Paths[mountPaths+1:]
	for i, line := range lines[1:] {
		var m MountPoint
		n, _ := fmt.Sscanf(line, "%d %d %t %t %q", &m.Number, &m.Over, &m.Own, &m.Unsaid, &m.Type)
		if n < 5 || i == len(names) {
			break
		}
		m.Given, m.At, m.To = names[i].Raw, names[i].Abs, names[i].Real
		s.Mounts = append(s.Mounts, m)
	}
	return s
}
