// SPDX-License-Identifier: Apache-2.0

package sysdig

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// line is the entry or the return of a call.
type line struct {
	time     uint64 // ns; of the day, or since some beginning
	day      bool   // it is of the day
	comm     string
	pid, tid uint32
	entry    bool
	name     string
	fields   map[string]string
}

// pattern is NUMBER TIME CPU COMM (TID) DIRECTION CALL FIELDS.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,20}) (?:\d{4}-\d\d-\d\d )?([0-9:]{1,20})\.(\d{1,9}) (\d{1,5}) (.{0,64}?) ` +
		`\((?:(\d{1,10})[.:])?(\d{1,10})\) ([<>]) ([a-z][a-z0-9_]{0,31})(?: (.*))?$`)
})

// key is the name of a field in front of its value. Fields that hold what programs wrote stand last.
var key = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^| )([a-z_][a-z0-9_.]{0,31})=`)
})

// last are fields of any content, in which no other field is looked for.
var last = map[string]bool{"data": true, "args": true, "env": true}

const maxFields = 64

// parse takes a line apart.
func parse(s string) (l line, ok bool) {
	m := pattern().FindStringSubmatch(s)
	if m == nil {
		return l, false
	}
	if l.time, l.day, ok = seconds(m[2], m[3]); !ok {
		return l, false
	}
	tid, err := strconv.ParseUint(m[7], 10, 32)
	if err != nil {
		return l, false
	}
	pid := tid
	if m[6] != "" {
		if pid, err = strconv.ParseUint(m[6], 10, 32); err != nil {
			return l, false
		}
	}
	l.comm, l.pid, l.tid, l.entry, l.name = m[5], uint32(pid), uint32(tid), m[8] == ">", m[9]
	l.fields = fields(m[10])
	return l, true
}

// seconds reads HH:MM:SS, or a number of seconds, and the digits behind the point.
func seconds(whole, fraction string) (ns uint64, day, ok bool) {
	total := uint64(0)
	parts := strings.Split(whole, ":")
	if len(parts) != 1 && len(parts) != 3 {
		return 0, false, false
	}
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 33)
		if err != nil {
			return 0, false, false
		}
		total = total*60 + n
	}
	n, err := strconv.ParseUint((fraction + "00000000")[:9], 10, 64)
	if total >= 1<<33 {
		return 0, false, false
	}
	return total*1e9 + n, len(parts) == 3, err == nil
}

// fields takes NAME=VALUE NAME=VALUE apart. Values may have spaces.
func fields(s string) map[string]string {
	f := map[string]string{}
	for s != "" && len(f) < maxFields {
		at := key().FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		name := s[at[2]:at[3]]
		if s = s[at[1]:]; last[name] {
			f[name] = s
			break
		}
		value := s
		if next := key().FindStringIndex(s); next != nil {
			from := next[0]
			if from == 0 && s[0] != ' ' { // the value begins with what looks like a field
				if next = key().FindStringIndex(s[1:]); next != nil {
					from = next[0] + 1
				} else {
					from = len(s)
				}
			}
			value = s[:from]
		}
		s = s[len(value):]
		f[name] = strings.TrimRight(value, " ")
	}
	return f
}

// number reads 14(<f>/a), -11(EAGAIN), 0x7f or 644.
func number(s string, base int) (v int64, inside string, ok bool) {
	digits, rest, _ := strings.Cut(s, "(")
	inside = strings.TrimSuffix(rest, ")")
	if hex, is := strings.CutPrefix(digits, "0x"); is {
		digits, base = hex, 16
	}
	v, err := strconv.ParseInt(digits, base, 64)
	if err != nil && base == 16 {
		u, err := strconv.ParseUint(digits, 16, 64)
		return int64(u), inside, err == nil
	}
	return v, inside, err == nil
}

// file returns the name in <f>/a; typed is what stands in the brackets.
func file(inside string) (name, typed string) {
	if !strings.HasPrefix(inside, "<") {
		return inside, ""
	}
	typed, name, _ = strings.Cut(inside[1:], ">")
	return name, typed
}
