// SPDX-License-Identifier: Apache-2.0

package dio

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// record is one line: an event, or the path of a file.
type record struct {
	DocType string `json:"doc_type"` // "EventPath", or nothing

	Name   string  `json:"system_call_name"`
	Called uint64  `json:"call_timestamp"` // ns since 1970
	Until  uint64  `json:"return_timestamp"`
	Thread string  `json:"thread"`
	PID    uint32  `json:"pid"`
	TID    uint32  `json:"tid"`
	PPID   uint32  `json:"ppid"`
	Ret    *int64  `json:"return_value"`
	Error  string  `json:"error_message"`
	Host   string  `json:"hostname"`
	Comm   string  `json:"comm"`
	CPU    *uint16 `json:"cpu"`
	Child  uint32  `json:"child"`

	Session  string     `json:"session_name"`
	Tag      string     `json:"file_tag"`
	FilePath string     `json:"file_path"` // of an EventPath
	FileType string     `json:"file_type"`
	Path     *pathOf    `json:"fdata"`
	Args     rawFields  `json:"args"`
	Socket   *rawFields `json:"socket_data"`

	untimed bool // the line does not say when the call returned
}

type pathOf struct {
	Name string `json:"file_path"`
}

// rawFields are the fields of an object as they stand in the file.
type rawFields map[string]json.RawMessage

const pathDoc = "EventPath"

// parse decodes a line.
func parse(text []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	switch {
	case r.DocType == pathDoc && r.Tag != "":
		return r, nil
	case r.DocType != "":
		return nil, fmt.Errorf("doc_type %.40q: EventPath was expected", r.DocType)
	case r.Name == "":
		return nil, errors.New("no system_call_name")
	case r.Called == 0:
		return nil, errors.New("no call_timestamp, which was expected to be ns since 1970")
	}
	if r.TID == 0 {
		r.TID = r.PID
	}
	if r.PID == 0 {
		r.PID = r.TID
	}
	if r.TID == 0 {
		return nil, errors.New("no pid")
	}
	if r.Host == "" {
		_, r.Host, _ = strings.Cut(r.Thread, "@")
	}
	r.untimed = r.Until == 0
	r.Until = max(r.Until, r.Called)
	return r, nil
}

// tag is what a file_tag names: a file, while its inode number was its own.
type tag struct {
	dev uint32
	ino uint64
}

// parseTag takes a file_tag apart: device, inode and a time.
func parseTag(s string) (t tag, ok bool) {
	f := strings.Split(s, "|")
	if len(f) < 2 {
		return t, false
	}
	dev, err1 := strconv.ParseUint(f[0], 10, 32)
	ino, err2 := strconv.ParseUint(f[1], 10, 64)
	return tag{uint32(dev), ino}, err1 == nil && err2 == nil && ino != 0
}

// Types of files, in DIO's words and the kernel's.
var types = map[string]uint32{
	"Socket": 0o140000, "Symbolic link": 0o120000, "Regular file": 0o100000, "Block device": 0o060000,
	"Directory": 0o040000, "Char device": 0o020000, "Pipe": 0o010000,
}

// take returns a text and removes it from the fields.
func (f rawFields) take(name string) (s string, ok bool) {
	raw := f[name]
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	delete(f, name)
	return s, true
}

// number returns a number and removes it from the fields. Those below 0 wrap.
func (f rawFields) number(name string) (uint64, bool) {
	v, ok := f.look(name)
	if ok {
		delete(f, name)
	}
	return v, ok
}

func (f rawFields) look(name string) (uint64, bool) {
	s := string(f[name])
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(v), true
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}

// address returns the address that a call was given or gave, nil if it is not known.
func (f rawFields) address() []byte {
	family, ok := f.take("addr_family")
	if !ok {
		return nil
	}
	switch family {
	case "AF_UNIX":
		if name, ok := f.take("un_path"); ok {
			return f.ofLength(format.SockaddrUnix(name))
		}
	case "AF_INET", "AF_INET6":
		name, _ := f.take("in_address")
		port, ok := f.number("in_port")
		ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if err == nil && ok && port <= 0xffff {
			return f.ofLength(format.Sockaddr(netip.AddrPortFrom(ip, uint16(port))))
		}
	}
	f["addr_family"], _ = json.Marshal(family)
	return nil
}

// ofLength removes the length from the fields if it is that of the address.
func (f rawFields) ofLength(b []byte) []byte {
	if n, ok := f.look("addr_len"); ok && n == uint64(len(b)) {
		delete(f, "addr_len")
	}
	return b
}

// object returns what the tag says of a descriptor.
func (t tag) object(fd int32, arg int8, mode uint32) trace.Object {
	return trace.Object{Arg: arg, FD: fd, Dev: t.dev, Ino: t.ino, Mode: mode, Size: -1, Pos: -1}
}
