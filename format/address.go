// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"net/netip"
)

// Sockaddr returns an address as programs pass it to the kernel: struct sockaddr_in or
// sockaddr_in6 (ip(7), ipv6(7)). It is nil for the zero address.
func Sockaddr(a netip.AddrPort) []byte {
	const afInet, afInet6 = 2, 10
	ip := a.Addr()
	if !ip.IsValid() {
		return nil
	}
	family := uint16(afInet6)
	if ip.Is4() {
		family = afInet
	}
	b := binary.LittleEndian.AppendUint16(make([]byte, 0, 28), family)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	if ip.Is4() {
		return append(append(b, ip.AsSlice()...), make([]byte, 8)...)
	}
	b = append(b, 0, 0, 0, 0) // flow
	b = append(b, ip.AsSlice()...)
	return append(b, 0, 0, 0, 0) // scope
}

// SockaddrUnix returns the address of a local socket: struct sockaddr_un (unix(7)). A
// name of the abstract space begins with a zero byte.
func SockaddrUnix(name string) []byte {
	const afUnix, most = 1, 108
	b := binary.LittleEndian.AppendUint16(nil, afUnix)
	b = append(b, name[:min(len(name), most)]...)
	if len(name) > 0 && len(name) < most && name[0] != 0 {
		b = append(b, 0)
	}
	return b
}
