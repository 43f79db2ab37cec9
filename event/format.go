// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strconv"
	"syscall"
)

// Bits returns a set of bits. Its items stand in the order in which they are
// written; one of several bits stands before those that are a part of it.
func Bits(name, zero string, items ...Item) *Set { return &Set{Name: name, Zero: zero, Items: items} }

// Enum returns a set of values.
func Enum(name string, items ...Item) *Set {
	s := &Set{Name: name, Items: items}
	const few = 8
	if len(items) <= few {
		return s
	}
	s.index = make(map[uint64]string, len(items))
	for _, it := range items {
		if _, twice := s.index[it.Value]; !twice {
			s.index[it.Value] = it.Name
		}
	}
	return s
}

// AppendFlags writes the names of the bits in v, joined with "|", as strace prints
// them; bits without a name follow as the set's Rest says, or in hexadecimal.
func (s *Set) AppendFlags(dst []byte, v uint64) []byte {
	start, rest := len(dst), v
	for i := range s.Items {
		it := &s.Items[i]
		mask := it.mask()
		if it.Value == 0 { // a field whose zero has a name, such as O_RDONLY
			if v&mask != 0 {
				continue
			}
		} else if rest&mask != it.Value {
			continue
		}
		rest &^= mask
		dst = append(append(dst, it.Name...), '|')
	}
	switch {
	case rest != 0 && s.Rest != nil:
		return s.Rest(dst, rest)
	case rest != 0:
		return appendHex(dst, rest)
	case len(dst) > start:
		return dst[:len(dst)-1]
	case s.Zero != "":
		return append(dst, s.Zero...)
	}
	return append(dst, '0')
}

// AppendEnum writes the name of a value, what the set's Rest makes of it, or its
// hexadecimal form.
func (s *Set) AppendEnum(dst []byte, v uint64) []byte {
	if name, ok := s.NameOf(v); ok {
		return append(dst, name...)
	}
	if s.Rest != nil {
		return s.Rest(dst, v)
	}
	return appendHex(dst, v)
}

// FormatFlags returns what AppendFlags writes.
func (s *Set) FormatFlags(v uint64) string { return string(s.AppendFlags(nil, v)) }

// FormatEnum returns what AppendEnum writes.
func (s *Set) FormatEnum(v uint64) string { return string(s.AppendEnum(nil, v)) }

// NameOf returns the name of exactly this value.
func (s *Set) NameOf(v uint64) (string, bool) {
	if s.index != nil {
		name, ok := s.index[v]
		return name, ok
	}
	for i := range s.Items {
		if s.Items[i].Value == v {
			return s.Items[i].Name, true
		}
	}
	return "", false
}

// Parse returns the value of a name.
func (s *Set) Parse(name string) (uint64, bool) {
	for i := range s.Items {
		if s.Items[i].Name == name {
			return s.Items[i].Value, true
		}
	}
	return 0, false
}

func (i *Item) mask() uint64 {
	if i.Mask != 0 {
		return i.Mask
	}
	return i.Value
}

func appendHex(dst []byte, v uint64) []byte {
	return strconv.AppendUint(append(dst, "0x"...), v, 16)
}

// OpenFlags returns open flags that were recorded on an architecture in the bits
// of x86-64, which is what the operation table's names stand for.
func OpenFlags(a Arch, v uint64) uint64 {
	if a != ARM64 {
		return v
	}
	// asm/fcntl.h of arm64: O_DIRECTORY, O_NOFOLLOW, O_DIRECT and O_LARGEFILE differ.
	const moved = 0o40000 | 0o100000 | 0o200000 | 0o400000
	w := v &^ moved
	for _, bit := range [...][2]uint64{{0o40000, 0o200000}, {0o100000, 0o400000}, {0o200000, 0o40000},
		{0o400000, 0o100000}} {
		if v&bit[0] != 0 {
			w |= bit[1]
		}
	}
	return w
}

// FormatOpenFlags returns the names of open flags that were recorded on an
// architecture.
func FormatOpenFlags(a Arch, v uint64) string { return openFlags.FormatFlags(OpenFlags(a, v)) }

// ErrnoName returns the name of an error number, such as "ENOENT". It is "" for 0,
// and "errno N" for one without a name.
func ErrnoName(e syscall.Errno) string {
	if e == 0 {
		return ""
	}
	if n := errnoNames[e]; n.name != "" {
		return n.name
	}
	return fmt.Sprintf("errno %d", int(e))
}

// ErrnoText returns the C library's words for an error number, such as "No such
// file or directory".
func ErrnoText(e syscall.Errno) string {
	if n := errnoNames[e]; n.text != "" {
		return n.text
	}
	return "Unknown error " + strconv.Itoa(int(e))
}

// ErrnoByName returns the error number with a name.
func ErrnoByName(name string) (syscall.Errno, bool) {
	for e, n := range errnoNames {
		if n.name == name {
			return e, true
		}
	}
	switch name {
	case "EWOULDBLOCK":
		return syscall.EAGAIN, true
	case "ENOTSUP":
		return syscall.EOPNOTSUPP, true
	case "EDEADLOCK":
		return syscall.EDEADLK, true
	}
	return 0, false
}

// SignalName returns the name of a signal, such as "SIGINT".
func SignalName(n int) string {
	if n > 0 && n < len(signalNames) {
		return "SIG" + signalNames[n]
	}
	switch {
	case n == 32:
		return "SIGRTMIN"
	case n > 32 && n <= 64:
		return "SIGRT_" + strconv.Itoa(n-32)
	}
	return strconv.Itoa(n)
}

// signalNames is indexed by number (signal(7); x86-64 and arm64).
var signalNames = [...]string{
	"", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
	"STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
}

type errnoName struct{ name, text string }

// errnoNames holds the numbers of asm-generic/errno.h, which x86-64 and arm64
// share, and the kernel's own (linux/errno.h) that tracing can see.
var errnoNames = map[syscall.Errno]errnoName{
	1:   {"EPERM", "Operation not permitted"},
	2:   {"ENOENT", "No such file or directory"},
	3:   {"ESRCH", "No such process"},
	4:   {"EINTR", "Interrupted system call"},
	5:   {"EIO", "Input/output error"},
	6:   {"ENXIO", "No such device or address"},
	7:   {"E2BIG", "Argument list too long"},
	8:   {"ENOEXEC", "Exec format error"},
	9:   {"EBADF", "Bad file descriptor"},
	10:  {"ECHILD", "No child processes"},
	11:  {"EAGAIN", "Resource temporarily unavailable"},
	12:  {"ENOMEM", "Cannot allocate memory"},
	13:  {"EACCES", "Permission denied"},
	14:  {"EFAULT", "Bad address"},
	15:  {"ENOTBLK", "Block device required"},
	16:  {"EBUSY", "Device or resource busy"},
	17:  {"EEXIST", "File exists"},
	18:  {"EXDEV", "Invalid cross-device link"},
	19:  {"ENODEV", "No such device"},
	20:  {"ENOTDIR", "Not a directory"},
	21:  {"EISDIR", "Is a directory"},
	22:  {"EINVAL", "Invalid argument"},
	23:  {"ENFILE", "Too many open files in system"},
	24:  {"EMFILE", "Too many open files"},
	25:  {"ENOTTY", "Inappropriate ioctl for device"},
	26:  {"ETXTBSY", "Text file busy"},
	27:  {"EFBIG", "File too large"},
	28:  {"ENOSPC", "No space left on device"},
	29:  {"ESPIPE", "Illegal seek"},
	30:  {"EROFS", "Read-only file system"},
	31:  {"EMLINK", "Too many links"},
	32:  {"EPIPE", "Broken pipe"},
	33:  {"EDOM", "Numerical argument out of domain"},
	34:  {"ERANGE", "Numerical result out of range"},
	35:  {"EDEADLK", "Resource deadlock avoided"},
	36:  {"ENAMETOOLONG", "File name too long"},
	37:  {"ENOLCK", "No locks available"},
	38:  {"ENOSYS", "Function not implemented"},
	39:  {"ENOTEMPTY", "Directory not empty"},
	40:  {"ELOOP", "Too many levels of symbolic links"},
	42:  {"ENOMSG", "No message of desired type"},
	43:  {"EIDRM", "Identifier removed"},
	44:  {"ECHRNG", "Channel number out of range"},
	45:  {"EL2NSYNC", "Level 2 not synchronized"},
	46:  {"EL3HLT", "Level 3 halted"},
	47:  {"EL3RST", "Level 3 reset"},
	48:  {"ELNRNG", "Link number out of range"},
	49:  {"EUNATCH", "Protocol driver not attached"},
	50:  {"ENOCSI", "No CSI structure available"},
	51:  {"EL2HLT", "Level 2 halted"},
	52:  {"EBADE", "Invalid exchange"},
	53:  {"EBADR", "Invalid request descriptor"},
	54:  {"EXFULL", "Exchange full"},
	55:  {"ENOANO", "No anode"},
	56:  {"EBADRQC", "Invalid request code"},
	57:  {"EBADSLT", "Invalid slot"},
	59:  {"EBFONT", "Bad font file format"},
	60:  {"ENOSTR", "Device not a stream"},
	61:  {"ENODATA", "No data available"},
	62:  {"ETIME", "Timer expired"},
	63:  {"ENOSR", "Out of streams resources"},
	64:  {"ENONET", "Machine is not on the network"},
	65:  {"ENOPKG", "Package not installed"},
	66:  {"EREMOTE", "Object is remote"},
	67:  {"ENOLINK", "Link has been severed"},
	68:  {"EADV", "Advertise error"},
	69:  {"ESRMNT", "Srmount error"},
	70:  {"ECOMM", "Communication error on send"},
	71:  {"EPROTO", "Protocol error"},
	72:  {"EMULTIHOP", "Multihop attempted"},
	73:  {"EDOTDOT", "RFS specific error"},
	74:  {"EBADMSG", "Bad message"},
	75:  {"EOVERFLOW", "Value too large for defined data type"},
	76:  {"ENOTUNIQ", "Name not unique on network"},
	77:  {"EBADFD", "File descriptor in bad state"},
	78:  {"EREMCHG", "Remote address changed"},
	79:  {"ELIBACC", "Can not access a needed shared library"},
	80:  {"ELIBBAD", "Accessing a corrupted shared library"},
	81:  {"ELIBSCN", ".lib section in a.out corrupted"},
	82:  {"ELIBMAX", "Attempting to link in too many shared libraries"},
	83:  {"ELIBEXEC", "Cannot exec a shared library directly"},
	84:  {"EILSEQ", "Invalid or incomplete multibyte or wide character"},
	85:  {"ERESTART", "Interrupted system call should be restarted"},
	86:  {"ESTRPIPE", "Streams pipe error"},
	87:  {"EUSERS", "Too many users"},
	88:  {"ENOTSOCK", "Socket operation on non-socket"},
	89:  {"EDESTADDRREQ", "Destination address required"},
	90:  {"EMSGSIZE", "Message too long"},
	91:  {"EPROTOTYPE", "Protocol wrong type for socket"},
	92:  {"ENOPROTOOPT", "Protocol not available"},
	93:  {"EPROTONOSUPPORT", "Protocol not supported"},
	94:  {"ESOCKTNOSUPPORT", "Socket type not supported"},
	95:  {"EOPNOTSUPP", "Operation not supported"},
	96:  {"EPFNOSUPPORT", "Protocol family not supported"},
	97:  {"EAFNOSUPPORT", "Address family not supported by protocol"},
	98:  {"EADDRINUSE", "Address already in use"},
	99:  {"EADDRNOTAVAIL", "Cannot assign requested address"},
	100: {"ENETDOWN", "Network is down"},
	101: {"ENETUNREACH", "Network is unreachable"},
	102: {"ENETRESET", "Network dropped connection on reset"},
	103: {"ECONNABORTED", "Software caused connection abort"},
	104: {"ECONNRESET", "Connection reset by peer"},
	105: {"ENOBUFS", "No buffer space available"},
	106: {"EISCONN", "Transport endpoint is already connected"},
	107: {"ENOTCONN", "Transport endpoint is not connected"},
	108: {"ESHUTDOWN", "Cannot send after transport endpoint shutdown"},
	109: {"ETOOMANYREFS", "Too many references: cannot splice"},
	110: {"ETIMEDOUT", "Connection timed out"},
	111: {"ECONNREFUSED", "Connection refused"},
	112: {"EHOSTDOWN", "Host is down"},
	113: {"EHOSTUNREACH", "No route to host"},
	114: {"EALREADY", "Operation already in progress"},
	115: {"EINPROGRESS", "Operation now in progress"},
	116: {"ESTALE", "Stale file handle"},
	117: {"EUCLEAN", "Structure needs cleaning"},
	118: {"ENOTNAM", "Not a XENIX named type file"},
	119: {"ENAVAIL", "No XENIX semaphores available"},
	120: {"EISNAM", "Is a named type file"},
	121: {"EREMOTEIO", "Remote I/O error"},
	122: {"EDQUOT", "Disk quota exceeded"},
	123: {"ENOMEDIUM", "No medium found"},
	124: {"EMEDIUMTYPE", "Wrong medium type"},
	125: {"ECANCELED", "Operation canceled"},
	126: {"ENOKEY", "Required key not available"},
	127: {"EKEYEXPIRED", "Key has expired"},
	128: {"EKEYREVOKED", "Key has been revoked"},
	129: {"EKEYREJECTED", "Key was rejected by service"},
	130: {"EOWNERDEAD", "Owner died"},
	131: {"ENOTRECOVERABLE", "State not recoverable"},
	132: {"ERFKILL", "Operation not possible due to RF-kill"},
	512: {"ERESTARTSYS", "To be restarted if SA_RESTART is set"},
	513: {"ERESTARTNOINTR", "To be restarted"},
	514: {"ERESTARTNOHAND", "To be restarted if no handler"},
	516: {"ERESTART_RESTARTBLOCK", "Interrupted by signal"},
	524: {"ENOTSUPP", "Operation is not supported"},
}
