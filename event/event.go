// SPDX-License-Identifier: Apache-2.0

package event

import "syscall"

// AtFDCWD is the directory descriptor that stands for the working directory.
const AtFDCWD = -100

// MaxBytes is the most that a buffer can say it is long: more is no length, and sums of a few do not overflow.
const MaxBytes = 1 << 60

// ResultArg is the argument index that stands for the result.
const ResultArg = -1

// MemoryArg is the argument index of descriptors that stand in a call's memory, in
// their order there: the two of pipe and socketpair, those that a message passes
// (SCM_RIGHTS), the source of FICLONERANGE.
const MemoryArg = -2

// Event is one operation from entry to return, as the sealed trace holds it:
// resolved, with content by reference. An iterator may reuse the Event and
// everything it points to; Clone what must live longer.
type Event struct {
	Seq  uint64 // position in the tape, from 0
	Op   Op
	Kind EventKind
	NR   uint32 // system-call number on the recorded architecture
	Host uint32 // index into the tape's hosts

	PID, TID, PPID, PGID, SID uint32
	UID, GID                  uint32 // of file-system access (fsuid, fsgid)
	// process and thread as their own pid namespace numbers them; 0 if that is the recorder's
	NSPID, NSTID uint32
	Comm         string // the kernel's name of the thread, at most 15 bytes

	Enter, Exit int64 // ns, monotonic; the tape's header anchors them to wall clock
	CPU         int64 // ns of CPU time that the thread had used at entry; scheduler-tick exact
	// How long the thread waited for a processor that others had, ns: between its call
	// before and this one, and during this one. They count with the flag Delays, and end
	// at 2^32-1. The kernel's account (/proc/PID/schedstat) goes from when a thread could
	// run to when it did, and adds a few µs each time. What the recorder took to record
	// the call before is a part of DelayBefore: no computing of the thread's own.
	DelayBefore, DelayWithin uint32

	Ret   int64         // result; -1 when Errno is set
	Errno syscall.Errno // 0 on success
	Args  [MaxArgs]uint64

	Files []File // descriptors: arguments in order, those in memory, the result
	Paths []Path // path arguments, in order
	Bufs  []Buf  // memory arguments other than paths, in order

	Offset int64  // effective file offset of a data operation in bytes, -1 if none
	Count  int64  // bytes asked for, -1 if none
	Child  uint32 // thread made by fork, vfork, clone (seen from this event's thread)
	Flags  EventFlags

	Stack *Stack // where in its program the thread made the call; nil if that was not recorded
}

// EventKind tells operations from what else a trace holds.
type EventKind uint8

// The kinds of events.
const (
	Call     EventKind = iota // a system call
	Exited                    // a thread ended (ExitStatus)
	LossMark                  // events were lost here (Loss)
	NoteMark                  // written by the user (Note)
	Forked                    // a thread was made (Fork)
	// state of a process at the start: Paths[0].Abs is its working directory (Umask, Mounts)
	Started
	// Files[0] was open at the start, or mapped (OwnsFile, Mapping)
	Inherited
	// the thread was woken up (Wakeup)
	Woken
	// a signal was delivered to the thread (Signal); Bufs[0] is the siginfo_t (SiginfoBytes of it; 4 if only the number
	// is known)
	Signalled
	// where the process runs and with what, as of now: package event/facts has the buffers
	Described
	numKinds
)

// NumKinds is how many kinds of events there are; EventKind values are below it.
const NumKinds = int(numKinds)

// MappedFD is the descriptor of an Inherited event that tells of a mapping (Event.Mapping).
const MappedFD = -1

// IsNonLeaderExec reports whether the event is the execve of a thread that is not its process's
// first: what it does from now on it does under the number of that one, which is gone.
func (ev *Event) IsNonLeaderExec() bool {
	return ev.Effect() == EffectExecute && ev.TID != ev.PID && ev.OK()
}

// Took returns how long the call took, in ns. It is not known, and 0, of what is no call, of calls
// whose return was not seen, and of those of traces that do not say it.
func (ev *Event) Took() (ns int64, known bool) {
	if ev.Kind != Call || ev.Flags&(Interrupted|Untimed) != 0 {
		return 0, false
	}
	return max(ev.Exit-ev.Enter, 0), true
}

// Bits of a Forked event: what the child shares with its maker, and what not (clone(2)).
const (
	ShareVM     = 0x100
	ShareFS     = 0x200
	ShareFiles  = 0x400
	ShareThread = 0x10000
	NewMounts   = 0x20000 // it has a mount namespace of its own
)

// EventFlags say what is special about an event.
type EventFlags uint16

// The flags.
const (
	Interrupted EventFlags = 1 << iota // no return was seen: the thread ended, or the trace did
	Incomplete                         // some bytes of its content could not be recorded
	Late                               // came out of order by more than the sorting window
	Compat                             // made by a 32-bit program: NR is a number of its calls, pointers have 32 bits
	// not made by the program: an lseek that stands for calls that a slice left out and that moved the position; an
	// ftruncate for what an open did after others had used its file (replay/linearize)
	Synthetic
	Delays // DelayBefore and DelayWithin are known; nothing else is special because of it
	// it is not known how long the call took, as foreign traces do not say it: Exit is for its order alone
	Untimed
	// the trace does not say the value of argument 0; Args has 0, or what a replay takes instead. That of
	// argument i is UnknownArg << i
	UnknownArg

	// a page that the call read was not in the page cache (only recordings of requests to block devices say so)
	Missed EventFlags = 1 << 13
)

// UnknownArgs are the flags of all arguments of which a trace does not say the value.
const UnknownArgs = UnknownArg * (1<<MaxArgs - 1)

// TellsDelays reports whether DelayBefore and DelayWithin are how long the event's thread waited for a processor. Of
// a request to a block device DelayBefore is how long it was queued before its driver got it.
func (ev *Event) TellsDelays() bool { return ev.Flags&Delays != 0 && ev.Spec().Class != Block }

// ArgKnown reports whether the value of an argument is known. Foreign traces do not say all of them.
func (ev *Event) ArgKnown(arg int) bool {
	return arg < 0 || arg >= MaxArgs || ev.Flags&(UnknownArg<<arg) == 0
}

// OpenID identifies an open file description ("open file") in one tape: dup,
// fork and SCM_RIGHTS give more descriptors, but the same OpenID. 0 is unknown.
type OpenID uint64

// File is a descriptor that an event used or made.
type File struct {
	Arg   int8   // argument index, ResultArg or MemoryArg
	FD    int32  // the number
	Open  OpenID // open file; 0 if the number was not open
	Known bool   // the kernel's facts below were recorded
	Dev   uint64 // device of the file, encoded as in stat (major<<8|minor, extended)
	Ino   uint64
	Mode  uint32 // type and permission bits, as st_mode
	Flags uint32 // open flags as of now
	Nlink uint32
	UID   uint32
	GID   uint32
	Size  int64 // bytes, after the call
	Pos   int64 // file position after the call
	Rdev  uint64
	Path  string // absolute name by which it was opened, best known; "pipe:[N]" and the like for others
	Real  string // its present name without symbolic links, if that is known and is not Path
}

// Name returns the name of the file: the one by which it was opened, or else the one that it has, as of
// programs, which no descriptor led to. It is "" if neither is known.
func (f *File) Name() string {
	if f.Path != "" {
		return f.Path
	}
	return f.Real
}

// Reached returns the name that the kernel knows the file by, as far as it is known: links are followed, and
// directories are where they are now.
func (f *File) Reached() string {
	if f.Real != "" {
		return f.Real
	}
	return f.Path
}

// Identified reports whether the kernel's facts are those of an inode. Foreign traces may say the type, the
// flags and the position alone: then device, permissions, links, owner and size are not known.
func (f *File) Identified() bool { return f.Known && f.Ino != 0 }

// Path is a path argument.
type Path struct {
	Arg  int8
	Raw  string // as passed
	Abs  string // absolute, without "." and ".."; symbolic links in it stay; "" if it could not be resolved
	Real string // the name of what the kernel came to through the links, if that is known and is not Abs
}

// Reached returns the name of what the kernel came to, as far as it is known.
func (p *Path) Reached() string {
	if p.Real != "" {
		return p.Real
	}
	return p.Abs
}

// Buf is memory that a call read or wrote.
type Buf struct {
	Arg     int8 // argument index; of its other parts, as Part.Of says
	Dir     Dir
	Kind    Kind
	Omitted bool    // because the policy said so, Inline and Refs are only the first bytes, or none
	Len     int64   // bytes that the call moved
	Missing int64   // bytes of these that could not be recorded
	Parts   []int64 // lengths of the vector's elements, for KindVec
	Inline  []byte  // the content itself when small; nil when Refs hold it
	Refs    []Ref   // the content as pieces of chunks, in order; a piece with Chunk 0 is missing
	// Hashes, if there are any, are those of the content, which is omitted: one for
	// each HashBytes, the last part being shorter. With --content signature they are
	// signatures (similar.Digest), whose first 8 bytes are those of the hash.
	Hashes []Digest
	// Sketch tells with signatures how much of the content is in another one: the
	// sketches (similar.SketchBytes) of the parts that have a signature, one after the
	// other, from the first part on.
	Sketch []byte
}

// Ref is a piece of a stored chunk.
type Ref struct {
	Chunk uint64 // number in the tape's content store, from 1
	Off   uint32 // first byte within the chunk
	Len   uint32 // bytes
}

// Spec returns the event's row in the operation table.
func (e *Event) Spec() *Spec { return Lookup(e.Op) }

// FileArg returns the descriptor in argument position arg (or ResultArg), nil if
// the event has none there.
func (e *Event) FileArg(arg int) *File {
	for i := range e.Files {
		if int(e.Files[i].Arg) == arg {
			return &e.Files[i]
		}
	}
	return nil
}

// PathArg returns the path in argument position arg, nil if there is none.
func (e *Event) PathArg(arg int) *Path {
	for i := range e.Paths {
		if int(e.Paths[i].Arg) == arg {
			return &e.Paths[i]
		}
	}
	return nil
}

// BufArg returns the memory of argument position arg, or of one of its parts
// (Part.Of), nil if there is none.
func (e *Event) BufArg(arg int) *Buf {
	for i := range e.Bufs {
		if int(e.Bufs[i].Arg) == arg {
			return &e.Bufs[i]
		}
	}
	return nil
}

// OK reports whether the operation succeeded.
func (e *Event) OK() bool { return e.Errno == 0 && e.Flags&Interrupted == 0 }

// Clone returns a copy that shares nothing with e.
func (e *Event) Clone() *Event {
	c := *e
	c.Files = append([]File(nil), e.Files...)
	c.Paths = append([]Path(nil), e.Paths...)
	c.Bufs = append([]Buf(nil), e.Bufs...)
	for i := range c.Bufs {
		c.Bufs[i].Inline = append([]byte(nil), c.Bufs[i].Inline...)
		c.Bufs[i].Refs = append([]Ref(nil), c.Bufs[i].Refs...)
		c.Bufs[i].Parts = append([]int64(nil), c.Bufs[i].Parts...)
		c.Bufs[i].Hashes = append([]Digest(nil), c.Bufs[i].Hashes...)
		c.Bufs[i].Sketch = append([]byte(nil), c.Bufs[i].Sketch...)
	}
	return &c
}
