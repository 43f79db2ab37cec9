// SPDX-License-Identifier: Apache-2.0

package scap

import (
	"encoding/binary"

	"github.com/iotape/iotape/trace"
)

// cursor reads the fields of a block. After one that is not there all are zero.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) num(n int) (v uint64) {
	for i, b := range c.bytes(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// text reads a string after its length.
func (c *cursor) text() string { return string(c.bytes(int(c.num(2)))) }

// versions of the list of processes, by the type of their blocks.
var versions = map[uint32]int{
	0x202: 1, 0x8000abcd: 1, 0x207: 2, 0x8013abcd: 2, 0x209: 3, 0x8014abcd: 3, 0x210: 4, 0x211: 5, 0x212: 6, 0x213: 7, 0x214: 8, 0x215: 9,
}

// processes reads a list of processes, and reports whether it is one.
func (im *importer) processes(b []byte, version int) bool {
	for c := (cursor{b: b}); len(c.b) >= 4; {
		rest := cursor{}
		if version >= 9 { // entries say how long they are, themselves included
			n := int(c.num(4)) - 4
			if n < 0 || n > len(c.b) {
				return false
			}
			rest.b, c.b = c.b[n:], c.b[:n]
		}
		tid, pid, ppid := uint32(c.num(8)), uint32(c.num(8)), uint32(c.num(8))
		if version >= 6 {
			c.num(8) // session
		}
		if version >= 8 {
			c.num(8) // process group
		}
		comm, _ := c.text(), c.text() // and argv[0]
		if version >= 7 {
			c.text() // program
		}
		c.text() // arguments
		dir := c.text()
		c.num(8) // limit of descriptors
		c.num(4) // flags
		uid, gid := uint32(c.num(4)), uint32(c.num(4))
		if version < 9 {
			if version >= 2 {
				c.bytes(3*4 + 2*8) // memory, faults
			}
			if version >= 3 {
				c.text() // environment
			}
			if version >= 4 {
				c.bytes(2 * 8) // ids in their own name spaces
				c.text()       // control groups
			}
			if version >= 5 {
				c.text() // root
			}
		}
		if c.short {
			return false
		}
		if th := im.thread(tid); th != nil {
			th.pid, th.ppid, th.comm, th.uid, th.gid, th.dir = pid, ppid, comm, uid, gid, dir
		}
		if version >= 9 {
			c = rest
		}
	}
	return true
}

// Types of descriptors.
const (
	fdIPv4, fdIPv6, fdIPv4Server, fdIPv6Server = 3, 4, 5, 6
	fdFIFO, fdUnix, fdFile2                    = 7, 8, 16
)

// maxOpen limits how many descriptors a hostile file can make the import hold.
const maxOpen = 1 << 20

// opened is a descriptor that was open at the start.
type opened struct {
	object trace.Object
	path   string
}

// descriptors reads the descriptors of a thread, and reports whether they are some.
func (im *importer) descriptors(b []byte, sized bool) bool {
	c := cursor{b: b}
	th := im.thread(uint32(c.num(8)))
	for len(c.b) >= 4 {
		rest := cursor{}
		if sized {
			n := int(c.num(4)) - 4
			if n < 0 || n > len(c.b) {
				return false
			}
			rest.b, c.b = c.b[n:], c.b[:n]
		}
		o := opened{object: trace.Object{FD: int32(c.num(8))}}
		ino := c.num(8)
		// Of files no more is known than their names: no size, no owner.
		switch typ := c.num(1); typ {
		case fdIPv4:
			c.bytes(2*4 + 2*2 + 1)
		case fdIPv4Server:
			c.bytes(4 + 2 + 1)
		case fdIPv6:
			c.bytes(2*16 + 2*2 + 1)
		case fdIPv6Server:
			c.bytes(16 + 2 + 1)
		case fdUnix:
			c.bytes(2 * 8)
			o.path = c.text()
		case fdFile2:
			o.object.Flags = uint32(decoded(c.num(4), "open"))
			o.path = c.text()
		case fdFIFO:
			o.object.Mode, o.object.Ino, o.path = modeFIFO, ino, c.text()
		default:
			o.path = c.text()
		}
		if c.short {
			return false
		}
		if th != nil && im.opens < maxOpen {
			im.opens++
			th.files = append(th.files, o)
		}
		if sized {
			c = rest
		}
	}
	return true
}

const modeFIFO = 0o010600

// hostName finds the name in the block about the machine.
func hostName(b []byte) string {
	const at, size = 4 + 8 + 8, 128 // after the CPUs, the memory and the highest pid
	if len(b) < at+size {
		return ""
	}
	return cString(b[at : at+size])
}

func cString(b []byte) string {
	for i, x := range b {
		if x == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// sockaddr makes the kernel's structure of scap's: a family, an address, a port in the
// byte order of the machine, or a path.
func sockaddr(b []byte) []byte {
	const unix, inet, inet6 = 1, 2, 10
	if len(b) == 0 {
		return nil
	}
	switch family := b[0]; {
	case family == inet && len(b) == 7:
		s := binary.BigEndian.AppendUint16([]byte{inet, 0}, binary.LittleEndian.Uint16(b[5:]))
		return append(append(s, b[1:5]...), make([]byte, 8)...)
	case family == inet6 && len(b) == 19:
		s := binary.BigEndian.AppendUint16([]byte{inet6, 0}, binary.LittleEndian.Uint16(b[17:]))
		s = append(append(s, 0, 0, 0, 0), b[1:17]...) // no flow
		return append(s, 0, 0, 0, 0)                  // no scope
	case family == unix:
		return append([]byte{unix, 0}, b[1:]...)
	}
	return nil
}
