// SPDX-License-Identifier: Apache-2.0

package scap

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
)

//go:embed events.txt
var eventsText string

// kind is a type of events.
type kind struct {
	side   byte // 'e', 'x'; '-' is not imported, '.' is the entry of such a call
	name   string
	op     event.Op
	params []param
}

// param is what a parameter of an event says.
type param struct {
	what string // as in events.txt
	code string // how it is encoded
	arg  int    // position of the argument, -1 if it is none
}

var kinds = sync.OnceValue(func() map[uint16]*kind {
	m := map[uint16]*kind{}
	for line := range strings.Lines(eventsText) {
		w := strings.Fields(line)
		if len(w) < 3 || w[0] == "#" {
			continue
		}
		n, err := strconv.ParseUint(w[0], 10, 16)
		if err != nil {
			continue
		}
		k := &kind{side: w[1][0], name: w[2], op: event.ByName(w[2])}
		spec := event.Lookup(k.op)
		for _, p := range w[3:] {
			what, code, _ := strings.Cut(p, "@")
			x := param{what: what, code: code, arg: -1}
			for i, a := range spec.Args {
				if a.Name == what {
					x.arg = i
				}
			}
			k.params = append(k.params, x)
		}
		m[uint16(n)] = k
	}
	return m
})

// A bit is one of scap's own flags and the kernel's for the same.
type bit struct{ scap, kernel uint64 }

// What scap numbers in its own way (driver/ppm_events_public.h): the kernel's bits on
// x86-64, which differ between architectures, are named by their values.
var (
	openBits = []bit{
		{1 << 2, 0o100}, {1 << 3, 0o2000}, {1 << 4, 0o10000}, {1 << 5, 0o200}, {1 << 6, 0o4000}, {1 << 7, 0o4010000}, {1 << 8, 0o1000},
		{1 << 9, 0o40000}, {1 << 10, 0o200000}, {1 << 11, 0o100000}, {1 << 12, 0o2000000}, {1 << 13, 0o20200000},
	}
	cloneBits = []bit{
		{1 << 0, 0x400}, {1 << 1, 0x200}, {1 << 2, 0x80000000}, {1 << 3, 0x8000000}, {1 << 4, 0x40000000}, {1 << 5, 0x20000}, {1 << 6, 0x20000000},
		{1 << 7, 0x4000000}, {1 << 8, 0x8000}, {1 << 9, 0x100000}, {1 << 10, 0x2000}, {1 << 11, 0x800}, {1 << 12, 0x40000}, {1 << 13, 0x10000},
		{1 << 14, 0x800000}, {1 << 15, 0x100}, {1 << 20, 0x10000000}, {1 << 23, 0x200000}, {1 << 24, 0x1000000}, {1 << 25, 0x80000}, {1 << 27, 0x4000},
		{1 << 28, 0x2000000},
	}
	mmapBits = []bit{
		{1 << 0, 1}, {1 << 1, 2}, {1 << 2, 0x10}, {1 << 3, 0x20}, {1 << 4, 0x40}, {1 << 6, 0x4000}, {1 << 7, 0x8000}, {1 << 8, 0x10000}, {1 << 9, 0x100},
		{1 << 10, 0x800}, {1 << 11, 0x1000}, {1 << 14, 0x2000},
	}
)

func bits(v uint64, table []bit) (k uint64) {
	for _, b := range table {
		if v&b.scap != 0 {
			k |= b.kernel
		}
	}
	return k
}

// decoded returns a number as the kernel has it.
func decoded(v uint64, code string) uint64 {
	switch code {
	case "open":
		access := uint64(0) // scap's reading is 1, writing 2
		switch v & 3 {
		case 2:
			access = 1
		case 3:
			access = 2
		}
		return access | bits(v, openBits)
	case "mmap":
		return bits(v, mmapBits)
	case "clone":
		return bits(v, cloneBits)
	case "cloexec":
		return bits(v, []bit{{1, 0o2000000}})
	case "nonblock":
		return bits(v, []bit{{1, 0o4000}})
	case "dev": // the kernel's encoding of the number as if it were not encoded
		return v&0xff | v>>12&0xfff00 | v>>8&0xfff<<20
	case "page":
		return v * 4096
	case "fcntl": // counted from 1; after F_SETOWN_EX and the like the kernel's jump
		switch {
		case v >= 1 && v <= 8:
			return v - 1
		case v == 26:
			return 1030 // F_DUPFD_CLOEXEC
		}
		return 1<<31 | v
	}
	return v
}
