// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

//go:embed names.txt
var namesText string

// A call is a system call as LTTng names it.
type call struct {
	op   event.Op
	nr   uint32
	args []string // names of the arguments, by position
	also []string // the operation table's
}

// kernelNames are of functions that are not called like their system calls.
var kernelNames = map[string]string{
	"newstat": "stat", "newlstat": "lstat", "newfstat": "fstat", "newuname": "uname", "sendfile64": "sendfile", "umount": "umount2", "fadvise64_64": "fadvise64",
}

var calls = sync.OnceValue(func() map[string]*call {
	kernel := map[string][]string{}
	for line := range strings.Lines(namesText) {
		if w := strings.Fields(line); len(w) > 0 && w[0] != "#" {
			kernel[w[0]] = w[1:]
		}
	}
	m := map[string]*call{}
	for _, s := range event.Specs()[1:] {
		if s.NoCall || s.Op.IsUring() || s.Op.IsAIO() {
			continue
		}
		c := &call{op: s.Op}
		for i, a := range s.Args {
			name := a.Name
			if k := kernel[s.Name]; i < len(k) && k[i] != "-" {
				name = k[i]
			}
			c.args, c.also = append(c.args, name), append(c.also, a.Name)
		}
		m[s.Name] = c
	}
	const numbers = 1 << 10
	for nr := range uint32(numbers) {
		if n := stracetext.CallName(event.AMD64, nr); n != "" && m[n] == nil {
			m[n] = &call{nr: nr}
		}
	}
	for k, n := range kernelNames {
		m[k] = m[n]
	}
	return m
})

// arg returns the position of a field, -1 if it is no argument.
func (c *call) arg(name string) int {
	if i := slices.Index(c.args, name); i >= 0 {
		return i
	}
	return slices.Index(c.also, name)
}

// fields takes what an event says of a call's arguments.
func (c *call) fields(fc *format.Call, list []value) {
	spec := event.Lookup(c.op)
	for i := range list {
		v := &list[i]
		n := c.arg(v.name)
		if n < 0 || n >= len(fc.Args) {
			continue
		}
		switch a := &spec.Args[n]; {
		case v.isText && (a.Kind == event.KindPath || a.Kind == event.KindText):
			fc.Text(n, v.text, false)
		case v.list != nil && a.Kind == event.KindStrings:
			var argv []string
			for _, x := range v.list {
				argv = append(argv, x.text)
			}
			fc.Strings(n, argv)
		case v.list != nil && a.Layout == event.LayoutFDPair && len(v.list) == 2:
			var b []byte
			for _, x := range v.list {
				b = binary.LittleEndian.AppendUint32(b, uint32(x.num))
				fc.Objects = append(fc.Objects, trace.Object{Arg: event.MemoryArg, FD: int32(x.num)})
			}
			fc.Bytes(n, b, 0)
		case !v.isText:
			fc.Args[n] = uint64(v.num)
		}
	}
	if c.op == event.OpConnect {
		if b := sockaddr(list); b != nil {
			fc.Bytes(1, b, 0)
		}
	}
}

// sockaddr makes a struct sockaddr_in of what LTTng says of one (ip(7)).
func sockaddr(list []value) []byte {
	const inet = 2
	family, _ := number(list, "family")
	port, ok := number(list, "dport")
	v4 := find(list, "v4addr")
	if family != inet || !ok || v4 == nil || len(v4.list) != 4 {
		return nil
	}
	b := binary.BigEndian.AppendUint16([]byte{inet, 0}, uint16(port))
	for _, x := range v4.list {
		b = append(b, byte(x.num))
	}
	return append(b, make([]byte, 8)...)
}

// Argument returns the position of an argument of a system call by the name that the kernel gives it,
// as its tracers print it, or the operation table; -1 if there is none. ok is false for a call that is
// not known; its number is nr if the operation table does not have it.
func Argument(name, field string) (op event.Op, nr uint32, position int, ok bool) {
	c := calls()[name]
	if c == nil {
		return 0, 0, -1, false
	}
	return c.op, c.nr, c.arg(field), true
}
