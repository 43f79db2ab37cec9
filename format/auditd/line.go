// SPDX-License-Identifier: Apache-2.0

package auditd

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// A record is a line of the log.
type record struct {
	node, kind string
	time       uint64 // ns since 1970
	serial     uint64 // of its event
	fields     []field
	words      bool // it is interpreted: ausearch -i
}

type field struct{ name, value string }

// maxFields bounds what one line can make the parser hold.
const maxFields = 256

// parseLine takes a line apart: [node=N] type=T msg=audit(SECONDS.MS:SERIAL): NAME=VALUE … Values of
// programs are in quotation marks, or in hexadecimal digits where they have blanks or quotation marks.
func parseLine(s string) (r record, ok bool) {
	if at := strings.Index(s, "type="); at > 0 { // node=…, or what syslog writes
		for f := range strings.FieldsSeq(s[:at]) {
			if node, ok := strings.CutPrefix(f, "node="); ok {
				r.node = strings.Clone(node)
			}
		}
		s = s[at:]
	}
	s, ok = strings.CutPrefix(s, "type=")
	if !ok {
		return r, false
	}
	var stamp string
	if r.kind, s, ok = strings.Cut(s, " "); !ok {
		return r, false
	}
	if s, ok = strings.CutPrefix(s, "msg=audit("); !ok {
		return r, false
	}
	if stamp, s, ok = strings.Cut(s, ")"); !ok {
		return r, false
	}
	if r.time, r.serial, ok = parseStamp(stamp); !ok {
		if r.time, r.serial, r.words = parseDate(stamp); !r.words {
			return r, false
		}
	}
	s = strings.TrimLeft(s, " :")
	s, _, _ = strings.Cut(s, "\x1d") // behind it, auditd's own words for the numbers
	take := nextField
	if r.words {
		take = func(s string) (field, string) { return interpretedField(r.kind, s) }
	}
	for s != "" && len(r.fields) < maxFields {
		var f field
		if f, s = take(s); f.name != "" {
			r.fields = append(r.fields, f)
		}
	}
	return r, true
}

// parseStamp reads SECONDS.MS:SERIAL.
func parseStamp(s string) (ns, serial uint64, ok bool) {
	stamp, number, ok := strings.Cut(s, ":")
	if !ok {
		return 0, 0, false
	}
	seconds, ms, _ := strings.Cut(stamp, ".")
	sec, err1 := strconv.ParseUint(seconds, 10, 32)
	milli, err2 := strconv.ParseUint(ms, 10, 16)
	serial, err3 := strconv.ParseUint(number, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || milli > 999 {
		return 0, 0, false
	}
	return sec*1e9 + milli*1e6, serial, true
}

// nextField takes NAME=VALUE off the beginning of a line. The field has no name if there is none.
func nextField(s string) (f field, rest string) {
	s = strings.TrimLeft(s, " ")
	name, rest, ok := strings.Cut(s, "=")
	if !ok {
		return field{}, ""
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 {
		name = name[i+1:]
	}
	if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") {
		if end := strings.IndexByte(rest[1:], rest[0]); end >= 0 {
			return field{name, rest[:end+2]}, rest[end+2:]
		}
	}
	value, rest, _ := strings.Cut(rest, " ")
	return field{name, value}, rest
}

// value returns a field as it stands there; "" if there is none.
func (r *record) value(name string) string {
	for i := range r.fields {
		if r.fields[i].name == name {
			return r.fields[i].value
		}
	}
	return ""
}

// text returns a field that a program chose. It reports false if the record does not say it.
func (r *record) text(name string) (string, bool) {
	v := r.value(name)
	if r.words {
		return v, v != "" && v != "(null)" && v != "(unknown)" && v != "?"
	}
	return decode(v)
}

// decode reads a value in quotation marks or hexadecimal digits.
func decode(v string) (string, bool) {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1], true
	}
	b, err := hex.DecodeString(v)
	if v == "" || err != nil { // (null), ?
		return "", false
	}
	return string(b), true
}

// number returns a field in a base; 0 if there is none.
func (r *record) number(name string, base int) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(r.value(name), "0x"), base, 64)
	if err != nil {
		return 0
	}
	return n
}

// identity returns a number of a process or a user.
func (r *record) identity(name string) uint32 { return uint32(min(r.number(name, 10), math.MaxUint32)) }
