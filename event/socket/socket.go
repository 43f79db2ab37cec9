// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// Address families (sys/socket.h).
const (
	Unix    = 1
	Inet    = 2
	Inet6   = 10
	Netlink = 16
	Vsock   = 40
)

// Types of sockets (linux/net.h).
const (
	Stream    = 1
	Dgram     = 2
	Raw       = 3
	Seqpacket = 5
)

// Ends is what is known of a socket. The zero value of each part is "unknown".
type Ends struct {
	Family, Type uint16 // AF_UNIX …, SOCK_STREAM …
	Protocol     uint16 // IPPROTO_TCP …; of AF_NETLINK the netlink family
	Local, Peer  Address
	// Ino is the inode of a socket of AF_UNIX, and of any whose name says it because it has no
	// address. PeerIno is, of AF_UNIX, that of the socket that it is connected to.
	Ino, PeerIno uint64
	// Of AF_UNIX, if PID is not 0, the process and user that connected or listened
	// (SO_PEERCRED).
	PID, UID uint32
}

// Address is one end.
type Address struct {
	IP   netip.Addr // invalid if the socket is of another family, or has no address
	Port uint32     // of AF_INET, AF_INET6 and AF_VSOCK; of AF_NETLINK the port id
	CID  uint32     // of AF_VSOCK
	Path string     // of AF_UNIX, with a leading @ if it is abstract
	// Set is true of an address that is known.
	Set bool
}

// Connected reports whether the other end is known.
func (e *Ends) Connected() bool { return e.Peer.Set || e.PeerIno != 0 }

// IsStream reports whether the socket carries bytes, not messages.
func (e *Ends) IsStream() bool { return e.Type == Stream }

// HeadBytes is the size of the fixed part of the encoded form. Behind it are both addresses, as
// struct sockaddr.
const HeadBytes = 32

// anyPort is the port of an address that has none (VMADDR_PORT_ANY).
const anyPort = 1<<32 - 1

// maxSockaddr is the size of struct sockaddr_storage.
const maxSockaddr = 128

// Decode reads the encoded form; false if it is damaged. ino is the inode of the socket.
func Decode(b []byte, ino uint64) (e Ends, ok bool) {
	if len(b) < HeadBytes {
		return e, false
	}
	le := binary.LittleEndian
	local, peer := int(b[6]), int(b[7])
	if local > maxSockaddr || peer > maxSockaddr || HeadBytes+local+peer > len(b) {
		return e, false
	}
	e.Family, e.Type, e.Protocol = le.Uint16(b), le.Uint16(b[2:]), le.Uint16(b[4:])
	if e.Family == Unix {
		e.Ino, e.PeerIno, e.PID, e.UID = ino, le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])
	}
	e.Local = addressOf(e.Family, b[HeadBytes:][:local])
	e.Peer = addressOf(e.Family, b[HeadBytes+local:][:peer])
	return e, true
}

// addressOf reads the address of a socket of a family. One of another family says nothing about it;
// the two families of the internet share sockets (ipv6(7), IPV6_ADDRFORM).
func addressOf(family uint16, b []byte) (a Address) {
	if len(b) < 2 {
		return a
	}
	internet := func(family uint16) bool { return family == Inet || family == Inet6 }
	own := binary.LittleEndian.Uint16(b)
	if own != family && !(internet(own) && internet(family)) {
		return a
	}
	return Sockaddr(b)
}

// Encode writes the form of a stream. Both addresses are struct sockaddr of at most 128 bytes, or
// nil; of e its family, type, protocol and what is known of its peer count.
func Encode(e *Ends, local, peer []byte) []byte {
	le := binary.LittleEndian
	local, peer = local[:min(len(local), maxSockaddr)], peer[:min(len(peer), maxSockaddr)]
	b := make([]byte, HeadBytes, HeadBytes+len(local)+len(peer))
	le.PutUint16(b, e.Family)
	le.PutUint16(b[2:], e.Type)
	le.PutUint16(b[4:], e.Protocol)
	b[6], b[7] = byte(len(local)), byte(len(peer))
	le.PutUint64(b[8:], e.PeerIno)
	le.PutUint32(b[16:], e.PID)
	le.PutUint32(b[20:], e.UID)
	return append(append(b, local...), peer...)
}

// Sockaddr reads a struct sockaddr (ip(7), ipv6(7), unix(7), netlink(7), vsock(7)). What is not
// one of these, or says nothing, gives an address that is not set.
func Sockaddr(b []byte) (a Address) {
	if len(b) < 2 {
		return a
	}
	be, le := binary.BigEndian, binary.LittleEndian
	switch family := le.Uint16(b); {
	case family == Inet && len(b) >= 8:
		a = internet(netip.AddrFrom4([4]byte(b[4:8])), be.Uint16(b[2:]))
	case family == Inet6 && len(b) >= 24:
		a = internet(netip.AddrFrom16([16]byte(b[8:24])), be.Uint16(b[2:]))
	case family == Unix && len(b) > 2:
		path := string(b[2:])
		if path[0] == 0 {
			path = "@" + path[1:]
		} else {
			path, _, _ = strings.Cut(path, "\x00")
		}
		a = Address{Path: path, Set: true}
	case family == Netlink && len(b) >= 8 && le.Uint32(b[4:]) != 0:
		a = Address{Port: le.Uint32(b[4:]), Set: true}
	case family == Vsock && len(b) >= 12 && le.Uint32(b[4:]) != anyPort:
		a = Address{Port: le.Uint32(b[4:]), CID: le.Uint32(b[8:]), Set: true}
	}
	return a
}

// internet returns an address of the internet. All addresses and no port is what a socket has before
// it has an address.
func internet(ip netip.Addr, port uint16) (a Address) {
	if ip.IsUnspecified() && port == 0 {
		return a
	}
	return Address{IP: ip, Port: uint32(port), Set: true}
}

// Endpoint returns an internet address as others see it: an IPv4 address in the form of IPv6 is
// that IPv4 address.
func (a *Address) Endpoint() netip.AddrPort {
	return netip.AddrPortFrom(a.IP.Unmap().WithZone(""), uint16(a.Port))
}

// Own reports whether each host has the address for itself.
func (a *Address) Own() bool {
	const local = 1 // VMADDR_CID_LOCAL
	return a.Set && (a.IP.Unmap().IsLoopback() || !a.IP.IsValid() && a.CID == local)
}

// Text writes an internet address of 4 or 16 bytes with its port; "" if it is none.
func Text(ip []byte, port uint16) string {
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		return ""
	}
	return netip.AddrPortFrom(a, port).String()
}

// Sockaddr writes the address as struct sockaddr of a family, nil if it is not set.
func (a *Address) Sockaddr(family uint16) []byte {
	be, le := binary.BigEndian, binary.LittleEndian
	b := le.AppendUint16(nil, family)
	switch {
	case !a.Set:
		return nil
	case family == Inet && a.IP.Is4():
		b = append(be.AppendUint16(b, uint16(a.Port)), a.IP.AsSlice()...)
		return append(b, make([]byte, 8)...)
	case family == Inet6 && a.IP.Is6():
		b = append(be.AppendUint16(b, uint16(a.Port)), 0, 0, 0, 0)
		return append(append(b, a.IP.AsSlice()...), 0, 0, 0, 0)
	case family == Unix:
		if name, abstract := strings.CutPrefix(a.Path, "@"); abstract {
			return append(append(b, 0), name...)
		}
		return append(append(b, a.Path...), 0)
	case family == Netlink:
		return append(le.AppendUint32(append(b, 0, 0), a.Port), 0, 0, 0, 0)
	case family == Vsock:
		b = le.AppendUint32(append(b, 0, 0), a.Port)
		return append(le.AppendUint32(b, a.CID), 0, 0, 0, 0)
	}
	return nil
}
