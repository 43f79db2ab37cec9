// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Protocols of internet sockets (netinet/in.h).
const (
	protoTCP     = 6
	protoUDP     = 17
	protoMPTCP   = 262
	protoUDPLite = 136
	protoSCTP    = 132
)

// kind is what the name of a protocol says.
type kind struct {
	family, typ, protocol uint16
}

// kinds has the names of protocols, as strace writes those that it knows.
var kinds = map[string]kind{
	"TCP": {Inet, Stream, protoTCP}, "TCPv6": {Inet6, Stream, protoTCP},
	"UDP": {Inet, Dgram, protoUDP}, "UDPv6": {Inet6, Dgram, protoUDP},
	"MPTCP": {Inet, Stream, protoMPTCP}, "MPTCPv6": {Inet6, Stream, protoMPTCP},
	"UDPLITE": {Inet, Dgram, protoUDPLite}, "UDPLITEv6": {Inet6, Dgram, protoUDPLite},
	"SCTP": {Inet, Stream, protoSCTP}, "SCTPv6": {Inet6, Stream, protoSCTP},
	"RAW": {Inet, Raw, 0}, "RAWv6": {Inet6, Raw, 0},
	"UNIX-STREAM": {Unix, Stream, 0}, "UNIX-DGRAM": {Unix, Dgram, 0}, "UNIX-SEQPACKET": {Unix, Seqpacket, 0},
	"VSOCK-STREAM": {Vsock, Stream, 0}, "VSOCK-DGRAM": {Vsock, Dgram, 0}, "VSOCK-SEQPACKET": {Vsock, Seqpacket, 0},
	"NETLINK": {Netlink, Raw, 0},
}

var kindNames = func() map[kind]string {
	m := map[kind]string{}
	for name, k := range kinds {
		m[k] = name
	}
	return m
}()

// protocol returns the name of the protocol, "" if it has none.
func (e *Ends) protocol() string {
	k := kind{family: e.Family, typ: e.Type}
	switch e.Family {
	case Inet, Inet6:
		if e.Type != Raw {
			k.protocol = e.Protocol
		}
	case Netlink:
		k.typ = Raw
	}
	return kindNames[k]
}

// Name writes the name of an open socket with an inode; "" if its protocol has no name: the
// kernel's own ("socket:[N]") says as much. A socket without an address has its inode instead.
func (e *Ends) Name(ino uint64) string {
	protocol := e.protocol()
	if protocol == "" {
		return ""
	}
	b := append([]byte(protocol), ":["...)
	switch {
	case e.Family == Unix:
		b = e.appendUnix(b, ino)
	case e.Family == Netlink:
		b = append(b, strings.TrimPrefix(netlinkName(e.Protocol), "NETLINK_")...)
		if e.Local.Set {
			b = strconv.AppendUint(append(b, ':'), uint64(e.Local.Port), 10)
		}
	default:
		if b = e.Local.append(b); !e.Local.Set {
			b = strconv.AppendUint(b, ino, 10)
		}
		if e.Peer.Set {
			b = e.Peer.append(append(b, "->"...))
		}
	}
	return string(append(b, ']'))
}

func netlinkName(family uint16) string {
	if name, ok := event.NetlinkNames.NameOf(uint64(family)); ok {
		return name
	}
	return strconv.Itoa(int(family))
}

// append writes an address of the internet or a virtual machine.
func (a *Address) append(b []byte) []byte {
	if !a.Set {
		return b
	}
	if a.IP.IsValid() {
		return netip.AddrPortFrom(a.IP, uint16(a.Port)).AppendTo(b)
	}
	b = append(strconv.AppendUint(b, uint64(a.CID), 10), ':')
	return strconv.AppendUint(b, uint64(a.Port), 10)
}

// appendUnix writes what is between the brackets of a local socket.
func (e *Ends) appendUnix(b []byte, ino uint64) []byte {
	b = strconv.AppendUint(b, ino, 10)
	if e.PeerIno != 0 {
		b = strconv.AppendUint(append(b, "->"...), e.PeerIno, 10)
	}
	if e.Local.Path != "" {
		b = appendPath(append(b, ','), e.Local.Path)
	}
	if e.Peer.Path != "" {
		b = appendPath(append(b, ",peer="...), e.Peer.Path)
	}
	if e.PID != 0 {
		b = strconv.AppendUint(append(b, ",pid="...), uint64(e.PID), 10)
		b = strconv.AppendUint(append(b, ",uid="...), uint64(e.UID), 10)
	}
	return b
}

// appendPath writes the path of a local socket; the @ of an abstract one stands before the quotes,
// as strace has it.
func appendPath(b []byte, path string) []byte {
	if name, abstract := strings.CutPrefix(path, "@"); abstract {
		return strconv.AppendQuoteToASCII(append(b, '@'), name)
	}
	return strconv.AppendQuoteToASCII(b, path)
}

// maxName bounds the names that Parse takes apart, in bytes: two paths of maxPath bytes, each written
// as an escape of four, and the rest.
const maxName = 2048

// maxPath bounds the path of a local socket, in bytes: what a struct sockaddr_storage has room for.
const maxPath = maxSockaddr - 2

// Parse takes the name of an open socket apart; false if it is none.
func Parse(name string) (e Ends, ok bool) {
	protocol, rest, ok := strings.Cut(name, ":[")
	if !ok || len(name) > maxName {
		return e, false
	}
	k, known := kinds[protocol]
	rest, closed := strings.CutSuffix(rest, "]")
	if !known || !closed {
		return e, false
	}
	e.Family, e.Type, e.Protocol = k.family, k.typ, k.protocol
	switch k.family {
	case Unix:
		return e, e.parseUnix(rest)
	case Netlink:
		family, id, bound := strings.Cut(rest, ":")
		e.Protocol = netlinkFamily(family)
		if n, err := strconv.ParseUint(id, 10, 32); bound && err == nil {
			e.Local = Address{Port: uint32(n), Set: true}
		}
		return e, true
	}
	local, peer, connected := strings.Cut(rest, "->")
	if e.Local, ok = parseAddress(k.family, local); !ok {
		var err error
		if e.Ino, err = strconv.ParseUint(local, 10, 64); err != nil {
			return e, false
		}
	}
	if connected {
		e.Peer, ok = parseAddress(k.family, peer)
		return e, ok
	}
	return e, true
}

func netlinkFamily(s string) uint16 {
	if n, ok := event.NetlinkNames.Parse("NETLINK_" + s); ok {
		return uint16(n)
	}
	n, _ := strconv.ParseUint(s, 10, 16)
	return uint16(n)
}

func parseAddress(family uint16, s string) (a Address, ok bool) {
	if family == Vsock {
		cid, port, _ := strings.Cut(s, ":")
		c, err := strconv.ParseUint(cid, 10, 32)
		p, err2 := strconv.ParseUint(port, 10, 32)
		if err != nil || err2 != nil || p == anyPort {
			return a, false
		}
		return Address{CID: uint32(c), Port: uint32(p), Set: true}, true
	}
	p, err := netip.ParseAddrPort(s)
	if err != nil {
		return a, false
	}
	a = internet(p.Addr(), p.Port())
	return a, a.Set
}

// parseUnix takes apart what is between the brackets of a local socket.
func (e *Ends) parseUnix(s string) bool {
	var ok bool
	if e.Ino, s, ok = cutNumber(s); !ok {
		return false
	}
	if rest, connected := strings.CutPrefix(s, "->"); connected {
		if e.PeerIno, s, ok = cutNumber(rest); !ok {
			return false
		}
	}
	for s != "" {
		if s, ok = strings.CutPrefix(s, ","); !ok {
			return false
		}
		if s, ok = e.parseWord(s); !ok {
			return false
		}
	}
	if e.PID == 0 {
		e.UID = 0
	}
	return true
}

// parseWord takes one part of what stands behind the inodes, and returns what is behind it.
func (e *Ends) parseWord(s string) (rest string, ok bool) {
	for key, v := range map[string]*uint32{"pid=": &e.PID, "uid=": &e.UID} {
		if number, found := strings.CutPrefix(s, key); found {
			n, rest, ok := cutNumber(number)
			*v = uint32(n)
			return rest, ok && n < 1<<32
		}
	}
	at := &e.Local
	if path, found := strings.CutPrefix(s, "peer="); found {
		at, s = &e.Peer, path
	}
	mark := ""
	if strings.HasPrefix(s, "@") {
		mark, s = "@", s[1:]
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return s, false
	}
	path, err := strconv.Unquote(quoted)
	*at = Address{Path: mark + path, Set: mark+path != ""}
	return s[len(quoted):], err == nil && len(at.Path) <= maxPath
}

// cutNumber takes the digits at the beginning.
func cutNumber(s string) (n uint64, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseUint(s[:i], 10, 64)
	return n, s[i:], err == nil
}
