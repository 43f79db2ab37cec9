// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"slices"
)

// Effect is what calls do to files, names and descriptors, whatever they are called: stat, fstat and statx have
// one effect, and a request to io_uring has that of the call which it is like. What else a call says (which name,
// descriptor, range or mode) is in the methods of Event and Spec.
type Effect uint8

// The effects. Their names are those of the manual pages in section 2.
const (
	EffectNone        Effect = iota // none of those below
	EffectOpen                      // open, and creat; not open_by_handle_at, which has no name
	EffectStat                      // stat, fstat, statx
	EffectAccess                    // access
	EffectReadlink                  // readlink
	EffectList                      // getdents
	EffectMkdir                     // mkdir
	EffectSymlink                   // symlink
	EffectMknod                     // mknod
	EffectBind                      // bind, which may make a socket's name
	EffectLink                      // link
	EffectRename                    // rename
	EffectUnlink                    // unlink, and unlinkat without AT_REMOVEDIR (Event.Effect)
	EffectRmdir                     // rmdir, and unlinkat with it
	EffectRead                      // moves bytes of a file to the program: read, pread, or a load from a mapping
	EffectWrite                     // moves bytes of the program to a file
	EffectCopy                      // moves bytes of a file to another one: copy_file_range, sendfile, splice
	EffectSeek                      // lseek
	EffectTruncate                  // truncate, ftruncate
	EffectAllocate                  // fallocate
	EffectSync                      // makes a file durable, or a range of it: fsync, msync, sync_file_range
	EffectSyncAll                   // makes a file system durable, or all: sync, syncfs
	EffectAdvise                    // posix_fadvise, readahead
	EffectChmod                     // chmod
	EffectChown                     // chown
	EffectSetTimes                  // utimensat
	EffectGetXattr                  // getxattr
	EffectListXattr                 // listxattr
	EffectSetXattr                  // setxattr
	EffectRemoveXattr               // removexattr
	EffectStatFS                    // statfs
	EffectChdir                     // chdir, fchdir
	EffectChroot                    // chroot
	EffectLock                      // flock; fcntl's locks are commands of EffectControl
	EffectControl                   // fcntl
	EffectIoctl                     // ioctl
	EffectDup                       // dup; fcntl's are commands of EffectControl
	EffectDupTo                     // dup2, dup3: to a number, which they may close first
	EffectClose                     // close
	EffectCloseRange                // close_range
	EffectPair                      // two descriptors that are connected: pipe, socketpair
	EffectSocket                    // socket
	EffectConnect                   // connect
	EffectAccept                    // accept
	EffectTellName                  // getsockname
	EffectSend                      // sendto, sendmsg; not sendmmsg, whose result counts messages
	EffectReceive                   // recvfrom, recvmsg; not recvmmsg
	EffectExecute                   // execve
	EffectWait                      // wait4, waitid
	numEffects
)

// NumEffects is how many effects there are; values of Effect are below it.
const NumEffects = int(numEffects)

// effectOps has the calls with each effect. A new call is to be added here, if it does what others do, and nowhere
// else.
var effectOps = [numEffects][]Op{
	EffectOpen:     {OpOpen, OpOpenat, OpOpenat2, OpCreat},
	EffectStat:     {OpStat, OpLstat, OpFstat, OpNewfstatat, OpStatx},
	EffectAccess:   {OpAccess, OpFaccessat, OpFaccessat2},
	EffectReadlink: {OpReadlink, OpReadlinkat},
	EffectList:     {OpGetdents, OpGetdents64},
	EffectMkdir:    {OpMkdir, OpMkdirat},
	EffectSymlink:  {OpSymlink, OpSymlinkat},
	EffectMknod:    {OpMknod, OpMknodat},
	EffectBind:     {OpBind},
	EffectLink:     {OpLink, OpLinkat},
	EffectRename:   {OpRename, OpRenameat, OpRenameat2},
	EffectUnlink:   {OpUnlink, OpUnlinkat},
	EffectRmdir:    {OpRmdir},
	EffectRead:     {OpRead, OpPread64, OpReadv, OpPreadv, OpPreadv2, OpMmapPread},
	EffectWrite:    {OpWrite, OpPwrite64, OpWritev, OpPwritev, OpPwritev2, OpMmapPwrite},
	EffectCopy:     {OpCopyFileRange, OpSendfile, OpSplice},
	EffectSeek:     {OpLseek},
	EffectTruncate: {OpTruncate, OpFtruncate},
	EffectAllocate: {OpFallocate},
	EffectSync:     {OpFsync, OpFdatasync, OpSyncFileRange, OpMsync},
	EffectSyncAll:  {OpSync, OpSyncfs},
	EffectAdvise:   {OpFadvise64, OpReadahead},
	EffectChmod:    {OpChmod, OpFchmod, OpFchmodat, OpFchmodat2},
	EffectChown:    {OpChown, OpFchown, OpLchown, OpFchownat},
	EffectSetTimes: {OpUtime, OpUtimes, OpFutimesat, OpUtimensat},
	EffectGetXattr: {OpGetxattr, OpLgetxattr, OpFgetxattr, OpGetxattrat},
	EffectListXattr: {
		OpListxattr, OpLlistxattr, OpFlistxattr, OpListxattrat,
	},
	EffectSetXattr:    {OpSetxattr, OpLsetxattr, OpFsetxattr, OpSetxattrat},
	EffectRemoveXattr: {OpRemovexattr, OpLremovexattr, OpFremovexattr, OpRemovexattrat},
	EffectStatFS:      {OpStatfs, OpFstatfs},
	EffectChdir:       {OpChdir, OpFchdir},
	EffectChroot:      {OpChroot},
	EffectLock:        {OpFlock},
	EffectControl:     {OpFcntl},
	EffectIoctl:       {OpIoctl},
	EffectDup:         {OpDup},
	EffectDupTo:       {OpDup2, OpDup3},
	EffectClose:       {OpClose},
	EffectCloseRange:  {OpCloseRange},
	EffectPair:        {OpPipe, OpPipe2, OpSocketpair},
	EffectSocket:      {OpSocket},
	EffectConnect:     {OpConnect},
	EffectAccept:      {OpAccept, OpAccept4},
	EffectTellName:    {OpGetsockname},
	EffectSend:        {OpSendto, OpSendmsg},
	EffectReceive:     {OpRecvfrom, OpRecvmsg},
	EffectExecute:     {OpExecve, OpExecveat},
	EffectWait:        {OpWait4, OpWaitid},
}

// effects is by operation, of requests too.
var effects = func() []Effect {
	t := make([]Effect, specs[len(specs)-1].Op+1)
	for effect, ops := range effectOps {
		for _, op := range ops {
			t[op] = Effect(effect)
		}
	}
	for i := range specs {
		if op := specs[i].Op; op.Like() != op {
			t[op] = t[op.Like()]
		}
	}
	return t
}()

// Effect returns what calls of the operation do. Whether an unlinkat removes a directory, only an event knows.
func (op Op) Effect() Effect {
	if int(op) >= len(effects) {
		return EffectNone
	}
	return effects[op]
}

// atRemoveDir is AT_REMOVEDIR (fcntl.h).
const atRemoveDir = 0x200

// Effect returns what a call did, or was to do if it failed. It is EffectNone of events that are no calls.
func (e *Event) Effect() Effect {
	if e.Kind != Call {
		return EffectNone
	}
	if e.Op.Like() == OpUnlinkat && e.Args[2]&atRemoveDir != 0 {
		return EffectRmdir
	}
	return e.Op.Effect()
}

// Arg returns the index of the argument with a name, such as "mode", "owner" or "flags"; -1 if the operation has none.
func (s *Spec) Arg(name string) int {
	for i := range s.Args {
		if s.Args[i].Name == name {
			return i
		}
	}
	return -1
}

// SizeArg returns the index of the first argument that is a number of bytes; -1 if the operation has none.
func (s *Spec) SizeArg() int {
	return slices.IndexFunc(s.Args, func(a Arg) bool { return a.Kind == KindSize })
}

// Named returns the value of the argument with a name. It is 0 if the operation has none.
func (e *Event) Named(name string) uint64 {
	if i := Lookup(e.Op.Like()).Arg(name); i >= 0 {
		return e.Args[i]
	}
	return 0
}

// AtPosition reports whether a read or write is made at the position of its descriptor, and moves it: by calls
// without an offset, and by others with the offset -1 (preadv2(2), io_uring_enter(2)).
func (e *Event) AtPosition() bool {
	switch e.Op.Like() {
	case OpRead, OpWrite, OpReadv, OpWritev:
		return true
	case OpPread64, OpPwrite64, OpPreadv2, OpPwritev2:
		return int64(e.Args[3]) == -1
	}
	return false
}

// XattrName returns the name of the extended attribute that a call reads, sets or removes; "" if it does not.
func (e *Event) XattrName() string {
	switch e.Effect() {
	case EffectGetXattr, EffectSetXattr, EffectRemoveXattr:
		if b := e.BufArg(Lookup(e.Op.Like()).Arg("name")); b != nil {
			name, _, _ := bytes.Cut(b.Inline, []byte{0})
			return string(name)
		}
	}
	return ""
}

// XattrValue returns the value that a call gave an extended attribute, or read of one; nil if it is not known.
func (e *Event) XattrValue() *Buf {
	s := Lookup(e.Op.Like())
	if i := s.Arg("value"); i >= 0 {
		return e.BufArg(i)
	}
	if i := s.Arg("args"); i >= 0 && e.XattrName() != "" { // struct xattr_args points to it
		return e.BufArg(PartTarget.Of(i))
	}
	return nil
}

const (
	rwfAppend       = 16 // RWF_APPEND (linux/fs.h)
	renameNoReplace = 1  // RENAME_NOREPLACE (linux/fs.h)
	renameExchange  = 2  // RENAME_EXCHANGE
	renameWhiteout  = 4  // RENAME_WHITEOUT
)

// Appends reports whether a write goes to the end of its file, wherever that is: the descriptor has O_APPEND, or
// the call RWF_APPEND.
func (e *Event) Appends() bool {
	if f := e.FileArg(0); f != nil && f.Flags&OpenAppend != 0 {
		return true
	}
	return e.Op.Like() == OpPwritev2 && e.Args[5]&rwfAppend != 0
}

// Exchanges reports whether a rename exchanges its two names (RENAME_EXCHANGE).
func (e *Event) Exchanges() bool {
	return e.Effect() == EffectRename && e.Named("flags")&renameExchange != 0
}

// SparesTarget reports whether a rename fails if its second name exists (RENAME_NOREPLACE).
func (e *Event) SparesTarget() bool {
	return e.Effect() == EffectRename && e.Named("flags")&renameNoReplace != 0
}

// LeavesWhiteout reports whether a rename makes a whiteout of its first name (RENAME_WHITEOUT): a character device
// with the number 0 (overlayfs).
func (e *Event) LeavesWhiteout() bool {
	return e.Effect() == EffectRename && e.Named("flags")&renameWhiteout != 0
}
