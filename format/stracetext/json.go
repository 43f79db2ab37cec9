// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

var kindNames = [...]string{"call", "exited", "loss", "note", "forked", "started", "inherited", "woken", "signal",
	"described"}

func kindName(k event.EventKind) string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// AppendJSON writes an event as one JSON object and a newline. Its fields are
// described in docs/print.md and only ever added to. Text that is not UTF-8 is in a
// field of the same name with 64 appended, as base64.
func (p *Printer) AppendJSON(dst []byte, e *event.Event) []byte {
	dst = putUint(append(dst, '{'), "seq", e.Seq)
	known := int(e.Host) < len(p.o.Hosts)
	if known && p.o.Hosts[e.Host].Host != "" {
		dst = putText(dst, "host", p.o.Hosts[e.Host].Host)
	}
	dst = putWord(dst, "kind", kindName(e.Kind))
	spec := e.Spec()
	if e.Kind == event.Call {
		dst = putWord(dst, "op", spec.Name)
		dst = putWord(dst, "class", spec.Class.String())
		if spec.Op == event.OpUnknown {
			if name := CallName(p.archOf(e), e.NR); name != "" {
				dst = putWord(dst, "name", name)
			}
		}
		dst = putUint(dst, "nr", uint64(e.NR))
	}
	dst = putUint(dst, "pid", uint64(e.PID))
	dst = putUint(dst, "tid", uint64(e.TID))
	dst = putUint(dst, "ppid", uint64(e.PPID))
	dst = putUint(dst, "pgid", uint64(e.PGID))
	dst = putUint(dst, "sid", uint64(e.SID))
	if e.NSTID != 0 {
		dst = putUint(dst, "ns_pid", uint64(e.NSPID))
		dst = putUint(dst, "ns_tid", uint64(e.NSTID))
	}
	dst = putUint(dst, "uid", uint64(e.UID))
	dst = putUint(dst, "gid", uint64(e.GID))
	if e.Comm != "" {
		dst = putText(dst, "comm", e.Comm)
	}
	if known {
		dst = append(key(dst, "time"), '"')
		dst = p.appendStamp(dst, p.wall(e, e.Enter))
		dst = append(dst, '"')
	}
	dst = putInt(dst, "enter_ns", e.Enter)
	if e.Flags&event.Untimed == 0 {
		dst = putInt(dst, "exit_ns", e.Exit)
	}
	dst = putInt(dst, "cpu_ns", e.CPU)
	if e.Flags&event.Delays != 0 {
		dst = putUint(dst, "delay_before_ns", uint64(e.DelayBefore))
		dst = putUint(dst, "delay_within_ns", uint64(e.DelayWithin))
	}
	dst = jsonResult(dst, e)
	if e.Kind == event.Call {
		dst = p.jsonArgs(dst, e, spec)
	}
	dst = p.jsonFiles(dst, e, spec)
	dst = p.jsonPaths(dst, e, spec)
	if e.Offset >= 0 {
		dst = putInt(dst, "offset", e.Offset)
	}
	if e.Count >= 0 {
		dst = putInt(dst, "count", e.Count)
	}
	if e.Child != 0 {
		dst = putUint(dst, "child", uint64(e.Child))
	}
	if e.Flags&^event.Delays != 0 {
		dst = append(key(dst, "flags"), '[')
		for _, w := range flagWords(e.Flags) {
			dst = putWord(dst, "", w)
		}
		dst = append(dst, ']')
	}
	if e.Stack != nil {
		dst = jsonStack(dst, e.Stack)
	}
	if e.Kind != event.Call {
		dst = p.jsonMark(dst, e)
	}
	return append(dst, "}\n"...)
}

// appendStamp writes a time as RFC 3339, UTC. Events come in order, so most are in
// the second of the one before.
func (p *Printer) appendStamp(dst []byte, ns int64) []byte {
	const second = int64(time.Second)
	sec, frac := ns/second, ns%second
	if frac < 0 {
		sec, frac = sec-1, frac+second
	}
	if sec != p.second || p.stamp == nil {
		p.second, p.stamp = sec, time.Unix(sec, 0).UTC().AppendFormat(p.stamp[:0], "2006-01-02T15:04:05")
	}
	dst = append(dst, p.stamp...)
	if frac > 0 {
		dst = append(dst, '.')
		for unit := second / 10; frac > 0; unit /= 10 {
			dst = append(dst, byte('0'+frac/unit))
			frac %= unit
		}
	}
	return append(dst, 'Z')
}

func (p *Printer) jsonMark(dst []byte, e *event.Event) []byte {
	switch e.Kind {
	case event.Exited:
		status := e.ExitStatus()
		if sig := status.Signal(); sig != 0 {
			dst = putWord(dst, "signal", event.SignalName(sig))
			if status.DumpedCore() {
				dst = putTrue(dst, "core")
			}
			return dst
		}
		return putInt(dst, "status", int64(status.Code()))
	case event.LossMark:
		loss := e.Loss()
		dst = putUint(dst, "lost", loss.Records)
		return putText(dst, "reason", trace.LossReason(loss.Reason))
	case event.NoteMark:
		if len(e.Bufs) > 0 {
			return putText(dst, "text", p.content(&e.Bufs[0], int(e.Bufs[0].Len)))
		}
	case event.Forked:
		if e.Fork().IsThread() {
			return putTrue(dst, "thread")
		}
	case event.Woken:
		by := e.Wakeup()
		if by.TID != 0 {
			dst = putUint(dst, "by_pid", uint64(by.PID))
			dst = putUint(dst, "by_tid", uint64(by.TID))
		}
		if by.In.Known() {
			dst = putWord(dst, "in", by.In.String())
		}
	case event.Signalled:
		sig, action := e.Signal()
		dst = putWord(dst, "signal", event.SignalName(sig))
		dst = putWord(dst, "action", action.String())
		if len(e.Bufs) > 0 && e.Bufs[0].Len == event.SiginfoBytes {
			dst = p.jsonBuf(dst, e, &event.SignalInfo, 0, &e.Bufs[0])
		}
	case event.Described:
		s := facts.Of(e).Summary()
		if env, known := facts.Env(e); known {
			s.WithEnv(env, false)
		}
		if text, err := json.Marshal(s); err == nil {
			dst = append(key(dst, "process"), text...)
		}
	case event.Started:
		dst = append(key(dst, "umask"), '"')
		return append(appendOctal(dst, uint64(e.Umask())), '"')
	}
	return dst
}

// jsonResult writes the result, if one was seen.
func jsonResult(dst []byte, e *event.Event) []byte {
	if e.Flags&event.Interrupted == 0 {
		dst = putInt(dst, "ret", e.Ret)
	}
	if e.Errno != 0 {
		dst = putWord(dst, "errno", event.ErrnoName(e.Errno))
	}
	return dst
}

func flagWords(f event.EventFlags) []string {
	var words []string
	for _, w := range [...]struct {
		bit  event.EventFlags
		name string
	}{{event.Interrupted, "interrupted"}, {event.Incomplete, "incomplete"}, {event.Late, "late"}, {event.Compat,
		"32-bit"}, {event.Synthetic, "stand-in"}, {event.Untimed, "untimed"}, {event.Missed, "missed"}} {
		if f&w.bit != 0 {
			words = append(words, w.name)
		}
	}
	return words
}

// argName returns the name of an argument position.
func argName(spec *event.Spec, arg int) string {
	if arg >= 0 && arg < len(spec.Args) {
		return spec.Args[arg].Name
	}
	if arg == event.MemoryArg {
		return "memory"
	}
	return "result"
}

func (p *Printer) jsonFiles(dst []byte, e *event.Event, spec *event.Spec) []byte {
	if len(e.Files) == 0 {
		return dst
	}
	dst = append(key(dst, "files"), '[')
	for i := range e.Files {
		f := &e.Files[i]
		name := "fd"
		if e.Kind == event.Call {
			name = argName(spec, int(f.Arg))
		}
		dst = putWord(append(key(dst, ""), '{'), "arg", name)
		dst = putInt(dst, "fd", int64(f.FD))
		if f.Open != 0 {
			dst = putUint(dst, "open", uint64(f.Open))
		}
		if f.Path != "" {
			dst = putText(dst, "path", f.Path)
		}
		if f.Real != "" {
			dst = putText(dst, "real", f.Real)
		}
		dst = jsonEnds(dst, f.Path)
		if f.Known {
			dst = p.jsonInode(dst, e, f)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// jsonEnds writes the ends that the name of a socket says.
func jsonEnds(dst []byte, name string) []byte {
	e, ok := socket.Parse(name)
	if !ok {
		return dst
	}
	for i, a := range [...]*socket.Address{&e.Local, &e.Peer} {
		end := [...]string{"local", "peer"}[i]
		switch {
		case !a.Set:
			continue
		case a.Path != "":
			dst = putText(dst, end, a.Path)
			continue
		case a.IP.IsValid():
			dst = putText(dst, end, a.IP.String())
		case e.Family == socket.Vsock:
			dst = putUint(dst, end+"_cid", uint64(a.CID))
		}
		dst = putUint(dst, end+"_port", uint64(a.Port))
	}
	if e.PeerIno != 0 {
		dst = putUint(dst, "peer_ino", e.PeerIno)
	}
	if e.PID != 0 {
		dst = putUint(putUint(dst, "peer_pid", uint64(e.PID)), "peer_uid", uint64(e.UID))
	}
	return dst
}

// jsonInode writes what the kernel said of a descriptor's object after the call.
func (p *Printer) jsonInode(dst []byte, e *event.Event, f *event.File) []byte {
	if f.Identified() {
		dst = putUint(dst, "dev", f.Dev)
		dst = putUint(dst, "ino", f.Ino)
	}
	dst = append(key(dst, "mode"), '"')
	at := len(dst)
	dst = appendMode(dst, uint64(f.Mode))
	if i := bytes.LastIndexByte(dst[at:], '|'); i >= 0 && !f.Identified() { // the type alone is known
		dst = dst[:at+i]
	}
	dst = append(dst, '"')
	dst = append(key(dst, "open_flags"), '"')
	dst = append(appendFlags(dst, p.archOf(e), event.OpenNames, uint64(f.Flags)), '"')
	if f.Identified() {
		dst = putUint(dst, "nlink", uint64(f.Nlink))
		dst = putUint(dst, "owner", uint64(f.UID))
		dst = putUint(dst, "group", uint64(f.GID))
	}
	if f.Identified() && f.Size >= 0 {
		dst = putInt(dst, "size", f.Size)
	}
	if f.Pos >= 0 {
		dst = putInt(dst, "pos", f.Pos)
	}
	if f.Rdev != 0 {
		dst = putUint(dst, "rdev", f.Rdev)
	}
	return dst
}

func (p *Printer) jsonPaths(dst []byte, e *event.Event, spec *event.Spec) []byte {
	if len(e.Paths) == 0 {
		return dst
	}
	dst = append(key(dst, "paths"), '[')
	for i := range e.Paths {
		path := &e.Paths[i]
		name := "path"
		if e.Kind == event.Call {
			name = argName(spec, int(path.Arg))
		}
		dst = putWord(append(key(dst, ""), '{'), "arg", name)
		dst = putText(dst, "raw", path.Raw)
		if path.Abs != "" {
			dst = putText(dst, "abs", path.Abs)
		}
		if path.Real != "" {
			dst = putText(dst, "real", path.Real)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// jsonArgs writes the arguments under their names.
func (p *Printer) jsonArgs(dst []byte, e *event.Event, spec *event.Spec) []byte {
	start := len(dst)
	dst = append(key(dst, "args"), '{')
	for i := range spec.Args {
		a := spec.Argument(i, &e.Args)
		if a.Kind == event.KindNone || !e.ArgKnown(i) {
			continue
		}
		if e.Op == event.OpClone && p.archOf(e) == event.ARM64 && i >= 3 { // the other way round there
			a.Name = spec.Args[7-i].Name
		}
		dst = p.jsonArg(dst, e, &a, i)
		if spec.Args[i].When == event.AtBoth {
			dst = p.jsonBefore(dst, e, &a, i)
		}
	}
	dst = p.jsonRequest(dst, e)
	if dst[len(dst)-1] == '{' {
		return dst[:start]
	}
	return append(dst, '}')
}

// jsonArg writes argument i under its name.
func (p *Printer) jsonArg(dst []byte, e *event.Event, a *event.Arg, i int) []byte {
	v := e.Args[i]
	switch a.Kind {
	case event.KindInt:
		return putInt(dst, a.Name, intOf(v))
	case event.KindFD, event.KindDirFD, event.KindPID, event.KindID:
		return putInt(dst, a.Name, int64(int32(v)))
	case event.KindSize:
		return putUint(dst, a.Name, v)
	case event.KindOff:
		return putInt(dst, a.Name, int64(v))
	case event.KindPath:
		if path := e.PathArg(i); path != nil {
			return putText(dst, a.Name, path.Raw)
		}
		return putNull(dst, a.Name)
	case event.KindText, event.KindBuf, event.KindVec, event.KindStruct, event.KindStrings:
		if b := e.BufArg(i); b != nil {
			return p.jsonBuf(dst, e, a, i, b)
		}
		if v == 0 {
			return putNull(dst, a.Name)
		}
		dst = append(key(dst, a.Name), '"')
		return append(appendHex(dst, v), '"')
	}
	dst = append(key(dst, a.Name), '"')
	return append(p.appendArg(dst, e, a, i), '"')
}

// jsonBefore writes what an argument's memory was before the call.
func (p *Printer) jsonBefore(dst []byte, e *event.Event, a *event.Arg, i int) []byte {
	b := e.BufArg(event.PartBefore.Of(i))
	if b == nil {
		return dst
	}
	if v, ok := p.decode(e, a, i, b); ok {
		return p.jsonValue(dst, a.Name+"_before", &v)
	}
	return dst
}

func (p *Printer) jsonBuf(dst []byte, e *event.Event, a *event.Arg, i int, b *event.Buf) []byte {
	if !b.Omitted && b.Missing == 0 {
		if v, ok := p.decode(e, a, i, b); ok {
			return p.jsonValue(dst, a.Name, &v)
		}
		switch a.Kind {
		case event.KindText:
			return putText(dst, a.Name, bytes.TrimRight(p.content(b, event.MaxPath), "\x00"))
		case event.KindStrings:
			return jsonStrings(append(key(dst, a.Name), '['), p.content(b, int(b.Len)))
		}
	}
	dst = putInt(append(key(dst, a.Name), '{'), "len", b.Len)
	if !b.Omitted || b.Kept() > 0 {
		data := p.content(b, p.max)
		dst = putText(dst, "data", data)
		if int64(len(data)) < b.Len {
			dst = putTrue(dst, "cut")
		}
	}
	if b.Missing != 0 {
		dst = putInt(dst, "missing", b.Missing)
	}
	if b.Omitted {
		dst = putTrue(dst, "omitted")
	}
	if len(b.Parts) > 0 {
		dst = append(key(dst, "parts"), '[')
		dst = append(appendNumbers(dst, b.Parts), ']')
	}
	if len(b.Hashes) > 0 {
		dst = append(key(dst, "hashes"), '[')
		for i := range b.Hashes {
			dst = putWord(dst, "", digestText(&b.Hashes[i]))
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// jsonStrings writes an argument vector; bytes that are not UTF-8 become U+FFFD.
func jsonStrings(dst, b []byte) []byte {
	for len(b) > 0 {
		s, rest, _ := bytes.Cut(b, []byte{0})
		dst, b = putText(dst, "", s), rest
	}
	return append(dst, ']')
}
