// SPDX-License-Identifier: Apache-2.0

package perftrace

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A line is a call, or half of one.
type line struct {
	start, took uint64 // ns since the trace began
	timed       bool   // took is known
	comm        string
	tid         uint32 // 0 if the text does not say it
	continued   bool   // the second half of a call
	name        string
	args        []arg
	result      string // "" of a first half
	size        int    // bytes of the text
}

// arg is an argument: perf leaves out those that are zero.
type arg struct {
	name, value string
	text        bool   // value stood in quotation marks
	note        string // file of a descriptor
}

const maxArgs = 16

var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(\d{1,20}\.\d{3}) (?:\(\s*(\d{1,15}\.\d{3}) ms\): |\(\s*\): |: )?` +
		`(?:(.{1,16})/(\d{1,10}) )?\s*(\.\.\. \[continued\]: )?([a-z_][a-z0-9_]{0,40})\(`)
})

// parseLine takes a line apart:
//
//	0.078 ( 0.001 ms): cat/4711 close(fd: 3</etc/passwd>) = 0
func parseLine(s string) (l line, ok bool) {
	s = s[len(colour().FindString(s)):]
	m := pattern().FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[4] == "" && m[5] == "" {
		return l, false
	}
	l.size = len(s)
	l.start, l.took, l.timed = milliseconds(m[1]), milliseconds(m[2]), m[2] != ""
	tid, err := strconv.ParseUint("0"+m[4], 10, 32)
	if err != nil {
		return l, false
	}
	l.comm, l.tid, l.continued, l.name = m[3], uint32(tid), m[5] != "", m[6]
	rest := s[len(m[0]):]
	for len(l.args) < maxArgs {
		rest = strings.TrimLeft(rest, " ,")
		if rest == "" || rest[0] == ')' || strings.HasPrefix(rest, "...") {
			break
		}
		var a arg
		if a, rest, ok = nextArg(rest); !ok {
			return l, false
		}
		l.args = append(l.args, a)
	}
	if _, result, ok := strings.Cut(rest, "= "); ok && strings.HasPrefix(strings.TrimLeft(rest, " )"), "= ") {
		l.result = strings.TrimSpace(result)
	}
	return l, true
}

// nextArg takes NAME: VALUE off the beginning.
func nextArg(s string) (a arg, rest string, ok bool) {
	end := strings.IndexAny(s, ":,()\"")
	if end < 0 || s[end] != ':' {
		return a, s, false
	}
	a.name, s = s[:end], strings.TrimLeft(s[end+1:], " ")
	switch {
	case strings.HasPrefix(s, `"`):
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return a, s, false
		}
		a.value, a.text = s[1:end+1], true
		return a, s[end+2:], true
	case strings.HasPrefix(s, "{") || strings.HasPrefix(s, "["):
		end := closing(s)
		if end < 0 {
			return a, s, false
		}
		return a, s[end:], true
	}
	if end = strings.IndexAny(s, ",<)"); end < 0 {
		return a, s, false
	}
	a.value = strings.TrimSpace(s[:end])
	if s = s[end:]; s[0] == '<' {
		note, after, ok := strings.Cut(s[1:], ">")
		if !ok {
			return a, s, false
		}
		a.note, s = note, after
	}
	return a, s, true
}

// closing returns the end of a structure, -1 if it has none.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// lost is what perf prints where events had no room, in red if it writes to a terminal.
var lost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\x1b\[[0-9;]*m)*LOST (\d{1,18}) events!`)
})

// colour is what perf writes behind a text in colour, before the next line.
var colour = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\x1b\[[0-9;]*m)+`)
})

// parseLost returns how many events a line says to be lost.
func parseLost(s string) (n uint64, ok bool) {
	m := lost().FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return n, err == nil
}

// milliseconds reads a time. perf writes 2⁶⁴ ns less some for a call that began before the first one.
func milliseconds(s string) uint64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v > math.MaxInt64/1e6 {
		return 0
	}
	return uint64(v * 1e6)
}
