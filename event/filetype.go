// SPDX-License-Identifier: Apache-2.0

package event

// Types of files, as FileType returns them (inode(7)); the same on every architecture.
const (
	TypeSocket  = 0o140000
	TypeSymlink = 0o120000
	TypeRegular = 0o100000
	TypeBlock   = 0o060000
	TypeDir     = 0o040000
	TypeChar    = 0o020000
	TypeFIFO    = 0o010000
)

// FileType returns the type bits of a mode (st_mode), 0 if it says no type.
func FileType(mode uint32) uint32 { return mode & 0o170000 }

// Is reports whether the file is known to be of a type.
func (f *File) Is(fileType uint32) bool { return f != nil && f.Known && FileType(f.Mode) == fileType }

// Flags of an open, as Event.OpenFlags returns them (fcntl.h).
const (
	OpenCreat   = 0o100
	OpenExcl    = 0o200
	OpenTrunc   = 0o1000
	OpenAppend  = 0o2000
	OpenDirect  = 0o40000
	OpenCloexec = 0o2000000
	OpenTmpfile = 0o20000000
)
