package event

// Op is the catalogue number of an operation. Numbers are part of the stream
// and tape formats: they are only ever appended, never reused.
type Op uint16

// Class says what an operation is about. Reports and filters group by it.
type Class uint8

// The classes.
const (
	Raw        Class = iota // not in the catalogue: number and raw arguments only
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
)

var classNames = [...]string{"raw", "data", "descriptor", "meta", "namespace", "sync", "lock", "memory", "process", "socket", "wait"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "raw"
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

// The rules. A bound is another argument that limits the result.
const (
	LenNUL    LenRule = iota // up to the terminating NUL, at most MaxPath bytes
	LenConst                 // Arg.Const bytes
	LenArg                   // the value of argument Arg.LenArg
	LenRet                   // the result, at most argument Arg.LenArg when that is not 0xff
	LenVec                   // iovec array of Args[LenArg] elements, moving at most the result
	LenVecAll                // iovec array of Args[LenArg] elements, all of it
	LenSlots                 // what an io_uring's table of files is filled with (LayoutSlots)
)

// When says at which side of the call memory is read.
type When uint8

// Sides. At exit the kernel has just touched the pages, so they are resident;
// entry is for calls that destroy or do not return to their memory.
const (
	AtExit When = iota
	AtEntry
)

// MaxPath is the longest string that capture reads for Path and Text, in bytes
// with the NUL (PATH_MAX, linux/limits.h).
const MaxPath = 4096

// Limits of the catalogue, fixed in the C side too.
const (
	MaxArgs = 6 // arguments of a system call
	MaxCaps = 4 // memory arguments of one operation
	MaxObjs = 3 // objects recorded with one call: two descriptors and the result
)

// NoArg marks an absent argument index.
const NoArg = 0xff

// Arch is an instruction-set architecture with its own call numbers.
type Arch uint8

// The architectures of the catalogue.
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
// another argument, such as fcntl's lock commands. Mask 0 means always.
type Cond struct {
	Arg  uint8
	Mask uint64
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
	Layout Layout
	Set    *Set // names, for KindFlags and KindEnum
	Cond   Cond
}

// Bytes returns the fixed size that LenConst stands for.
func (a *Arg) Bytes(arch Arch) uint32 {
	if a.Layout != LayoutNone {
		return uint32(a.Layout.Bytes(arch))
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

// Spec is one row of the catalogue.
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
	// Hold is set where content moves inside the kernel, so that no buffer of
	// the caller shows it: the thread is held until the recorder read it.
	Hold bool
	// NoReturn is set where success never returns to the caller.
	NoReturn bool
	// Like is, of a request, the system call that does the same (Op.Like), OpUnknown
	// if there is none; Fields are where its arguments stand in the request's head.
	Like   Op
	Fields []Field
}

// Set maps values to names, for printing and parsing flags and enumerations.
type Set struct {
	Name  string
	Items []Item
	Zero  string // printed when no bit is set; "0" if empty
}

// Item is one name. For bit sets, Mask is the bits that the item covers (its
// own when zero), so that fields of several bits, such as O_ACCMODE, work.
type Item struct {
	Name  string
	Value uint64
	Mask  uint64
}
