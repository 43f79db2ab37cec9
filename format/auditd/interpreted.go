// SPDX-License-Identifier: Apache-2.0

package auditd

import (
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// ausearch -i prints records with words in the place of numbers, and names without quotation marks:
//
//	type=SYSCALL msg=audit(04/13/22 02:26:16.126:125885) : arch=x86_64 syscall=openat exit=3 a0=AT_FDCWD …
//	type=PATH msg=audit(04/13/22 02:26:16.126:125885) : item=1 name=my file inode=12591969 …

// layouts are how dates are printed in several locales, and by several versions.
var layouts = [...]string{"01/02/06 15:04:05", "01/02/2006 15:04:05", "2006-01-02 15:04:05", "02/01/06 15:04:05",
	"02/01/2006 15:04:05", "02.01.2006 15:04:05", "2006年01月02日 15:04:05"}

// parseDate reads DATE TIME.MS:SERIAL. The time zone is not said: it is taken for UTC.
func parseDate(s string) (ns, serial uint64, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || !strings.Contains(s, " ") {
		return 0, 0, false
	}
	serial, err := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s[:i]); err == nil && t.Year() >= 1970 {
			return uint64(t.UnixNano()), serial, true
		}
	}
	return 0, 0, false
}

// next is where another field begins, and nextWord where another argument of a program does.
var (
	next = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(` [a-z][a-z0-9_-]*=`)
	})
	nextWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(` a\d+(\[\d+\]|_len)?=`)
	})
)

// interpretedField takes NAME=VALUE off the beginning of what is left of a record. The value goes up to the next name.
func interpretedField(kind, s string) (f field, rest string) {
	s = strings.TrimLeft(s, " ")
	name, rest, ok := strings.Cut(s, "=")
	if !ok {
		return field{}, ""
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 {
		name = name[i+1:]
	}
	if strings.HasPrefix(rest, "{") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			return field{name, rest[:end+1]}, rest[end+1:]
		}
	}
	pattern := next
	if kind == "EXECVE" {
		pattern = nextWord
	}
	if at := pattern().FindStringIndex(rest); at != nil && kind != "CWD" {
		return field{name, rest[:at[0]]}, rest[at[0]:]
	}
	return field{name, strings.TrimSuffix(rest, " ")}, ""
}

// systemCall returns the operation of a SYSCALL record, its number if there is none, and its architecture.
func (r *record) systemCall() (op event.Op, nr uint32, known bool) {
	arch, ok := architecture(r.value("arch"))
	if !ok {
		return 0, 0, false
	}
	if !r.words {
		nr := int(min(r.number("syscall", 10), 1<<16))
		return event.ByNumber(arch, nr), uint32(nr), true
	}
	name := r.value("syscall")
	if op = event.ByName(name); op == event.OpUnknown {
		v, _ := event.ParseNumber(strings.TrimSuffix(strings.TrimPrefix(name, "unknown-syscall("), ")"))
		nr = uint32(min(v, 1<<16))
	}
	return op, nr, true
}

// argument returns one of the four arguments that a SYSCALL record has.
func (r *record) argument(i int, a *event.Arg) (v uint64, known bool) {
	text := r.value("a" + strconv.Itoa(i))
	if !r.words {
		return r.number("a"+strconv.Itoa(i), 16), text != ""
	}
	if a.Kind == event.KindMode && len(text) > 1 && text[0] == '0' && text[1] != 'x' {
		v, err := strconv.ParseUint(text, 8, 32)
		return v, err == nil
	}
	if v, err := strconv.ParseUint(text, 16, 64); err == nil { // it has 0x in front of it, unless it is not interpreted
		return v, true
	}
	if v, ok := a.Set.ParseValue(text); ok {
		return v, true
	}
	if text == "AT_FDCWD" {
		at := int64(event.AtFDCWD)
		return uint64(at), true
	}
	return a.Set.ParseValue("AF_" + strings.ToUpper(text)) // "inet"
}

// result returns what a call returned.
func (r *record) result() (ret int64, known bool) {
	text := r.value("exit")
	if !r.words {
		ret, err := strconv.ParseInt(text, 10, 64)
		return ret, err == nil
	}
	text, _, _ = strings.Cut(text, "(") // EACCES(Permission denied)
	if e, ok := event.ErrnoByName(text); ok {
		return -int64(e), true
	}
	v, ok := event.ParseNumber(text)
	return int64(v), ok
}

// unknownUser stands for the number of a user or group of whom the log has the name only.
const unknownUser = math.MaxUint32

// user returns the number of a user or a group.
func (r *record) user(name string) uint32 {
	text := r.value(name)
	if !r.words {
		return r.identity(name)
	}
	if text == "root" || text == "" {
		return 0
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "unknown("), ")")
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n)
	}
	return unknownUser
}

// address returns the address of a SOCKADDR record.
func (r *record) address() ([]byte, bool) {
	if !r.words {
		b, ok := r.text("saddr")
		return []byte(b), ok
	}
	said := map[string]string{}
	for s := strings.Trim(r.value("saddr"), "{} "); s != ""; {
		var f field
		if f, s = interpretedField("", s); f.name != "" {
			said[f.name] = f.value
		}
	}
	if path := said["path"]; path != "" && (said["saddr_fam"] == "local" || said["saddr_fam"] == "unix") {
		return format.SockaddrUnix(path), true
	}
	ip, err1 := netip.ParseAddr(said["laddr"])
	port, err2 := strconv.ParseUint(said["lport"], 10, 16)
	if err1 != nil || err2 != nil {
		return nil, false
	}
	return format.Sockaddr(netip.AddrPortFrom(ip, uint16(port))), true
}
