// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"

	"github.com/iotape/iotape/event"
)

// changes is what calls of a kind change, as bits: what a later call gives depends on it.
type changes uint8

const (
	changesNames       changes = 1 << iota // which names there are, and what they lead to
	changesDirectory                       // the working directory
	changesDescriptors                     // what descriptors stand for
	changesContent                         // bytes and sizes of files
	changesPosition                        // where a descriptor reads and writes
	changesMode                            // permissions and owners
	changesAttributes                      // extended attributes
)

// callKinds are kinds of calls by which state changes that others see.
var callKinds = []struct {
	name    string
	changes changes
	ops     []event.Op
}{
	{"open", changesNames | changesDescriptors | changesContent, []event.Op{
		event.OpOpen, event.OpOpenat, event.OpOpenat2, event.OpCreat}},
	{"close", changesDescriptors, []event.Op{event.OpClose, event.OpCloseRange}},
	{"dup", changesDescriptors, []event.Op{event.OpDup, event.OpDup2, event.OpDup3, event.OpFcntl}},
	{"pipe", changesDescriptors, []event.Op{event.OpPipe, event.OpPipe2, event.OpSocket, event.OpSocketpair}},
	{"mkdir", changesNames, []event.Op{event.OpMkdir, event.OpMkdirat}},
	{"rename", changesNames | changesContent, []event.Op{event.OpRename, event.OpRenameat, event.OpRenameat2}},
	{"link", changesNames, []event.Op{
		event.OpLink, event.OpLinkat, event.OpSymlink, event.OpSymlinkat, event.OpMknod, event.OpMknodat}},
	{"unlink", changesNames, []event.Op{event.OpUnlink, event.OpUnlinkat}},
	{"rmdir", changesNames, []event.Op{event.OpRmdir, event.OpUnlinkat}},
	{"chdir", changesDirectory, []event.Op{event.OpChdir}},
	{"fchdir", changesDirectory, []event.Op{event.OpFchdir}},
	{"fork", changesDirectory | changesDescriptors, []event.Op{
		event.OpFork, event.OpVfork, event.OpClone, event.OpClone3}},
	{"read", changesPosition, []event.Op{event.OpRead, event.OpReadv}},
	{"lseek", changesPosition, []event.Op{event.OpLseek}},
	{"write", changesContent | changesPosition, []event.Op{event.OpWrite, event.OpWritev}},
	{"pwrite", changesContent, []event.Op{event.OpPwrite64, event.OpPwritev, event.OpPwritev2}},
	{"truncate", changesContent, []event.Op{event.OpTruncate, event.OpFtruncate, event.OpFallocate}},
	{"copy", changesContent | changesPosition, []event.Op{
		event.OpCopyFileRange, event.OpSendfile, event.OpSplice}},
	{"chmod", changesMode, []event.Op{event.OpChmod, event.OpFchmod, event.OpFchmodat, event.OpFchmodat2}},
	{"chown", changesMode, []event.Op{event.OpChown, event.OpFchown, event.OpLchown, event.OpFchownat}},
	{"setxattr", changesAttributes, []event.Op{event.OpSetxattr, event.OpLsetxattr, event.OpFsetxattr}},
	{CutNames, changesMode | changesAttributes, nil},
	{UnseenProcesses, changesNames | changesContent | changesPosition | changesMode | changesAttributes, nil},
}

// UnseenProcesses is the kind of the calls of processes that a trace says to have been made, and of which it has
// no calls (strace without -f).
const UnseenProcesses = "those of processes that are not in the trace"

// CutNames is the kind of the calls on extended attributes that are not made, because a trace has only the beginning
// of the attribute's name (strace -s). Some attributes are a file's permissions.
const CutNames = "those on extended attributes whose names are cut off"

// Succeeded is a set of operations of which a trace has calls that succeeded.
type Succeeded [(event.NumOps + 63) / 64]uint64

// Add notes an event.
func (s *Succeeded) Add(ev *event.Event) {
	if ev.Kind == event.Call && ev.OK() && int(ev.Op)/64 < len(s) {
		s[ev.Op/64] |= 1 << (ev.Op % 64)
	}
}

func (s *Succeeded) any(ops ...event.Op) bool {
	return slices.ContainsFunc(ops, func(op event.Op) bool { return int(op)/64 < len(s) && s[op/64]>>(op%64)&1 != 0 })
}

// LeftOut returns the kinds of calls of which a trace by another tool has none, and which that
// tool may have left out (strace -e trace=…); nil if the trace shows that it has all calls. The
// start of a program shows that: its loader makes calls that no selection of calls on files has.
func (s *Succeeded) LeftOut() (kinds []string) {
	if s.any(event.OpExecve, event.OpExecveat) && s.any(event.OpBrk, event.OpMmap) && s.any(event.OpClose) &&
		s.any(event.OpArchPrctl, event.OpSetTidAddress, event.OpMunmap) {
		return nil
	}
	for i := range callKinds {
		if callKinds[i].ops != nil && !s.any(callKinds[i].ops...) {
			kinds = append(kinds, callKinds[i].name)
		}
	}
	return kinds
}

// DependsOn returns those of the kinds that LeftOut returned, CutNames or UnseenProcesses, which can be why a call's
// result is another one here: what differs is a field of a mismatch, and names of errors are "0" for success.
func DependsOn(kinds []string, op event.Op, field string, want, got string) (causes []string) {
	if len(kinds) == 0 {
		return nil
	}
	var on changes
	switch field {
	case "errno":
		on = changesNames | changesDirectory
		for _, e := range [...]string{want, got} {
			switch e {
			case "EBADF", "ESPIPE", "EISDIR", "EINVAL", "ENOTDIR":
				on |= changesDescriptors
			case "EACCES", "EPERM":
				on |= changesMode
			case "ENODATA":
				on |= changesAttributes
			}
		}
	case "result", "content", "names", "st_size":
		on = changesNames | changesDirectory | changesDescriptors | changesContent | changesPosition
		if op == event.OpGetcwd {
			on = changesDirectory | changesNames
		}
	case "st_mode", "owner":
		on = changesNames | changesDirectory | changesDescriptors | changesMode
	case "st_nlink":
		on = changesNames
	case "working directory": // it is not there
		on = changesNames | changesDirectory
	}
	for i := range callKinds {
		if k := &callKinds[i]; k.changes&on != 0 && slices.Contains(kinds, k.name) {
			causes = append(causes, k.name)
		}
	}
	return causes
}
