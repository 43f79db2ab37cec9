// SPDX-License-Identifier: Apache-2.0

package event

// Op is the number of an operation. Numbers are part of the stream
// and tape formats: they are only ever appended, never reused.
type Op uint16

// Class says what an operation is about. Reports and filters group by it.
type Class uint8

// The classes.
const (
	Raw        Class = iota // not in the operation table: number and raw arguments only
	Data                    // moves file content
	Descriptor              // makes, duplicates or ends descriptors
	Meta                    // reads or changes attributes
	Namespace               // changes or lists names
	Sync                    // asks for durability
	Lock                    // file locks
	Memory                  // mappings
	Process                 // process life and identity
	Socket                  // network and local sockets, pipes
	Wait                    // waits for events or time
	Block                   // requests to block devices
	numClasses
)

// NumClasses is how many classes there are; Class values are below it.
const NumClasses = int(numClasses)

var classNames = [...]string{"raw", "data", "descriptor", "meta", "namespace", "sync", "lock", "memory", "process",
	"socket", "wait", "block"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "raw"
}

// ClassByName returns the class with a name, as String writes it.
func ClassByName(name string) (c Class, ok bool) {
	for i, s := range classNames {
		if s == name {
			return Class(i), true
		}
	}
	return Raw, false
}

// Kind is what an argument or a result means.
type Kind uint8

// The kinds. Those from KindPath on are pointers to user memory that capture reads.
const (
	KindHex     Kind = iota // unknown or an address: printed in hexadecimal
	KindInt                 // signed number
	KindSize                // number of bytes or objects
	KindOff                 // file offset in bytes
	KindFD                  // descriptor; its object is looked up and recorded
	KindDirFD               // directory descriptor or AT_FDCWD
	KindMode                // permission bits, printed in octal
	KindFlags               // bit set with names (Arg.Set)
	KindEnum                // one of named values (Arg.Set)
	KindPID                 // process or thread id
	KindID                  // user or group id; -1 is "unchanged"
	KindDev                 // encoded device number
	KindSignal              // signal number
	KindNone                // result without meaning
	KindPath                // NUL-terminated path name
	KindText                // NUL-terminated string that is no path (xattr name, …)
	KindBuf                 // bytes
	KindVec                 // struct iovec array and the bytes it points to
	KindStruct              // a kernel structure (Arg.Layout)
	KindStrings             // NULL-terminated vector of strings (argv)
)

// IsMemory reports whether arguments of the kind point to user memory that a
// capture reads.
func (k Kind) IsMemory() bool { return k >= KindPath }

// Dir is the way that memory moves: In is read by the kernel, Out is written.
type Dir uint8

// The directions.
const (
	In Dir = iota
	Out
)

// LenRule says how many bytes an argument's memory has.
type LenRule uint8

// The rules. "Const" is Arg.Bytes, the value of an argument is as passed. Those
// from LenArray on are for calls that are not frequent: the eBPF side tries them last.
const (
	LenNUL    LenRule = iota // up to the terminating NUL, at most MaxPath bytes
	LenConst                 // Const
	LenArg                   // the value of argument LenArg, and Arg.Const
	LenRet                   // the result, at most argument LenArg when that is not NoArg, and Arg.Const
	LenVec                   // iovec array of Args[LenArg] elements, moving at most the result
	LenVecAll                // iovec array of Args[LenArg] elements, all of it

	LenArray       // Args[LenArg] elements of Const
	LenRetArray    // as many elements of Const as the result says, at most argument LenArg when that is not NoArg
	LenBits        // bit map of Args[LenArg] bits, in whole 64-bit words
	LenPages       // a byte for each page of Args[LenArg] bytes
	LenPtr         // the u32 that argument LenArg points to, at most what it was before the call (Spec.Offer) and Const
	LenPositive    // Const, if the result is greater than 0
	LenInterrupted // Const, if a signal ended the call
	LenTail        // a head of Const, and the elements behind it that it counts (Arg.Tail)
	LenRef         // a head of Const, and, as PartTarget, the elements that it counts and points to (Arg.Tail)
	LenCommand     // what the value of argument LenArg says (Command)
	// struct msghdr, as PartName, PartData and PartControl what it points to; the result is the bytes moved
	LenMsg
	LenSlots // what an io_uring's table of files is filled with (LayoutSlots)
	LenMsgs  // array of Args[LenArg] struct mmsghdr, likewise, of which as many were moved as the result says
)

// Tail says where a structure counts the elements behind it, or those that it
// points to. Offsets are in bytes from the structure's start.
type Tail struct {
	Off   uint8  // of the count
	Width uint8  // of the count, in bytes: 2, 4 or 8
	Max   uint8  // LenTail: of a u32 that bounds the count, 0 if there is none
	Ptr   uint8  // LenRef: of the pointer
	Elem  uint16 // bytes of an element
}

// Part says which memory of an argument a piece of a record, or an event's buffer,
// has. The numbers are part of the formats: an index is Part<<4 | argument.
type Part uint8

// The parts.
const (
	PartWhole   Part = iota // what the argument points to
	PartBefore              // the same before the call, where that changed it; of a struct msghdr, msg_namelen only
	PartName                // addresses (msg_name), of all messages one after the other
	PartData                // content (msg_iov), likewise
	PartControl             // control messages (msg_control), likewise
	PartTarget              // what a pointer in the structure points to (LenRef)
	PartSocket              // no memory: the ends of the record's object number Off (package event/socket)
)

// Of returns the index of an argument's part.
func (p Part) Of(arg int) int { return int(p)<<4 | arg }

// SplitPart is the inverse of Of.
func SplitPart(index int) (p Part, arg int) { return Part(index >> 4 & 15), index & 15 }

// When says at which side of the call memory is read.
type When uint8

// Sides. At exit the kernel has just touched the pages, so they are resident;
// entry is for calls that destroy or do not return to their memory. AtBoth is for
// those that read and overwrite it: what was there before is PartBefore.
const (
	AtExit When = iota
	AtEntry
	AtBoth
)

// MaxPath is the longest string that capture reads for Path and Text, in bytes
// with the NUL (PATH_MAX, linux/limits.h).
const MaxPath = 4096

// Limits of the operation table, fixed in the C side too.
const (
	MaxArgs = 6 // arguments of a system call
	MaxCaps = 6 // memory arguments of one operation
	MaxObjs = 3 // objects of one call's arguments and result: two descriptors and the result

	// MaxPassed is how many descriptors within its memory (MemoryArg) a call is recorded
	// with: one message has at most 253 (SCM_MAX_FD). Only the first MaxMessages of
	// sendmmsg and recvmmsg are looked at for them.
	MaxPassed   = 253
	MaxMessages = 64
)

// MaxSockets is of how many sockets a record of a call says the ends: those of its first
// objects that are sockets.
const MaxSockets = 16

// NoArg marks an absent argument index.
const NoArg = 0xff

// Arch is an instruction-set architecture with its own call numbers.
type Arch uint8

// The architectures of the operation table.
const (
	AMD64 Arch = iota
	ARM64
	numArch
)

func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return "unknown"
}

// ParseArch returns the architecture of a GOARCH name.
func ParseArch(s string) (Arch, bool) {
	switch s {
	case "amd64":
		return AMD64, true
	case "arm64":
		return ARM64, true
	}
	return 0, false
}

// Cond limits reading an argument's memory to some values (all < 64) of
// another argument, such as futex's operations that wait. Mask 0 means always.
type Cond struct {
	Arg  uint8
	Bits uint32 // the bits of that argument that count
	Mask uint64
}

// Holds reports whether memory is to be read for a call's arguments.
func (c *Cond) Holds(args *[MaxArgs]uint64) bool {
	if c.Mask == 0 {
		return true
	}
	v := args[c.Arg] & uint64(c.Bits)
	return v < 64 && c.Mask>>v&1 != 0
}

// Arg describes one argument of an operation.
type Arg struct {
	Name   string
	Kind   Kind
	Dir    Dir
	When   When
	Len    LenRule
	LenArg uint8 // see LenRule
	Const  uint32
	Tail   Tail
	Layout Layout
	Set    *Set // names, for KindFlags, KindEnum and values of KindHex that have one
	Cond   Cond
}

// Bytes returns the fixed size of the argument's structure, or of one element.
func (a *Arg) Bytes(arch Arch) uint32 {
	if n := a.Layout.Bytes(arch); n > 0 {
		return uint32(n)
	}
	return a.Const
}

// Replay says what a replay does with an operation.
type Replay uint8

// The ways of replay.
const (
	Native  Replay = iota // the same call, on the target
	Emulate               // its effect on the model, without the call
	Skip                  // nothing; Spec.Why says the reason
)

func (r Replay) String() string { return [...]string{"native", "emulated", "skipped"}[r] }

// Spec is one row of the operation table.
type Spec struct {
	Op     Op
	Name   string // the kernel's name for it, also on architectures without the call
	Class  Class
	Args   []Arg
	Result Kind // KindFD, KindSize (bytes moved), Off, Int, PID, Hex or None
	Replay Replay
	Why    string // reason, where Replay is Skip or Emulate

	// Identity is set where success changes what the process record holds:
	// ids, process group, session, name.
	Identity bool
	// Facts is set where success changes what a recording says of where a process runs and with what
	// (package event/facts): users, groups, capabilities or namespaces.
	Facts bool
	// Hold is set where content moves inside the kernel, so that no buffer of
	// the caller shows it: the thread is held until the recorder read it.
	NeedsStop bool
	// Offer is the argument that points to a u32 which says, before the call, how much
	// room there is for what LenPtr counts afterwards, plus 1. For LenMsg it is the
	// message, of which msg_namelen says so. 0 is none.
	ValueResultArg uint8
	// NoCall is set where the operation is no system call, but what a program did
	// with a file through a mapping of it.
	NoCall bool
	// NoReturn is set where success never returns to the caller.
	NoReturn bool
	// Like is, of a request, the system call that does the same (Op.Like), OpUnknown
	// if there is none; Fields are where its arguments stand in the request's head.
	Like   Op
	Fields []Field
}

// Set maps values to names, for printing and parsing flags and enumerations. Bits
// and Enum make one.
type Set struct {
	Name  string
	Items []Item
	Zero  string // printed when no bit is set; "0" if empty
	// Rest writes what has no name: remaining bits, or a value that is no item. Nil is
	// hexadecimal.
	Rest func(dst []byte, v uint64) []byte
	// Open is set where the bits are open flags, whose values differ between
	// architectures: OpenFlags translates them to those of the items.
	Open bool

	index map[uint64]string
}

// Item is one name. For bit sets, Mask is the bits that the item covers (its
// own when zero), so that fields of several bits, such as O_ACCMODE, work.
type Item struct {
	Name  string
	Value uint64
	Mask  uint64
}
