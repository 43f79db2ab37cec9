// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Structures of socket calls (unix(7), ip(7), ipv6(7), netlink(7), packet(7),
// vsock(7), sendmsg(2), cmsg(3)).

// Address families that are decoded (sys/socket.h).
const (
	afUnix    = 1
	afInet    = 2
	afInet6   = 10
	afNetlink = 16
	afPacket  = 17
	afAlg     = 38
	afVsock   = 40
)

var families = map[uint64]*record{
	afInet:    all(port("sin_port", 2), num(IP, 4, "sin_addr", 4)),
	afInet6:   all(port("sin6_port", 2), network(x32("sin6_flowinfo", 4)), num(IP, 16, "sin6_addr", 8), u32("sin6_scope_id", 24)),
	afNetlink: all(u32("nl_pid", 4), x32("nl_groups", 8)),
	afPacket:  all(network(enum("sll_protocol", 2, 2, etherProtocols)), i32("sll_ifindex", 4), enum("sll_hatype", 8, 2, hardwareTypes), enum("sll_pkttype", 10, 1, packetTypes), u8("sll_halen", 11)),
	afAlg:     all(text("salg_type", 2, 14), x32("salg_feat", 16), x32("salg_mask", 20), text("salg_name", 24, 64)),
	afVsock:   all(num(Uint, 4, "svm_port", 4), named(u32("svm_cid", 8), contexts)),
}

func port(name string, off uint16) field {
	return field{name: name, off: off, size: 2, kind: Port, big: true}
}
func network(f field) field { f.big = true; return f }

// sockaddr decodes a socket address.
func sockaddr(b []byte) (Value, bool) {
	if len(b) < 2 {
		return Value{}, false
	}
	f := uint64(binary.LittleEndian.Uint16(b))
	v := Value{Kind: Struct, values: []Value{{Name: "sa_family", Kind: Enum, Num: f, Set: event.FamilyNames,
		Brief: true}}}
	switch r := families[f]; {
	case f == afUnix:
		name := b[2:]
		if len(name) > 0 && name[0] != 0 {
			name = untilNUL(name)
		}
		if len(name) > 0 {
			v.values = append(v.values, Value{Name: "sun_path", Kind: UnixPath, Data: name, Brief: true})
		}
	case r != nil && complete(r, b):
		form := Value{Kind: Struct, Data: b, record: r}
		v.values = append(v.values, fieldsOf(&form)...)
		if f == afPacket && len(b) > 12 {
			n := min(int(b[11]), len(b)-12)
			v.values = append(v.values, Value{Name: "sll_addr", Kind: Bytes, Data: b[12:][:n], Num: uint64(n),
				Brief: true})
		}
	case len(b) > 2:
		v.values = append(v.values, Value{Name: "sa_data", Kind: Bytes, Data: b[2:], Num: uint64(len(b) - 2),
			Brief: true})
	}
	return v, true
}

// complete reports whether the fields of an address are there; the kernel takes a
// sockaddr_in6 without its last one.
func complete(r *record, b []byte) bool {
	last := r.fields[len(r.fields)-1]
	return len(b) >= int(last.off+last.size) || last.name == "sin6_scope_id" && len(b) >= int(last.off) ||
		last.kind == Text && len(b) > int(last.off)
}

// Sizes of struct msghdr and struct mmsghdr.
const (
	msghdrBytes  = 56
	mmsghdrBytes = 64
	maxIovecs    = 1024 // UIO_MAXIOV
	maxName      = 128  // struct sockaddr_storage
)

// parts gives out what messages point to, in their order.
type parts struct {
	names, data, control []byte
	lens                 []int64
	failed               bool // nothing was moved
}

func take(b *[]byte, n uint64) []byte {
	got := (*b)[:min(n, uint64(len(*b)))]
	*b = (*b)[len(got):]
	return got
}

// message decodes struct msghdr with what it points to.
func (m *Memory) message() (Value, bool) {
	if len(m.Bytes) < msghdrBytes {
		return Value{}, false
	}
	p := parts{names: m.Names, data: m.Data, control: m.Control, lens: m.Lens, failed: m.Failed}
	v := p.header(m.Bytes, uint64(m.Moved), len(m.Names) > 0)
	if len(m.Before) >= 4 {
		f := &v.values[1]
		f.Before = number(m.Before[:4])
		f.Changed = f.Before != f.Num
	}
	return v, true
}

// messages decodes an array of struct mmsghdr.
func (m *Memory) messages() (Value, bool) {
	p := parts{names: m.Names, data: m.Data, control: m.Control, lens: m.Lens, failed: m.Failed}
	list := Value{Kind: List, values: []Value{}}
	for b := m.Bytes; len(b) >= mmsghdrBytes; b = b[mmsghdrBytes:] {
		n := number(b[msghdrBytes:][:4])
		h := p.header(b, n, len(m.Names) > 0)
		h.Name, h.Brief = "msg_hdr", true
		list.values = append(list.values,
			Value{Kind: Struct, values: []Value{h, {Name: "msg_len", Kind: Uint, Num: n, Brief: true}}})
	}
	return list, true
}

// header decodes one struct msghdr, which moved so many bytes.
func (p *parts) header(b []byte, moved uint64, named bool) Value {
	at := func(off int) uint64 { return number(b[off:][:8]) }
	nameLen, iovs, controlLen := number(b[8:12]), at(24), at(40)
	name := Value{Name: "msg_name", Kind: Address, Num: at(0)}
	if name.Num != 0 && named {
		if a, ok := sockaddr(take(&p.names, min(nameLen, maxName))); ok {
			a.Name = name.Name
			name = a
		}
	}
	iov := Value{Name: "msg_iov", Kind: Address, Num: at(16)}
	if n := int(min(iovs, maxIovecs)); n > 0 && n <= len(p.lens) {
		iov = Value{Name: iov.Name, Kind: List, values: p.vector(n, moved)}
	}
	fields := []Value{name, {Name: "msg_namelen", Kind: Uint, Num: nameLen}, iov,
		{Name: "msg_iovlen", Kind: Uint, Num: iovs}}
	if controlLen > 0 {
		control := Value{Name: "msg_control", Kind: Address, Num: at(32)}
		if c := take(&p.control, controlLen); control.Num != 0 && uint64(len(c)) == controlLen {
			control = controls(c)
			control.Name = "msg_control"
		}
		fields = append(fields, control)
	}
	fields = append(fields, Value{Name: "msg_controllen", Kind: Uint, Num: controlLen},
		Value{Name: "msg_flags", Kind: Flags, Num: number(b[48:52]), Set: event.MessageNames})
	for i := range fields {
		fields[i].Brief = true
	}
	return Value{Kind: Struct, values: fields}
}

// vector returns the next n elements of a message, which holds moved bytes.
func (p *parts) vector(n int, moved uint64) []Value {
	list := make([]Value, n)
	for i, size := range p.lens[:n] {
		got := min(uint64(max(size, 0)), moved)
		moved -= got
		base := Value{Name: "iov_base", Kind: Bytes, Num: got, Data: take(&p.data, got), Brief: true}
		if p.failed { // none of it is in the record
			base.Num = uint64(max(size, 0))
		}
		list[i] = Value{Kind: Struct, values: []Value{base,
			{Name: "iov_len", Kind: Uint, Num: uint64(size), Brief: true}}}
	}
	p.lens = p.lens[n:]
	return list
}

const (
	solIP     = 0
	solSocket = 1
	solTCP    = 6
	solIPv6   = 41
	solPacket = 263

	cmsgHead = 16 // struct cmsghdr
)

// controls decodes control messages.
func controls(b []byte) Value {
	list := Value{Kind: List, values: []Value{}}
	for len(b) >= cmsgHead {
		n := number(b[:8])
		level, kind := number(b[8:12]), number(b[12:16])
		v := Value{Kind: Struct, values: []Value{
			{Name: "cmsg_len", Kind: Uint, Num: n, Brief: true},
			{Name: "cmsg_level", Kind: Enum, Num: level, Set: event.LevelNames, Brief: true},
			{Name: "cmsg_type", Kind: Enum, Num: kind, Set: controlNames[level], Brief: true},
		}}
		if n < cmsgHead || n > uint64(len(b)) {
			list.values = append(list.values, v)
			break
		}
		if data := b[cmsgHead:n]; len(data) > 0 {
			d := control(level, kind, data)
			d.Name, d.Brief = "cmsg_data", true
			v.values = append(v.values, d)
		}
		list.values = append(list.values, v)
		b = b[min((n+7)&^7, uint64(len(b))):]
	}
	return list
}

// controlNames are the kinds of control messages by level. Those of IP are socket
// options' numbers.
var controlNames = map[uint64]*event.Set{
	solSocket: event.ControlNames, solIP: event.IPNames, solIPv6: event.IPv6Names,
}

// controlForms are control messages of one structure.
var controlForms = map[[2]uint64]form{
	{solSocket, 1}:  {size: 4, field: one(fd("", 0)), array: true},                                 // SCM_RIGHTS
	{solSocket, 2}:  {size: 12, record: ucred},                                                     // SCM_CREDENTIALS
	{solSocket, 4}:  {size: 4, field: one(array("", 0, 1, fd("", 0)))},                             // SCM_PIDFD
	{solSocket, 29}: {size: 16, field: one(micros("", 0))},                                         // SCM_TIMESTAMP
	{solSocket, 35}: {size: 16, field: one(time("", 0))},                                           // SCM_TIMESTAMPNS
	{solSocket, 37}: {size: 48, field: one(array("", 0, 3, time("", 0)))},                          // SCM_TIMESTAMPING
	{solIP, 8}:      {size: 12, record: pktinfo},                                                   // IP_PKTINFO
	{solIP, 2}:      {size: 4, field: one(array("", 0, 1, u32("", 0)))},                            // IP_TTL
	{solIP, 1}:      {size: 1, field: one(array("", 0, 1, num(Hex, 1, "", 0)))},                    // IP_TOS
	{solIPv6, 50}:   {size: 20, record: all(num(IP, 16, "ipi6_addr", 0), u32("ipi6_ifindex", 16))}, // IPV6_PKTINFO
	{solIPv6, 52}:   {size: 4, field: one(array("", 0, 1, i32("", 0)))},                            // IPV6_HOPLIMIT
	{solIPv6, 67}:   {size: 4, field: one(array("", 0, 1, x32("", 0)))},                            // IPV6_TCLASS
}

var (
	ucred   = all(i32("pid", 0), id("uid", 4), id("gid", 8))
	pktinfo = all(i32("ipi_ifindex", 0), num(IP, 4, "ipi_spec_dst", 4), num(IP, 4, "ipi_addr", 8))
	linger  = all(i32("l_onoff", 0), i32("l_linger", 4))
	mreq    = all(num(IP, 4, "imr_multiaddr", 0), num(IP, 4, "imr_interface", 4))
	mreqn   = all(num(IP, 4, "imr_multiaddr", 0), num(IP, 4, "imr_address", 4), i32("imr_ifindex", 8))
	mreq6   = all(num(IP, 16, "ipv6mr_multiaddr", 0), i32("ipv6mr_interface", 16))
	fprog   = all(u16("len", 0), ptr("filter", 8))
	number4 = array("", 0, 1, i32("", 0))
)

func control(level, kind uint64, b []byte) Value {
	if f, ok := controlForms[[2]uint64{level, kind}]; ok {
		if v, ok := f.decode(b, event.AMD64, nil); ok {
			return v
		}
	}
	return Value{Kind: Bytes, Data: b, Num: uint64(len(b))}
}

// optionForms are the values of socket options that are no int, by level and
// option.
var optionForms = map[[2]uint64]form{
	{solSocket, 3}:  {size: 4, field: one(array("", 0, 1, enum("", 0, 4, event.SocketTypeNames)))}, // SO_TYPE
	{solSocket, 13}: {size: 8, record: linger},                                                     // SO_LINGER
	{solSocket, 17}: {size: 12, record: ucred},                                                     // SO_PEERCRED
	{solSocket, 20}: {size: 16, field: one(micros("", 0))},                                         // SO_RCVTIMEO
	{solSocket, 21}: {size: 16, field: one(micros("", 0))},                                         // SO_SNDTIMEO
	{solSocket, 26}: {size: 16, record: fprog},                                                     // SO_ATTACH_FILTER
	{solSocket, 38}: {size: 4, field: one(array("", 0, 1, enum("", 0, 4, event.ProtocolNames)))},   // SO_PROTOCOL
	{solSocket, 39}: {size: 4, field: one(array("", 0, 1, enum("", 0, 4, event.FamilyNames)))},     // SO_DOMAIN
	{solSocket, 57}: {size: 8, field: one(array("", 0, 1, u64("", 0)))},                            // SO_COOKIE
	{solSocket, 59}: {size: 4, field: one(id("", 0)), array: true},                                 // SO_PEERGROUPS
	{solIP, 35}:     {size: 8, record: mreq},                                                       // IP_ADD_MEMBERSHIP
	{solIP, 36}:     {size: 8, record: mreq},                                                       // IP_DROP_MEMBERSHIP
	{solIP, 32}:     {size: 4, field: one(num(IP, 4, "", 0))},                                      // IP_MULTICAST_IF
	{solIPv6, 20}:   {size: 20, record: mreq6},                                                     // IPV6_ADD_MEMBERSHIP
	{solIPv6, 21}:   {size: 20, record: mreq6},                                                     // IPV6_DROP_MEMBERSHIP
	{solPacket, 1}:  {size: 16, record: packetMembership},                                          // PACKET_ADD_MEMBERSHIP
	{solPacket, 2}:  {size: 16, record: packetMembership},                                          // PACKET_DROP_MEMBERSHIP
	{solPacket, 6}:  {size: 8, record: all(u32("packets", 0), u32("drops", 4))},                    // PACKET_STATISTICS
}

var packetMembership = all(i32("mr_ifindex", 0), enum("mr_type", 4, 2, packetGroups), u16("mr_alen", 6),
	raw("mr_address", 8, 8))

// textOptions are socket options whose value is a string.
var textOptions = map[[2]uint64]bool{
	{solSocket, 25}: true, // SO_BINDTODEVICE
	{solSocket, 31}: true, // SO_PEERSEC
	{solTCP, 13}:    true, // TCP_CONGESTION
	{solTCP, 31}:    true, // TCP_ULP
}

// option decodes the value of a socket option.
func (m *Memory) option() (Value, bool) {
	if m.Args == nil {
		return Value{}, false
	}
	key := [2]uint64{m.Args[1] & 0xffffffff, m.Args[2] & 0xffffffff}
	if textOptions[key] {
		return Value{Kind: Text, Data: untilNUL(m.Bytes)}, true
	}
	if key[0] == solIP && (key[1] == 35 || key[1] == 36 || key[1] == 32) && len(m.Bytes) >= 12 {
		return Value{Kind: Struct, Data: m.Bytes, record: mreqn}, true
	}
	if f, ok := optionForms[key]; ok {
		return f.decode(m.Bytes, m.Arch, nil)
	}
	if len(m.Bytes) == 4 {
		return number4.value(m.Bytes, m.Arch), true
	}
	return Value{}, false
}
