// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/iotape/iotape/event/socket"
)

// socketName maps the name of a socket, whose ends it has, part by part.
func (m *mapper) socketName(e *socket.Ends) string {
	for _, a := range [...]*socket.Address{&e.Local, &e.Peer} {
		m.end(e.Family, a)
	}
	for _, ino := range [...]*uint64{&e.Ino, &e.PeerIno} {
		if *ino != 0 {
			*ino = m.number(Inode, *ino)
		}
	}
	if e.PID != 0 {
		e.PID, e.UID = m.id(PID, e.PID), m.id(UID, e.UID)
	}
	return e.Name(e.Ino)
}

// end maps one address.
func (m *mapper) end(family uint16, a *socket.Address) {
	switch {
	case !a.Set:
	case a.IP.IsValid():
		b := a.IP.AsSlice()
		m.address(b)
		ip, _ := netip.AddrFromSlice(b)
		a.IP, a.Port = ip.WithZone(a.IP.Zone()), uint32(m.number(Port, uint64(a.Port)))
	case family == socket.Unix:
		if name, abstract := strings.CutPrefix(a.Path, "@"); abstract {
			b := []byte(name)
			m.opaque(Address, b)
			a.Path = "@" + string(b)
		} else {
			a.Path = m.path(a.Path)
		}
	case family == socket.Netlink: // by default the process
		a.Port = m.id(PID, a.Port)
	}
}

// addresses maps those of a host's interfaces.
func (m *mapper) addresses(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		if ip, err := netip.ParseAddr(list[i]); err == nil {
			a := socket.Address{IP: ip, Set: true}
			m.end(socket.Inet, &a)
			list[i] = a.IP.String()
		} else {
			list[i] = m.string(Address, list[i])
		}
	}
	return list
}
