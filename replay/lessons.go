package replay

import (
	"encoding/binary"
	"slices"
	"strings"
	"syscall"

	"iotape/event"
	"iotape/tree"
)

// see learns from one event.
func (in *inference) see(ev *event.Event) {
	switch ev.Kind {
	case event.Started:
		if c := in.at(ev, 0, true); c != nil {
			in.names.exist(c, tree.Dir)
		}
		return
	case event.Inherited:
		if ev.Args[0] == event.OwnFile && !ownFile(ev, in.taken) {
			return
		}
		in.opened(ev, ev.FileArg(0), true)
		return
	case event.Call:
	default:
		return
	}
	if ev.Flags&event.Interrupted != 0 {
		return
	}
	if h := lessons[ev.Op]; h != nil {
		h(in, ev)
	} else if ev.OK() && len(ev.Paths) == 1 && ev.Spec().Replay == event.Native {
		in.found(ev, followsLast(ev))
	}
}

// lookup is names.lookup for what a replay repeats.
func (in *inference) lookup(abs string, follow bool) *node {
	if abs == "" || virtual(abs) {
		return nil
	}
	return in.names.lookup(abs, follow)
}

// at returns the node of path argument i as it was passed, before cleaning, so
// that ".." behind a symbolic link goes where it went.
func (in *inference) at(ev *event.Event, i int, follow bool) *node {
	if i >= len(ev.Paths) {
		return nil
	}
	return in.lookup(ev.Paths[i].Abs, follow)
}

// found: the call succeeded, so the name existed.
func (in *inference) found(ev *event.Event, follow bool) *object {
	c := in.at(ev, 0, follow)
	if c == nil {
		return nil
	}
	return in.names.exist(c, 0)
}

const (
	atNoFollow  = 0x100
	atRemoveDir = 0x200
	atFollow    = 0x400
	atEmptyPath = 0x1000
	oCreat      = 0o100
	oExcl       = 0o200
	oTrunc      = 0o1000
	oAppend     = 0o2000
	oNoFollow   = 0o400000
	oTmpfile    = 0o20000000
	accessMode  = 3
)

// followsLast reports whether a call follows a symbolic link that its path names.
func followsLast(ev *event.Event) bool {
	switch ev.Op {
	case event.OpLstat, event.OpReadlink, event.OpReadlinkat, event.OpLchown, event.OpUnlink, event.OpUnlinkat, event.OpRmdir,
		event.OpLsetxattr, event.OpLgetxattr, event.OpLlistxattr, event.OpLremovexattr:
		return false
	}
	spec := ev.Spec()
	for i := range spec.Args {
		if spec.Args[i].Name == "flags" && spec.Args[i].Kind == event.KindFlags {
			switch ev.Op {
			case event.OpOpen, event.OpOpenat:
				return ev.Args[i]&oNoFollow == 0
			case event.OpLinkat:
				return ev.Args[i]&atFollow != 0
			default:
				return ev.Args[i]&atNoFollow == 0
			}
		}
	}
	return true
}

// lessons are the operations that say more than that a name existed.
var lessons = map[event.Op]func(*inference, *event.Event){
	event.OpOpen:          (*inference).openCall,
	event.OpOpenat:        (*inference).openCall,
	event.OpOpenat2:       (*inference).openCall,
	event.OpCreat:         (*inference).openCall,
	event.OpStat:          (*inference).statCall,
	event.OpLstat:         (*inference).statCall,
	event.OpFstat:         (*inference).statCall,
	event.OpNewfstatat:    (*inference).statCall,
	event.OpStatx:         (*inference).statCall,
	event.OpAccess:        (*inference).accessCall,
	event.OpFaccessat:     (*inference).accessCall,
	event.OpFaccessat2:    (*inference).accessCall,
	event.OpMkdir:         (*inference).made,
	event.OpMkdirat:       (*inference).made,
	event.OpSymlink:       (*inference).made,
	event.OpSymlinkat:     (*inference).made,
	event.OpMknod:         (*inference).made,
	event.OpMknodat:       (*inference).made,
	event.OpLink:          (*inference).linked,
	event.OpLinkat:        (*inference).linked,
	event.OpRead:          (*inference).readCall,
	event.OpPread64:       (*inference).readCall,
	event.OpReadv:         (*inference).readCall,
	event.OpPreadv:        (*inference).readCall,
	event.OpPreadv2:       (*inference).readCall,
	event.OpMmapPread:     (*inference).readCall,
	event.OpSendfile:      (*inference).readCall,
	event.OpCopyFileRange: (*inference).readCall,
	event.OpSplice:        (*inference).readCall,
	event.OpWrite:         (*inference).wroteCall,
	event.OpPwrite64:      (*inference).wroteCall,
	event.OpWritev:        (*inference).wroteCall,
	event.OpPwritev:       (*inference).wroteCall,
	event.OpPwritev2:      (*inference).wroteCall,
	event.OpMmapPwrite:    (*inference).wroteCall,
	event.OpTruncate:      (*inference).wroteCall,
	event.OpFtruncate:     (*inference).wroteCall,
	event.OpFallocate:     (*inference).wroteCall,
	event.OpChmod:         (*inference).chmodCall,
	event.OpFchmod:        (*inference).chmodCall,
	event.OpFchmodat:      (*inference).chmodCall,
	event.OpFchmodat2:     (*inference).chmodCall,
	event.OpChown:         (*inference).chownCall,
	event.OpFchown:        (*inference).chownCall,
	event.OpLchown:        (*inference).chownCall,
	event.OpFchownat:      (*inference).chownCall,
	event.OpSetxattr:      (*inference).setxattrCall,
	event.OpLsetxattr:     (*inference).setxattrCall,
	event.OpFsetxattr:     (*inference).setxattrCall,
	event.OpRemovexattr:   (*inference).setxattrCall,
	event.OpLremovexattr:  (*inference).setxattrCall,
	event.OpFremovexattr:  (*inference).setxattrCall,
	event.OpUtime:         (*inference).touched,
	event.OpUtimes:        (*inference).touched,
	event.OpFutimesat:     (*inference).touched,
	event.OpUtimensat:     (*inference).touched,
	event.OpUnlink:        (*inference).removed,
	event.OpUnlinkat:      (*inference).removed,
	event.OpRmdir:         (*inference).removed,
	event.OpRename:        (*inference).renamed,
	event.OpRenameat:      (*inference).renamed,
	event.OpRenameat2:     (*inference).renamed,
	event.OpReadlink:      (*inference).readlinkCall,
	event.OpReadlinkat:    (*inference).readlinkCall,
	event.OpGetdents:      (*inference).listed,
	event.OpGetdents64:    (*inference).listed,
	event.OpGetxattr:      (*inference).xattrCall,
	event.OpLgetxattr:     (*inference).xattrCall,
	event.OpFgetxattr:     (*inference).xattrCall,
	event.OpChdir:         (*inference).dirCall,
}

func (in *inference) dirCall(ev *event.Event) {
	if c := in.at(ev, 0, true); c != nil && ev.OK() {
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
	if f == nil || f.Path == "" || virtual(f.Path) || f.Path[0] != '/' {
		return
	}
	flags := openFlags(ev)
	if flags&oTmpfile == oTmpfile {
		if c := in.at(ev, 0, true); c != nil {
			in.names.exist(c, tree.Dir)
		}
		in.open[f.Open] = &object{typ: tree.File, changed: true, grown: true}
		return
	}
	c := in.lookup(f.Path, flags&oNoFollow == 0)
	if c == nil {
		return
	}
	typ := tree.Type(0)
	if f.Known {
		typ = typeOf(f.Mode)
	}
	created := flags&oCreat != 0 && c.obj == nil && !existed &&
		(c.seen || f.Flags&oCreat != 0 || flags&oExcl != 0 || !in.preexisted(c, f, flags))
	if created {
		c.seen = true
		c.obj = &object{typ: tree.File, changed: true, grown: true, id: inode{f.Dev, f.Ino}}
		in.names.byIno[c.obj.id] = c.obj
	}
	in.names.exist(c, typ)
	in.names.identify(c, inode{f.Dev, f.Ino})
	o := c.obj
	if f.Known && o.initial != nil {
		if !o.changed {
			in.attributes(o, f.Mode, f.UID, f.GID)
		}
		if flags&oTrunc != 0 {
			o.cut(0)
		} else if f.Size >= 0 && !o.grown && o.initial.Known&tree.KnownSize == 0 && o.typ == tree.File {
			o.initial.Size, o.initial.Known = f.Size, o.initial.Known|tree.KnownSize
		}
	}
	in.open[f.Open] = o
}

// preexisted guesses, from what the kernel said after an open with O_CREAT,
// whether the file had been there before. Where both are possible either way gives
// the same tree.
func (in *inference) preexisted(c *node, f *event.File, flags uint64) bool {
	if !f.Known || f.Size > 0 || f.Nlink > 1 {
		return f.Known
	}
	return false
}

func (o *object) cut(size int64) {
	o.content.wrote(size, 1<<62)
	o.grown = true
}

// openFlags returns the flags that an open asked for.
func openFlags(ev *event.Event) uint64 {
	switch ev.Op {
	case event.OpOpen:
		return ev.Args[1]
	case event.OpOpenat:
		return ev.Args[2]
	case event.OpCreat:
		return oCreat | oTrunc | 1
	case event.OpOpenat2:
		if b := ev.BufArg(2); b != nil && len(b.Inline) >= 8 {
			return binary.LittleEndian.Uint64(b.Inline)
		}
	}
	return 0
}

// statCall learns type, attributes and size.
func (in *inference) statCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	var o *object
	st, ok := decodeStat(ev, in.arch)
	if f := ev.FileArg(0); len(ev.Paths) == 0 || ev.Paths[0].Raw == "" && f != nil {
		if f != nil {
			o = in.open[f.Open]
		}
		if o == nil && len(ev.Paths) > 0 && ok {
			if c := in.at(ev, 0, true); c != nil { // AT_EMPTY_PATH on the working directory
				o = in.names.exist(c, typeOf(st.mode))
			}
		}
	} else if c := in.at(ev, 0, followsLast(ev)); c != nil {
		typ := tree.Type(0)
		if ok {
			typ = typeOf(st.mode)
		}
		in.names.exist(c, typ)
		if ok {
			in.names.identify(c, inode{st.dev, st.ino})
		}
		o = c.obj
	}
	if o == nil || !ok || o.initial == nil {
		return
	}
	if o.typ == 0 {
		o.typ = typeOf(st.mode)
	}
	if !o.changed {
		in.attributes(o, st.mode, st.uid, st.gid)
		o.initial.Rdev, o.links = st.rdev, st.nlink
	}
	if o.typ == tree.Symlink && typeOf(st.mode) == tree.Symlink {
		o.length = st.size
		if c := in.at(ev, 0, false); o.guessed && int64(len(o.target)) != st.size && c != nil && c.obj == o {
			in.names.leadTo(c, strings.Repeat("?", int(min(max(st.size, 1), 255))))
			o.guessed = true
		}
	}
	if !o.grown && o.typ == tree.File && o.initial.Known&tree.KnownSize == 0 {
		o.initial.Size, o.initial.Known = st.size, o.initial.Known|tree.KnownSize
	}
}

// accessCall learns whether something can be executed.
func (in *inference) accessCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	const execute = 1
	mode := ev.Args[2]
	if ev.Op == event.OpAccess {
		mode = ev.Args[1]
	}
	if o := in.found(ev, followsLast(ev)); o != nil && mode&execute != 0 && !o.changed {
		o.enters = true
	}
}

// made: a directory, link or node of the trace's own.
func (in *inference) made(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.at(ev, 0, false)
	if c == nil {
		return
	}
	in.names.existAbove(c)
	in.names.gone(c)
	o := &object{typ: tree.File, changed: true, grown: true}
	switch ev.Op {
	case event.OpMkdir, event.OpMkdirat:
		o.typ = tree.Dir
	case event.OpSymlink, event.OpSymlinkat:
		o.typ = tree.Symlink
		if b := ev.BufArg(0); b != nil {
			o.target = cstring(b.Inline)
		}
	case event.OpMknod:
		o.typ = typeOf(uint32(ev.Args[1]))
	case event.OpMknodat:
		o.typ = typeOf(uint32(ev.Args[2]))
	}
	c.obj = o
}

func (in *inference) linked(ev *event.Event) {
	if !ev.OK() {
		in.failedPair(ev)
		return
	}
	var o *object
	if from := in.at(ev, 0, followsLast(ev) && ev.Op == event.OpLinkat); from != nil {
		o = in.names.exist(from, 0)
	}
	if to := in.at(ev, 1, false); to != nil {
		in.names.gone(to)
		if o == nil {
			o = &object{typ: tree.File, changed: true, grown: true}
		}
		to.obj = o
	}
}

func (in *inference) removed(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.at(ev, 0, false)
	if c == nil {
		return
	}
	typ := tree.Type(0)
	if ev.Op == event.OpRmdir || ev.Op == event.OpUnlinkat && ev.Args[2]&atRemoveDir != 0 {
		typ = tree.Dir
	}
	in.names.exist(c, typ)
	in.names.gone(c)
}

const renameExchange = 2

func (in *inference) renamed(ev *event.Event) {
	if !ev.OK() {
		in.failedPair(ev)
		return
	}
	from, to := in.at(ev, 0, false), in.at(ev, 1, false)
	if from != nil {
		in.names.exist(from, 0)
	}
	switch {
	case from == nil && to == nil || from == to:
	case from == nil:
		in.names.gone(to)
	case to == nil:
		in.names.gone(from)
	case ev.Op == event.OpRenameat2 && ev.Args[4]&renameExchange != 0:
		in.names.exist(to, 0)
		in.names.swap(from, to)
	case from.obj == to.obj: // two names of one file: rename(2) does nothing
	default:
		in.names.gone(to)
		in.names.move(from, to)
	}
}

func (in *inference) readlinkCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	c := in.at(ev, 0, false)
	if c == nil || ev.Paths[0].Raw == "" {
		return
	}
	target := ""
	for i := range ev.Bufs {
		if ev.Bufs[i].Kind == event.KindBuf {
			if b, err := in.sk.tape.Content(&ev.Bufs[i], nil); err == nil {
				target = string(b)
			}
		}
	}
	if o := in.names.exist(c, tree.Symlink); o.typ != tree.Symlink {
		in.names.becomeLink(c, target)
	} else if o.target == "" || o.guessed {
		in.names.leadTo(c, target)
	}
}

// failed learns from a call that failed because of what was there.
func (in *inference) failed(ev *event.Event) {
	last := len(ev.Paths) - 1
	if last < 0 {
		return
	}
	switch ev.Errno {
	case syscall.ENOENT:
		// Directories on the way are not made for a name that was not there.
		in.names.absent(ev.Paths[last].Abs)
	case syscall.EEXIST:
		typ := tree.Type(0)
		if ev.Op == event.OpMkdir || ev.Op == event.OpMkdirat {
			typ = tree.Dir // nearly always; any type gives the same answer
		}
		if c := in.at(ev, last, false); c != nil {
			in.names.exist(c, typ)
		}
	case syscall.EISDIR:
		if c := in.at(ev, last, true); c != nil {
			in.names.exist(c, tree.Dir)
		}
	case syscall.EINVAL:
		if ev.Op == event.OpReadlink || ev.Op == event.OpReadlinkat {
			if c := in.at(ev, 0, false); c != nil { // exists, and is no link
				in.names.exist(c, 0)
			}
		}
	case syscall.ENOTDIR:
		if c := in.at(ev, last, true); c != nil && !c.seen {
			in.names.exist(c, 0)
		}
	case syscall.EACCES, syscall.EPERM:
		if ev.UID != 0 {
			return // perhaps of a directory on the way
		}
		fallthrough
	case syscall.ENODATA, syscall.ERANGE, syscall.ETXTBSY:
		if c := in.at(ev, 0, followsLast(ev)); c != nil {
			in.names.exist(c, 0)
		}
	case syscall.ELOOP:
		// A link of which nothing else is known may as well lead to itself.
		if c := in.at(ev, last, false); c != nil && (!c.seen || c.obj != nil && c.obj.typ == 0 && c.obj.initial != nil) {
			in.names.exist(c, tree.Symlink).target = c.name
		}
	case syscall.ENOTEMPTY:
		// Of a rename, the directory that was to be replaced.
		if c := in.at(ev, last, false); c != nil {
			in.names.exist(c, tree.Dir)
			in.names.fill(c)
		}
	}
}

// failedPair learns from a rename or link that failed. The kernel looks up the old
// name, and the directory of the new one, before it can find fault with the two
// together.
func (in *inference) failedPair(ev *event.Event) {
	typ := tree.Type(0)
	switch ev.Errno {
	case syscall.EEXIST:
	case syscall.EISDIR: // a file is not to replace a directory
		typ = tree.File
	case syscall.ENOTEMPTY: // nor a directory one that is in use
		typ = tree.Dir
	case syscall.EINVAL: // nor to move into itself; other reasons are the arguments'
		if len(ev.Paths) < 2 || !strings.HasPrefix(ev.Paths[1].Abs, ev.Paths[0].Abs+"/") {
			return
		}
		typ = tree.Dir
	default:
		in.failed(ev)
		return
	}
	if from := in.at(ev, 0, ev.Op == event.OpLinkat && followsLast(ev)); from != nil {
		in.names.exist(from, typ)
	}
	if to := in.at(ev, 1, false); to != nil {
		in.names.existAbove(to)
	}
	in.failed(ev)
}

// object returns the object that a call acts on, by descriptor or by name.
func (in *inference) object(ev *event.Event) *object {
	if len(ev.Paths) > 0 && (ev.Paths[0].Raw != "" || ev.FileArg(0) == nil) {
		return in.found(ev, followsLast(ev))
	}
	if f := ev.FileArg(0); f != nil {
		return in.open[f.Open]
	}
	return nil
}

// readCall learns content.
func (in *inference) readCall(ev *event.Event) {
	src := 0
	if ev.Op == event.OpSendfile {
		src = 1
	}
	off := ev.Offset
	if ev.Spec().Hold {
		off = sourceOffset(ev)
		in.copied(ev)
	}
	f := ev.FileArg(src)
	if !ev.OK() || f == nil || off < 0 || ev.Ret <= 0 {
		return
	}
	o := in.open[f.Open]
	if o == nil || o.initial == nil {
		return
	}
	if o.initial.Has(tree.KnownSize) {
		o.content.wrote(o.initial.Size, o.written) // holes that the trace made are not initial
	}
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; int(b.Arg) == contentArg(ev.Op) && !runs(ev) {
			o.content.read(off, b, func(data []byte) uint64 {
				in.sk.inline = append(in.sk.inline, slices.Clone(data))
				return uint64(len(in.sk.inline)-1) | inlineBit
			})
		}
	}
}

// copied notes the destination of a copy inside the kernel.
func (in *inference) copied(ev *event.Event) {
	dst := 2
	if ev.Op == event.OpSendfile {
		dst = 0
	}
	f := ev.FileArg(dst)
	if !ev.OK() || f == nil || ev.Ret <= 0 {
		return
	}
	if o := in.open[f.Open]; o != nil {
		if end := targetOffset(ev) + ev.Ret; end >= ev.Ret {
			o.content.wrote(end-ev.Ret, end)
		}
		o.grown = true
	}
}

// wroteCall notes what is the trace's own content from now on.
func (in *inference) wroteCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	o := in.object(ev)
	if o == nil {
		return
	}
	o.grown = o.grown || ev.Op != event.OpMmapPwrite // a store never changes the size
	switch ev.Op {
	case event.OpTruncate, event.OpFtruncate:
		o.content.wrote(ev.Offset, 1<<62)
	case event.OpFallocate:
		const keepSize = 1
		if ev.Args[1]&^keepSize != 0 { // everything but plain allocation moves or clears content
			o.content.wrote(ev.Offset, 1<<62)
		}
	default:
		if ev.Offset >= 0 {
			o.content.wrote(ev.Offset, ev.Offset+ev.Ret)
			o.written = max(o.written, ev.Offset+ev.Ret)
		}
	}
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
	data, err := in.sk.tape.Content(b, nil)
	if err != nil {
		return
	}
	for _, e := range dirents(data) {
		if e.name == "." || e.name == ".." {
			continue
		}
		if k := c.child(e.name); !k.seen {
			in.names.exist(k, e.typ)
		}
	}
}
