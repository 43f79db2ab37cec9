// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/trace"
)

// Append writes an event as one line, with its newline.
func (p *Printer) Append(dst []byte, e *event.Event) []byte {
	if len(p.o.Hosts) > 1 && int(e.Host) < len(p.o.Hosts) {
		dst = appendName(dst, p.o.Hosts[e.Host].Host)
		dst = append(dst, ':')
	}
	dst = strconv.AppendUint(dst, uint64(e.TID), 10)
	if p.o.Verbose && e.NSTID != 0 {
		dst = append(dst, '[')
		dst = strconv.AppendUint(dst, uint64(e.NSTID), 10)
		dst = append(dst, ']')
	}
	dst = append(dst, ' ')
	dst = p.appendTime(dst, e)
	if e.Kind != event.Call {
		return append(p.appendStyledMark(dst, e), '\n')
	}
	spec := e.Spec()
	name := spec.Name
	if e.Op == event.OpUnknown || !e.Op.Known() {
		name = p.rawName(e)
	}
	dst = append(dst, p.o.Style.Strong(name)...)
	dst = append(dst, '(')
	dst = p.appendArgs(dst, e, spec)
	dst = append(dst, ") = "...)
	at := len(dst)
	if dst = p.appendResult(dst, e, spec); e.Errno != 0 {
		dst = p.restyle(dst, at, p.o.Style.Bad)
	}
	if e.Flags&(event.Interrupted|event.Untimed) == 0 {
		dst = append(dst, " <"...)
		dst = p.appendSeconds(dst, e.Exit-e.Enter)
		dst = append(dst, '>')
		if spec.Class == event.Block && e.Flags&event.Delays != 0 {
			dst = append(dst, " queued <"...)
			dst = p.appendSeconds(dst, int64(e.DelayBefore))
			dst = append(dst, '>')
		}
	}
	if dst = append(dst, '\n'); p.o.Stacks && e.Stack != nil {
		dst = p.appendStack(dst, e.Stack)
	}
	return dst
}

// appendArgs writes the arguments that the kernel looks at.
func (p *Printer) appendArgs(dst []byte, e *event.Event, spec *event.Spec) []byte {
	order, labels := cloneOrder(e.Op, p.archOf(e))
	first := true
	for n := range spec.Args {
		i := n
		if order != nil {
			i = order[n]
		}
		a := spec.Argument(i, &e.Args)
		if a.Kind == event.KindNone || labels != nil && !cloneLooksAt(e, i, order) {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		if labels != nil {
			dst = append(append(dst, labels[n]...), '=')
		}
		dst = p.appendArg(dst, e, &a, i)
	}
	return p.appendRequest(dst, e, first)
}

// rawName names a call that is not in the operation table.
func (p *Printer) rawName(e *event.Event) string {
	name := CallName(p.archOf(e), e.NR)
	if e.Flags&event.Compat != 0 {
		name = event.Name32(p.archOf(e), e.NR)
	}
	if name != "" {
		return name
	}
	return "syscall_0x" + strconv.FormatUint(uint64(e.NR), 16)
}

// restyle marks what stands from an index on.
func (p *Printer) restyle(dst []byte, from int, mark func(string) string) []byte {
	if !p.o.Style.On() {
		return dst
	}
	return append(dst[:from], mark(string(dst[from:]))...)
}

// appendStyledMark writes an event that is no call, marked by what it is.
func (p *Printer) appendStyledMark(dst []byte, e *event.Event) []byte {
	at, mark := len(dst), p.o.Style.Dim
	switch {
	case e.Kind == event.Signalled:
		mark = p.o.Style.Notable
	case e.Kind == event.LossMark, e.Kind == event.Exited && e.ExitStatus() != 0:
		mark = p.o.Style.Bad
	}
	return p.restyle(p.appendMark(dst, e), at, mark)
}

// appendMark writes an event that is no call.
func (p *Printer) appendMark(dst []byte, e *event.Event) []byte {
	switch e.Kind {
	case event.Exited:
		status := e.ExitStatus()
		if sig := status.Signal(); sig != 0 {
			dst = append(dst, "+++ killed by "...)
			dst = append(dst, event.SignalName(sig)...)
			if status.DumpedCore() {
				dst = append(dst, " (core dumped)"...)
			}
		} else {
			dst = append(dst, "+++ exited with "...)
			dst = strconv.AppendInt(dst, int64(status.Code()), 10)
		}
		return append(dst, " +++"...)
	case event.LossMark:
		loss := e.Loss()
		dst = append(dst, "--- lost "...)
		dst = strconv.AppendUint(dst, loss.Records, 10)
		dst = append(dst, " records: "...)
		dst = append(dst, trace.LossReason(loss.Reason)...)
	case event.NoteMark:
		dst = append(dst, "--- note "...)
		if len(e.Bufs) > 0 {
			dst = appendQuoted(dst, p.content(&e.Bufs[0], int(e.Bufs[0].Len)))
		}
	case event.Forked:
		if e.Fork().IsThread() {
			dst = append(dst, "--- new thread "...)
		} else {
			dst = append(dst, "--- new process "...)
		}
		dst = strconv.AppendUint(dst, uint64(e.Child), 10)
	case event.Woken:
		by := e.Wakeup()
		dst = append(dst, "--- woken by "...)
		if by.TID == 0 {
			dst = append(dst, "an interrupt"...)
		} else {
			dst = strconv.AppendUint(dst, uint64(by.TID), 10)
		}
		if by.In.Known() {
			dst = append(dst, " in "...)
			dst = append(dst, by.In.String()...)
		}
	case event.Signalled:
		dst = p.appendSignalled(dst, e)
	case event.Described:
		dst = appendDescribed(dst, e)
	case event.Started:
		dst = append(dst, "--- started in "...)
		if len(e.Paths) > 0 {
			dst = appendQuoted(dst, []byte(e.Paths[0].Abs))
		}
		dst = append(dst, ", umask "...)
		dst = appendOctal(dst, uint64(e.Umask()))
	case event.Inherited:
		dst = append(dst, "--- inherited "...)
		if len(e.Files) > 0 {
			if _, _, mapped := e.Mapping(); mapped {
				dst = append(dst, "a mapping of"...)
			} else {
				dst = strconv.AppendInt(dst, int64(e.Files[0].FD), 10)
			}
			dst = appendObject(dst, &e.Files[0])
		}
	default:
		dst = append(dst, "--- event of kind "...)
		dst = strconv.AppendUint(dst, uint64(e.Kind), 10)
	}
	return append(dst, " ---"...)
}

// appendDescribed writes where a process runs, without the dashes behind it.
func appendDescribed(dst []byte, e *event.Event) []byte {
	f := facts.Of(e)
	dst = append(dst, "--- process "...)
	dst = appendQuoted(dst, []byte(f.Exe))
	if f.Cwd != "" {
		dst = appendQuoted(append(dst, " in "...), []byte(f.Cwd))
	}
	if f.UID != nil {
		dst = strconv.AppendUint(append(dst, ", uid "...), uint64(f.UID.Effective), 10)
	}
	if place := f.Place(); place != "" {
		word, name, _ := strings.Cut(place, " ")
		dst = appendQuoted(append(append(append(dst, ", "...), word...), ' '), []byte(name))
	}
	if env, known := facts.Env(e); known {
		dst = strconv.AppendInt(append(dst, ", "...), int64(len(env)), 10)
		dst = append(dst, " variables"...)
	}
	return dst
}

// appendSignalled writes a delivered signal, without the dashes behind it.
func (p *Printer) appendSignalled(dst []byte, e *event.Event) []byte {
	sig, _ := e.Signal()
	dst = append(append(dst, "--- "...), event.SignalName(sig)...)
	if len(e.Bufs) > 0 && e.Bufs[0].Len == event.SiginfoBytes {
		dst = p.appendBuf(append(dst, ' '), e, &event.SignalInfo, 0, &e.Bufs[0])
	}
	return dst
}

// appendObject writes what a descriptor stands for, as strace -yy does: by the name that the kernel knows it
// by. The one that the program gave stands in the call that opened it.
func appendObject(dst []byte, f *event.File) []byte {
	if f == nil || f.Reached() == "" {
		return dst
	}
	dst = append(dst, '<')
	dst = appendName(dst, f.Reached())
	return append(dst, '>')
}

// appendArg writes argument i.
func (p *Printer) appendArg(dst []byte, e *event.Event, a *event.Arg, i int) []byte {
	if !e.ArgKnown(i) {
		return append(dst, '?')
	}
	v := e.Args[i]
	switch a.Kind {
	case event.KindInt:
		if e.Op == event.OpCloseRange {
			return strconv.AppendUint(dst, v&0xffffffff, 10)
		}
		dst = strconv.AppendInt(dst, intOf(v), 10)
		return appendObject(dst, e.FileArg(i))
	case event.KindSize:
		return strconv.AppendUint(dst, v, 10)
	case event.KindOff:
		return strconv.AppendInt(dst, int64(v), 10)
	case event.KindFD, event.KindDirFD:
		return appendFD(dst, e, a, i)
	case event.KindMode:
		return appendMode(dst, v&0xffffffff)
	case event.KindFlags:
		return appendFlags(dst, p.archOf(e), a.Set, bitsOf(v))
	case event.KindEnum:
		return appendEnum(dst, a.Set, bitsOf(v))
	case event.KindPID, event.KindID:
		return strconv.AppendInt(dst, int64(int32(v)), 10)
	case event.KindDev:
		return appendDevice(dst, v)
	case event.KindSignal:
		return appendSignal(dst, int32(v))
	case event.KindPath:
		if path := e.PathArg(i); path != nil {
			return appendQuoted(dst, []byte(path.Raw))
		}
	case event.KindText, event.KindBuf, event.KindVec, event.KindStruct, event.KindStrings:
		if b := p.shown(e, i); b != nil {
			return p.appendBuf(dst, e, a, i, b)
		}
		if empty := emptyMemory(e, a, v); empty != "" {
			return append(dst, empty...)
		}
	}
	if a.Kind.IsMemory() {
		return appendAddress(dst, v)
	}
	if a.Set != nil {
		return appendEnum(dst, a.Set, v)
	}
	return appendHex(dst, v)
}

// appendFD writes a descriptor as a number, with what it stands for.
func appendFD(dst []byte, e *event.Event, a *event.Arg, i int) []byte {
	fd := int32(e.Args[i])
	if fd == event.AtFDCWD && a.Kind == event.KindDirFD {
		return append(dst, "AT_FDCWD"...)
	}
	f := e.FileArg(i)
	if fd < 0 && f != nil { // a mapped file
		if f.Reached() == "" {
			return append(strconv.AppendUint(append(dst, "<inode "...), f.Ino, 10), '>')
		}
		return appendObject(dst, f)
	}
	dst = strconv.AppendInt(dst, int64(fd), 10)
	return appendObject(dst, f)
}

// emptyMemory returns the text of memory at an address of which the call used no bytes,
// "" if it may have used some.
func emptyMemory(e *event.Event, a *event.Arg, address uint64) string {
	if address == 0 {
		return ""
	}
	if e.OK() && e.Ret == 0 {
		switch {
		case a.Len == event.LenRetArray || a.Len == event.LenRet && (a.Layout != event.LayoutNone || isDirents(e.Op)):
			return "[]"
		case a.Len == event.LenRet:
			return `""`
		}
	}
	if a.Kind == event.KindBuf && a.Len == event.LenArg && e.Args[a.LenArg] == 0 {
		return `""`
	}
	return ""
}

// shown returns the memory that stands in the place of an argument: what the call
// was given, where it changed that.
func (p *Printer) shown(e *event.Event, i int) *event.Buf {
	if e.Spec().Args[i].When == event.AtBoth {
		if b := e.BufArg(event.PartBefore.Of(i)); b != nil {
			return b
		}
	}
	return e.BufArg(i)
}

// appendBuf writes the memory of an argument.
func (p *Printer) appendBuf(dst []byte, e *event.Event, a *event.Arg, i int, b *event.Buf) []byte {
	if len(b.Hashes) > 0 {
		return p.appendDigests(dst, b)
	}
	if b.Omitted && b.Kept() == 0 || b.Missing > 0 && b.Missing >= b.Len {
		dst = appendAddress(dst, e.Args[i])
		dst = append(dst, " /* "...)
		dst = strconv.AppendInt(dst, b.Len, 10)
		if b.Omitted {
			return append(dst, " bytes, not wanted */"...)
		}
		return append(dst, " bytes, not recorded */"...)
	}
	if v, ok := p.decode(e, a, i, b); ok {
		w := p.wording(e)
		if a.Layout == event.LayoutPollfd {
			w.skip = pollAsked
		}
		dst = p.appendValue(dst, &v, &w)
		if w.entries == briefEntries {
			dst = append(dst, " /* "...)
			dst = strconv.AppendInt(dst, int64(v.Len()), 10)
			dst = append(dst, " entries */"...)
		}
		return dst
	}
	switch {
	case a.Kind == event.KindStrings:
		return p.appendStrings(dst, b)
	case a.Kind == event.KindVec:
		dst = p.appendVec(dst, b)
	case a.Kind == event.KindText:
		dst = appendQuoted(dst, bytes.TrimRight(p.content(b, event.MaxPath), "\x00"))
	case e.Op == event.OpGetcwd:
		dst = appendQuoted(dst, bytes.TrimRight(p.content(b, event.MaxPath), "\x00"))
	case e.Op == event.OpReadlink || e.Op == event.OpReadlinkat:
		dst = appendQuoted(dst, p.content(b, event.MaxPath))
	default:
		dst = p.appendCut(dst, p.content(b, p.max), b.Len)
	}
	if b.Missing > 0 {
		dst = append(dst, " /* "...)
		dst = strconv.AppendInt(dst, b.Missing, 10)
		dst = append(dst, " bytes not recorded */"...)
	}
	return dst
}

// appendCut writes bytes that may be only the first of n.
func (p *Printer) appendCut(dst, b []byte, n int64) []byte {
	dst = appendQuoted(dst, b)
	if int64(len(b)) < n {
		dst = append(dst, "..."...)
	}
	return dst
}

func (p *Printer) appendVec(dst []byte, b *event.Buf) []byte {
	data, left := p.content(b, p.vecBytes(b)), b.Len
	dst = append(dst, '[')
	for i, n := range b.Parts {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		moved := max(min(n, left), 0)
		show := data[:min(int64(p.max), moved, int64(len(data)))]
		dst = append(dst, "{iov_base="...)
		dst = p.appendCut(dst, show, moved)
		dst = append(dst, ", iov_len="...)
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, '}')
		data = data[min(moved, int64(len(data))):]
		left -= moved
	}
	return append(dst, ']')
}

// vecBytes returns how many bytes of a vector have to be read to show the first
// of each element.
func (p *Printer) vecBytes(b *event.Buf) int {
	const limit = 1 << 20
	end, total := int64(0), int64(0)
	for _, n := range b.Parts {
		n = max(n, 0)
		end = total + min(n, int64(p.max))
		if n >= b.Len-total { // a foreign trace can say any length
			break
		}
		total += n
	}
	return int(min(end, b.Len, max(limit, int64(p.max))))
}

func (p *Printer) appendStrings(dst []byte, b *event.Buf) []byte {
	const limit = 64 << 10
	data := p.content(b, limit)
	cut := int64(len(data)) < b.Len
	data = bytes.TrimSuffix(data, []byte{0})
	dst = append(dst, '[')
	for i, s := range bytes.Split(data, []byte{0}) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if !p.o.Verbose && i >= 32 {
			cut = true
			break
		}
		dst = appendQuoted(dst, s)
	}
	if cut {
		dst = append(dst, ", ..."...)
	}
	return append(dst, ']')
}

// appendResult writes what a call returned.
func (p *Printer) appendResult(dst []byte, e *event.Event, spec *event.Spec) []byte {
	switch {
	case e.Flags&event.Interrupted != 0 || spec.NoReturn && e.Errno == 0:
		return append(dst, '?')
	case e.Errno != 0:
		if isRestart(e.Errno) {
			dst = append(dst, '?')
		} else {
			dst = append(dst, "-1"...)
		}
		dst = append(dst, ' ')
		dst = append(dst, event.ErrnoName(e.Errno)...)
		dst = append(dst, " ("...)
		dst = append(dst, event.ErrnoText(e.Errno)...)
		return append(dst, ')')
	}
	r := spec.Returns(&e.Args)
	switch r.Kind {
	case event.KindFD:
		dst = strconv.AppendInt(dst, e.Ret, 10)
		return appendObject(dst, e.FileArg(event.ResultArg))
	case event.KindHex:
		return appendHex(dst, uint64(e.Ret))
	case event.KindMode:
		return appendOctal(dst, uint64(e.Ret))
	case event.KindFlags:
		dst = appendHex(dst, uint64(e.Ret))
		if e.Op != event.OpFcntl {
			dst = append(dst, " ("...)
		} else if e.Ret != 0 && r.Set.Name == "seal" {
			dst = append(dst, " (seals "...)
		} else if e.Ret != 0 {
			dst = append(dst, " (flags "...)
		} else {
			return dst
		}
		return append(appendFlags(dst, p.archOf(e), r.Set, uint64(e.Ret)), ')')
	case event.KindEnum:
		dst = append(strconv.AppendInt(dst, e.Ret, 10), " ("...)
		return append(appendEnum(dst, r.Set, uint64(e.Ret)), ')')
	case event.KindSignal:
		dst = append(strconv.AppendInt(dst, e.Ret, 10), " ("...)
		return append(appendSignal(dst, int32(e.Ret)), ')')
	}
	dst = strconv.AppendInt(dst, e.Ret, 10)
	return p.appendNote(dst, e)
}

// isRestart reports whether an error number is the kernel's own sign that the
// call is to be started again after a signal.
func isRestart(e syscall.Errno) bool { return e >= 512 && e <= 516 }
