// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20

// lines reads lines of bounded length.
type lines struct {
	r    *bufio.Reader
	n    int // lines read
	long []byte
}

var errLong = errors.New("the line is too long")

// next returns the next line without its end; it is valid until the next call. errLong
// is no end: the line was skipped.
func (l *lines) next() ([]byte, error) {
	l.n++
	b, err := l.r.ReadSlice('\n')
	if err == nil {
		return b[:len(b)-1], nil
	}
	l.long = l.long[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long)+len(b) > maxLine {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = l.r.ReadSlice('\n')
			}
			l.long = nil
			if err == nil || errors.Is(err, io.EOF) {
				err = errLong
			}
			return nil, fmt.Errorf("line %d is longer than %d bytes: %w", l.n, maxLine, err)
		}
		l.long = append(l.long, b...)
		b, err = l.r.ReadSlice('\n')
	}
	l.long = append(l.long, b...)
	if err != nil && (!errors.Is(err, io.EOF) || len(l.long) == 0) {
		return nil, err
	}
	return []byte(strings.TrimSuffix(string(l.long), "\n")), nil
}

// stampKind says what the time in front of a line is.
type stampKind uint8

const (
	noStamp   stampKind = iota
	ofDay               // -t, -tt: since midnight
	sinceLine           // -r: since the line before
	since1970           // -ttt
)

// prefix is what stands in front of a call.
type prefix struct {
	tid   uint32 // 0 if it is not said
	comm  string // -Y
	kind  stampKind
	stamp int64 // ns
	whole bool  // of seconds
	ms    bool  // of ms, or whole
	body  string
}

// parsePrefix takes the thread and the time off a line.
func parsePrefix(s string) (p prefix) {
	s = p.takeThread(strings.TrimRight(s, "\r"))
	s = p.takeStamp(s)
	// -n: the call's number; -i: the instruction pointer.
	for strings.HasPrefix(s, "[") {
		inside, after, ok := strings.Cut(s[1:], "] ")
		if !ok || strings.Trim(inside, " 0123456789abcdef?") != "" {
			break
		}
		s = strings.TrimLeft(after, " ")
	}
	p.body = s
	return p
}

// takeThread takes the thread off a line.
func (p *prefix) takeThread(s string) string {
	if rest, ok := strings.CutPrefix(s, "[pid "); ok {
		if inside, after, ok := strings.Cut(rest, "] "); ok {
			if tid, comm, ok := parseThread(strings.TrimLeft(inside, " ")); ok {
				p.tid, p.comm, s = tid, comm, after
			}
		}
	} else if first, after, ok := strings.Cut(s, " "); ok && first != "" && digit(first[0]) {
		if strings.Contains(first, "<") && !strings.HasSuffix(first, ">") { // a name with blanks
			first, after, _ = strings.Cut(s, "> ")
			first += ">"
		}
		if tid, comm, ok := parseThread(first); ok && tid <= maxPID {
			p.tid, p.comm, s = tid, comm, after
		}
	}
	return s
}

// takeStamp takes the time off a line without its thread.
func (p *prefix) takeStamp(s string) string {
	padded := strings.HasPrefix(s, " ")
	s = strings.TrimLeft(s, " ")
	if first, after, ok := strings.Cut(s, " "); ok && first != "" && (digit(first[0]) || first[0] == '-') {
		if ns, kind, whole, ok := parseStamp(first); ok && (!whole || kind != sinceLine || padded) {
			p.stamp, p.kind, p.whole, p.ms = ns, kind, whole, coarse(first)
			s = strings.TrimLeft(after, " ")
		}
	}
	// -r behind another time; it says no more than that.
	rest, ok := strings.CutPrefix(s, "(+")
	if !ok {
		return s
	}
	inside, after, ok := strings.Cut(rest, ") ")
	if !ok {
		return s
	}
	ns, _, _, ok := parseStamp(strings.TrimSpace(inside))
	if !ok {
		return s
	}
	if p.kind == noStamp {
		p.kind, p.stamp = sinceLine, ns
	}
	return strings.TrimLeft(after, " ")
}

// maxPID is the largest number of a thread (PID_MAX_LIMIT); a larger one is a time.
const maxPID = 4 << 20

// parseThread reads a thread's number, with its name (-Y) or its number in its namespace.
func parseThread(s string) (tid uint32, comm string, ok bool) {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	v, err := strconv.ParseUint(s[:n], 10, 32)
	if err != nil || v == 0 {
		return 0, "", false
	}
	switch rest := s[n:]; {
	case rest == "":
	case rest[0] == '<' && rest[len(rest)-1] == '>':
		comm = unescape(rest[1 : len(rest)-1])
	case rest[0] == '[' && rest[len(rest)-1] == ']':
	default:
		return 0, "", false
	}
	return uint32(v), comm, true
}

// parseStamp reads 12:34:56, 12:34:56.789012, 1700000000.123456, 0.000123 or 0.
func parseStamp(s string) (ns int64, kind stampKind, whole, ok bool) {
	if len(s) >= 8 && s[2] == ':' && s[5] == ':' {
		h, err1 := strconv.ParseUint(s[:2], 10, 8)
		m, err2 := strconv.ParseUint(s[3:5], 10, 8)
		sec, ok := parseSeconds(s[6:])
		return int64(h)*3600e9 + int64(m)*60e9 + sec, ofDay, len(s) == 8, err1 == nil && err2 == nil && ok
	}
	ns, ok = parseSeconds(s)
	if kind = since1970; ns < 1e8*1e9 { // before 1973: no time of day
		kind = sinceLine
	}
	whole = !strings.Contains(s, ".")
	return ns, kind, whole, ok
}

// coarse reports whether a time has at most three decimals.
func coarse(stamp string) bool {
	_, decimals, _ := strings.Cut(stamp, ".")
	return len(decimals) <= 3
}

// parseSeconds reads seconds with up to 9 decimals as ns.
func parseSeconds(s string) (int64, bool) {
	sign := int64(1)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		s, sign = rest, -1
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > 9 || len(whole) > 10 || whole == "" {
		return 0, false
	}
	v := int64(0)
	for _, c := range []byte(whole) {
		if !digit(c) {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	for i := range 9 {
		c := byte('0')
		if i < len(fraction) {
			c = fraction[i]
		}
		if !digit(c) {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v * sign, true
}
