// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// memory is what the walk through a call's memory knows of the call.
type memory struct {
	ev  *event.Event
	arg int // argument at hand
	dir Field
	// clock says what times without a date are.
	clock clock
}

// clock says what a time counts from.
type clock uint8

const (
	clockAny  clock = iota // since 1970 if it is that large, else a duration
	clockBoot              // since 1970 if it is that large, else since boot
)

// clockOf says what the times in an argument of a call count from.
func clockOf(ev *event.Event, arg int) clock {
	const absolute = 1 // TIMER_ABSTIME, TFD_TIMER_ABSTIME
	boot := false
	switch ev.Op.Like() {
	case event.OpClockGettime:
		boot = sinceBoot(ev.Args[0])
	case event.OpClockNanosleep:
		boot = arg == 2 && ev.Args[1]&absolute != 0 && sinceBoot(ev.Args[0])
	case event.OpTimerfdSettime, event.OpTimerSettime:
		boot = arg == 2 && ev.Args[1]&absolute != 0
	case event.OpFutex:
		switch ev.Args[1] & 0x7f {
		case 9, 11, 13: // FUTEX_WAIT_BITSET, …_WAIT_REQUEUE_PI, …_LOCK_PI2
			boot = true
		}
	case event.OpFutexWait, event.OpFutexWaitv:
		boot = true
	}
	if boot {
		return clockBoot
	}
	return clockAny
}

// sinceBoot reports whether a clock counts from the machine's start: CLOCK_MONOTONIC,
// …_RAW, …_COARSE, CLOCK_BOOTTIME, …_ALARM.
func sinceBoot(clockid uint64) bool {
	switch uint32(clockid) {
	case 1, 4, 6, 7, 9:
		return true
	}
	return false
}

// decode maps a structure in place, field by field. Bytes that are not understood are
// content.
func (m *mapper) decode(mem *layout.Memory) {
	v, ok := mem.Decode()
	if !ok {
		m.opaque(Content, mem.Bytes)
		return
	}
	m.value(&v)
	size := mem.Layout.Bytes(mem.Arch)
	switch mem.Layout {
	case event.LayoutDirents, event.LayoutDirents64:
		m.afterEntries(mem.Bytes, &v, mem.Layout == event.LayoutDirents64)
		return
	case event.LayoutFileHandle:
		size += int(min(binary.LittleEndian.Uint32(mem.Bytes), 1<<16))
	case event.LayoutDedupeRange, event.LayoutFiemap: // heads of what they count
		return
	}
	array := v.Kind == layout.List && v.Len() > 1
	if size > 0 && !array && len(mem.Bytes) > size {
		m.opaque(Content, mem.Bytes[size:])
	}
}

// afterEntries maps what follows the names of directory entries, and the last entry that
// fits: the kernel leaves there what the program's memory held before. The length that did
// not fit stays, so that the list ends there when it is read again.
func (m *mapper) afterEntries(b []byte, list *layout.Value, is64 bool) {
	const length, lengthEnd = 16, 18 // d_reclen
	head, tail := lengthEnd, 1       // d_type stands at the end
	if is64 {
		head, tail = lengthEnd+1, 0
	}
	for i := range list.Len() {
		e := list.At(i)
		name := e.At(e.Len() - 1)
		if pad := e.Data[:len(e.Data)-tail]; head+len(name.Data) < len(pad) {
			m.opaque(Content, pad[head+len(name.Data)+1:])
		}
		b = b[len(e.Data):]
	}
	m.opaque(Content, b[:min(length, len(b))])
	if len(b) > lengthEnd {
		m.opaque(Content, b[lengthEnd:])
	}
}

// value maps a Value and what is in it.
func (m *mapper) value(v *layout.Value) {
	switch v.Kind {
	case layout.Struct, layout.List:
		for i := range v.Len() {
			e := v.At(i)
			if e.Name == "" {
				e.Name = v.Name
			}
			m.value(&e)
		}
	case layout.ID:
		m.number32(m.idField(v.Name), v.Raw)
	case layout.IP:
		m.address(v.Data)
	case layout.Port:
		m.port(v.Raw)
	case layout.Time, layout.TimeMicros:
		unit := int64(1)
		if v.Kind == layout.TimeMicros {
			unit = microsecond
		}
		m.time(v.Raw, unit, m.memory.clock == clockBoot && !v.Date && v.Name != "it_interval")
	case layout.Text:
		m.textField(v.Name, v.Data)
	case layout.Bytes:
		switch v.Name {
		case "f_handle":
			m.opaque(Inode, v.Data)
		case "sa_data", "sll_addr", "mr_address":
			m.opaque(Address, v.Data)
		case "lo_encrypt_key":
			m.opaque(Content, v.Data)
		}
	default:
		m.numberField(v)
	}
}

// numberField maps a number by the name that the kernel gives it.
func (m *mapper) numberField(v *layout.Value) {
	switch v.Name {
	case "pid", "l_pid", "si_pid", "shm_cpid", "shm_lpid", "msg_lspid", "msg_lrpid", "nl_pid", "sigev_notify_thread_id":
		m.number32(PID, v.Raw)
	case "st_ino", "stx_ino", "d_ino", "lo_inode":
		if len(v.Raw) == 8 {
			binary.LittleEndian.PutUint64(v.Raw, m.number(Inode, v.Num))
		}
	case "val": // of f_fsid
		m.number32(Inode, v.Raw)
	case "dqb_id":
		m.number32(UID, v.Raw)
	case "svm_port":
		m.number32(Address, v.Raw)
	case "svm_cid":
		if v.Num > 2 { // host and hypervisor
			m.number32(Address, v.Raw)
		}
	case "uptime":
		if len(v.Raw) == 8 {
			binary.LittleEndian.PutUint64(v.Raw, uint64(m.bootSeconds(int64(v.Num), 1)))
		}
	case "":
		switch m.plainNumber() {
		case UID:
			m.number32(UID, v.Raw)
		case GID:
			m.number32(GID, v.Raw)
		case PID:
			m.number32(PID, v.Raw)
		case Time:
			if len(v.Raw) == 8 {
				binary.LittleEndian.PutUint64(v.Raw, uint64(m.wall(int64(v.Num))))
			}
		}
	default:
		if v.Date && len(v.Raw) == 8 {
			binary.LittleEndian.PutUint64(v.Raw, uint64(m.wall(int64(v.Num))))
		}
	}
}

// plainNumber says what a number in memory is that stands there alone.
func (m *mapper) plainNumber() Field {
	switch ev := m.memory.ev; ev.Op.Like() {
	case event.OpGetresuid:
		return UID
	case event.OpGetresgid:
		return GID
	case event.OpTime:
		return Time
	case event.OpIoctl:
		switch uint32(ev.Args[1]) {
		case 0x540f, 0x5410, 0x5429, 0x8901, 0x8902, 0x8903,
			0x8904: // TIOCGPGRP, TIOCSPGRP, TIOCGSID, FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP
			return PID
		}
	}
	return numFields
}

// idField says whether an id in memory is a user's or a group's.
func (m *mapper) idField(name string) Field {
	switch {
	case strings.HasSuffix(name, "gid"):
		return GID
	case strings.HasSuffix(name, "uid"):
		return UID
	}
	if m.memory.ev.Op == event.OpFcntl { // F_GETOWNER_UIDS
		return UID
	}
	return GID // getgroups, setgroups, SO_PEERGROUPS
}

// number32 maps a number of 4 bytes where it lies; -1 stays.
func (m *mapper) number32(f Field, raw []byte) {
	if len(raw) != 4 {
		return
	}
	v := binary.LittleEndian.Uint32(raw)
	if f == PID {
		v = uint32(m.signed(PID, int32(v)))
	} else {
		v = m.id32(f, v)
	}
	binary.LittleEndian.PutUint32(raw, v)
}

// id32 maps within 32 bits.
func (m *mapper) id32(f Field, v uint32) uint32 {
	if v == 1<<32-1 || !m.fields.Has(f) {
		return v
	}
	if f == UID || f == GID {
		return m.id(f, v)
	}
	return uint32(m.num[f].decimal(uint64(v), 1<<32-1, m.back, func(v uint64) bool { return v == 1<<32-1 }))
}

// time maps a time of 12 or 16 bytes: seconds, and a fraction that counts units of so many
// nanoseconds.
func (m *mapper) time(raw []byte, unit int64, boot bool) {
	if len(raw) < 12 || !m.fields.Has(Time) {
		return
	}
	s, frac := int64(binary.LittleEndian.Uint64(raw)), int64(binary.LittleEndian.Uint32(raw[8:]))
	if len(raw) == 16 {
		frac = int64(binary.LittleEndian.Uint64(raw[8:]))
	}
	switch whole := frac < 0 || frac >= second/unit; { // UTIME_NOW and the like
	case s < 0 || s >= endWall:
	case whole:
		s = m.wall(s)
	default:
		ns := s*second + frac*unit
		if boot && s < firstWall {
			ns = m.bootSeconds(ns, second)
		} else {
			ns = m.wallNS(ns)
		}
		s, frac = ns/second, ns%second/unit
	}
	binary.LittleEndian.PutUint64(raw, uint64(s))
	if len(raw) == 16 {
		binary.LittleEndian.PutUint64(raw[8:], uint64(frac))
	} else {
		binary.LittleEndian.PutUint32(raw[8:], uint32(frac))
	}
}

// textField maps a text by the name that the kernel gives it.
func (m *mapper) textField(name string, b []byte) {
	switch name {
	case "nodename", "domainname":
		m.stringBytes(Host, b)
	case "ifr_name", "salg_name":
		m.stringBytes(Address, b)
	case "lo_file_name":
		m.pathBytes(b)
	case "lo_crypt_name", "f_fname", "f_fpack":
		m.stringBytes(Arg, b)
	case "d_name":
		switch {
		case m.memory.dir == PID && allDigits(b):
			m.digits(PID, b)
		case m.memory.dir == numFields && allDigits(b):
		default:
			m.name(b)
		}
	case "":
		switch ev := m.memory.ev; {
		case ev.Op == event.OpPrctl:
			m.stringBytes(Comm, b)
		case isXattrList(ev.Op.Like()):
			m.xattrName(b)
		case ev.Op == event.OpSetsockopt || ev.Op == event.OpGetsockopt:
			if uint32(ev.Args[2]) == 25 { // SO_BINDTODEVICE
				m.stringBytes(Address, b)
			}
		}
	}
}

func isXattrList(op event.Op) bool {
	return op.Effect() == event.EffectListXattr
}

// xattrName maps the name of an extended attribute behind its namespace. Those of
// namespaces that have a meaning to the kernel stay.
func (m *mapper) xattrName(b []byte) {
	for _, space := range [...]string{"user.", "trusted."} {
		if rest, ok := bytes.CutPrefix(b, []byte(space)); ok && len(rest) > 0 {
			m.stringBytes(Xattr, rest)
		}
	}
}

// xattrValue maps the value of an extended attribute.
func (m *mapper) xattrValue(name string, b []byte) {
	switch name {
	case "system.posix_acl_access", "system.posix_acl_default": // linux/posix_acl_xattr.h
		const head, entry, user, group = 4, 8, 0x02, 0x08
		for at := head; at+entry <= len(b); at += entry {
			switch binary.LittleEndian.Uint16(b[at:]) {
			case user:
				m.number32(UID, b[at+4:at+8])
			case group:
				m.number32(GID, b[at+4:at+8])
			}
		}
	case "security.capability": // what a program may do
	default:
		m.opaque(Xattr, b)
	}
}

// The families of socket addresses that have something to hide.
const (
	afUnix  = 1
	afInet  = 2
	afInet6 = 10
)

// sockaddr maps a socket address in place.
func (m *mapper) sockaddr(b []byte) {
	if len(b) < 2 {
		m.opaque(Content, b)
		return
	}
	body := b[2:]
	switch binary.LittleEndian.Uint16(b) {
	case afUnix:
		if len(body) > 0 && body[0] == 0 { // abstract
			m.opaque(Address, body[1:])
			return
		}
		n := bytes.IndexByte(body, 0)
		if n < 0 {
			n = len(body)
		}
		m.pathBytes(body[:n])
		if n < len(body) { // whatever the program left there
			m.opaque(Address, body[n+1:])
		}
	case afInet:
		if len(b) >= 8 {
			m.port(b[2:4])
			m.address(b[4:8])
			m.opaque(Address, b[8:])
		}
	case afInet6:
		if len(b) >= 24 {
			m.port(b[2:4])
			m.address(b[8:24])
		}
	default:
		mem := layout.Memory{Layout: event.LayoutSockaddr, Bytes: b}
		v, _ := mem.Decode()
		m.value(&v)
	}
}

// port maps a port in network byte order.
func (m *mapper) port(b []byte) {
	if len(b) == 2 {
		binary.BigEndian.PutUint16(b, uint16(m.number(Port, uint64(binary.BigEndian.Uint16(b)))))
	}
}

// address maps an internet address of 4 or 16 bytes. Addresses with a meaning of their own
// stay.
func (m *mapper) address(b []byte) {
	if !m.fields.Has(Address) {
		return
	}
	if len(b) == 16 && bytes.Equal(b[:12], mapped4) {
		b = b[12:]
	}
	if len(b) != 4 && len(b) != 16 || reserved(b) {
		return
	}
	for {
		m.text[Address].crypt(b, octets, m.back)
		if !reserved(b) {
			return
		}
	}
}

var mapped4 = []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}

// reserved reports addresses that stay: unspecified, loopback, broadcast, multicast,
// and, of 16 bytes, those that hold one of 4.
func reserved(b []byte) bool {
	if len(b) == 4 {
		return b[0] == 127 || b[0] >= 224 && b[0] < 240 || binary.BigEndian.Uint32(b) == 0 ||
			binary.BigEndian.Uint32(b) == 1<<32-1
	}
	return b[0] == 0xff || bytes.Equal(b[:12], mapped4) || bytes.Equal(b[:15], make([]byte, 15)) && b[15] <= 1
}
