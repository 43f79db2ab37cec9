// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// observe learns from one event.
func (in *inference) observe(ev *event.Event) {
	switch ev.Kind {
	case event.Started:
		if c := in.nodeOf(ev, 0, true); c != nil {
			in.names.exist(c, tree.Dir)
		}
		return
	case event.Inherited:
		if effect.OpenAtStart(ev, in.openedAtStart) {
			in.opened(ev, ev.FileArg(0), true)
		}
		return
	case event.Call:
	default:
		return
	}
	if ev.Flags&event.Interrupted != 0 {
		return
	}
	if h := inferenceRules[ev.Effect()]; h != nil {
		h(in, ev)
	} else if ev.OK() && len(ev.Paths) == 1 && ev.Spec().Replay == event.Native {
		in.nameExists(ev, ev.FollowsLast())
	}
}

// lookup is names.lookup for what a replay repeats.
func (in *inference) lookup(abs string, follow bool) *node {
	if abs == "" || effect.Virtual(abs) {
		return nil
	}
	c := in.names.lookup(abs, follow)
	if c != nil && c.kernel {
		in.elsewhere[abs] = true
		return nil
	}
	return c
}

// nodeOf returns the node of path argument i as it was passed, before cleaning, so
// that ".." behind a symbolic link goes where it went.
func (in *inference) nodeOf(ev *event.Event, i int, follow bool) *node {
	if i >= len(ev.Paths) {
		return nil
	}
	return in.lookup(ev.Paths[i].Abs, follow)
}

// nameExists notes that a name existed, because the call succeeded.
func (in *inference) nameExists(ev *event.Event, follow bool) *object {
	c := in.nodeOf(ev, 0, follow)
	if c == nil {
		return nil
	}
	return in.names.exist(c, 0)
}

// inferenceRules say, by what a call does, what it proves beyond that a name existed.
var inferenceRules = [event.NumEffects]func(*inference, *event.Event){
	event.EffectOpen:        (*inference).openCall,
	event.EffectStat:        (*inference).statCall,
	event.EffectAccess:      (*inference).accessCall,
	event.EffectMkdir:       (*inference).nodeMade,
	event.EffectSymlink:     (*inference).nodeMade,
	event.EffectMknod:       (*inference).nodeMade,
	event.EffectLink:        (*inference).linked,
	event.EffectRead:        (*inference).readCall,
	event.EffectCopy:        (*inference).readCall,
	event.EffectWrite:       (*inference).wroteCall,
	event.EffectTruncate:    (*inference).wroteCall,
	event.EffectAllocate:    (*inference).wroteCall,
	event.EffectIoctl:       (*inference).cloned,
	event.EffectChmod:       (*inference).chmodCall,
	event.EffectChown:       (*inference).chownCall,
	event.EffectSetXattr:    (*inference).setxattrCall,
	event.EffectRemoveXattr: (*inference).setxattrCall,
	event.EffectGetXattr:    (*inference).xattrCall,
	event.EffectSetTimes:    (*inference).touched,
	event.EffectUnlink:      (*inference).removed,
	event.EffectRmdir:       (*inference).removed,
	event.EffectRename:      (*inference).renamed,
	event.EffectReadlink:    (*inference).readlinkCall,
	event.EffectList:        (*inference).listed,
	event.EffectChdir:       (*inference).dirCall,
	event.EffectSeek:        (*inference).soughtCall,
	event.EffectBind:        (*inference).boundCall,
}

func (in *inference) dirCall(ev *event.Event) {
	if c := in.nodeOf(ev, 0, true); c != nil && ev.OK() {
		in.names.exist(c, tree.Dir)
	}
}

// openCall learns from an open, which may have made the file.
func (in *inference) openCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	in.opened(ev, ev.FileArg(event.ResultArg), false)
}

func (in *inference) opened(ev *event.Event, f *event.File, existed bool) {
	if f == nil || f.Path == "" || effect.Virtual(f.Path) || f.Path[0] != '/' {
		return
	}
	flags := effect.OpenFlags(ev)
	if flags&event.OpenTmpfile == event.OpenTmpfile {
		if c := in.nodeOf(ev, 0, true); c != nil {
			in.names.exist(c, tree.Dir)
		}
		in.open[f.Open] = in.names.newFile()
		return
	}
	c := in.lookup(f.Path, flags&effect.ONoFollow == 0)
	if c == nil {
		return
	}
	created := !existed && in.madeByOpen(c, ev, f, flags)
	if created {
		o := in.names.newFile()
		o.id = effect.InodeOf(f)
		if !c.seen {
			in.mayHaveBeen(c, o, ev, f)
		}
		in.names.assign(c, o)
		in.names.indexInode(o)
	}
	in.names.exist(c, openedType(f, flags))
	in.names.identify(c, effect.InodeOf(f))
	o := c.obj
	if f.Known && f.Ino != 0 && o.initial { // without an inode number, the type is all that is known
		if !o.changed {
			o.attributes(f.Mode, f.UID, f.GID)
		}
		if flags&event.OpenTrunc != 0 {
			o.cut(0)
		} else {
			o.hadSize(f.Size)
		}
	}
	in.open[f.Open] = o
	if !f.Known && flags&event.OpenAppend != 0 {
		in.toEnd[f.Open] = true
	}
}

// madeByOpen reports whether an open made its file.
func (in *inference) madeByOpen(c *node, ev *event.Event, f *event.File, flags uint64) bool {
	if flags&event.OpenCreat == 0 || c.obj != nil || f.Known && openedType(f, flags) != tree.File {
		return false // an open makes regular files only: a FIFO or a device was there
	}
	return c.seen || f.Flags&event.OpenCreat != 0 || flags&event.OpenExcl != 0 || !in.preexisted(ev, f)
}

// openedType returns the type of an opened file, 0 if that is not known.
func openedType(f *event.File, flags uint64) tree.Type {
	switch {
	case f.Known:
		return effect.TypeOf(f.Mode)
	case flags&effect.ODirectory != 0:
		return tree.Dir
	}
	return 0
}

// preexisted guesses, from what the kernel said after an open with O_CREAT,
// whether the file had been there before. Where both are possible either way gives
// the same tree.
func (in *inference) preexisted(ev *event.Event, f *event.File) bool {
	if !f.Known || f.Size > 0 || f.Nlink > 1 {
		return f.Known
	}
	asked := openMode(ev)
	return asked != 0 && f.Mode&0o777 != asked&^in.state.Umask // nobody asked for these permissions
}

// statCall learns type, attributes and size.
func (in *inference) statCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	st, ok := effect.DecodeStat(ev, in.arch)
	o := in.statted(ev, &st, ok)
	if o != nil && ok {
		o.provedByStat(&st)
		o = in.provedLink(ev, o, &st)
	}
	if o == nil || !ok || !o.initial || st.Partial() && st.Mode == 0 {
		return
	}
	if o.typ == 0 {
		o.typ = effect.TypeOf(st.Mode)
	}
	if !o.changed {
		if !st.Partial() {
			o.attributes(st.Mode, st.UID, st.GID)
		} else if st.Mode != 0 {
			o.permissions(st.Mode)
		}
		if st.Rdev != 0 {
			o.detail().rdev = st.Rdev
		}
		if !o.linksSet {
			o.links = st.Nlink
		}
	}
	if o.typ == tree.Symlink && effect.TypeOf(st.Mode) == tree.Symlink {
		in.linkHasLength(ev, o, st.Size)
	}
	o.hadSize(st.Size)
}

// provedLink returns the object that a stat found: a symbolic link perhaps, where a foreign trace, which does not say
// what files its calls used, had only shown what it leads to.
func (in *inference) provedLink(ev *event.Event, o *object, st *effect.Stat) *object {
	if !in.foreign || effect.TypeOf(st.Mode) != tree.Symlink || o.typ == tree.Symlink {
		return o
	}
	if c := in.nodeOf(ev, 0, false); c != nil && c.obj == o {
		in.names.turnsOutLink(c, st.Size)
		return c.obj
	}
	return o
}

// linkHasLength notes how long the target of a link is that a stat found.
func (in *inference) linkHasLength(ev *event.Event, o *object, size int64) {
	o.detail().length = size
	c := in.nodeOf(ev, 0, false)
	if c != nil && c.obj == o && o.guessed && int64(len(o.more.target)) != size {
		in.names.leadTo(c, strings.Repeat("?", int(min(max(size, 1), 255))))
		o.guessed = true
	}
}

// statted returns the object that a stat found. ok says that st is known.
func (in *inference) statted(ev *event.Event, st *effect.Stat, ok bool) *object {
	typ := tree.Type(0)
	if ok {
		typ = effect.TypeOf(st.Mode)
	}
	f := ev.FileArg(0)
	if len(ev.Paths) > 0 && (ev.Paths[0].Raw != "" || f == nil) {
		c := in.nodeOf(ev, 0, ev.FollowsLast())
		if c == nil {
			return nil
		}
		in.names.exist(c, typ)
		if ok {
			in.names.identify(c, effect.Inode{Dev: st.Dev, Ino: st.Ino})
		}
		return c.obj
	}
	if f != nil {
		if o := in.open[f.Open]; o != nil {
			return o
		}
	}
	if len(ev.Paths) > 0 && ok {
		if c := in.nodeOf(ev, 0, true); c != nil { // AT_EMPTY_PATH on the working directory
			return in.names.exist(c, typ)
		}
	}
	return nil
}

// accessCall learns whether something can be executed.
func (in *inference) accessCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	const execute = 1
	if o := in.nameExists(ev, ev.FollowsLast()); o != nil && ev.Named("mode")&execute != 0 && !o.changed {
		o.enters = true
	}
}

// nodeMade notes a directory, link or node that the trace made.
func (in *inference) nodeMade(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.nodeOf(ev, 0, false)
	if c == nil {
		return
	}
	in.names.existAbove(c)
	in.names.unlink(c)
	o := in.names.newFile()
	switch ev.Effect() {
	case event.EffectMkdir:
		o.typ = tree.Dir
	case event.EffectSymlink:
		o.typ = tree.Symlink
		if b := ev.BufArg(0); b != nil {
			o.detail().target = effect.CString(b.Inline)
		}
	case event.EffectMknod:
		o.typ = effect.TypeOf(uint32(ev.Named("mode")))
	}
	in.names.assign(c, o)
}

// boundCall notes the name that a bind made for a socket.
func (in *inference) boundCall(ev *event.Event) {
	if !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	if c := in.nodeOf(ev, 0, false); c != nil {
		in.names.existAbove(c)
		in.names.unlink(c)
		o := in.names.newFile()
		o.typ = tree.Socket
		in.names.assign(c, o)
	}
}

func (in *inference) linked(ev *event.Event) {
	if !ev.OK() {
		in.failedPair(ev)
		return
	}
	o := in.throughDescriptor(ev)
	if from := in.nodeOf(ev, 0, ev.FollowsLast()); o == nil && from != nil {
		o = in.names.exist(from, 0)
	}
	if o == nil || o.typ == tree.Dir { // which has no second name
		o = in.names.newFile()
	}
	o.linksSet = true
	if to := in.nodeOf(ev, 1, false); to != nil {
		in.names.existAbove(to)
		in.names.unlink(to)
		in.names.assign(to, o)
	}
}

// throughDescriptor returns the file that the old name of a link leads to when it goes
// through a descriptor: one without a name (O_TMPFILE) gets its first so.
func (in *inference) throughDescriptor(ev *event.Event) *object {
	if len(ev.Paths) == 0 {
		return nil
	}
	if f := ev.FileArg(0); ev.Paths[0].Raw == "" && f != nil {
		return in.open[f.Open]
	}
	if _, rest, ok := posix.DescriptorPath(ev.Paths[0].Raw, ev.PID); !ok || rest != "" {
		return nil
	}
	return in.open[in.state.Through[0]]
}

func (in *inference) removed(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.nodeOf(ev, 0, false)
	if c == nil {
		return
	}
	typ := tree.Type(0)
	if ev.Effect() == event.EffectRmdir {
		typ = tree.Dir
	}
	in.names.exist(c, typ).linksSet = true
	in.names.unlink(c)
}

func (in *inference) renamed(ev *event.Event) {
	if !ev.OK() {
		in.failedPair(ev)
		return
	}
	from, to := in.nodeOf(ev, 0, false), in.nodeOf(ev, 1, false)
	if from != nil {
		in.names.exist(from, 0)
	}
	switch {
	case from == nil && to == nil || from == to:
	case from == nil:
		in.names.unlink(to)
	case to == nil:
		in.names.unlink(from)
	case ev.Exchanges():
		in.names.exist(to, 0)
		in.names.swap(from, to)
	case from.obj == to.obj: // two names of one file: rename(2) does nothing
	default:
		if to.obj != nil {
			to.obj.linksSet = true
		}
		in.names.unlink(to)
		in.names.move(from, to)
	}
	if from != nil && from != to && ev.LeavesWhiteout() {
		o := in.names.newFile()
		o.typ = tree.CharDev
		in.names.assign(from, o)
	}
}

// linkTarget returns what readlink said: of what the tape lacks, marks that no name is likely to have.
func (in *inference) linkTarget(b *event.Buf) string {
	if b.Len <= 0 || b.Len > event.MaxPath {
		return ""
	}
	known := content.Prefix(b)
	data, err := in.result.tape.Content(&known, nil)
	if err != nil || int64(len(data)) > b.Len {
		return ""
	}
	return string(data) + strings.Repeat("?", int(b.Len)-len(data))
}

func (in *inference) readlinkCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.nodeOf(ev, 0, false)
	if c == nil || ev.Paths[0].Raw == "" {
		return
	}
	target := ""
	for i := range ev.Bufs {
		if ev.Bufs[i].Kind == event.KindBuf {
			target = in.linkTarget(&ev.Bufs[i])
		}
	}
	known := c.obj != nil && (c.obj.typ != 0 || c.obj.enters) // what the link leads to, so far
	if o := in.names.exist(c, 0); known && o.typ != tree.Symlink {
		in.names.becomeLink(c, target)
	} else if o.typ = tree.Symlink; o.details().target == "" || o.guessed {
		in.names.leadTo(c, target)
	}
}

// object returns the object that a call acts on, by descriptor or by name.
func (in *inference) object(ev *event.Event) *object {
	if len(ev.Paths) > 0 && (ev.Paths[0].Raw != "" || ev.FileArg(0) == nil) {
		return in.nameExists(ev, ev.FollowsLast())
	}
	if f := ev.FileArg(0); f != nil {
		return in.open[f.Open]
	}
	return nil
}

// listed learns the names in a directory.
func (in *inference) listed(ev *event.Event) {
	f := ev.FileArg(0)
	if !ev.OK() || f == nil || f.Path == "" || ev.Op == event.OpGetdents {
		return
	}
	c := in.lookup(f.Path, true)
	if c == nil {
		return
	}
	o := in.names.exist(c, tree.Dir)
	b := ev.BufArg(1)
	if o == nil || b == nil {
		return
	}
	data, err := in.result.tape.Content(b, nil)
	if err != nil {
		return
	}
	for _, e := range effect.Dirents(data) {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") {
			continue
		}
		if k := in.names.child(c, e.Name); !k.seen {
			in.names.exist(k, e.Type)
		} else if in.foreign && e.Type == tree.Symlink {
			in.names.turnsOutLink(k, 0)
		}
	}
}
