// SPDX-License-Identifier: Apache-2.0

package catlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Fields are the fields of an event as they stand in the file, so that no number loses
// digits.
type Fields map[string]json.RawMessage

// occurrence is an event, parsed.
type occurrence struct {
	kind         string // canonical name
	time         uint64
	host, thread string // what stands on both sides of the thread's "@"
	comm         string
	pid          uint32 // 0 if the event does not say
	rest         Fields // without what stands elsewhere here
	data         Fields // likewise, of data

	enter, exit uint64 // in the log's unit; 0 if it does not say

	child string
	file  string
	sock  string // the connection
	proto string
	src   netip.AddrPort
	dst   netip.AddrPort

	fd       int64 // -1 if it does not say
	size     int64 // likewise
	returned int64 // meaningful if hasRet
	hasRet   bool
	offset   int64 // -1 if it does not say
	content  []byte
}

// The kinds by their numbers in CatLog. 13 is FSYNC too, of which a file tells.
var kinds = [...]string{1: "CREATE", "START", "END", "JOIN", "LOG", "R", "W", "SND", "RCV", "CLOSE", "CONNECT",
	"ACCEPT", "SHUTDOWN",
	"HANDLERBEGIN", "HANDLEREND", "LOCK", "UNLOCK", "WAIT", "NOTIFY", "NOTIFYALL", "WR", "RD", "OPEN", "CLOSE"}

const shutdownOrFsync = 13

// parse takes an event apart.
func parse(text []byte) (*occurrence, error) {
	var f Fields
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	e := &occurrence{rest: f, fd: -1, size: -1, offset: -1}
	var ok bool
	if e.time, ok = f.number("timestamp"); !ok {
		return nil, errors.New("no timestamp, which was expected to be a number of 0 or more")
	}
	who, ok := f.text("thread")
	if !ok || who == "" {
		return nil, errors.New("no thread, which was expected to be TID@HOST")
	}
	var at bool
	if e.thread, e.host, at = strings.Cut(who, "@"); !at {
		e.host = who // the solver's --group-by-host
	}
	if len(e.host) > maxName || len(e.thread) > maxName {
		return nil, fmt.Errorf("a thread's name of %d bytes", len(who))
	}
	if err := e.setKind(f); err != nil {
		return nil, err
	}
	e.take(f)
	return e, nil
}

// maxName is the longest name of a host or thread.
const maxName = 1024

func (e *occurrence) setKind(f Fields) error {
	if name, ok := f.text("type"); ok {
		for _, k := range kinds {
			if k == name && k != "" {
				e.kind = k
			}
		}
		if name == "FSYNC" {
			e.kind = name
		}
		if e.kind == "" {
			return fmt.Errorf("type %.40q is not known", name)
		}
		return nil
	}
	n, ok := f.number("type")
	switch {
	case !ok || n == 0 || n >= uint64(len(kinds)):
		return fmt.Errorf("type %.40s is not known", f["type"])
	case n == shutdownOrFsync && f["filename"] != nil:
		e.kind = "FSYNC"
	default:
		e.kind = kinds[n]
	}
	return nil
}

// take moves what has a place in a call out of the fields.
func (e *occurrence) take(f Fields) {
	delete(f, "type")
	if v, ok := f.number("pid"); ok && v > 0 && v < 1<<31 {
		e.pid = uint32(v)
		delete(f, "pid")
	}
	if raw, ok := f["data"]; ok && json.Unmarshal(raw, &e.data) == nil && e.data != nil {
		delete(f, "data")
		e.takeData()
	}
	if v, ok := f.integer("fd"); ok && v >= 0 && v < 1<<31 {
		e.fd = v
		delete(f, "fd")
	}
	if v, ok := f.integer("offset"); ok && v >= 0 {
		e.offset = v
	}
	if v, ok := f.integer("size"); ok && v >= 0 {
		e.size = v
	}
	if v, ok := f.integer("returned_value"); ok {
		e.returned, e.hasRet = v, true
	}
	e.file, _ = f.text("filename")
	e.child, _ = f.text("child")
	e.sock, _ = f.text("socket")
	e.proto, _ = f.text("socket_type")
	e.src, e.dst = f.address("src"), f.address("dst")
}

// takeData does the same for the fields in data.
func (e *occurrence) takeData() {
	if h, ok := e.data.text("host"); ok && h == e.host {
		delete(e.data, "host")
	}
	if c, ok := e.data.text("comm"); ok {
		if e.comm = c; len(c) <= maxComm {
			delete(e.data, "comm")
		}
	}
	if v, ok := e.data.integer("fd"); ok && v >= 0 && v < 1<<31 {
		e.fd = v
	}
	// A string of JSON holds any bytes only if they are text.
	if s, ok := e.data.text("msg"); ok && s != "" && !strings.ContainsRune(s, '\ufffd') {
		e.content = []byte(s)
		delete(e.data, "msg")
	}
	e.enter, _ = e.data.number("enter_timestamp")
	e.exit, _ = e.data.number("exit_timestamp")
}

const maxComm = 15 // bytes of a thread's name that the kernel keeps

func (f Fields) text(name string) (s string, ok bool) {
	raw := f[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// digits returns a number's text, be it in quotes or not.
func (f Fields) digits(name string) string {
	if s, ok := f.text(name); ok {
		return s
	}
	return string(f[name])
}

func (f Fields) number(name string) (uint64, bool) {
	v, err := strconv.ParseUint(f.digits(name), 10, 64)
	return v, err == nil
}

func (f Fields) integer(name string) (int64, bool) {
	v, err := strconv.ParseInt(f.digits(name), 10, 64)
	return v, err == nil
}

// address returns one end of a connection, the zero address if the event has none.
func (f Fields) address(name string) netip.AddrPort {
	s, _ := f.text(name)
	ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
	port, ok := f.number(name + "_port")
	if err != nil || !ok || port > 0xffff {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip.Unmap().WithZone(""), uint16(port))
}

// units returns how many ns the log's unit is. CAT's tracers, which name the process,
// have the kernel's ns; Falcon has what the program's clock gave: ms, µs or ns since
// 1970, which years tell apart. Small numbers are a logical clock's.
func (e *occurrence) units() uint64 {
	switch {
	case e.pid != 0 || e.comm != "" || e.time < 1e11 || e.time >= 1e17:
		return 1
	case e.time < 1e14:
		return 1e6
	}
	return 1e3
}

// times returns when the event began and ended, in ns.
func (e *occurrence) times() (enter, exit uint64) {
	u := e.units()
	if e.timed() {
		return e.enter * u, e.exit * u
	}
	return e.time * u, e.time * u
}

// timed reports whether the event says when it began and when it ended.
func (e *occurrence) timed() bool {
	return e.enter > 0 && e.enter <= e.exit && e.enter <= e.time && e.time <= e.exit && e.exit < 1<<63/e.units()
}
