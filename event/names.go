// SPDX-License-Identifier: Apache-2.0

package event

// NameMode is what an operation does with what a name leads to.
type NameMode uint8

// The modes.
const (
	NameLook      NameMode = iota // finds it, and reads what it says of itself
	NameOpen                      // opens it; with O_CREAT it may make it
	NameCreate                    // makes it
	NameRemove                    // removes the name
	NameFrom                      // takes the name away, for NameTo
	NameTo                        // gives the name to what NameFrom or NameLink had
	NameLink                      // gives what it finds one more name, NameTo
	NameAttribute                 // changes mode, owner, times or attributes
	NameResize                    // changes its size
	NameExecute                   // executes it
	NameEnter                     // makes it a working or root directory
	NameMount                     // mounts on it, or unmounts it
)

// lastLink says whether an operation follows a symbolic link that a name itself is. Those
// in the directories of a name are always followed.
type lastLink uint8

const (
	follows     lastLink = iota
	staysAt              // never
	unlessFlag           // unless the flag is set
	ifFlag               // if the flag is set
	byOpenFlags          // by O_NOFOLLOW, and by O_CREAT with O_EXCL
)

// nameRule is what an operation does with one of its names.
type nameRule struct {
	mode NameMode
	last lastLink
	arg  int8   // the argument with the flag
	flag uint64 // the flag
}

// Flags that say whether a link is followed (fcntl.h, linux/mount.h, sys/inotify.h).
const (
	atSymlinkNofollow = 0x100
	atSymlinkFollow   = 0x400
	umountNofollow    = 8
	fspickNofollow    = 2
	moveFromSymlinks  = 1
	moveToSymlinks    = 0x10
	inDontFollow      = 0x2000000
	fanDontFollow     = 4
	openNofollow      = 0o400000
)

func found(mode NameMode) []nameRule { return []nameRule{{mode: mode}} }
func itself(mode NameMode) []nameRule {
	return []nameRule{{mode: mode, last: staysAt}}
}
func at(mode NameMode, arg int8) []nameRule {
	return []nameRule{{mode, unlessFlag, arg, atSymlinkNofollow}}
}

var (
	opened  = []nameRule{{mode: NameOpen, last: byOpenFlags}}
	renamed = []nameRule{{mode: NameFrom, last: staysAt}, {mode: NameTo, last: staysAt}}
)

// nameRules has the operations whose names are not only looked at, or whose last links are
// not always followed: a rule for each name, in the order of the arguments. It is by what
// operations are like (Op.Like), and so holds of requests to io_uring, too.
var nameRules = map[Op][]nameRule{
	OpOpen:            opened,
	OpOpenat:          opened,
	OpOpenat2:         opened,
	OpCreat:           opened,
	OpTruncate:        found(NameResize),
	OpLstat:           itself(NameLook),
	OpNewfstatat:      at(NameLook, 3),
	OpStatx:           at(NameLook, 2),
	OpFaccessat2:      at(NameLook, 3),
	OpChmod:           found(NameAttribute),
	OpFchmodat:        found(NameAttribute),
	OpFchmodat2:       at(NameAttribute, 3),
	OpChown:           found(NameAttribute),
	OpLchown:          itself(NameAttribute),
	OpFchownat:        at(NameAttribute, 4),
	OpUtime:           found(NameAttribute),
	OpUtimes:          found(NameAttribute),
	OpFutimesat:       found(NameAttribute),
	OpUtimensat:       at(NameAttribute, 3),
	OpSetxattr:        found(NameAttribute),
	OpLsetxattr:       itself(NameAttribute),
	OpLgetxattr:       itself(NameLook),
	OpLlistxattr:      itself(NameLook),
	OpRemovexattr:     found(NameAttribute),
	OpLremovexattr:    itself(NameAttribute),
	OpGetxattrat:      at(NameLook, 2),
	OpSetxattrat:      at(NameAttribute, 2),
	OpListxattrat:     at(NameLook, 2),
	OpRemovexattrat:   at(NameAttribute, 2),
	OpFileGetattr:     at(NameLook, 4),
	OpFileSetattr:     at(NameAttribute, 4),
	OpMkdir:           itself(NameCreate),
	OpMkdirat:         itself(NameCreate),
	OpMknod:           itself(NameCreate),
	OpMknodat:         itself(NameCreate),
	OpSymlink:         itself(NameCreate),
	OpSymlinkat:       itself(NameCreate),
	OpRmdir:           itself(NameRemove),
	OpUnlink:          itself(NameRemove),
	OpUnlinkat:        itself(NameRemove),
	OpRename:          renamed,
	OpRenameat:        renamed,
	OpRenameat2:       renamed,
	OpLink:            {{mode: NameLink, last: staysAt}, {mode: NameTo, last: staysAt}},
	OpLinkat:          {{NameLink, ifFlag, 4, atSymlinkFollow}, {mode: NameTo, last: staysAt}},
	OpReadlink:        itself(NameLook),
	OpReadlinkat:      itself(NameLook),
	OpNameToHandleAt:  {{NameLook, ifFlag, 4, atSymlinkFollow}},
	OpChdir:           found(NameEnter),
	OpChroot:          found(NameEnter),
	OpPivotRoot:       {{mode: NameEnter}, {mode: NameMount}},
	OpMount:           found(NameMount),
	OpUmount2:         {{NameMount, unlessFlag, 1, umountNofollow}},
	OpFspick:          {{NameLook, unlessFlag, 2, fspickNofollow}},
	OpOpenTree:        at(NameLook, 2),
	OpOpenTreeAttr:    at(NameLook, 2),
	OpMountSetattr:    at(NameMount, 2),
	OpMoveMount:       {{NameMount, ifFlag, 4, moveFromSymlinks}, {NameMount, ifFlag, 4, moveToSymlinks}},
	OpExecve:          found(NameExecute),
	OpExecveat:        at(NameExecute, 4),
	OpInotifyAddWatch: {{NameLook, unlessFlag, 2, inDontFollow}},
	OpFanotifyMark:    {{NameLook, unlessFlag, 1, fanDontFollow}},
}

// NameUse says what an event did with its name of Paths[i], and whether it followed the
// symbolic link that the name may be.
func (e *Event) NameUse(i int) (mode NameMode, follow bool) {
	rules := nameRules[e.Op.Like()]
	if i >= len(rules) {
		return NameLook, true
	}
	r := &rules[i]
	switch r.last {
	case staysAt:
		return r.mode, false
	case unlessFlag:
		return r.mode, e.Args[r.arg]&r.flag == 0
	case ifFlag:
		return r.mode, e.Args[r.arg]&r.flag != 0
	case byOpenFlags:
		flags := e.OpenFlags()
		return r.mode, flags&openNofollow == 0 && flags&(OpenCreat|OpenExcl) != OpenCreat|OpenExcl
	}
	return r.mode, true
}

// FollowsLast reports whether an event followed the symbolic link that its first name may be.
func (e *Event) FollowsLast() bool {
	_, follow := e.NameUse(0)
	return follow
}
