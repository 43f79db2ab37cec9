package stracetext

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"

	"iotape/event"
)

const (
	maxSockaddr = 128     // struct sockaddr_storage
	maxDirents  = 1 << 20 // bytes of directory entries that are decoded
	briefItems  = 4       // entries shown without Options.Verbose
)

// dirent is one entry of a directory listing.
type dirent struct {
	ino  uint64
	off  int64
	kind uint8
	name []byte
}

// dirents decodes what getdents64 or getdents returned (linux/dirent.h). It stops
// at the first entry that does not fit.
func dirents(b []byte, op event.Op) []dirent {
	var list []dirent
	name := 19 // after d_ino, d_off, d_reclen, d_type
	if op == event.OpGetdents {
		name = 18 // the type is the entry's last byte
	}
	for len(b) > name {
		n := int(binary.LittleEndian.Uint16(b[16:]))
		if n < name || n > len(b) {
			break
		}
		d := dirent{ino: binary.LittleEndian.Uint64(b), off: int64(binary.LittleEndian.Uint64(b[8:])), kind: b[18]}
		if op == event.OpGetdents {
			d.kind = b[n-1]
		}
		d.name, _, _ = bytes.Cut(b[name:n], []byte{0})
		list = append(list, d)
		b = b[n:]
	}
	return list
}

func (p *Printer) appendDirents(dst, b []byte, op event.Op) []byte {
	list := dirents(b, op)
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if !p.o.Verbose && i == briefItems {
			dst = append(dst, "..."...)
			break
		}
		d := &list[i]
		dst = append(dst, "{d_ino="...)
		dst = strconv.AppendUint(dst, d.ino, 10)
		if p.o.Verbose {
			dst = append(dst, ", d_off="...)
			dst = strconv.AppendInt(dst, d.off, 10)
		}
		dst = append(dst, ", d_type="...)
		dst = append(dst, direntTypes.FormatEnum(uint64(d.kind))...)
		dst = append(dst, ", d_name="...)
		dst = appendQuoted(dst, d.name)
		dst = append(dst, '}')
	}
	dst = append(dst, "] /* "...)
	dst = strconv.AppendInt(dst, int64(len(list)), 10)
	return append(dst, " entries */"...)
}

// Socket families with addresses that are decoded (sys/socket.h).
const (
	afUnix  = 1
	afInet  = 2
	afInet6 = 10
)

// sockaddr decodes a socket address: its family's name and the endpoint.
func sockaddr(b []byte) (family string, addr netip.AddrPort, path []byte, ok bool) {
	if len(b) < 2 {
		return "", addr, nil, false
	}
	f := uint64(binary.LittleEndian.Uint16(b))
	family = socketFamilies.FormatEnum(f)
	switch {
	case f == afUnix:
		path = b[2:]
		if len(path) > 0 && path[0] != 0 {
			path, _, _ = bytes.Cut(path, []byte{0})
		}
		return family, addr, path, true
	case f == afInet && len(b) >= 8:
		ip := netip.AddrFrom4([4]byte(b[4:8]))
		return family, netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])), nil, true
	case f == afInet6 && len(b) >= 24:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		return family, netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])), nil, true
	}
	return family, addr, nil, true
}

func appendSockaddr(dst, b []byte) []byte {
	family, addr, path, ok := sockaddr(b)
	if !ok {
		return appendQuoted(dst, b)
	}
	dst = append(dst, "{sa_family="...)
	dst = append(dst, family...)
	switch {
	case addr.IsValid() && addr.Addr().Is4():
		dst = append(dst, ", sin_port=htons("...)
		dst = strconv.AppendUint(dst, uint64(addr.Port()), 10)
		dst = append(dst, `), sin_addr=inet_addr("`...)
		dst = addr.Addr().AppendTo(dst)
		dst = append(dst, `")`...)
	case addr.IsValid():
		dst = append(dst, ", sin6_port=htons("...)
		dst = strconv.AppendUint(dst, uint64(addr.Port()), 10)
		dst = append(dst, `), sin6_addr="`...)
		dst = addr.Addr().AppendTo(dst)
		dst = append(dst, '"')
	case len(path) > 0 && path[0] == 0:
		dst = append(dst, ", sun_path=@"...)
		dst = appendQuoted(dst, path[1:])
	case path != nil:
		dst = append(dst, ", sun_path="...)
		dst = appendQuoted(dst, path)
	}
	return append(dst, '}')
}
