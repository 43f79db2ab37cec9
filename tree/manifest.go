// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"sort"
	"strings"
)

// Type is the type of a directory entry, as one letter.
type Type byte

// The types of directory entries.
const (
	File    Type = 'f'
	Dir     Type = 'd'
	Symlink Type = 'l'
	FIFO    Type = 'p'
	Socket  Type = 's'
	CharDev Type = 'c'
	BlkDev  Type = 'b'
)

// String returns the type's name for people.
func (t Type) String() string {
	switch t {
	case File:
		return "file"
	case Dir:
		return "directory"
	case Symlink:
		return "symlink"
	case FIFO:
		return "fifo"
	case Socket:
		return "socket"
	case CharDev:
		return "character device"
	case BlkDev:
		return "block device"
	}
	return "unknown type"
}

// Known says which attributes of an entry are known. Path, type, symlink target
// and device number are always known.
type Known uint16

// The attributes that can be unknown.
const (
	KnownMode    Known = 1 << iota // Mode
	KnownOwner                     // UID and GID
	KnownMTime                     // MTime
	KnownSize                      // Size, of a regular file
	KnownHash                      // Hash, of a regular file
	KnownContent                   // what Chunks does not cover is zero; without it Chunks may be only a part
	KnownXattrs                    // Xattrs is the full set that the taker was allowed to see
	KnownLinks                     // Nlink and Link; never for directories
	KnownListing                   // the manifest has every entry of this directory
	KnownBlocks                    // Hash, of a regular file, is that of its blocks: see LargeBytes
)

var knownNames = [...]string{
	"mode", "owner", "mtime", "size", "hash", "content", "xattrs", "links", "listing", "blocks",
}

// String lists the known attributes, for messages.
func (k Known) String() string {
	var names []string
	for i, name := range knownNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Chunk says where a part of a file's content is stored.
type Chunk struct {
	Off int64  // offset in the file, in bytes
	Len uint32 // in bytes
	ID  uint64 // given out by the sink
}

// Entry is one object of a tree under one of its names.
type Entry struct {
	Path  string // bytes, not text: see ValidPath
	Type  Type
	Known Known

	Mode  uint32 // permission, set-id and sticky bits (07777)
	UID   uint32
	GID   uint32
	Size  int64 // bytes, regular files only
	MTime int64 // nanoseconds since 1970
	Rdev  uint64

	// Nlink, Dev and Ino are as found, to tell hard links; they are never restored
	// nor compared.
	Nlink uint32
	Dev   uint64
	Ino   uint64

	// Link is the path of the first entry (in manifest order) of the same hard-link
	// group, "" for that first entry itself. Entries with Link have no Chunks of their
	// own: what KnownContent says holds for those of the first.
	Link   string
	Target string            // of a symlink
	Xattrs map[string][]byte // nil if there are none

	Hash   [32]byte // BLAKE3-256 of the content, holes being zeros; see KnownBlocks
	Chunks []Chunk  // ascending, not overlapping; holes have none
}

// Has reports whether all the given attributes are known.
func (e *Entry) Has(k Known) bool { return e.Known&k == k }

// HasHash reports whether Hash is known, of the content or of its blocks.
func (e *Entry) HasHash() bool { return e.Known&(KnownHash|KnownBlocks) != 0 }

// Note says what a manifest does not contain although it was asked for.
type Note struct {
	Path string
	Text string // why, without the path
}

// Manifest describes a tree. Its paths are either all relative to the tree's root,
// which is then called ".", or all absolute, with "/" as root.
type Manifest struct {
	Root    string  // where the tree was found; informative, may be empty
	Entries []Entry // in the order of ComparePaths, so parents come before children
	Notes   []Note
}

// Lookup returns the entry with this path, or nil. The entry may be changed in place
// except for its path.
func (m *Manifest) Lookup(path string) *Entry {
	return lookup(m.Entries, path)
}

func lookup(entries []Entry, path string) *Entry {
	if i, ok := search(entries, path); ok {
		return &entries[i]
	}
	return nil
}

// Sort brings the entries into manifest order. Builders of manifests call it before
// anything else here.
func (m *Manifest) Sort() {
	slices.SortStableFunc(m.Entries, func(a, b Entry) int { return ComparePaths(a.Path, b.Path) })
}

// Below returns the entries under a path, without the path itself.
func (m *Manifest) Below(path string) []Entry {
	start, ok := search(m.Entries, path)
	if ok {
		start++
	}
	rest := m.Entries[start:]
	n := sort.Search(len(rest), func(i int) bool { return !isAncestor(path, rest[i].Path) })
	return rest[:n]
}

// search finds a path in entries that are in manifest order.
func search(entries []Entry, path string) (int, bool) {
	return sort.Find(len(entries), func(i int) int { return ComparePaths(path, entries[i].Path) })
}
