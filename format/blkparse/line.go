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
	second          uint64 // of a split: where the second part begins
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
	if !l.place(rest) {
		return l, false
	}
	if i := bytes.LastIndexByte(b, '['); i >= 0 {
		if j := bytes.IndexByte(b[i:], ']'); j > 0 {
			l.what = string(b[i+1 : i+j])
			l.number, _ = strconv.ParseInt(l.what, 10, 64)
		}
	}
	return l, true
}

// place takes the sectors of an event: "sector + sectors", or "sector / second" of a split.
func (l *line) place(words [][]byte) bool {
	if len(words) < 3 || len(words[1]) != 1 || words[1][0] != '+' && (words[1][0] != '/' || l.action != "X") {
		return true // it has none
	}
	sector, err := strconv.ParseUint(string(words[0]), 10, 64)
	n, err2 := strconv.ParseUint(string(words[2]), 10, 64)
	if err != nil || err2 != nil || sector >= maxSector {
		return false
	}
	l.sector = sector
	if words[1][0] == '/' {
		l.second = n
		return n < maxSector
	}
	l.sized, l.sectors = true, n
	return n < maxSectors
}
