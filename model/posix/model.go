// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
)

// Model is the state of all followed threads. The zero value is not usable; New
// makes one.
type Model struct {
	threads   map[uint32]*Thread
	given     map[event.OpenID]*OpenFile // of the Inherited events, by what these call them
	opens     map[event.OpenID]*OpenFile // those with descriptors, or in messages
	flights   []*OpenFile                // in messages, in the order of sending
	early     []early                    // those received before they were sent
	last      *event.OpenID              // identity that was given out
	resume    *event.OpenID              // what last is to be when the state is told; nil: it is
	released  []event.OpenID
	lost      []*OpenFile            // by a descriptor, to the last event
	byFile    map[fileID][]*OpenFile // those that are mapped
	links     links
	renames   uint64          // how many there were
	programs  map[fileID]Name // those that execve mapped
	handles   map[string]Name // what file handles stand for
	host      *Namespace      // that of threads that made none
	mounts    int             // how many file systems were mounted
	places    map[int]*place  // where those are, by their numbers
	inMounts  map[int]*links  // what is known of the links there
	parted    bool            // a thread left a mount namespace in which it has files open
	replaced  []Mount         // of a rename: those that have other names now
	ends      []Name          // of the names of the present event: what they were reached through, and if that is gone
	restored  restored
	stores    []Mount               // overlays that store what is written to them
	entrances map[uint64]*Namespace // mount namespaces by inode; nil: that of threads that made none
}

// New returns a model without threads. It takes the names that events have already as
// they are: those of a tape.
func New() *Model {
	return &Model{
		last: new(event.OpenID), threads: map[uint32]*Thread{}, opens: map[event.OpenID]*OpenFile{},
		given: map[event.OpenID]*OpenFile{}, byFile: map[fileID][]*OpenFile{}, programs: map[fileID]Name{},
		handles: map[string]Name{},
	}
}

// aside is where identities begin that must not meet those of the trace.
const aside = event.OpenID(1) << 62

// Resume says that the Inherited events which follow are the state of another model, which gave out so many
// identities: the open files keep theirs. Resumed ends that.
func (m *Model) Resume(identities uint64) {
	last := event.OpenID(identities)
	m.resume, *m.last = &last, aside
}

// Resumed says that the state is told: new identities are as the other model would give them. Called again, it does
// nothing.
func (m *Model) Resumed() {
	if m.resume != nil {
		*m.last, m.resume = *m.resume, nil
	}
}

// Identities returns how many identities were given out: the largest is that number.
func (m *Model) Identities() uint64 { return uint64(*m.last) }

// Ask lets the model ask a file system for what the trace does not tell.
func (m *Model) Ask(fs FileSystem) { m.links.fs = fs }

// Beside makes a model of another host, whose open files and working directories have
// identities that this one's do not have.
func (m *Model) Beside() *Model {
	other := New()
	other.last = m.last
	return other
}

// Thread is one node: a sequential line of execution.
type Thread struct {
	TID, PID uint32
	FS       *FS    // shared by threads, and by clone(CLONE_FS)
	Table    *Table // shared by threads, and by clone(CLONE_FILES)
	Space    *Space // shared by threads, and by clone(CLONE_VM)
}

// FS is where relative names start and what modes are masked with.
type FS struct {
	Cwd   string // absolute, as it was given; "" if unknown
	Root  string // what chroot, pivot_root or setns made of "/"; "" if nothing
	Umask uint32
	// CwdID changes with every successful chdir or fchdir and is unique within
	// the model, so that equal ids mean the same directory.
	CwdID   uint64
	Mounts  *Namespace // nil if nothing is known of it
	users   int
	renames uint64 // Model.renames when its names were last made true
	// The names without links, if they are others.
	realCwd, realRoot string
	gone              bool // nothing has the working directory's name any more
	overCwd, overRoot *bind
	inCwd, inRoot     int        // see Name.fs
	nsCwd             *Namespace // see Name.ns
	mounts            int        // how many file systems were mounted when it entered its working directory
}

// Shared reports whether several threads have it.
func (fs *FS) Shared() bool { return fs.users > 1 }

// OpenFile is an open file description.
type OpenFile struct {
	ID    event.OpenID
	Path  string // absolute name by which it was opened; "" if unknown
	Now   Name   // its present name
	Gone  bool   // nothing has the present name any more
	Flags uint32 // open flags, without those that act only at open
	Mode  uint32 // type and permissions; 0 if unknown
	Dev   uint64
	Ino   uint64
	PID   uint32     // process that a pidfd stands for; 0 if unknown
	mnt   *Namespace // that it stands for: of /proc/PID/ns/mnt
	fs    *Mount     // that it stands for: of fsopen(2) and fsmount(2)
	// Given is set if it was passed in from outside at the start.
	Given bool
	// stat is set if Dev is what fstat says, for which btrfs, overlayfs and NFS have another
	// number than the kernel has in its own records.
	stat  bool
	refs  int    // descriptors, mappings, and messages on their way
	most  int    // refs at their most
	files *Table // of an io_uring

	mappings int
}

// now returns its present name.
func (o *OpenFile) now() Name {
	n := o.Now
	n.gone = o.Gone
	return n
}

// Descriptor is a slot of a table.
type Descriptor struct {
	Open    *OpenFile
	CloExec bool
	since   int64 // ns; return of the call that made it
}

// Table is a process's descriptors.
type Table struct {
	slots map[int32]*Descriptor
	users int
	ring  bool // of an io_uring
}

// Lookup returns the descriptor with a number, nil if it is not known to be open.
func (t *Table) Lookup(fd int32) *Descriptor { return t.slots[fd] }

// Thread returns a followed thread. A thread that was never announced, as in a
// trace with gaps, is made on the spot with an empty table.
func (m *Model) Thread(pid, tid uint32) *Thread {
	t := m.threads[tid]
	if t == nil {
		// Another thread of the process, if there is one, has what it shares.
		if p := m.threads[pid]; p != nil {
			t = &Thread{TID: tid, PID: pid, FS: p.FS, Table: p.Table, Space: p.Space}
		} else {
			t = &Thread{TID: tid, PID: pid, FS: &FS{Umask: 0o22}, Table: &Table{slots: map[int32]*Descriptor{}},
				Space: &Space{}}
		}
		t.FS.users++
		t.Table.users++
		t.Space.users++
		m.threads[tid] = t
	}
	return t
}

// Apply resolves an event against the state before it and then applies its
// effect. It fills Files[].Open and Path, Paths[].Abs, Offset and Count. It
// returns the open files whose last descriptor or mapping the event ended, in no
// particular order; the slice is valid until the next call.
func (m *Model) Apply(ev *event.Event) []event.OpenID {
	m.released, m.lost = m.released[:0], m.lost[:0]
	m.links.at(ev.Exit)
	t := m.Thread(ev.PID, ev.TID)
	switch ev.Kind {
	case event.Call:
		m.resolve(t, ev)
		if ev.Flags&event.Interrupted == 0 {
			if h := nameEffects[ev.Effect()]; h != nil {
				h(m, t, ev)
			} else if h := mountEffects[ev.Op]; h != nil {
				h(m, t, ev)
			}
			if h := effects[ev.Op.Like()]; h != nil {
				h(m, t, ev)
			} else if h := requestEffects[ev.Op]; h != nil {
				h(m, t, ev)
			}
		}
	case event.Forked:
		m.fork(t, ev)
	case event.Exited:
		m.exit(t)
	case event.Described:
		m.runs(t, ev)
	case event.Started:
		m.started(t, ev)
	case event.Inherited:
		for i := range ev.Files {
			m.inherit(t, ev, &ev.Files[i])
		}
	}
	return m.released
}

// Closed returns the open files of which the last event that was applied closed a
// descriptor, in no particular order: by a close, by giving its number to another one, by
// an execve or with the last thread of a process. That ends the process's fcntl locks on
// the file (fcntl(2)). The slice is valid until the next Apply.
func (m *Model) Closed() []*OpenFile { return m.lost }

// inherit gives a thread's table a descriptor that was open at the start, or its memory
// a mapping. Events that give the same open file share it. Calls that began before the
// start may close it.
func (m *Model) inherit(t *Thread, ev *event.Event, f *event.File) {
	key := f.Open
	if m.resume != nil && key != 0 { // what it is called is its identity
		defer func(was event.OpenID) { *m.last = was }(*m.last)
		*m.last = key - 1
	}
	o := m.given[key]
	if t.FS.Mounts == nil { // else it is a state, whose names are true
		f.Real = m.fromKernel(t, nameOf(f.Path, f.Real)).other()
	}
	from, to, mapped := ev.Mapping()
	switch known := key != 0 && o != nil && o.refs > 0; {
	case mapped:
		if !known {
			o = m.made(f)
		}
		m.hold(t.Space, mapping{from, to, o})
		o.describe(f)
	case known:
		m.install(t.Table, f.FD, o, f.Flags&event.OpenCloexec != 0, 0)
		o.describe(f)
	default:
		o = m.open(t.Table, f, 0)
		o.stat = true
	}
	o.Given = !ev.OwnsFile()
	if through := m.restored.bind(ev.OpenedOver()); through != nil {
		o.Now.over = through
	}
	o.Now.fs = t.FS.Mounts.topmost(o.Now.Real, m.mounts+1)
	if key != 0 {
		m.given[key] = o
	}
}

// fork makes the child of a Forked event.
func (m *Model) fork(t *Thread, ev *event.Event) {
	made := ev.Fork()
	share := made.Share
	c := &Thread{TID: made.TID, PID: made.PID, FS: t.FS, Table: t.Table, Space: t.Space}
	if share&event.ShareFS == 0 || share&event.NewMounts != 0 {
		fs := *t.FS
		fs.users = 0
		c.FS = &fs
	}
	if share&event.NewMounts != 0 {
		m.depart(t, true)
		c.FS.Mounts = c.FS.Mounts.clone()
	}
	if share&event.ShareFiles == 0 {
		c.Table = t.Table.clone()
	}
	if share&event.ShareVM == 0 {
		c.Space = m.cloneSpace(t.Space)
	}
	c.FS.users++
	c.Table.users++
	c.Space.users++
	if old := m.threads[c.TID]; old != nil {
		m.exit(old) // the number was used again and the end of the first was lost
	}
	m.threads[c.TID] = c
}

func (t *Table) clone() *Table {
	c := &Table{slots: make(map[int32]*Descriptor, len(t.slots))}
	for n, d := range t.slots {
		copied := *d
		c.slots[n] = &copied
		d.Open.ref()
	}
	return c
}

// exit removes a thread and, with the last user of its table, its descriptors.
func (m *Model) exit(t *Thread) {
	delete(m.threads, t.TID)
	t.FS.users--
	if t.Table.users--; t.Table.users == 0 {
		m.clear(t.Table)
	}
	m.leave(t.Space)
}

// clear empties a table.
func (m *Model) clear(tab *Table) {
	for n := range tab.slots {
		m.drop(tab, n)
	}
}

// open gives a table a new open file for a descriptor.
func (m *Model) open(tab *Table, f *event.File, since int64) *OpenFile {
	o := m.made(f)
	m.install(tab, f.FD, o, f.Flags&event.OpenCloexec != 0, since)
	f.Open = o.ID
	return o
}

// describe lets a descriptor of an event stand for the open file.
// A socket gets another name when it gets an address or a peer, and then the descriptor has it.
func (o *OpenFile) describe(f *event.File) {
	if f.Path != o.Path && f.Path != "" && isSocketName(f.Path) {
		o.Path, o.Now = f.Path, nameOf(f.Path, "")
	}
	f.Open, f.Path, f.Real = o.ID, o.Path, ""
	if o.Now.Real != o.Path {
		f.Real = o.Now.Real
	}
}

// isSocketName reports whether a name is that of a socket whose ends it tells.
func isSocketName(name string) bool {
	if !strings.HasSuffix(name, "]") || !strings.Contains(name, ":[") {
		return false
	}
	_, ok := socket.Parse(name)
	return ok
}

// made returns a new open file, which nobody uses yet.
func (m *Model) made(f *event.File) *OpenFile {
	*m.last++
	if f.Path == "" && f.Known {
		f.Path = kernelName(f)
	}
	o := &OpenFile{ID: *m.last, Path: f.Path, Now: nameOf(f.Path, f.Real), Flags: f.Flags, Mode: f.Mode}
	o.Dev, o.Ino = f.Dev, f.Ino
	o.Gone = o.nameless() && (!f.Known || f.Nlink == 0) // else its name ends so
	m.opens[o.ID] = o
	return o
}

// kernelName is how the kernel calls a pipe or a socket (proc(5), "fd").
func kernelName(f *event.File) string {
	if f.Ino == 0 { // a foreign trace does not say it
		return ""
	}
	switch event.FileType(f.Mode) {
	case event.TypeFIFO:
		return "pipe:[" + strconv.FormatUint(f.Ino, 10) + "]"
	case event.TypeSocket:
		return "socket:[" + strconv.FormatUint(f.Ino, 10) + "]"
	}
	return ""
}

// install puts an open file into a slot. What is in the slot was closed by a
// call whose return has not been seen yet.
func (m *Model) install(tab *Table, fd int32, o *OpenFile, cloexec bool, since int64) {
	o.ref() // first, for dup2(fd, fd)
	m.drop(tab, fd)
	tab.slots[fd] = &Descriptor{Open: o, CloExec: cloexec, since: since}
}

// drop empties a slot.
func (m *Model) drop(tab *Table, fd int32) {
	d := tab.slots[fd]
	if d == nil {
		return
	}
	delete(tab.slots, fd)
	if !tab.ring {
		m.lost = append(m.lost, d.Open)
	}
	m.unref(d.Open)
}

// ref adds a use of an open file.
func (o *OpenFile) ref() {
	o.refs++
	o.most = max(o.most, o.refs)
}

// Shared returns how many descriptors, mappings and messages had the open file at a
// time, at most.
func (o *OpenFile) Shared() int { return o.most }

// Open returns the open file with a number that Apply gave it, nil if it has ended.
func (m *Model) Open(id event.OpenID) *OpenFile { return m.opens[id] }

// Nameless returns the first of the other open files that are the same file as f, which has no name any
// more; nil if none is. If nothing is known of f, that is an open file whose name was f's.
func (m *Model) Nameless(f *event.File) *OpenFile {
	var first *OpenFile
	for id, o := range m.opens {
		same := o.Dev == f.Dev && o.Ino == f.Ino
		if !f.Known {
			same = o.Gone && f.Path != "" && o.Now.Given == f.Path
		}
		if same && id != f.Open && (first == nil || id < first.ID) {
			first = o
		}
	}
	return first
}

// unref ends one use of an open file.
func (m *Model) unref(o *OpenFile) {
	if o.refs--; o.refs == 0 {
		delete(m.opens, o.ID)
		m.released = append(m.released, o.ID)
		if o.files != nil {
			m.clear(o.files)
		}
	}
}

// setCwd numbers working directories.
func (m *Model) setCwd(t *Thread, dir Name) {
	*m.last++ // one counter for all identities keeps them unique
	t.FS.Cwd, t.FS.realCwd, t.FS.overCwd, t.FS.CwdID = dir.Given, dir.other(), dir.over, uint64(*m.last)
	t.FS.gone, t.FS.inCwd, t.FS.nsCwd = dir.gone, dir.fs, dir.ns
	t.FS.mounts = m.mounts
}
