// SPDX-License-Identifier: Apache-2.0

package blkparse

import (
	"bytes"
	"strconv"
)

// line is an event as blkparse prints it:
//
//	  8,0    1        3     0.009507758   697  C   W 223490 + 8 [0]
//	device  cpu sequence    time, s       pid action rwbs  sector + sectors [what]
type line struct {
	major, minor    uint32
	ns              uint64
	pid             uint32
	action          string // of one letter, or two
	rwbs            string // R read, W write, D discard, F flush or FUA, N none, …
	sized           bool   // there are a sector and a length
	sector, sectors uint64
	what            string // the command or, of a completion, its error
	number          int64  // what, if it is one
}

// The largest numbers that make sense: offsets and lengths in bytes have to fit.
const (
	maxSeconds = 1 << 33
	maxSector  = 1 << 54
	maxSectors = 1 << 31
	maxMajor   = 1 << 12 // as in the kernel's device numbers
	maxMinor   = 1 << 20
)

// parse takes a line apart; false if it is none of an event.
func parse(b []byte) (l line, ok bool) {
	words := bytes.Fields(b)
	if len(words) < 7 {
		return l, false
	}
	major, minor, _ := bytes.Cut(words[0], []byte(","))
	seconds, ns, _ := bytes.Cut(words[3], []byte("."))
	rest := words[7:]
	var s, cpu, seq, pid, maj, mnr uint64
	for _, n := range []struct {
		b     []byte
		into  *uint64
		below uint64
	}{
		{major, &maj, maxMajor}, {minor, &mnr, maxMinor}, {words[1], &cpu, 1 << 20}, {words[2], &seq, 1 << 63},
		{seconds, &s, maxSeconds}, {ns, &l.ns, 1e9}, {words[4], &pid, 1 << 32},
	} {
		v, err := strconv.ParseUint(string(n.b), 10, 64)
		if err != nil || v >= n.below {
			return l, false
		}
		*n.into = v
	}
	if len(ns) != 9 || len(words[5]) > 2 || len(words[6]) > 8 {
		return l, false
	}
	l.major, l.minor, l.pid, l.ns = uint32(maj), uint32(mnr), uint32(pid), s*1e9+l.ns
	l.action, l.rwbs = string(words[5]), string(words[6])
	if l.action == "m" {
		return l, true
	}
	if len(rest) >= 3 && len(rest[1]) == 1 && rest[1][0] == '+' {
		sector, err := strconv.ParseUint(string(rest[0]), 10, 64)
		sectors, err2 := strconv.ParseUint(string(rest[2]), 10, 64)
		if err != nil || err2 != nil || sector >= maxSector || sectors >= maxSectors {
			return l, false
		}
		l.sized, l.sector, l.sectors = true, sector, sectors
	}
	if i := bytes.LastIndexByte(b, '['); i >= 0 {
		if j := bytes.IndexByte(b[i:], ']'); j > 0 {
			l.what = string(b[i+1 : i+j])
			l.number, _ = strconv.ParseInt(l.what, 10, 64)
		}
	}
	return l, true
}
