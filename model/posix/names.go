// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Name is how a file is called: as a program would, and without symbolic links. Both are
// absolute and lead to the same file; "" is unknown. What is no file has the name that
// /proc/PID/fd gives it.
type Name struct {
	Given, Real string
	// over is the mount that it was reached through, and the directory above whose root is not Real's; or nil.
	over *bind
	fs   int        // Mount.Number of the file system that it is in, of those that the trace mounted; 0: of none
	gone bool       // nothing has it any more: it was that of a directory that is still in use
	ns   *Namespace // whose mounts are below it; nil: those of who looks
}

// nameOf returns the Name of which an event says only what it does not have twice.
func nameOf(given, real string) Name {
	if real == "" {
		real = given
	}
	return Name{Given: given, Real: real}
}

// other returns the real name if it is not the given one.
func (n Name) other() string {
	if n.Real == n.Given {
		return ""
	}
	return n.Real
}

// isFile reports whether it is the name of a file that other names can be below.
func (n Name) isFile() bool { return strings.HasPrefix(n.Given, "/") }

// maxLinks is the kernel's limit for one look-up (MAXSYMLINKS).
const maxLinks = 40

// longest bounds the names that are followed, in bytes: links of a hostile trace make
// longer and longer ones.
const longest = 4 * event.MaxPath

// walk is one look-up of a name, as the kernel does it (path_resolution(7)).
type walk struct {
	m    *Model
	t    *Thread
	root Name
	from Name // where it began
	at   Name
	hops int
	read bool // a link was followed that the trace does not tell of
	lost bool // it came to a name in a directory that is gone
}

// lookup finds what a thread means by a name that begins at a directory. read says that it followed a
// link that the trace does not tell of.
func (m *Model) lookup(t *Thread, base Name, name string, follow bool) (n Name, read bool) {
	return m.lookupIn(t, t.FS.root(), base, name, follow)
}

func (m *Model) lookupIn(t *Thread, root, base Name, name string, follow bool) (n Name, read bool) {
	w := walk{m: m, t: t, root: root, at: base}
	if strings.HasPrefix(name, "/") {
		w.at = root
	}
	if !w.at.isFile() {
		return Name{}, false
	}
	w.from = w.at
	if strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") {
		follow = true
	}
	if !w.steps(name, follow) {
		return nameOf(path.Join(w.from.Given, name), ""), false
	}
	if w.lost {
		return Name{}, w.read
	}
	if strings.HasPrefix(w.at.Real, "/proc/") {
		w.at.Real = w.at.Given // the process is told of elsewhere
	}
	if root.Real != "/" && w.hops > 0 {
		w.at.Given = w.at.Real // elsewhere the links lead elsewhere
	}
	return w.at, w.read
}

// steps goes on from where the walk is, part by part. It returns false if there are too many links.
func (w *walk) steps(name string, follow bool) bool {
	name = strings.TrimRight(name, "/")
	for name != "" {
		part, rest, _ := strings.Cut(name, "/")
		name = strings.TrimLeft(rest, "/")
		switch part {
		case "", ".":
		case "..":
			w.up()
		default:
			if !w.down(part, name != "" || follow) {
				return false
			}
			if w.lost {
				return true
			}
		}
	}
	return true
}

// up goes to the directory that the present one is in.
func (w *walk) up() {
	for w.at.over != nil && w.at.Real == w.at.over.to && w.at.isNot(w.root) {
		w.at = w.at.over.at
	}
	if !w.at.isNot(w.root) {
		w.at = w.root
		return
	}
	if w.at.Real == "/" { // it began outside its root directory, and got to that of all
		w.at = nameOf("/", "")
		return
	}
	fs := w.m.below(w.at)
	real, _ := split(w.at.Real)
	given, _ := split(w.at.Given)
	if w.at.Given != w.at.Real {
		above := walk{m: w.m, t: w.t, root: w.root, at: nameOf("/", ""), hops: w.hops}
		if !above.steps(given, true) || above.at.Real != real {
			given = real
		}
	}
	w.at = Name{Given: given, Real: real, over: w.at.over, fs: fs, ns: w.at.ns}
	w.at.fs = w.mounts().enter(w.at) // also of a directory that a mount hides, from below it (path_resolution(7))
}

// mounts returns those that can be below where the walk is.
func (w *walk) mounts() *Namespace {
	if w.at.ns != nil {
		return w.at.ns
	}
	return w.t.FS.Mounts
}

// isNot reports whether it is not the same directory of the same mount as another one.
func (n Name) isNot(other Name) bool { return n.Real != other.Real || n.over != other.over }

// down goes to a name in the present directory, and through it if it is a link and that is
// to be followed. It returns false if there are too many links.
func (w *walk) down(part string, follow bool) bool {
	dir := w.at
	if len(dir.Real) > longest {
		return false
	}
	if dir.gone { // nothing is in it, whatever has its name now
		w.lost = true
		return true
	}
	w.at = Name{Given: join(dir.Given, part), Real: join(dir.Real, part), over: dir.over, fs: dir.fs, ns: dir.ns}
	w.at.fs = w.mounts().enter(w.at)
	if !follow {
		return true
	}
	if to, ok := w.m.magic(w.t, w.at.Real); ok {
		w.at = to
		return true
	}
	if target, told := w.m.linksIn(w.at.fs).target(w.at.Real); target != "" {
		if w.hops++; w.hops > maxLinks {
			return false
		}
		w.read = w.read || !told
		link := w.at
		w.at = dir
		if strings.HasPrefix(target, "/") {
			w.at = w.root
		}
		if !w.steps(target, true) {
			return false
		}
		if !strings.HasPrefix(target, "/proc/") || strings.HasPrefix(w.at.Real, "/proc/") {
			w.at.Given = link.Given
		}
		return true
	}
	if b := w.mounts().through(w.at.Real); b != nil && b.to == w.at.Real {
		w.at.over = b
	} else if b != nil {
		w.at = Name{Given: b.to, Real: b.to, over: b, ns: dir.ns} // which has no other name outside
	}
	return true
}

// join appends a part to an absolute name.
func join(dir, part string) string {
	if dir == "/" {
		return "/" + part
	}
	return dir + "/" + part
}

// magic returns what a magic link of /proc leads to, if it is one of a followed thread's and
// that is known (proc(5)).
func (m *Model) magic(t *Thread, name string) (to Name, ok bool) {
	tail, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return to, false
	}
	who, what, ok := strings.Cut(tail, "/")
	if !ok {
		return to, false
	}
	looks := t
	switch {
	case who == "thread-self":
	case who == "self":
		t = m.processOf(t, t.PID)
	case who == strconv.FormatUint(uint64(t.PID), 10):
		t = m.processOf(t, t.PID)
	default:
		n, err := strconv.ParseUint(who, 10, 32)
		if err != nil || m.threads[uint32(n)] == nil {
			return to, false
		}
		t = m.threads[uint32(n)]
	}
	if rest, ok := strings.CutPrefix(what, "task/"); ok {
		tid, rest, _ := strings.Cut(rest, "/")
		n, err := strconv.ParseUint(tid, 10, 32)
		if err != nil || m.threads[uint32(n)] == nil {
			return to, false
		}
		t, what = m.threads[uint32(n)], rest
	}
	switch what {
	case "cwd":
		return m.seenBy(looks, t, t.FS.cwd()), t.FS.Cwd != ""
	case "root":
		return m.seenBy(looks, t, t.FS.root()), true
	}
	digits, ok := strings.CutPrefix(what, "fd/")
	fd, err := strconv.ParseUint(digits, 10, 31)
	if d := t.Table.Lookup(int32(fd)); ok && err == nil && d != nil && d.Open.Now.isFile() {
		return m.seenBy(looks, t, d.Open.now()), true
	}
	return to, false
}

// seenBy returns a name of a thread as another one comes to it: what is below it has the mounts of its namespace.
func (m *Model) seenBy(looks, t *Thread, n Name) Name {
	if n.ns == nil && looks.FS.Mounts != t.FS.Mounts {
		n.ns = m.namespace(t)
	}
	return n
}

// Meant returns the thread whose descriptors, or working directory, a thread means by a name in /proc or /dev/fd: that
// of /proc/self is the first of its process, which can have others.
func (m *Model) Meant(t *Thread, name string) *Thread {
	if strings.HasPrefix(name, "/proc/thread-self/") {
		return t
	}
	return m.processOf(t, t.PID)
}

// processOf returns the first thread of a process, or else the given one.
func (m *Model) processOf(t *Thread, pid uint32) *Thread {
	if p := m.threads[pid]; p != nil {
		return p
	}
	return t
}

// names finds what the names of an event lead to. Those that the event says already stay:
// a tape has what the recording knew, which is more.
func (m *Model) names(t *Thread, ev *event.Event) {
	spec := ev.Spec()
	m.ends = append(m.ends[:0], make([]Name, len(ev.Paths))...)
	for i := range ev.Paths {
		p := &ev.Paths[i]
		dirfd := int32(event.AtFDCWD)
		if a := int(p.Arg) - 1; a >= 0 && a < len(spec.Args) && spec.Args[a].Kind == event.KindDirFD {
			dirfd = int32(ev.Args[a])
		}
		_, follow := ev.NameUse(i)
		base, root := t.base(dirfd), t.FS.root()
		if p.Abs != "" {
			if base.gone || strings.HasPrefix(p.Raw, "/proc/") {
				n, _ := m.lookup(t, base, p.Raw, follow)
				m.ends[i].gone = n.gone
			}
			m.ends[i].fs, m.ends[i].ns = m.fileSystemOf(t, base, p, follow)
			continue
		}
		if p.Raw == "" {
			p.Abs, p.Real, m.ends[i] = base.Given, base.other(), base
			if !base.isFile() {
				p.Abs, p.Real = "", ""
			}
			continue
		}
		if ev.Op.Like() == event.OpOpenat2 && inRoot(ev) {
			root = base
		}
		n, read := m.lookupIn(t, root, base, p.Raw, follow)
		if read && n.Real != n.Given && m.disagrees(ev, n) {
			n.Real = n.Given
		}
		p.Abs, p.Real, m.ends[i] = n.Given, n.other(), n
	}
}

// found returns what a name of the present event leads to.
func (m *Model) found(ev *event.Event, i int) Name {
	n := nameOf(ev.Paths[i].Abs, ev.Paths[i].Real)
	n.over, n.fs, n.gone, n.ns = m.ends[i].over, m.ends[i].fs, m.ends[i].gone, m.ends[i].ns
	return n
}

// inRoot reports whether an openat2 takes its directory for the root (RESOLVE_IN_ROOT).
func inRoot(ev *event.Event) bool {
	const resolveAt, resolveInRoot = 16, 0x10
	how := ev.BufArg(2)
	return how != nil && len(how.Inline) > resolveAt && how.Inline[resolveAt]&resolveInRoot != 0
}

// disagrees reports whether an event says that a name led to another file than the one
// that has it.
func (m *Model) disagrees(ev *event.Event, n Name) bool {
	f := ev.FileArg(event.ResultArg)
	if f == nil || !f.Known || !ev.OK() || m.links.fs == nil {
		return false
	}
	_, ino := m.links.fs.Inode(n.Real)
	return ino != 0 && ino != f.Ino
}

// base returns the directory that relative names of a call begin at.
func (t *Thread) base(dirfd int32) Name {
	if dirfd == event.AtFDCWD {
		return t.FS.cwd()
	}
	if d := t.Table.Lookup(dirfd); d != nil {
		return d.Open.now()
	}
	return Name{}
}

// Dir returns the name of the working directory without links, "" if it is not known, and the mounts that can cover it:
// those that were there when it was entered.
func (fs *FS) Dir() (name string, mounts []Mount) {
	for _, m := range fs.Mounts.Own() {
		if m.Number <= fs.mounts {
			mounts = append(mounts, m)
		}
	}
	return fs.cwd().Real, mounts
}

func (fs *FS) cwd() Name {
	n := nameOf(fs.Cwd, fs.realCwd)
	n.over, n.fs, n.gone, n.ns = fs.overCwd, fs.inCwd, fs.gone, fs.nsCwd
	return n
}

func (fs *FS) root() Name {
	n := nameOf(cmp.Or(fs.Root, "/"), fs.realRoot)
	n.over, n.fs = fs.overRoot, fs.inRoot
	return n
}

// fromKernel completes a name that the kernel gave when the trace began.
func (m *Model) fromKernel(t *Thread, n Name) Name {
	if m.links.fs == nil || !n.isFile() || n.Real != n.Given {
		return n
	}
	if found, _ := m.lookupIn(t, nameOf("/", ""), nameOf("/", ""), n.Given, true); found.Real != "" {
		n.Real = found.Real
	}
	return n
}

// Abs returns the absolute form of a name as a thread would use it; "" if the directory
// that it starts from is not known. Below a chroot it begins with that directory.
func (t *Thread) Abs(dirfd int32, name string) string {
	base := t.base(dirfd)
	if strings.HasPrefix(name, "/") {
		base = t.FS.root()
		return path.Join(base.Given, path.Clean(name))
	}
	if !base.isFile() {
		return ""
	}
	if name == "" {
		return base.Given
	}
	root := t.FS.root().Given
	if inside, ok := below(base.Given, strings.TrimSuffix(root, "/")); ok {
		return path.Join(root, path.Join("/", inside, name)) // ".." does not leave it
	}
	return path.Join(base.Given, name)
}
