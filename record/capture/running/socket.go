// SPDX-License-Identifier: Apache-2.0

package running

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

// AppendEnds appends, to the pieces of a record, the ends of those of its objects that are sockets
// of a process, as far as tells says of which. It asks the sockets themselves, by descriptors
// of its own that are open for that
// time alone, so that the process makes no call and sees nothing. Of sockets that it may not ask
// nothing is said.
func AppendEnds(
	pieces []trace.Piece, pid int, objects []trace.Object, tells event.Ends,
) []trace.Piece {
	if tells == event.EndsNever {
		return pieces
	}
	process, count := -1, 0
	for i := range objects {
		o := &objects[i]
		if o.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		if count++; count > event.MaxSockets {
			break
		}
		if process < 0 {
			var err error
			if process, err = unix.PidfdOpen(pid, 0); err != nil {
				return pieces
			}
			defer unix.Close(process)
		}
		if b := endsOf(process, o, tells); b != nil {
			pieces = append(pieces, trace.Piece{
				Arg: uint8(event.PartSocket.Of(0)), Len: uint32(len(b)), Off: uint64(i), Data: b,
			})
		}
	}
	return pieces
}

// endsOf returns the encoded ends of a process's socket, nil if it cannot be asked or is not one
// whose ends are told.
func endsOf(process int, o *trace.Object, tells event.Ends) []byte {
	fd, err := unix.PidfdGetfd(process, int(o.FD), 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Ino != o.Ino { // another file by now, or another table
		return nil
	}
	option := func(name int) uint16 {
		v, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, name)
		return uint16(v)
	}
	e := socket.Ends{Family: option(unix.SO_DOMAIN), Type: option(unix.SO_TYPE), Protocol: option(unix.SO_PROTOCOL)}
	if tells == event.EndsOfDatagrams && e.Type != socket.Dgram {
		return nil
	}
	if e.Family == socket.Unix {
		if c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && c.Pid > 0 &&
			option(unix.SO_ACCEPTCONN) == 0 { // where one listens, they are its own
			e.PID, e.UID = uint32(c.Pid), c.Uid
		}
		e.PeerIno = unixPeer(uint32(o.Ino))
	}
	return socket.Encode(&e, sockaddr(fd, unix.SYS_GETSOCKNAME), sockaddr(fd, unix.SYS_GETPEERNAME))
}

// sockaddr returns what getsockname or getpeername says, nil if that is nothing.
func sockaddr(fd int, call uintptr) []byte {
	var b [128]byte
	n := uint32(len(b))
	_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b)), uintptr(unsafe.Pointer(&n)))
	if errno != 0 || n > uint32(len(b)) {
		return nil
	}
	return b[:n]
}

// Of sock_diag(7) and linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	diagRequestBytes = 24
	diagAnswerBytes  = 16 // struct unix_diag_msg
	diagShowPeer     = 4
	diagPeer         = 2
)

// unixPeer returns the inode of the local socket that one is connected to, 0 if it is not, or if
// the socket is in another network namespace than the recorder.
func unixPeer(ino uint32) uint64 {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	ne := binary.NativeEndian
	q := make([]byte, unix.SizeofNlMsghdr+diagRequestBytes)
	ne.PutUint32(q, uint32(len(q)))
	ne.PutUint16(q[4:], sockDiagByFamily)
	ne.PutUint16(q[6:], unix.NLM_F_REQUEST)
	body := q[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_UNIX
	ne.PutUint32(body[8:], ino)
	ne.PutUint32(body[12:], diagShowPeer)
	ne.PutUint64(body[16:], ^uint64(0)) // no cookie
	if unix.Sendto(fd, q, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return 0
	}
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	const head = unix.SizeofNlMsghdr + diagAnswerBytes
	if err != nil || n < head || ne.Uint16(b[4:]) != sockDiagByFamily {
		return 0
	}
	for b = b[head:n]; len(b) >= 8; {
		size := int(ne.Uint16(b))
		if ne.Uint16(b[2:]) == diagPeer && size >= 8 {
			return uint64(ne.Uint32(b[4:]))
		}
		if size < 4 {
			return 0
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return 0
}
