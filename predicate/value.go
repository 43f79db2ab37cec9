// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"math"
	"net"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/event"
)

var byteUnits = map[string]int64{
	"B": 1,
	"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
}

var timeUnits = map[string]int64{
	"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9, "h": 3600e9, "d": 86400e9,
}

// unsigned maps unsigned numbers to signed ones in the same order.
func unsigned(v uint64) int64 { return int64(v ^ 1<<63) }

// checker finds out what an expression means.
type checker struct {
	x        *Expr
	o        *Options
	f        formulas
	warnings []Warning
}

func (c *checker) fail(pos, end int, hint, format string, args ...any) error {
	p := parser{src: c.x.src}
	return p.fail(pos, end, hint, format, args...)
}

func (c *checker) wrong(v *value, hint, format string, args ...any) error {
	return c.fail(v.pos, v.end, hint, format, args...)
}

// number reads a number of a field, with its unit.
func (c *checker) number(f *field, v *value, text string) (int64, error) {
	if major, minor, ok := strings.Cut(text, ":"); ok && f.typ == typeDevice {
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 != nil || err2 != nil {
			return 0, c.wrong(v, "", "%s is no device such as 8:1", Quote(text))
		}
		return unsigned(makeDevice(a, b)), nil
	}
	sign, digits, unit := divide(text)
	if digits == "" {
		return c.named(f, v, text)
	}
	if f.isTime() && unit != "" && timeUnits[unit] == 0 {
		if d, err := time.ParseDuration(text); err == nil {
			return int64(d), nil // 1m30s
		}
	}
	scale, err := c.scale(f, v, unit)
	if err != nil {
		return 0, err
	}
	if unit == "" && f.isTime() && strings.Trim(digits, "0.") != "" {
		return 0, c.wrong(v, "write "+text+"ns, "+text+"us, "+text+"ms or "+text+"s", "%s needs a unit of time", f.name)
	}
	wide := f.id == fieldIno || f.id == fieldDev // of 64 bits without a sign
	n, wrong := scaled(sign, digits, scale, wide)
	if wrong != "" {
		return 0, c.wrong(v, "", "%s %s", Quote(text), wrong)
	}
	if wide {
		return unsigned(uint64(n)), nil
	}
	return n, nil
}

// named returns the number of a field that has a name instead of it.
func (c *checker) named(f *field, v *value, name string) (int64, error) {
	switch f.id {
	case fieldUID, fieldGID:
		return c.account(f, v, name)
	case fieldPort, fieldLocalPort, fieldPeerPort:
		return c.service(v, name)
	case fieldTime:
		return 0, c.wrong(v, "write 2.5s, the time since the start of the recording, or \"2026-05-01 12:00\" in UTC",
			"%s is no time", Quote(name))
	}
	return 0, c.wrong(v, "", "%s is compared with a number, and %s is none", f.name, Quote(name))
}

// service returns the port of a service that is named, of TCP or else of UDP.
func (c *checker) service(v *value, name string) (int64, error) {
	for _, network := range []string{"tcp", "udp"} {
		if port, err := net.LookupPort(network, name); err == nil && name != "" {
			return int64(port), nil
		}
	}
	return 0, c.wrong(v, "write the number of its port", "this machine knows no service %s", Quote(name))
}

// account returns the number of a user or group that is named: of this machine, as a tape has
// numbers alone.
func (c *checker) account(f *field, v *value, name string) (int64, error) {
	kind, number := "user", ""
	if f.id == fieldGID {
		kind = "group"
		if g, err := user.LookupGroup(name); err == nil {
			number = g.Gid
		}
	} else if u, err := user.Lookup(name); err == nil {
		number = u.Uid
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0, c.wrong(v, "write the number that it has on the recorded machine", "this machine has no %s %s", kind,
			Quote(name))
	}
	return int64(n), nil
}

// divide takes a number apart; digits is "" if it is none.
func divide(text string) (sign, digits, unit string) {
	digits = text
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		digits = text[1:]
	}
	sign = text[:len(text)-len(digits)]
	end := 0
	hexadecimal := strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X")
	for end < len(digits) {
		c := digits[end]
		if !isDigit(c) && c != '.' && c != '_' && !(hexadecimal && isLetter(c)) {
			break
		}
		end++
	}
	if !hexadecimal {
		end += exponent(digits[end:])
	}
	return sign, digits[:end], digits[end:]
}

// isTime reports whether the numbers of a field are times, in ns.
func (f *field) isTime() bool { return f.typ == typeSpan || f.typ == typeTime }

// scale returns how much one of a unit is, in the unit of a field.
func (c *checker) scale(f *field, v *value, unit string) (int64, error) {
	if unit == "" {
		return 1, nil
	}
	size, isBytes := byteUnits[unit]
	span, isTime := timeUnits[unit]
	switch {
	case f.isTime() && isTime:
		return span, nil
	case f.isTime():
		return 0, c.wrong(v, "", "%s is a time: ns, us, ms, s, m, h or d stand behind its number, not %s",
			f.name, Quote(unit))
	case f.typ == typeBytes && isBytes:
		return size, nil
	case f.typ == typeBytes:
		return 0, c.wrong(v, "", "%s is a number of bytes: B, KiB, MiB, GiB, kB, MB, … can stand behind it, not %s",
			f.name, Quote(unit))
	}
	return 0, c.wrong(v, "", "%s is a plain number: %s cannot stand behind it", f.name, Quote(unit))
}

// exponent returns how many bytes of text are one, as in 1e6: behind e stands a digit, so
// it is not the beginning of a unit.
func exponent(text string) int {
	n := 1
	if len(text) > 2 && text[1] == '+' {
		n = 2
	}
	if len(text) <= n || text[0]|0x20 != 'e' || !isDigit(text[n]) {
		return 0
	}
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// scaled returns the number times scale, or what is wrong with it.
func scaled(sign, digits string, scale int64, wide bool) (int64, string) {
	hexadecimal := strings.HasPrefix(strings.ToLower(digits), "0x")
	if scale == 1 && (hexadecimal || !strings.ContainsAny(digits, ".eE")) {
		v, err := strconv.ParseInt(sign+digits, 0, 64)
		if u, e := strconv.ParseUint(digits, 0, 64); err != nil && e == nil && sign == "" && wide {
			return int64(u), ""
		}
		if err != nil {
			return 0, numberError(err)
		}
		return v, ""
	}
	if v, err := strconv.ParseInt(sign+digits, 0, 64); err == nil {
		if v > math.MaxInt64/scale || v < math.MinInt64/scale {
			return 0, "is too large"
		}
		return v * scale, ""
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
	if err != nil {
		return 0, "is no number"
	}
	if v = math.Round(v * float64(scale)); v >= math.MaxInt64 {
		return 0, "is too large"
	}
	if sign == "-" {
		v = -v
	}
	return int64(v), ""
}

func numberError(err error) string {
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		return "is too large"
	}
	return "is no number"
}

// makeDevice returns the number of a device as stat has it (makedev(3)).
func makeDevice(major, minor uint64) uint64 {
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32
}

// errno reads the name or the number of an error.
func (c *checker) errno(f *field, v *value) (int64, error) {
	if v.text != "" && isDigit(v.text[0]) {
		return c.number(f, v, v.text)
	}
	if e, ok := event.ErrnoByName(strings.ToUpper(v.text)); ok {
		return int64(e), nil
	}
	if strings.EqualFold(v.text, "ok") {
		return 0, nil
	}
	return 0, c.wrong(v, suggest(v.text, errnoNames()), "there is no error %s", Quote(v.text))
}

// signal reads the name of a signal, with or without SIG, or its number.
func (c *checker) signal(f *field, v *value) (int64, error) {
	if v.text != "" && isDigit(v.text[0]) {
		return c.number(f, v, v.text)
	}
	if n, ok := event.SignalByName(strings.ToUpper(v.text)); ok {
		return int64(n), nil
	}
	return 0, c.wrong(v, suggest(v.text, signalNames()), "there is no signal %s", Quote(v.text))
}

func signalNames() []string {
	var names []string
	for n := 1; n <= 64; n++ {
		names = append(names, event.SignalName(n))
	}
	return names
}

func errnoNames() []string {
	var names []string
	for e := syscall.Errno(1); e < 4096; e++ {
		if n := event.ErrnoName(e); n != "" && !strings.Contains(n, " ") {
			names = append(names, n)
		}
	}
	return names
}

// openFlags are the names of open flags.
var openFlags = event.Lookup(event.OpOpenat).Args[2].Set

// flagMask is a test of flags: that v&mask is value.
type flagMask struct{ mask, value uint64 }

// flags reads names of open flags joined with |.
func (c *checker) flags(v *value) (flagMask, error) {
	var m flagMask
	for name := range strings.SplitSeq(v.text, "|") {
		name = strings.ToUpper(strings.TrimSpace(name))
		if !strings.HasPrefix(name, "O_") {
			name = "O_" + name
		}
		found := false
		var names []string
		for i := range openFlags.Items {
			it := &openFlags.Items[i]
			names = append(names, it.Name)
			if it.Name != name {
				continue
			}
			mask := it.Mask
			if mask == 0 {
				mask = it.Value
			}
			if m.mask&mask&(m.value^it.Value) != 0 {
				c.warn(v.pos, v.end, "no file is open with all of these flags")
			}
			m.mask |= mask
			m.value |= it.Value
			found = true
		}
		if !found {
			return m, c.wrong(v, suggest(name, names), "there is no open flag %s", Quote(name))
		}
	}
	return m, nil
}

// fileTypes are the names of types by the upper four bits of st_mode.
var fileTypes = map[string]int64{
	"file": 8, "reg": 8, "regular": 8, "dir": 4, "directory": 4, "link": 10, "symlink": 10, "char": 2, "block": 6,
	"pipe": 1, "fifo": 1, "socket": 12, "sock": 12, "anon": 0,
}

// wallTime reads a wall-clock time, in ns since 1970.
func wallTime(text string) (ns int64, ok bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 1700 && t.Year() < 2250 {
			return t.UnixNano(), true
		}
	}
	return 0, false
}
