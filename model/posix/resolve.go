// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// resolve fills what an event's descriptors and names stand for.
func (m *Model) resolve(t *Thread, ev *event.Event) {
	spec := ev.Spec()
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Arg == event.ResultArg || f.Arg == event.MemoryArg && makesInMemory(ev.Op.Like()) {
			continue // its effect makes it
		}
		if spec.NoCall {
			if o := m.mapped(t, ev, f); o != nil {
				o.describe(f)
			} else if n, ok := m.programs[fileID{f.Dev, f.Ino}]; ok && f.Path == "" {
				f.Real = n.Real
			}
			continue
		}
		tab := m.tableOf(t, ev, int(f.Arg))
		d := tab.Lookup(f.FD)
		if d == nil {
			f.Open = 0
			if f.Known { // opened where the trace did not see it
				f.Open = m.open(tab, f, ev.Enter).ID
			}
			continue
		}
		o := d.Open
		if o.stat && f.Known && f.Ino == o.Ino {
			o.stat, o.Dev = false, f.Dev
		}
		if f.Known && o.Ino != 0 && (f.Ino != o.Ino || f.Dev != o.Dev) {
			// The kernel says that the number stands for another file: the calls
			// in between were lost, or have not been seen yet.
			o = m.open(tab, f, ev.Enter)
		}
		if f.Known && o.Ino == 0 {
			o.Dev, o.Ino, o.Mode = f.Dev, f.Ino, f.Mode
		}
		o.describe(f)
	}
	m.names(t, ev)
	ev.Offset, ev.Count = Extent(ev)
}

// makesInMemory reports whether the descriptors in a call's memory are new ones.
func makesInMemory(op event.Op) bool {
	return op.Effect() == event.EffectPair || op == event.OpRecvmsg || op == event.OpRecvmmsg
}

// CwdPath takes apart a name that goes through a process's own working directory, such as /proc/self/cwd/x.
func CwdPath(name string, pid uint32) (rest string, ok bool) {
	for _, prefix := range []string{"/proc/self/cwd", "/proc/thread-self/cwd",
		"/proc/" + strconv.FormatUint(uint64(pid), 10) + "/cwd"} {
		rest, ok = strings.CutPrefix(name, prefix)
		if ok = ok && (rest == "" || rest[0] == '/'); ok {
			return strings.TrimLeft(rest, "/"), true
		}
	}
	return "", false
}

// DescriptorPath takes apart a name that goes through a process's own descriptors,
// such as /proc/self/fd/7/x: the C library makes them where the kernel has no call
// on a descriptor (proc(5)).
func DescriptorPath(name string, pid uint32) (fd int32, rest string, ok bool) {
	tail, ok := strings.CutPrefix(name, "/proc/self/fd/")
	for _, prefix := range []string{"/proc/thread-self/fd/", "/dev/fd/",
		"/proc/" + strconv.FormatUint(uint64(pid), 10) + "/fd/"} {
		if !ok {
			tail, ok = strings.CutPrefix(name, prefix)
		}
	}
	digits, rest, _ := strings.Cut(tail, "/")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int32(n), rest, ok && err == nil
}

// Extent returns the file offset that a data operation started at and the bytes
// that it asked for; -1 where there is none.
func Extent(ev *event.Event) (offset, count int64) {
	spec := ev.Spec()
	if spec.Class != event.Data {
		return -1, -1
	}
	x, ok := extents[ev.Op.Like()]
	switch {
	case !ok:
		return -1, asked(ev, spec)
	case x.count == noCount:
		count = -1
	case x.count > 0 && !ev.ArgKnown(int(x.count)):
		count = -1
	case x.count > 0:
		count = int64(ev.Args[x.count])
	default:
		count = asked(ev, spec)
	}
	if x.offset > 0 && !ev.ArgKnown(int(x.offset)) {
		return -1, count
	}
	if x.offset > 0 {
		offset = int64(ev.Args[x.offset])
		if offset != -1 || !x.position && ev.Op.Like() == ev.Op {
			return offset, count
		}
	}
	if f := ev.FileArg(0); f.Is(event.TypeRegular) && ev.OK() && f.Pos >= ev.Ret {
		return f.Pos - ev.Ret, count
	}
	return -1, count
}

// extent says where a call has the offset and the number of bytes that it asks for.
type extent struct {
	offset   int8 // argument; 0: it is the position of the file
	count    int8 // argument; 0: what the operation table says is a size; noCount: there is none
	position bool // an offset of -1 is the position of the file, as it is for each request of io_uring
}

const noCount = -1

var extents = map[event.Op]extent{
	event.OpRead: {}, event.OpWrite: {}, event.OpReadv: {}, event.OpWritev: {},
	event.OpPread64: {offset: 3}, event.OpPwrite64: {offset: 3},
	event.OpPreadv: {offset: 3}, event.OpPwritev: {offset: 3},
	event.OpMmapPread: {offset: 3}, event.OpMmapPwrite: {offset: 3},
	event.OpPreadv2: {offset: 3, position: true}, event.OpPwritev2: {offset: 3, position: true},
	event.OpFallocate: {offset: 2, count: 3},
	event.OpTruncate:  {offset: 1, count: noCount}, event.OpFtruncate: {offset: 1, count: noCount},
	event.OpFadvise64: {offset: 1, count: 2}, event.OpReadahead: {offset: 1},
}

// asked returns how many bytes the sizes and vectors of a call ask for, -1 if it has none.
func asked(ev *event.Event, spec *event.Spec) int64 {
	count := int64(-1)
	for i := range spec.Args {
		switch a := &spec.Args[i]; {
		case !ev.ArgKnown(i):
		case a.Kind == event.KindSize && count < 0:
			count = int64(ev.Args[i])
		case a.Kind == event.KindVec:
			if b := ev.BufArg(i); b != nil {
				count = 0
				for _, n := range b.Parts {
					count += n
				}
			}
		}
	}
	return count
}

// effects are the operations that change the model, after they succeeded unless
// the handler says otherwise.
var effects = map[event.Op]func(*Model, *Thread, *event.Event){
	event.OpOpen:           (*Model).opened,
	event.OpOpenat:         (*Model).opened,
	event.OpOpenat2:        (*Model).opened,
	event.OpCreat:          (*Model).opened,
	event.OpOpenByHandleAt: (*Model).opened,
	event.OpNameToHandleAt: (*Model).handled,
	event.OpMemfdCreate:    (*Model).opened,
	event.OpSocket:         (*Model).opened,
	event.OpAccept:         (*Model).opened,
	event.OpAccept4:        (*Model).opened,
	event.OpEventfd:        (*Model).opened,
	event.OpEventfd2:       (*Model).opened,
	event.OpEpollCreate:    (*Model).opened,
	event.OpEpollCreate1:   (*Model).opened,
	event.OpSignalfd4:      (*Model).opened,
	event.OpTimerfdCreate:  (*Model).opened,
	event.OpInotifyInit:    (*Model).opened,
	event.OpInotifyInit1:   (*Model).opened,
	event.OpIoUringSetup:   (*Model).opened,
	event.OpPidfdOpen:      (*Model).openedProcess,
	event.OpPidfdGetfd:     (*Model).fetched,
	event.OpSendmsg:        (*Model).sent,
	event.OpSendmmsg:       (*Model).sent,
	event.OpRecvmsg:        (*Model).received,
	event.OpRecvmmsg:       (*Model).received,
	event.OpFsopen:         (*Model).opened,
	event.OpFsmount:        (*Model).opened,
	event.OpFspick:         (*Model).opened,
	event.OpOpenTree:       (*Model).opened,
	event.OpOpenTreeAttr:   (*Model).opened,
	event.OpMqOpen:         (*Model).opened,
	event.OpSignalfd:       (*Model).opened,
	event.OpFanotifyInit:   (*Model).opened,
	event.OpUserfaultfd:    (*Model).opened,
	event.OpPerfEventOpen:  (*Model).opened,
	event.OpMemfdSecret:    (*Model).opened,
	event.OpPipe:           (*Model).pair,
	event.OpPipe2:          (*Model).pair,
	event.OpSocketpair:     (*Model).pair,
	event.OpDup:            (*Model).duplicated,
	event.OpDup2:           (*Model).duplicated,
	event.OpDup3:           (*Model).duplicated,
	event.OpFcntl:          (*Model).controlled,
	event.OpIoctl:          (*Model).ioctl,
	event.OpClose:          (*Model).closed,
	event.OpCloseRange:     (*Model).closedRange,
	event.OpChdir:          (*Model).changedDir,
	event.OpFchdir:         (*Model).changedDir,
	event.OpGetcwd:         (*Model).toldCwd,
	event.OpChroot:         (*Model).changedRoot,
	event.OpUmask:          (*Model).masked,
	event.OpExecve:         (*Model).executed,
	event.OpExecveat:       (*Model).executed,
	event.OpUnshare:        (*Model).unshared,
	event.OpSetns:          (*Model).entered,
	event.OpMmap:           (*Model).mmapped,
	event.OpMunmap:         (*Model).munmapped,
	event.OpMremap:         (*Model).mremapped,

	event.OpIoUringRegister: (*Model).registered,
}

// nameEffects change which names files have, or tell it, by what calls do.
var nameEffects = [event.NumEffects]func(*Model, *Thread, *event.Event){
	event.EffectRename:   (*Model).moved,
	event.EffectUnlink:   (*Model).removed,
	event.EffectRmdir:    (*Model).removed,
	event.EffectLink:     (*Model).named,
	event.EffectMkdir:    (*Model).created,
	event.EffectMknod:    (*Model).created,
	event.EffectOpen:     (*Model).created,
	event.EffectSymlink:  (*Model).linked,
	event.EffectReadlink: (*Model).readLink,
}

// mountEffects change what is mounted.
var mountEffects = map[event.Op]func(*Model, *Thread, *event.Event){
	event.OpPivotRoot: (*Model).pivoted,
	event.OpMount:     (*Model).mounted,
	event.OpUmount2:   (*Model).unmounted,
	event.OpMoveMount: (*Model).attached,
	event.OpFsconfig:  (*Model).configured,
}

// requestEffects are those of requests that no call does.
var requestEffects = map[event.Op]func(*Model, *Thread, *event.Event){
	event.OpUringFilesUpdate:    (*Model).registered,
	event.OpUringFixedFDInstall: (*Model).installed,
}

func (m *Model) opened(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	tab, fd := m.resultTable(t, ev)
	f := ev.FileArg(event.ResultArg)
	if f == nil {
		ev.Files = append(ev.Files, event.File{Arg: event.ResultArg, FD: fd})
		f = &ev.Files[len(ev.Files)-1]
	}
	if f.Path == "" {
		f.Path, f.Real = m.openedName(ev, f)
	}
	o := m.open(tab, f, ev.Exit)
	m.openedFileSystem(t, ev, o)
	if len(ev.Paths) > 0 {
		o.Now.over, o.Now.fs, o.Now.ns = m.ends[0].over, m.ends[0].fs, m.ends[0].ns
		o.Gone = o.Gone || m.ends[0].gone
		m.openedNamespace(t, ev, o)
	}
}

// pair installs the two descriptors of pipe, pipe2 and socketpair.
func (m *Model) pair(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	known := false
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Arg == event.MemoryArg {
			m.open(t.Table, f, ev.Exit)
			known = true
		}
	}
	if known {
		return
	}
	for _, fd := range PairFDs(ev) {
		f := event.File{FD: fd}
		if ev.Op.Like() != event.OpPipe && ev.Args[1]&event.OpenCloexec != 0 { // SOCK_CLOEXEC is the same
			f.Flags = event.OpenCloexec
		}
		m.open(t.Table, &f, ev.Exit)
	}
}

// PairFDs returns the descriptors that a successful pipe, pipe2 or socketpair
// made, none if they were not recorded.
func PairFDs(ev *event.Event) []int32 {
	for i := range ev.Bufs {
		if b := ev.Bufs[i].Inline; ev.Bufs[i].Kind == event.KindStruct && ev.Bufs[i].Arg != event.RequestArg &&
			len(b) >= 8 {
			return []int32{le32(b), le32(b[4:])}
		}
	}
	return nil
}

func le32(b []byte) int32 {
	return int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

func (m *Model) duplicated(t *Thread, ev *event.Event) {
	if ev.OK() {
		m.duplicate(t, ev, ev.Op == event.OpDup3 && ev.Args[2]&event.OpenCloexec != 0)
	}
}

// duplicate lets the result stand for the open file of argument 0.
func (m *Model) duplicate(t *Thread, ev *event.Event, cloexec bool) {
	d, fd := t.Table.Lookup(int32(ev.Args[0])), int32(ev.Ret)
	if d == nil { // what it stands for now is not known, but nothing that it stood for before
		m.drop(t.Table, fd)
		return
	}
	if fd != int32(ev.Args[0]) {
		m.install(t.Table, fd, d.Open, cloexec, ev.Exit)
	}
	stands(ev, fd, d.Open)
}

// stands says that a call's result is a descriptor of an open file.
func stands(ev *event.Event, fd int32, o *OpenFile) {
	f := ev.FileArg(event.ResultArg)
	if f == nil {
		ev.Files = append(ev.Files, event.File{Arg: event.ResultArg, FD: fd})
		f = &ev.Files[len(ev.Files)-1]
	}
	o.describe(f)
}

// fcntl commands.
const (
	fDupFD        = 0
	fSetFD        = 2
	fSetFL        = 4
	fDupFDCloexec = 1030
)

func (m *Model) controlled(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	switch ev.Args[1] {
	case fDupFD, fDupFDCloexec:
		m.duplicate(t, ev, ev.Args[1] == fDupFDCloexec)
	case fSetFD:
		if d := t.Table.Lookup(int32(ev.Args[0])); d != nil {
			d.CloExec = ev.Args[2]&1 != 0
		}
	case fSetFL:
		if d := t.Table.Lookup(int32(ev.Args[0])); d != nil {
			const settable = 0o66000 // O_APPEND, O_NONBLOCK, O_ASYNC, O_DIRECT
			d.Open.Flags = d.Open.Flags&^settable | uint32(ev.Args[2])&settable
		}
	}
}

// ioctl commands that act on the descriptor itself.
const (
	fionclex = 0x5450
	fioclex  = 0x5451
)

func (m *Model) ioctl(t *Thread, ev *event.Event) {
	if d := t.Table.Lookup(int32(ev.Args[0])); d != nil && ev.OK() {
		switch ev.Args[1] {
		case fioclex:
			d.CloExec = true
		case fionclex:
			d.CloExec = false
		}
	}
}

// closed empties the slot, also after an error other than EBADF: Linux frees the
// number first (close(2), Notes). A close that began before the slot's present
// owner was made ended an earlier one.
func (m *Model) closed(t *Thread, ev *event.Event) {
	if r, ok := ev.Request(); ok {
		if slot, ok := r.Slot(0); ok {
			m.closedSlot(t, ev, &r, slot)
			return
		}
	}
	fd := int32(ev.Args[0])
	d := t.Table.Lookup(fd)
	if d == nil || ev.Errno == ebadf {
		return
	}
	f := ev.FileArg(0)
	if f == nil {
		ev.Files = append(ev.Files, event.File{Arg: 0, FD: fd})
		f = &ev.Files[len(ev.Files)-1]
	}
	if d.since > ev.Enter {
		return
	}
	d.Open.describe(f)
	m.drop(t.Table, fd)
}

const ebadf = 9

func (m *Model) closedRange(t *Thread, ev *event.Event) {
	const unshareFlag, cloexecFlag = 2, 4
	if !ev.OK() {
		return
	}
	if ev.Args[2]&unshareFlag != 0 {
		m.ownTable(t)
	}
	for fd, d := range t.Table.slots {
		if uint32(fd) < uint32(ev.Args[0]) || uint32(fd) > uint32(ev.Args[1]) {
			continue
		}
		if ev.Args[2]&cloexecFlag != 0 {
			d.CloExec = true
		} else {
			m.drop(t.Table, fd)
		}
	}
}

func (m *Model) changedDir(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	dir := Name{}
	if ev.Op == event.OpChdir && len(ev.Paths) > 0 {
		dir = m.found(ev, 0)
	} else if d := t.Table.Lookup(int32(ev.Args[0])); d != nil {
		dir = d.Open.now()
	}
	m.setCwd(t, dir)
}

// toldCwd believes getcwd: it is the kernel's own answer.
func (m *Model) toldCwd(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Bufs) == 0 {
		return
	}
	b := ev.Bufs[0].Inline
	if n := len(b); n > 1 && b[0] == '/' {
		told, _ := m.lookup(t, t.FS.root(), string(b[:n-1]), true)
		if told.Real != t.FS.cwd().Real {
			t.FS.Cwd, t.FS.realCwd, t.FS.overCwd, t.FS.gone = told.Given, told.other(), told.over, false
			t.FS.inCwd, t.FS.nsCwd = told.fs, told.ns
		}
	}
}

func (m *Model) changedRoot(t *Thread, ev *event.Event) {
	if ev.OK() && len(ev.Paths) > 0 {
		t.FS.setRoot(m.found(ev, 0))
	}
}

func (m *Model) masked(t *Thread, ev *event.Event) { t.FS.Umask = uint32(ev.Args[0]) & 0o777 }

// executed closes what is marked so, in a table of its own.
func (m *Model) executed(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	m.executes(t, ev)
	m.ownTable(t)
	m.leave(t.Space)
	t.Space = &Space{users: 1}
	if len(ev.Paths) > 0 {
		t.Space.program = nameOf(ev.Paths[0].Abs, ev.Paths[0].Real)
	}
	for fd, d := range t.Table.slots {
		if d.CloExec {
			m.drop(t.Table, fd)
		}
	}
	if t.TID != t.PID {
		m.lead(t)
	}
}

// lead gives a thread the number of its process's first one, which ended when this one
// executed a program: execve(2), "Effect on other threads". Its own number is nobody's.
func (m *Model) lead(t *Thread) {
	if first := m.threads[t.PID]; first != nil {
		m.exit(first)
	}
	delete(m.threads, t.TID)
	t.TID = t.PID
	m.threads[t.TID] = t
}

func (m *Model) unshared(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	if ev.Args[0]&event.ShareFiles != 0 {
		m.ownTable(t)
	}
	if ev.Args[0]&(event.ShareFS|event.NewMounts) != 0 && t.FS.users > 1 { // CLONE_NEWNS has CLONE_FS in it
		fs := *t.FS
		t.FS.users--
		fs.users = 1
		t.FS = &fs
	}
	if ev.Args[0]&event.NewMounts != 0 {
		m.depart(t, false)
		t.FS.Mounts = t.FS.Mounts.clone()
	}
}

// ownTable gives a thread a copy of a shared table.
func (m *Model) ownTable(t *Thread) {
	if t.Table.users > 1 {
		c := t.Table.clone()
		t.Table.users--
		c.users = 1
		t.Table = c
	}
}
