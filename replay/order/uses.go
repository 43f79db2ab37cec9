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
		if use := table[ev.Effect()]; use != nil {
			use(o, ev)
		} else if len(ev.Paths) > 0 {
			o.named(ev, 0, ev.FollowsLast())
		}
	}
}

// table has what a call uses, by what it does. Other calls use the names that they pass.
var table = [event.NumEffects]func(*Order, *event.Event){
	event.EffectRead:        (*Order).reads,
	event.EffectWrite:       (*Order).writes,
	event.EffectCopy:        (*Order).copies,
	event.EffectSeek:        (*Order).seeks,
	event.EffectTruncate:    (*Order).truncates,
	event.EffectAllocate:    (*Order).allocates,
	event.EffectSync:        (*Order).syncs,
	event.EffectSyncAll:     (*Order).syncsAll,
	event.EffectAdvise:      (*Order).advises,
	event.EffectOpen:        (*Order).opensName,
	event.EffectStat:        (*Order).statsOrAccesses,
	event.EffectAccess:      (*Order).statsOrAccesses,
	event.EffectGetXattr:    (*Order).statsOrAccesses,
	event.EffectListXattr:   (*Order).statsOrAccesses,
	event.EffectChmod:       (*Order).setsAttributes,
	event.EffectChown:       (*Order).setsAttributes,
	event.EffectSetXattr:    (*Order).setsAttributes,
	event.EffectRemoveXattr: (*Order).setsAttributes,
	event.EffectSetTimes:    (*Order).setsAttributes,
	event.EffectMkdir:       (*Order).makes,
	event.EffectMknod:       (*Order).makes,
	event.EffectSymlink:     (*Order).makes,
	event.EffectBind:        (*Order).makes,
	event.EffectLink:        (*Order).linksName,
	event.EffectUnlink:      (*Order).removes,
	event.EffectRmdir:       (*Order).removes,
	event.EffectRename:      (*Order).renames,
	event.EffectList:        (*Order).lists,
	event.EffectLock:        (*Order).locks,
	event.EffectControl:     (*Order).controls,
	event.EffectIoctl:       (*Order).clones,
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
		n := o.named(ev, 0, ev.FollowsLast())
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
	if ev.AtPosition() {
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
	if ev.AtPosition() {
		if p := o.openOf(fd); p != nil {
			p.pos.access(o, accessWrite)
		}
	}
	appends := ev.Appends()
	if appends {
		f.access(o, size, accessWrite)
	}
	f.sync.pass(o, ev)
	if !ev.OK() || ev.Offset < 0 || appends && !ev.AtPosition() { // which says where it was to write, not where it did
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

// copies moves bytes between two files within the kernel.
func (o *Order) copies(ev *event.Event) {
	src, dst := ev.CopySides()
	in, out := ev.FileArg(src.FD), ev.FileArg(dst.FD)
	if from := o.fileOf(in); from != nil && !o.pipe(in) {
		if p := o.openOf(in); p != nil {
			p.pos.access(o, accessWrite)
		}
		at := src.Start(ev)
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
		at := dst.Start(ev)
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
		if ev.Effect() == event.EffectSymlink {
			if b := ev.BufArg(0); b != nil {
				n.target = effect.CString(b.Inline)
				o.moved++
			}
		}
	}
}

func (o *Order) linksName(ev *event.Event) {
	from, to := o.named(ev, 0, ev.FollowsLast()), o.path(ev, 1, false)
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
	case ev.Exchanges():
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
