// SPDX-License-Identifier: Apache-2.0

package order

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// uses goes through the resources of what a task does.
func (o *Order) uses(ev *event.Event) {
	if o.names > o.enough {
		o.forget()
		o.enough = max(maxNames, 2*o.names) // of those that are left all may be waited for
	}
	switch ev.Kind {
	case event.Started:
		if len(ev.Paths) > 0 {
			if n := o.find(ev.Paths[0].Abs, true); n != nil {
				n.what.access(o, accessRead)
			}
		}
	case event.Inherited:
		if len(ev.Files) > 0 {
			o.opened(ev, &ev.Files[0])
		}
	case event.Call:
		o.everyone.pass(o, ev)
		if int(ev.Op) < len(table) && table[ev.Op] != nil {
			table[ev.Op](o, ev)
		} else if len(ev.Paths) > 0 {
			o.named(ev, 0, effect.FollowsLast(ev))
		}
	}
}

// table has what a call uses, by operation. Calls that are not in it use the names that
// they pass.
var table [event.NumOps]func(*Order, *event.Event)

func init() {
	for _, row := range []struct {
		use func(*Order, *event.Event)
		ops []event.Op
	}{
		{(*Order).reads, []event.Op{
			event.OpRead, event.OpPread64, event.OpReadv, event.OpPreadv, event.OpPreadv2, event.OpMmapPread,
		}},
		{(*Order).writes, []event.Op{
			event.OpWrite, event.OpPwrite64, event.OpWritev, event.OpPwritev, event.OpPwritev2, event.OpMmapPwrite,
		}},
		{(*Order).copies, []event.Op{event.OpSendfile, event.OpCopyFileRange, event.OpSplice}},
		{(*Order).seeks, []event.Op{event.OpLseek}},
		{(*Order).truncates, []event.Op{event.OpTruncate, event.OpFtruncate}},
		{(*Order).allocates, []event.Op{event.OpFallocate}},
		{(*Order).syncs, []event.Op{event.OpFsync, event.OpFdatasync, event.OpSyncFileRange, event.OpMsync}},
		{(*Order).syncsAll, []event.Op{event.OpSync, event.OpSyncfs}},
		{(*Order).advises, []event.Op{event.OpFadvise64, event.OpReadahead}},
		{(*Order).opensName, []event.Op{event.OpOpen, event.OpOpenat, event.OpOpenat2, event.OpCreat}},
		{(*Order).statsOrAccesses, []event.Op{
			event.OpStat, event.OpLstat, event.OpFstat, event.OpNewfstatat, event.OpStatx, event.OpAccess,
			event.OpFaccessat, event.OpFaccessat2, event.OpGetxattr, event.OpLgetxattr, event.OpFgetxattr,
			event.OpListxattr, event.OpLlistxattr, event.OpFlistxattr,
		}},
		{(*Order).setsAttributes, []event.Op{
			event.OpChmod, event.OpFchmod, event.OpFchmodat, event.OpFchmodat2, event.OpChown, event.OpFchown,
			event.OpLchown, event.OpFchownat, event.OpSetxattr, event.OpLsetxattr, event.OpFsetxattr,
			event.OpRemovexattr, event.OpLremovexattr, event.OpFremovexattr, event.OpUtime, event.OpUtimes,
			event.OpFutimesat, event.OpUtimensat,
		}},
		{(*Order).makes, []event.Op{
			event.OpMkdir, event.OpMkdirat, event.OpMknod, event.OpMknodat, event.OpSymlink, event.OpSymlinkat,
			event.OpBind,
		}},
		{(*Order).linksName, []event.Op{event.OpLink, event.OpLinkat}},
		{(*Order).removes, []event.Op{event.OpUnlink, event.OpUnlinkat, event.OpRmdir}},
		{(*Order).renames, []event.Op{event.OpRename, event.OpRenameat, event.OpRenameat2}},
		{(*Order).lists, []event.Op{event.OpGetdents, event.OpGetdents64}},
		{(*Order).locks, []event.Op{event.OpFlock}},
		{(*Order).controls, []event.Op{event.OpFcntl}},
		{(*Order).clones, []event.Op{event.OpIoctl}},
	} {
		for _, op := range row.ops {
			table[op] = row.use
		}
	}
}

// named reads the name that a path argument stands for. It returns it, nil if there is
// none.
func (o *Order) named(ev *event.Event, i int, follow bool) *name {
	if i >= len(ev.Paths) {
		return nil
	}
	n := o.find(ev.Paths[i].Abs, follow)
	if n != nil {
		n.what.access(o, accessRead)
	}
	return n
}

// path returns the name of a path argument without touching it.
func (o *Order) path(ev *event.Event, i int, follow bool) *name {
	if i >= len(ev.Paths) {
		return nil
	}
	return o.find(ev.Paths[i].Abs, follow)
}

// isFile notes which file a name stands for. The two may have been used as if they
// were different ones.
func (n *name) isFile(o *Order, id effect.Inode) *file {
	if id.Ino == 0 {
		return n.file
	}
	f := o.byInode(id)
	if n.file != nil {
		n.file = n.file.resolved()
	}
	if old := n.file; old != nil && old != f {
		if old.last != 0 || old.alone == shared {
			old, f := old.share(), f.share()
			for _, which := range [...]func(*file) *resource{whole, size, attr, links, locks} {
				which(f).absorb(which(old))
			}
			for _, ref := range old.tried {
				f.tried = latest(f.tried, ref)
			}
		}
		if old.id.Ino == 0 { // all its names are names of this one
			old.same, f.names = f, f.names+old.names-1
		} else {
			old.names--
		}
	}
	if n.file != f {
		f.names++
	}
	n.file = f
	return f
}

func whole(f *file) *resource { return &f.whole }

// fileOrNew returns the file that a name stands for: one of which nothing is known, if that
// is unknown.
func (n *name) fileOrNew() *file {
	if n.file == nil {
		n.file = &file{names: 1}
	}
	n.file = n.file.resolved()
	return n.file
}

// fileOrName returns the file that a call is about, by descriptor or by name; the name
// is read.
func (o *Order) fileOrName(ev *event.Event) (*file, *name) {
	if len(ev.Paths) > 0 && (ev.Paths[0].Raw != "" || ev.FileArg(0) == nil) {
		n := o.named(ev, 0, effect.FollowsLast(ev))
		if n == nil {
			return nil, nil
		}
		return n.fileOrNew(), n
	}
	return o.fileOf(ev.FileArg(0)), nil
}

// reads is a read of a range. Where it ends early, the size counts too.
func (o *Order) reads(ev *event.Event) {
	fd := ev.FileArg(0)
	f := o.fileOf(fd)
	if o.piped(ev, fd) || f == nil {
		return
	}
	if usesPosition(ev) {
		if p := o.openOf(fd); p != nil {
			p.pos.access(o, accessWrite)
		}
	}
	if !ev.OK() || ev.Offset < 0 {
		f.everything(o)
		return
	}
	if ev.Ret > 0 {
		f.content(o, accessRead, ev.Offset, ev.Offset+ev.Ret)
	}
	switch {
	case ev.Ret < ev.Count:
		f.access(o, size, accessRead)
	case f.alone == shared: // what it read may be there because of a write behind it
		f.growth.await(o, ev.Offset+ev.Ret)
	}
}

// writes is a write of a range, which may move the end of the file.
func (o *Order) writes(ev *event.Event) {
	fd := ev.FileArg(0)
	f := o.fileOf(fd)
	if o.piped(ev, fd) || f == nil {
		return
	}
	if usesPosition(ev) {
		if p := o.openOf(fd); p != nil {
			p.pos.access(o, accessWrite)
		}
	}
	appends := appended(ev, fd)
	if appends {
		f.access(o, size, accessWrite)
	}
	f.sync.pass(o, ev)
	if !ev.OK() || ev.Offset < 0 || appends && !usesPosition(ev) { // which says where it was to write, not where it did
		f.everything(o)
		return
	}
	end := ev.Offset + ev.Ret
	if ev.Ret > 0 {
		f.content(o, accessWrite, ev.Offset, end)
	}
	switch {
	case ev.Op == event.OpMmapPwrite: // which is made as far as the file reaches
		if f.alone == shared {
			f.growth.await(o, end)
		}
	case end > f.growth.least || !fd.Known || fd.Size <= end:
		f.access(o, size, accessCommute)
		f.growth.grows(o, end)
	case f.alone == shared:
		f.writesWithin(o, end)
	}
}

// appended reports whether a write went to the end of the file, wherever it was to go.
func appended(ev *event.Event, fd *event.File) bool {
	const rwfAppend = 16
	return fd.Flags&event.OpenAppend != 0 || ev.Op == event.OpPwritev2 && ev.Args[5]&rwfAppend != 0
}

// copies moves bytes between two files within the kernel.
func (o *Order) copies(ev *event.Event) {
	src, dst := effect.CopySides(ev.Op)
	in, out := ev.FileArg(src), ev.FileArg(dst)
	if from := o.fileOf(in); from != nil && !o.pipe(in) {
		if p := o.openOf(in); p != nil {
			p.pos.access(o, accessWrite)
		}
		at := effect.SourceOffset(ev)
		if ev.OK() && ev.Ret > 0 && at >= 0 {
			from.content(o, accessRead, at, at+ev.Ret)
		} else {
			from.everything(o)
		}
		if ev.Ret < ev.Count {
			from.access(o, size, accessRead)
		}
	}
	if to := o.fileOf(out); to != nil && !o.pipe(out) {
		if p := o.openOf(out); p != nil {
			p.pos.access(o, accessWrite)
		}
		at := effect.TargetOffset(ev)
		if ev.OK() && at >= 0 {
			to.content(o, accessWrite, at, at+max(ev.Ret, 1))
		} else {
			to.everything(o)
		}
		to.growth.changed(o)
		to.access(o, size, accessWrite)
	}
}

func (o *Order) seeks(ev *event.Event) {
	const set, cur, end = 0, 1, 2
	fd := ev.FileArg(0)
	if p := o.openOf(fd); p != nil {
		p.pos.access(o, accessWrite)
	}
	f := o.fileOf(fd)
	switch {
	case f == nil || ev.Args[2] == set || ev.Args[2] == cur:
	case ev.Args[2] == end:
		f.access(o, size, accessRead)
	default: // data and holes
		f.everything(o)
	}
}

func (o *Order) truncates(ev *event.Event) {
	f, _ := o.fileOrName(ev)
	o.resized(f, ev)
}

// resized is a change of the size and of what is beyond.
func (o *Order) resized(f *file, ev *event.Event) {
	if f != nil {
		f.growth.changed(o)
		f.sync.pass(o, ev)
		f.everything(o)
		f.access(o, size, accessWrite)
	}
}

func (o *Order) allocates(ev *event.Event) { o.resized(o.fileOf(ev.FileArg(0)), ev) }

func (o *Order) advises(ev *event.Event) {}

// syncs waits for what was written before. What was written while it ran need not wait
// for it.
func (o *Order) syncs(ev *event.Event) {
	f := o.fileOf(ev.FileArg(0))
	if f == nil {
		return
	}
	if f.alone != shared {
		if f.alone != 0 && f.alone != o.self.Slot+1 {
			o.wait(Ref{f.alone - 1, f.last})
		}
	} else {
		f.whole.await(o)
		f.size.await(o)
		f.attr.await(o)
	}
	f.sync = syncPoint{o.self, ev.Exit}
}

func (o *Order) syncsAll(ev *event.Event) {
	o.awaitEveryone()
	o.everyone = syncPoint{o.self, ev.Exit}
}

// opensName is an open by name, which may make the file or empty it.
func (o *Order) opensName(ev *event.Event) {
	const exclusive = event.OpenCreat | event.OpenExcl
	fd := ev.FileArg(event.ResultArg)
	flags := effect.OpenFlags(ev)
	temporary := flags&event.OpenTmpfile == event.OpenTmpfile
	n := o.path(ev, 0, flags&effect.ONoFollow == 0 && flags&exclusive != exclusive)
	switch {
	case n == nil:
	case !ev.OK():
		o.failedOpen(ev, n, flags&event.OpenCreat != 0 && !temporary)
	case temporary || flags&event.OpenCreat == 0:
		n.what.access(o, accessRead)
	default:
		o.createsName(n, fd)
	}
	if !ev.OK() || fd == nil {
		return
	}
	o.opened(ev, fd)
	if f := o.fileOf(fd); f != nil && !temporary {
		f.access(o, attr, accessRead)
		if flags&event.OpenTrunc != 0 {
			o.resized(f, ev)
		}
	}
}

// failedOpen is an open that failed. creates says that it was to make the file.
func (o *Order) failedOpen(ev *event.Event, n *name, creates bool) {
	n.what.access(o, accessRead)
	switch {
	case creates && canMake(ev.Errno):
		if n.parent != nil {
			n.parent.list.access(o, accessCommute)
		}
	case creates && ev.Errno == syscall.EEXIST:
	case ofAttributes(ev.Errno):
		n.fileOrNew().access(o, attr, accessRead)
	}
}

// createsName is an open with O_CREAT that succeeded, of a name that may have been there.
func (o *Order) createsName(n *name, fd *event.File) {
	found := fd != nil && fd.Known && fd.Flags&event.OpenCreat == 0
	switch {
	case found && n.file != nil && n.file.resolved() == o.files[effect.InodeOf(fd)]:
		n.what.access(o, accessRead) // it was there
	case found && fd.Size+int64(fd.Nlink) > 1:
		// It was there; or, if the capture does not report who made a file, another call has
		// given it content or a name before this one returned.
		n.what.access(o, accessWrite)
		if n.parent != nil {
			n.parent.list.access(o, accessCommute)
		}
	default:
		n.setFile(o, o.newFile(fd))
	}
}

// canMake reports whether an open with O_CREAT failed for what it found where it was to
// make a file.
func canMake(e syscall.Errno) bool { return e == syscall.ENOSPC || e == syscall.EDQUOT }

// newFile returns the file that a task makes.
func (o *Order) newFile(fd *event.File) *file {
	f := &file{names: 1}
	if fd != nil && fd.Known && fd.Ino != 0 {
		f.id = effect.InodeOf(fd)
		o.files[f.id] = f
	}
	return f
}

// opened notes what a new open file is of.
func (o *Order) opened(ev *event.Event, fd *event.File) {
	p := &open{file: o.inode(fd)}
	if fd.Path != "" && fd.Path[0] == '/' {
		if n := o.lookup(fd.Path, true, nil); n != nil {
			if fd.Is(event.TypeDir) {
				p.dir = n
			}
			if fd.Known && fd.Nlink > 0 && effect.OpenFlags(ev)&event.OpenTmpfile != event.OpenTmpfile {
				p.file = n.isFile(o, effect.InodeOf(fd))
			} else if p.file == nil {
				p.file = n.fileOrNew()
			}
		}
	}
	if p.file != nil && fd.Known && p.file.alone == 0 {
		p.file.growth.begins(fd.Size)
	}
	if fd.Open != 0 {
		o.opens[fd.Open] = p
	}
}

func (o *Order) makes(ev *event.Event) {
	n := o.path(ev, 0, false)
	switch {
	case n == nil:
	case !ev.OK():
		n.what.access(o, accessRead)
	default:
		n.setFile(o, o.newFile(nil))
		if ev.Op == event.OpSymlink || ev.Op == event.OpSymlinkat {
			if b := ev.BufArg(0); b != nil {
				n.target = effect.CString(b.Inline)
				o.moved++
			}
		}
	}
}

func (o *Order) linksName(ev *event.Event) {
	from, to := o.named(ev, 0, ev.Op == event.OpLinkat && effect.FollowsLast(ev)), o.path(ev, 1, false)
	if !ev.OK() {
		if to != nil {
			to.what.access(o, accessRead)
		}
		return
	}
	var f *file
	if from != nil {
		f = from.fileOrNew()
	} else if f = o.fileOf(ev.FileArg(0)); f == nil {
		f = &file{}
	}
	f.access(o, links, accessCommute)
	if to != nil {
		f.names++
		to.setFile(o, f)
		if from != nil && from.target != "" {
			to.target = from.target
			o.moved++
		}
	}
}

func (o *Order) removes(ev *event.Event) {
	n := o.path(ev, 0, false)
	if n == nil {
		return
	}
	if !ev.OK() {
		n.what.access(o, accessRead)
		n.list.access(o, accessRead) // it may not have been empty
		return
	}
	if n.file != nil {
		n.file.access(o, links, accessCommute)
		n.file.names--
	}
	n.remove(o)
}

func (o *Order) renames(ev *event.Event) {
	const exchange = 2
	from, to := o.path(ev, 0, false), o.path(ev, 1, false)
	switch {
	case !ev.OK():
		for _, n := range [...]*name{from, to} {
			if n != nil {
				n.what.access(o, accessRead)
				n.list.access(o, accessRead)
			}
		}
	case from == nil && to == nil:
	case from == to:
		from.what.access(o, accessRead) // it is there
	case from == nil:
		to.remove(o)
		to.file = nil
	case to == nil:
		from.remove(o)
	case from.file != nil && to.file != nil && from.file.resolved() == to.file.resolved():
		from.changed(o)
		to.changed(o)
		// Two names of one file, and both stay (rename(2)).
	case from.within(to) || to.within(from):
		// Of a trace that is not true.
		from.changed(o)
		to.changed(o)
	case ev.Op == event.OpRenameat2 && ev.Args[4]&exchange != 0:
		from.changed(o)
		to.changed(o)
		from.swap(o, to)
	default:
		from.changed(o)
		to.changed(o)
		if to.file != nil && to.file != from.file {
			to.file.access(o, links, accessCommute)
			to.file.names--
		}
		from.move(o, to)
	}
}

// lists reads the names in a directory, going on from where the last call ended.
func (o *Order) lists(ev *event.Event) {
	fd := ev.FileArg(0)
	p := o.openOf(fd)
	if p == nil {
		return
	}
	p.pos.access(o, accessWrite)
	if p.dir == nil && fd.Path != "" && fd.Path[0] == '/' {
		p.dir = o.lookup(fd.Path, true, nil)
	}
	if p.dir != nil {
		p.dir.list.access(o, accessRead)
	}
}

// clones makes a file share another's content.
func (o *Order) clones(ev *event.Event) {
	to := o.fileOf(ev.FileArg(0))
	o.resized(to, ev)
	for i := range ev.Files {
		if from := o.fileOf(&ev.Files[i]); from != nil && from != to {
			from.everything(o)
		}
	}
}

// usesPosition reports whether a call goes on from the open file's position.
func usesPosition(ev *event.Event) bool {
	switch ev.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return true
	case event.OpPreadv2, event.OpPwritev2:
		return int64(ev.Args[3]) == -1
	}
	return false
}
