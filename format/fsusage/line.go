// SPDX-License-Identifier: Apache-2.0

package fsusage

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// line is a call.
type line struct {
	end, took uint64 // ns; end is of the day
	coarse    bool   // end is in ms or seconds
	call      string
	values    map[string]string // F, B, O, D, A: descriptor, bytes, offset, block, address
	errno     int               // 0: it did not fail
	access    string            // of opens, in parentheses: (RWC__E)
	path      string
	comm      string
	tid       uint32 // 0 if the text does not say it
}

// pattern is TIME CALL … DURATION [W] COMM[.THREAD]. Without -w, times have no fraction, or ms.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d\d):(\d\d):(\d\d)(?:\.(\d{3}|\d{6}))?  ?` +
		`([A-Za-z_][A-Za-z0-9_<>\[\]-]{0,31})\s(.*?)\s+` +
		`(\d{1,6})\.(\d{6})(?: W)? +(.{1,64}?)(?:\.(\d{1,10}))?\s*$`)
})

// The parts between call and duration.
var (
	value = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Z])=(0x[0-9a-fA-F]{1,16}|-?\d{1,20}|<[A-Z]{1,16}>)`)
	})
	failed = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\[ *(\d{1,5})\]`)
	})
	opened = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[(<][-A-Za-z_]{1,16}[)>]`)
	})
)

// parse takes a line apart.
func parse(s string) (l line, ok bool) {
	m := pattern().FindStringSubmatch(s)
	if m == nil {
		return l, false
	}
	n := func(s string) uint64 {
		v, _ := strconv.ParseUint(s, 10, 64) // of a few digits
		return v
	}
	l.end = ((n(m[1])*60+n(m[2]))*60 + n(m[3])) * 1e9
	if l.coarse = len(m[4]) < 6; l.coarse {
		l.end += n(m[4]) * 1e6
	} else {
		l.end += n(m[4]) * 1000
	}
	l.call, l.took, l.comm = m[5], n(m[7])*1e9+n(m[8])*1000, m[9]
	if m[10] != "" {
		tid, err := strconv.ParseUint(m[10], 10, 32)
		if err != nil {
			return l, false
		}
		l.tid = uint32(tid)
	}
	l.values = map[string]string{}
	for rest := strings.TrimSpace(m[6]); rest != ""; rest = strings.TrimLeft(rest, " ") {
		if v := value().FindStringSubmatch(rest); v != nil {
			l.values[v[1]] = v[2]
			rest = rest[len(v[0]):]
		} else if v := failed().FindStringSubmatch(rest); v != nil {
			l.errno = int(n(v[1]))
			rest = rest[len(v[0]):]
		} else if v := opened().FindString(rest); v != "" && l.path == "" {
			l.access = v
			rest = rest[len(v):]
		} else { // names stand last, and may have spaces
			l.path = rest
			break
		}
	}
	return l, true
}

// number returns a value, in hexadecimal or decimal digits.
func (l *line) number(name string) (uint64, bool) {
	v, err := strconv.ParseInt(l.values[name], 0, 64)
	if err != nil {
		u, err := strconv.ParseUint(l.values[name], 0, 64)
		return u, err == nil
	}
	return uint64(v), true
}
