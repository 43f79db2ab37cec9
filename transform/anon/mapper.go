// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// mapper maps values of some fields, there or back. Its methods take a field's value and
// leave that of a field that is not to be mapped. It is not safe for concurrent use.
type mapper struct {
	fields         Fields
	back           bool
	keepExtensions bool
	content        trace.AnonymisedContent

	text  [numFields]*feistel
	num   [numFields]*permutation
	bytes [numFields]*wide
	sub   *substitution // if content is substituted

	wallShift, bootShift int64 // ns, what is added to times

	names, paths map[string]string
	stacks       map[*event.Stack]*event.Stack
	texts        [numFields]map[string]string
	numbers      [numFields]map[uint64]uint64

	arch   []event.Arch // of the hosts
	memory memory
}

func newMapper(keys Keys, fields Fields, a *trace.Anonymised, back bool) *mapper {
	m := &mapper{fields: fields, back: back, keepExtensions: a.KeepExtensions, content: a.Content,
		names: map[string]string{}, paths: map[string]string{}}
	for _, f := range fields.List() {
		key := keys[f]
		derive := func(use string) Key { return key.derive(f, use) }
		m.text[f], m.num[f], m.bytes[f] = newFeistel(derive("text")), newPermutation(derive("number")), newWide(derive)
		m.texts[f], m.numbers[f] = map[string]string{}, map[uint64]uint64{}
		switch {
		case f == Content && a.Content == trace.ContentSubstituted:
			m.sub = newSubstitution(derive("substitution"))
		case f == Time:
			sub := derive("shift")
			m.wallShift = int64(binary.LittleEndian.Uint64(sub[:])%(maxWallShift/microsecond)) * microsecond
			m.bootShift = int64(binary.LittleEndian.Uint64(sub[8:])%(maxBootShift/microsecond)) * microsecond
			if back {
				m.wallShift, m.bootShift = -m.wallShift, -m.bootShift
			}
		}
	}
	return m
}

// Times move by whole microseconds, which all structures can hold: on the wall by up to 8
// years, since boot by up to one. What is before firstWall is no time of day, but a
// duration, or a file's time that says nothing; it stays, and nothing moves there.
const (
	maxWallShift = 8 * 365 * 86400 * second
	maxBootShift = 365 * 86400 * second
	firstWall    = 1 << 29                // s since 1970: 1987
	endWall      = math.MaxInt64 / second // what nanoseconds of 64 bits can tell: 2262
	second       = 1_000_000_000          // ns
	microsecond  = 1000                   // ns
)

// turn moves v by some on the ring of numbers that begins with low, so that those at its
// end have a place, too.
func turn(v, low, end, by int64) int64 {
	if v < low || v >= end {
		return v
	}
	to := (v - low + by) % (end - low)
	if to < 0 {
		to += end - low
	}
	return low + to
}

// wall maps seconds since 1970.
func (m *mapper) wall(s int64) int64 { return turn(s, firstWall, endWall, m.wallShift/second) }

// wallNS maps nanoseconds since 1970.
func (m *mapper) wallNS(ns int64) int64 {
	return turn(ns, firstWall*second, endWall*second, m.wallShift)
}

// boot maps nanoseconds since boot. Wrapping is its own inverse, too.
func (m *mapper) boot(ns int64) int64 { return ns + m.bootShift }

// bootSeconds maps seconds since boot, or nanoseconds, where a little says nothing.
func (m *mapper) bootSeconds(v, unit int64) int64 {
	return turn(v, 1*unit, firstWall*unit, m.bootShift/(second/unit))
}

// The numbers that stay.

func rootOrNobody(v uint64) bool { return v >= 65534 && v <= 65535 || v == math.MaxUint32 }
func initProcess(v uint64) bool  { return v == 1 }
func noNumber(uint64) bool       { return false }

// number maps a number of a field.
func (m *mapper) number(f Field, v uint64) uint64 {
	if !m.fields.Has(f) || v == 0 {
		return v
	}
	cache := m.numbers[f]
	if to, ok := cache[v]; ok {
		return to
	}
	var to uint64
	p := m.num[f]
	switch f {
	case UID, GID:
		to = p.decimal(v, math.MaxUint32, m.back, rootOrNobody)
	case PID:
		to = p.decimal(v, math.MaxInt32, m.back, initProcess)
	case Port: // the privileged stay so
		to = p.crypt(p.crypt(v, 1, 1023, m.back), 1024, 65535, m.back)
	default:
		to = p.decimal(v, math.MaxUint64, m.back, noNumber)
	}
	if len(cache) >= maxCached {
		clear(cache)
	}
	cache[v] = to
	return to
}

func (m *mapper) id(f Field, v uint32) uint32 { return uint32(m.number(f, uint64(v))) }

// signed maps a number of which some values are negative: of a group, or special.
func (m *mapper) signed(f Field, v int32) int32 {
	if v < 0 && v != math.MinInt32 {
		return -int32(m.number(f, uint64(-v)))
	}
	return int32(m.number(f, uint64(uint32(v))))
}

// digits maps a number in a text. One with leading zeros is none.
func (m *mapper) digits(f Field, b []byte) {
	v, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || b[0] == '0' {
		return
	}
	copy(b, strconv.AppendUint(nil, m.number(f, v), 10)) // as many as before
}

// string maps a string of C of a field.
func (m *mapper) string(f Field, s string) string {
	if !m.fields.Has(f) || s == "" {
		return s
	}
	if to, ok := m.texts[f][s]; ok {
		return to
	}
	b := []byte(s)
	m.text[f].walk(b, inTexts, m.back, nil)
	if to := string(b); len(s) <= maxCachedS {
		if len(m.texts[f]) >= maxCached {
			clear(m.texts[f])
		}
		m.texts[f][s] = to
	}
	return string(b)
}

// stringBytes is string, in place.
func (m *mapper) stringBytes(f Field, b []byte) { copy(b, m.string(f, string(b))) }

// opaque maps bytes of any values in place, as one.
func (m *mapper) opaque(f Field, b []byte) {
	if m.fields.Has(f) {
		m.bytes[f].crypt(b, m.back)
	}
}

// armour is what begins a string that JSON could not carry: behind it stands base64.
const armour = "\x01"

// json maps a string that is to stand in JSON.
func (m *mapper) json(f Field, s string) string {
	return m.armoured(f, s, func(s string) string { return m.string(f, s) })
}

// jsonPath is json for a path.
func (m *mapper) jsonPath(s string) string { return m.armoured(Path, s, m.path) }

func (m *mapper) armoured(f Field, s string, to func(s string) string) string {
	if !m.fields.Has(f) {
		return s
	}
	if m.back {
		s, _ = cutArmour(s)
		return to(s)
	}
	if s = to(s); !print8.holds([]byte(s)) {
		s = putArmour(s)
	}
	return s
}

// reason maps a text that tools write: those that came later, when a tape was cut, are as
// they wrote them.
func (m *mapper) reason(s string) string {
	if !m.fields.Has(Arg) || s == "" {
		return s
	}
	if !m.back {
		return putArmour(m.string(Arg, s))
	}
	if is, ok := cutArmour(s); ok {
		return m.string(Arg, is)
	}
	return s
}

func putArmour(s string) string { return armour + base64.StdEncoding.EncodeToString([]byte(s)) }

// cutArmour returns what is in an armour, or the string itself if it has none.
func cutArmour(s string) (is string, ok bool) {
	if len(s) == 0 || s[:1] != armour {
		return s, false
	}
	b, err := base64.StdEncoding.DecodeString(s[1:])
	if err != nil {
		return s, false
	}
	return string(b), true
}
