// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// node is a file of the lower directory that the kernel knows. Its descriptor (O_PATH)
// holds the file, so no other can get its inode number while the node lives.
type node struct {
	id      uint64 // that the kernel has for it
	fd      int
	dev     uint64
	ino     uint64
	typ     uint32 // S_IFMT bits
	lookups uint64 // references that the kernel has to give back
	names   []name // that it was found or made by, the latest last
	locks   locks
}

// name is an entry of a directory.
type name struct {
	dir  *node
	name string
}

type fileID struct{ dev, ino uint64 }

// nodes are all nodes. A name belongs to one of them at most: what is found under it
// later takes it away.
type nodes struct {
	mu    sync.RWMutex
	byID  map[uint64]*node
	byIno map[fileID]*node
	named map[name]*node
	last  uint64 // id given out
	root  *node
}

// rootID is the kernel's number for the root (FUSE_ROOT_ID).
const rootID = 1

func (ns *nodes) init(fd int, st *unix.Stat_t) {
	ns.root = &node{id: rootID, fd: fd, dev: st.Dev, ino: st.Ino, typ: st.Mode & unix.S_IFMT, lookups: 1}
	ns.byID = map[uint64]*node{rootID: ns.root}
	ns.byIno = map[fileID]*node{{st.Dev, st.Ino}: ns.root}
	ns.named = map[name]*node{}
	ns.last = rootID
}

// get returns the node of a request, nil if the kernel made up the number or has given
// it back.
func (ns *nodes) get(id uint64) *node {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	return ns.byID[id]
}

// refer returns a node that is known already, with one more reference and the name.
func (ns *nodes) refer(st *unix.Stat_t, nm name) *node {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n := ns.byIno[fileID{st.Dev, st.Ino}]
	if n == nil {
		return nil
	}
	n.lookups++
	ns.bind(n, nm)
	return n
}

// adopt returns the node of a descriptor, which belongs to the table from then on, with
// one more reference. A name without a directory is none.
func (ns *nodes) adopt(fd int, st *unix.Stat_t, nm name) *node {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	key := fileID{st.Dev, st.Ino}
	n := ns.byIno[key]
	if n == nil {
		ns.last++
		n = &node{id: ns.last, fd: fd, dev: st.Dev, ino: st.Ino, typ: st.Mode & unix.S_IFMT}
		ns.byID[n.id], ns.byIno[key] = n, n
	} else {
		unix.Close(fd)
	}
	n.lookups++
	ns.bind(n, nm)
	return n
}

// bind gives a node a name, or makes one that it has the latest.
func (ns *nodes) bind(n *node, nm name) {
	if nm.dir == nil || n == ns.root {
		return
	}
	if k := len(n.names); k > 0 && n.names[k-1] == nm {
		return
	}
	ns.unbind(nm)
	if n.typ == unix.S_IFDIR { // it has one name
		for _, old := range n.names {
			delete(ns.named, old)
		}
		n.names = n.names[:0]
	}
	n.names = append(n.names, nm)
	ns.named[nm] = n
}

func (ns *nodes) unbind(nm name) {
	n := ns.named[nm]
	if n == nil {
		return
	}
	delete(ns.named, nm)
	for i := range n.names {
		if n.names[i] == nm {
			n.names = append(n.names[:i], n.names[i+1:]...)
			return
		}
	}
}

// removed notes that a name is gone.
func (ns *nodes) removed(nm name) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.unbind(nm)
}

// renamed moves a name, or exchanges two.
func (ns *nodes) renamed(from, to name, exchange bool) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n, other := ns.named[from], ns.named[to]
	ns.unbind(from)
	ns.unbind(to)
	if n != nil {
		ns.bind(n, to)
	}
	if exchange && other != nil {
		ns.bind(other, from)
	}
}

// forget gives back references.
func (ns *nodes) forget(id, count uint64) {
	ns.mu.Lock()
	n := ns.byID[id]
	if n == nil || n == ns.root || count > n.lookups {
		ns.mu.Unlock()
		return
	}
	if n.lookups -= count; n.lookups > 0 {
		ns.mu.Unlock()
		return
	}
	for _, nm := range n.names {
		delete(ns.named, nm)
	}
	n.names = nil
	delete(ns.byID, id)
	delete(ns.byIno, fileID{n.dev, n.ino})
	ns.mu.Unlock()
	n.locks.close()
	unix.Close(n.fd)
}

// path returns a node's place below the lower directory, "." for that itself. It is
// false if the node has no name any more; the path is then the last known, marked as the
// kernel marks those.
func (ns *nodes) path(n *node) (string, bool) {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	return ns.pathLocked(n)
}

func (ns *nodes) pathLocked(n *node) (string, bool) {
	var parts []string
	size := 0
	for ; n != ns.root; n = n.names[len(n.names)-1].dir {
		if len(n.names) == 0 {
			return deleted, false
		}
		part := n.names[len(n.names)-1].name
		parts = append(parts, part)
		size += len(part) + 1
	}
	if len(parts) == 0 {
		return ".", true
	}
	var b strings.Builder
	b.Grow(size)
	for i := len(parts) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(parts[i])
	}
	return b.String(), true
}

// deleted stands for a file without a name, as in proc(5).
const deleted = "(deleted)"

// below returns the path of a directory's entry, or, without an entry, of a file.
func (ns *nodes) below(n *node, entry string) string {
	p, _ := ns.path(n)
	switch {
	case entry == "":
		return p
	case p == ".":
		return entry
	}
	return p + "/" + entry
}

// count returns how many nodes there are.
func (ns *nodes) count() int {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	return len(ns.byID)
}

// prunable is a node that the kernel may be asked to forget.
type prunable struct {
	id    uint64
	dir   uint64
	entry string
}

// some returns a number of nodes that are no directories, whichever.
func (ns *nodes) some(count int) (ids []prunable) {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	for id, n := range ns.byID {
		if len(ids) == count {
			break
		}
		if n.typ != unix.S_IFDIR && len(n.names) > 0 {
			nm := n.names[len(n.names)-1]
			ids = append(ids, prunable{id, nm.dir.id, nm.name})
		}
	}
	return ids
}

func (ns *nodes) close() {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for _, n := range ns.byID {
		n.locks.close()
		unix.Close(n.fd)
	}
	clear(ns.byID)
	clear(ns.byIno)
	clear(ns.named)
}

// find looks up an entry of a directory, with one more reference for the kernel.
func (ns *nodes) find(dir *node, entry string, st *unix.Stat_t) (*node, syscall.Errno) {
	nm := name{dir, entry}
	switch entry {
	case ".":
		nm.dir = nil
	case "..":
		if dir == ns.root {
			entry = "."
		}
		nm.dir = nil
	}
	err := retry(func() error { return unix.Fstatat(dir.fd, entry, st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT) })
	if err != nil {
		ns.removed(nm)
		return nil, errnoOf(err)
	}
	if n := ns.refer(st, nm); n != nil {
		return n, 0
	}
	fd, err := openat(dir.fd, entry, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	if err := unix.Fstat(fd, st); err != nil {
		unix.Close(fd)
		return nil, errnoOf(err)
	}
	return ns.adopt(fd, st, nm), 0
}
