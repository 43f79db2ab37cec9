// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/iotape/iotape/event"

// Inode is a file's identity: device and inode number, as stat gives them.
type Inode struct{ Dev, Ino uint64 }

// InodeOf returns what a descriptor is of.
func InodeOf(f *event.File) Inode { return Inode{f.Dev, f.Ino} }
