// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/tree"
)

// Runs reports whether pages were read to be executed: they are not part of the tree.
func Runs(ev *event.Event) bool {
	return ev.Op == event.OpMmapPread && ev.Args[4]&event.MappedCode != 0
}

// OpenAtStart reports whether a descriptor that was open at the start is to be opened by
// the replay: one of a file or directory that still had a name, such as what standard
// output was redirected to. All others, terminals and pipes, are the program's
// surroundings.
//
// Two files that had one name, one after the other, cannot both be made; the first
// one has it.
func OpenAtStart(ev *event.Event, taken map[string]Inode) bool {
	if ev.Kind != event.Inherited || len(ev.Files) == 0 {
		return false
	}
	f := &ev.Files[0]
	removed := f.Nlink == 0 && f.Ino != 0 // without an inode number, neither is known
	if !f.Known || removed || f.Path == "" || f.Path[0] != '/' || Virtual(f.Path) {
		return false
	}
	if t := TypeOf(f.Mode); t != tree.File && t != tree.Dir {
		return false
	}
	if id, ok := taken[f.Path]; ok && id != InodeOf(f) {
		return false
	}
	taken[f.Path] = InodeOf(f)
	return true
}
