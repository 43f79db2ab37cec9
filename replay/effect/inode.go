// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"hash/fnv"
	"io"
	"math"

	"github.com/iotape/iotape/event"
)

// Inode is a file's identity: device and inode number, as stat gives them.
type Inode struct{ Dev, Ino uint64 }

// ContentOf returns what stands for the content of a descriptor's file: its inode or, in tapes that
// have no numbers of inodes (imported ones), its name.
func ContentOf(f *event.File) Inode {
	if f.Ino != 0 {
		return InodeOf(f)
	}
	return ContentByName(f.Path)
}

// Nameable reports whether a descriptor's file is known by its name only.
func Nameable(f *event.File) bool { return f.Ino == 0 && len(f.Path) > 1 && f.Path[0] == '/' }

// ContentByName is ContentOf for a file without a number of its inode.
func ContentByName(path string) Inode {
	h := fnv.New64a()
	_, _ = io.WriteString(h, path)
	return Inode{Dev: math.MaxUint64, Ino: h.Sum64()}
}

// InodeOf returns what a descriptor is of.
func InodeOf(f *event.File) Inode { return Inode{f.Dev, f.Ino} }
