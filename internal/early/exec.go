// SPDX-License-Identifier: Apache-2.0

package early

import (
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Order is what the recorder sends on the socket of a process that is to become a command. That answers
// with one byte when it has read it; the recorder seizes it and sends one byte; it calls execve. A
// closed socket is success, a Report is failure.
type Order struct {
	Path       string
	Argv, Env  []string
	Filter     []Filter // seccomp; nil: none
	Credential *syscall.Credential
}

// Filter is an instruction of a seccomp filter (struct sock_filter).
type Filter struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Report says what went wrong.
type Report struct {
	Op    string // "exec", or what the process needed
	Errno syscall.Errno
}

// encoder makes an order: its length, then counts and lengths before what they count, all of 4 bytes.
type encoder struct{ b []byte }

func (e *encoder) number(n int) { e.b = binary.LittleEndian.AppendUint32(e.b, uint32(n)) }

func (e *encoder) text(s string) {
	e.number(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) texts(list []string) {
	e.number(len(list))
	for _, s := range list {
		e.text(s)
	}
}

// Encode returns the order as it is sent.
func (o *Order) Encode() []byte {
	e := &encoder{make([]byte, 4)}
	e.text(o.Path)
	e.texts(o.Argv)
	e.texts(o.Env)
	e.number(len(o.Filter))
	for _, f := range o.Filter {
		e.number(int(f.Code) | int(f.Jt)<<16 | int(f.Jf)<<24)
		e.number(int(f.K))
	}
	if c := o.Credential; c == nil {
		e.number(0)
	} else {
		e.number(1)
		e.number(int(c.Uid))
		e.number(int(c.Gid))
		e.number(len(c.Groups))
		for _, g := range c.Groups {
			e.number(int(g))
		}
	}
	binary.LittleEndian.PutUint32(e.b, uint32(len(e.b)-4))
	return e.b
}

// decoder reads what encoder wrote; bad says that something was missing.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint32 {
	if len(d.b) < 4 {
		d.bad, d.b = true, nil
		return 0
	}
	n := binary.LittleEndian.Uint32(d.b)
	d.b = d.b[4:]
	return n
}

// count is a number of things that take at least 4 bytes each.
func (d *decoder) count() int {
	n := int(d.number())
	if n > len(d.b)/4 {
		d.bad, n = true, 0
	}
	return n
}

func (d *decoder) text() string {
	n := int(d.number())
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) texts() []string {
	list := make([]string, d.count())
	for i := range list {
		list[i] = d.text()
	}
	return list
}

// decodeOrder reads an order without its length; false if it is not whole.
func decodeOrder(b []byte) (*Order, bool) {
	d := &decoder{b: b}
	o := &Order{Path: d.text(), Argv: d.texts(), Env: d.texts()}
	for range d.count() {
		n := d.number()
		o.Filter = append(o.Filter, Filter{Code: uint16(n), Jt: uint8(n >> 16), Jf: uint8(n >> 24), K: d.number()})
	}
	if d.number() == 1 {
		c := &syscall.Credential{Uid: d.number(), Gid: d.number()}
		for range d.count() {
			c.Groups = append(c.Groups, d.number())
		}
		o.Credential = c
	}
	return o, !d.bad && len(d.b) == 0
}

// Encode returns the report as it is sent.
func (r *Report) Encode() []byte {
	e := &encoder{}
	e.number(int(r.Errno))
	e.text(r.Op)
	return e.b
}

// DecodeReport reads a report; false if it is not whole.
func DecodeReport(b []byte) (Report, bool) {
	d := &decoder{b: b}
	r := Report{Errno: syscall.Errno(d.number()), Op: d.text()}
	return r, !d.bad
}

// becomeCommand is the process that becomes a command. It returns only if it could not.
func becomeCommand() int {
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 127
	}
	syscall.CloseOnExec(fd)
	name := append([]byte("iotape"), 0) // until execve; without it "exe"
	call(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	sock := os.NewFile(uintptr(fd), "stub socket")
	r := obey(sock)
	_, _ = sock.Write(r.Encode())
	return 127
}

func obey(sock *os.File) Report {
	fail := func(op string, err error) Report {
		e, ok := err.(syscall.Errno)
		if !ok {
			e = syscall.EIO
		}
		return Report{Op: op, Errno: e}
	}
	var head [4]byte
	if _, err := io.ReadFull(sock, head[:]); err != nil {
		return fail("its order", err)
	}
	b := make([]byte, binary.LittleEndian.Uint32(head[:]))
	if _, err := io.ReadFull(sock, b); err != nil {
		return fail("its order", err)
	}
	o, ok := decodeOrder(b)
	if !ok {
		return fail("its order", syscall.EINVAL)
	}
	ready := []byte{1}
	if _, err := sock.Write(ready); err != nil {
		return fail("its socket", err)
	}
	if _, err := io.ReadFull(sock, ready); err != nil {
		return fail("its tracer", err)
	}
	if len(o.Filter) > 0 {
		if e := installFilter(o.Filter); e != 0 {
			return fail("a seccomp filter", e)
		}
	}
	if o.Credential != nil { // last: a filter may be installed only by root
		if e := become(o.Credential); e != 0 {
			return fail("the right to become another user (CAP_SETUID, CAP_SETGID)", e)
		}
	}
	return fail("exec", syscall.Exec(o.Path, o.Argv, o.Env))
}

// installFilter puts the calling thread under a seccomp filter.
func installFilter(f []Filter) syscall.Errno {
	const (
		setModeFilter = 1  // SECCOMP_SET_MODE_FILTER
		noNewPrivs    = 38 // PR_SET_NO_NEW_PRIVS
	)
	prog := struct {
		n      uint16
		filter *Filter
	}{uint16(len(f)), &f[0]}
	e := call(sysSeccomp, setModeFilter, 0, uintptr(unsafe.Pointer(&prog)))
	if e == syscall.EACCES {
		if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0, 0, 0); e != 0 {
			return e
		}
		e = call(sysSeccomp, setModeFilter, 0, uintptr(unsafe.Pointer(&prog)))
	}
	return e
}

// become changes the user of the calling thread alone, which is the one that will be
// left after execve.
func become(c *syscall.Credential) syscall.Errno {
	if e := call(syscall.SYS_SETGROUPS, uintptr(len(c.Groups)),
		uintptr(unsafe.Pointer(unsafe.SliceData(c.Groups))), 0); e != 0 {
		return e
	}
	if e := call(syscall.SYS_SETRESGID, uintptr(c.Gid), uintptr(c.Gid), uintptr(c.Gid)); e != 0 {
		return e
	}
	return call(syscall.SYS_SETRESUID, uintptr(c.Uid), uintptr(c.Uid), uintptr(c.Uid))
}
