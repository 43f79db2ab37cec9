// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strconv"
	"strings"
	"sync"
)

// ParseValue reads what AppendFlags or AppendEnum wrote, and the other ways in which
// strace(1) writes a number: names of this set joined with "|", or of another set of
// the operation table where there is only one such name, signals, and what ParseNumber reads. The
// set may be nil.
func (s *Set) ParseValue(text string) (v uint64, ok bool) {
	for more := true; more; {
		var part string
		if part, text, more = strings.Cut(text, "|"); part == "" && more {
			continue // -X raw writes |0x900
		}
		n, ok := s.parsePart(part)
		if !ok {
			return 0, false
		}
		v |= n
	}
	return v, true
}

func (s *Set) parsePart(part string) (uint64, bool) {
	if part == "" {
		return 0, false
	}
	if s != nil {
		if v, ok := s.Parse(part); ok {
			return v, true
		}
		if part == s.Zero {
			return 0, true
		}
	}
	if v, ok := ParseNumber(part); ok {
		return v, true
	}
	if n, ok := SignalByName(part); ok {
		return uint64(n), true
	}
	if v, ok := named()[part]; ok && !v.ambiguous {
		return v.value, true
	}
	if now, ok := formerNames[part]; ok {
		return s.parsePart(now)
	}
	if rest, ok := strings.CutPrefix(part, "PF_"); ok {
		return s.parsePart("AF_" + rest)
	}
	// Requests of several drivers with one number: "TCGETS or SNDCTL_TMR_START".
	if strings.Contains(part, " or ") {
		for name := range strings.SplitSeq(part, " or ") {
			if v, ok := s.parsePart(name); ok {
				return v, true
			}
		}
	}
	return 0, false
}

// formerNames are what older versions of strace call a value.
var formerNames = map[string]string{
	"AF_LOCAL": "AF_UNIX", "AF_FILE": "AF_UNIX", "RLIM_INFINITY": "RLIM64_INFINITY", "SIGRT_0": "SIGRTMIN", "SIGCLD": "SIGCHLD", "SIGPOLL": "SIGIO",
}

// ParseNumber reads a number in C's notation, with a sign, as a product (8192*1024) or
// shifted (1<<3); NULL is 0.
func ParseNumber(s string) (uint64, bool) {
	if s == "" || s[0] > '9' || s[0] < '(' {
		if s == "NULL" {
			return 0, true
		}
		return 0, false
	}
	if a, b, ok := strings.Cut(s, "*"); ok {
		x, ok1 := ParseNumber(a)
		y, ok2 := ParseNumber(b)
		return x * y, ok1 && ok2
	}
	if a, b, ok := strings.Cut(s, "<<"); ok {
		x, ok1 := ParseNumber(a)
		y, ok2 := ParseNumber(b)
		return x << (y & 63), ok1 && ok2
	}
	if s[0] == '-' {
		v, err := strconv.ParseInt(s, 0, 64)
		return uint64(v), err == nil
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return v, err == nil
}

// SignalByName returns the number of a signal: of what SignalName writes, or of that
// without "SIG".
func SignalByName(name string) (int, bool) {
	n, ok := signalNumbers()[strings.TrimPrefix(name, "SIG")]
	return n, ok
}

var signalNumbers = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for n := 1; n <= 64; n++ {
		m[strings.TrimPrefix(SignalName(n), "SIG")] = n
	}
	return m
})

type namedValue struct {
	value     uint64
	ambiguous bool
}

// named holds the values of all names of the operation table's sets.
var named = sync.OnceValue(func() map[string]namedValue {
	m := map[string]namedValue{}
	add := func(s *Set) {
		if s == nil {
			return
		}
		for _, it := range s.Items {
			old, twice := m[it.Name]
			m[it.Name] = namedValue{it.Value, twice && (old.ambiguous || old.value != it.Value)}
		}
	}
	for _, s := range [...]*Set{ioprioClasses, quotaNames, quotaKinds} { // parts of values
		add(s)
	}
	for i := range specs {
		for j := range specs[i].Args {
			add(specs[i].Args[j].Set)
		}
	}
	for _, list := range meanings {
		for i := range list {
			add(list[i].as.Set)
		}
	}
	return m
})
