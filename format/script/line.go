// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
)

// What stands behind a call's result: memory that is not what an argument points to, by
// event.Part, with the argument's number; and descriptors that are no arguments.
var partWords = [...]string{
	event.PartWhole:   "moved",
	event.PartBefore:  "before",
	event.PartName:    "name",
	event.PartData:    "iov",
	event.PartControl: "control",
	event.PartTarget:  "target",
}

const (
	requestWord = "request" // event.RequestArg
	fdsWord     = "fds"     // event.MemoryArg
	resultWord  = "result"  // the descriptor that a call made, if its number is not the result: a slot of an io_uring
	addressWord = "address" // of memory that a mapping is known by
	fileWord    = "file"    // of an argument that is no descriptor
	numberWord  = "nr"      // the call's number, if it is not that of its name
	compatWord  = "compat"  // likewise, of a call of a 32-bit program
	stackWord   = "stack"   // the number of the call's stack
	missedWord  = "missed"  // a page that it read was not in the page cache; its value is 1
	unknownWord = "unknown" // a call that is not in the operation table; its number is the first argument
)

// appendCall writes name(arguments) = result and what stands behind it.
func (w *writer) appendCall(dst []byte, ev *event.Event) ([]byte, error) {
	spec := ev.Spec()
	if ev.Op == event.OpUnknown || !ev.Op.Known() {
		dst = append(append(dst, unknownWord...), '(')
		dst = strconv.AppendUint(dst, uint64(ev.NR), 10)
		for i, v := range ev.Args {
			dst = append(dst, ", "...)
			if !ev.ArgKnown(i) {
				dst = append(dst, unsaid)
			}
			dst = appendHex(dst, v)
		}
		dst = w.appendResult(append(dst, ')'), ev, spec)
		r := rest{dst: dst, separator: " with "}
		w.restOfNumber(&r, ev)
		w.restInMemory(&r, ev)
		return r.dst, nil
	}
	dst = append(append(dst, spec.Name...), '(')
	end := len(dst) // behind the last argument that matters
	for i := range spec.Args {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		at := len(dst)
		var err error
		if dst, err = w.appendArg(dst, ev, spec, i); err != nil {
			return dst, err
		}
		if string(dst[at:]) != nothing {
			end = len(dst)
		}
	}
	dst = w.appendResult(append(dst[:end], ')'), ev, spec)
	return w.appendRest(dst, ev, spec)
}

// appendArg writes one argument: what stands in its register, or what that points to.
func (w *writer) appendArg(dst []byte, ev *event.Event, spec *event.Spec, i int) ([]byte, error) {
	a := spec.Argument(i, &ev.Args)
	v := ev.Args[i]
	if a.Kind == event.KindNone {
		if !ev.ArgKnown(i) {
			dst = append(dst, unsaid)
		}
		return append(dst, nothing...), nil
	}
	if !a.Kind.IsMemory() {
		if !ev.ArgKnown(i) {
			dst = append(dst, unsaid)
		}
		dst = appendScalar(dst, &a, w.arch, v)
		if a.Kind == event.KindFD || a.Kind == event.KindDirFD {
			dst = w.appendNote(dst, ev.FileArg(i), false)
		}
		return dst, nil
	}
	if p := ev.PathArg(i); p != nil && a.Kind == event.KindPath {
		return stracetext.AppendQuoted(dst, []byte(p.Raw)), nil
	}
	if b := ev.BufArg(i); b != nil {
		return w.appendPointed(dst, ev, &a, i, b)
	}
	if !ev.ArgKnown(i) {
		dst = append(dst, unsaid)
	}
	if v == 0 {
		return append(dst, "NULL"...), nil
	}
	return appendHex(dst, v), nil
}

// appendPointed writes what an argument points to.
func (w *writer) appendPointed(dst []byte, ev *event.Event, a *event.Arg, i int, b *event.Buf) ([]byte, error) {
	if !ev.ArgKnown(i) && b.Omitted && len(b.Inline) == 0 && len(b.Refs) == 0 && b.Kind != event.KindVec {
		dst = append(dst, unsaid) // of a foreign trace: the address is not known either
	}
	n, ok := contentOf(ev.Spec(), &ev.Args, i, ev.Ret, ev.OK() && ev.Ret >= 0)
	if !ok || n == b.Len || len(b.Hashes) > 0 {
		return w.appendBuf(dst, ev, a, i, b)
	}
	dst, err := w.appendBuf(append(dst, exactly...), ev, a, i, b)
	return append(dst, ')'), err
}

func (w *writer) appendResult(dst []byte, ev *event.Event, spec *event.Spec) []byte {
	dst = append(dst, " = "...)
	switch {
	case ev.Flags&event.Interrupted != 0:
		return append(dst, '?')
	case ev.Errno != 0:
		dst = append(dst, "-1 "...)
		if _, ok := event.ErrnoByName(event.ErrnoName(ev.Errno)); ok {
			return append(dst, event.ErrnoName(ev.Errno)...)
		}
		return strconv.AppendInt(append(dst, 'E'), int64(ev.Errno), 10)
	}
	r := spec.Returns(&ev.Args)
	if r.Kind == event.KindHex || r.Kind == event.KindFlags {
		dst = appendHex(dst, uint64(ev.Ret))
	} else {
		dst = strconv.AppendInt(dst, ev.Ret, 10)
	}
	if f := ev.FileArg(event.ResultArg); f != nil && int64(f.FD) == ev.Ret {
		dst = w.appendNote(dst, f, true)
	}
	return dst
}

// appendRest writes what is in neither the arguments nor the result.
func (w *writer) appendRest(dst []byte, ev *event.Event, spec *event.Spec) ([]byte, error) {
	r := rest{dst: dst, separator: " with "}
	w.restOfNumber(&r, ev)
	if f := ev.FileArg(event.ResultArg); f != nil && int64(f.FD) != ev.Ret && f.FD >= 0 && ev.Errno == 0 {
		r.label(resultWord, -1)
		r.dst = w.appendNote(strconv.AppendInt(r.dst, int64(f.FD), 10), f, true)
	}
	if spec.NoCall {
		for i := range spec.Args {
			if spec.Args[i].Kind.IsMemory() {
				r.label(addressWord, i)
				r.dst = appendHex(r.dst, ev.Args[i])
			}
		}
	}
	if err := w.restOfBuffers(&r, ev, spec); err != nil {
		return r.dst, err
	}
	for i := range ev.Paths { // through an argument that is no path
		p := &ev.Paths[i]
		if p.Arg < 0 || int(p.Arg) >= len(spec.Args) {
			continue
		}
		if spec.Argument(int(p.Arg), &ev.Args).Kind != event.KindPath {
			r.label(partWords[event.PartWhole], int(p.Arg))
			r.dst = stracetext.AppendQuoted(r.dst, []byte(p.Raw))
		}
	}
	w.restInMemory(&r, ev)
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Arg < 0 || int(f.Arg) >= len(spec.Args) || !f.Known {
			continue
		}
		if a := spec.Argument(int(f.Arg), &ev.Args); a.Kind != event.KindFD && a.Kind != event.KindDirFD {
			r.label(fileWord, int(f.Arg))
			r.dst = w.appendNote(strconv.AppendInt(r.dst, int64(f.FD), 10), f, false)
		}
	}
	return r.dst, nil
}

// rest is a list of what stands behind a call, as it is written.
type rest struct {
	dst       []byte
	separator string // before the next item
}

// label begins an item. n is the number of its argument, -1 if it is of none.
func (r *rest) label(word string, n int) {
	r.dst = append(append(r.dst, r.separator...), word...)
	if n >= 0 {
		r.dst = strconv.AppendInt(r.dst, int64(n), 10)
	}
	r.dst = append(r.dst, '=')
	r.separator = ", "
}

// restOfNumber writes whether a call missed the page cache, its stack, and its number, if that is not the one that its
// name has, or is of a 32-bit program.
func (w *writer) restOfNumber(r *rest, ev *event.Event) {
	if ev.Flags&event.Missed != 0 {
		r.label(missedWord, -1)
		r.dst = append(r.dst, '1')
	}
	if ev.Stack != nil {
		r.label(stackWord, -1)
		r.dst = strconv.AppendUint(r.dst, w.stacks[ev.Stack], 10)
	}
	switch {
	case ev.Flags&event.Compat != 0:
		r.label(compatWord, -1)
	case ev.Op == event.OpUnknown || !ev.Op.Known() || ev.NR == w.number(ev):
		return
	default:
		r.label(numberWord, -1)
	}
	r.dst = strconv.AppendUint(r.dst, uint64(ev.NR), 10)
}

// number returns the number that the compiler gives to a call.
func (w *writer) number(ev *event.Event) uint32 {
	if b := ev.BufArg(event.RequestArg); b != nil && int64(len(b.Inline)) == b.Len {
		if nr, ok := requestNumber(ev.Op, b.Inline); ok {
			return nr
		}
	}
	return uint32(event.Number(w.arch, ev.Op))
}

// requestNumber returns the number of a request, of its head.
func requestNumber(op event.Op, head []byte) (nr uint32, ok bool) {
	switch {
	case len(head) < event.HeadBytes:
		return 0, false
	case op.IsAIO():
		return uint32(head[16]) | uint32(head[17])<<8, true
	}
	return uint32(head[0]), true
}

// restOfBuffers writes the memory that is not an argument's own.
func (w *writer) restOfBuffers(r *rest, ev *event.Event, spec *event.Spec) (err error) {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		part, arg := event.SplitPart(int(b.Arg))
		var a event.Arg
		switch {
		case int(b.Arg) == event.RequestArg:
			r.label(requestWord, -1)
		case arg >= len(spec.Args) || int(part) >= len(partWords):
			continue
		default:
			a = spec.Argument(arg, &ev.Args)
			if part == event.PartWhole && a.Kind.IsMemory() {
				continue
			}
			r.label(partWords[part], arg)
		}
		if r.dst, err = w.appendBuf(r.dst, ev, &a, arg, b); err != nil {
			return err
		}
	}
	return nil
}

// restInMemory writes the descriptors in the call's memory, which follow each other.
func (w *writer) restInMemory(r *rest, ev *event.Event) {
	open := false
	for i := range ev.Files {
		f := &ev.Files[i]
		switch {
		case f.Arg == event.MemoryArg:
			if open {
				r.dst = append(r.dst, ", "...)
			} else {
				r.label(fdsWord, -1)
				r.dst = append(r.dst, '[')
				open = true
			}
			r.dst = w.appendNote(strconv.AppendInt(r.dst, int64(f.FD), 10), f, true)
		case open:
			r.dst, open = append(r.dst, ']'), false
		}
	}
	if open {
		r.dst = append(r.dst, ']')
	}
}

// appendMark writes an event that is no call.
func (w *writer) appendMark(dst []byte, ev *event.Event) []byte {
	number := func(word string, v uint64) {
		dst = strconv.AppendUint(append(append(dst, word...), ' '), v, 10)
	}
	switch ev.Kind {
	case event.Exited:
		number("exit", uint64(ev.ExitStatus()))
		delete(w.threads, ev.TID)
		delete(w.cpu, ev.TID)
	case event.LossMark:
		loss := ev.Loss()
		number("lost", loss.Records)
		number(" reason", uint64(loss.Reason))
	case event.NoteMark:
		dst = append(dst, "note "...)
		if len(ev.Bufs) > 0 {
			dst = stracetext.AppendQuoted(dst, ev.Bufs[0].Inline)
		}
	case event.Forked:
		fork := ev.Fork()
		number("fork", uint64(fork.TID))
		number(" process", uint64(fork.PID))
		dst = appendHex(append(dst, " share "...), fork.Share)
		delete(w.cpu, ev.Child)
		child := w.threads[ev.TID]
		if child.pid = fork.PID; !fork.IsThread() {
			child.ppid = ev.PID
		}
		if _, ok := w.threads[ev.Child]; !ok {
			w.threads[ev.Child] = child
		}
	case event.Started:
		dst = append(dst, "start "...)
		dir := "" // not known
		if len(ev.Paths) > 0 {
			dir = ev.Paths[0].Abs
		}
		dst = stracetext.AppendQuoted(dst, []byte(dir))
		dst = strconv.AppendUint(append(dst, " umask 0"...), uint64(ev.Umask()), 8)
		if len(ev.Paths) > 1 { // it is not the machine's
			dst = stracetext.AppendQuoted(append(dst, " root "...), []byte(ev.Paths[1].Abs))
		}
		dst = appendMounts(dst, ev)
	case event.Inherited:
		dst = w.appendInherited(dst, ev)
	case event.Signalled:
		sig, action := ev.Signal()
		dst = append(append(append(dst, "signal "...), action.String()...), ' ')
		if len(ev.Bufs) > 0 {
			dst = stracetext.AppendQuoted(dst, ev.Bufs[0].Inline)
		}
		dst = append(append(dst, " # "...), event.SignalName(sig)...)
	case event.Described:
		for part, word := range [...]string{"process ", " env ", " args "} {
			if b := ev.BufArg(part); b != nil {
				dst = stracetext.AppendQuoted(append(dst, word...), b.Inline)
			}
		}
	case event.Woken:
		by := ev.Wakeup()
		number("woken", uint64(by.TID))
		number(" process", uint64(by.PID))
		if by.In.Known() {
			dst = append(append(dst, " in "...), by.In.String()...)
		}
	}
	return dst
}

func (w *writer) appendInherited(dst []byte, ev *event.Event) []byte {
	dst = append(dst, "inherit"...)
	for i := range ev.Files {
		f := &ev.Files[i]
		dst = strconv.AppendInt(append(dst, ' '), int64(f.FD), 10)
		dst = w.appendNote(dst, f, true)
	}
	if ev.OwnsFile() {
		dst = append(dst, " own"...)
	}
	if from, to, mapped := ev.Mapping(); mapped {
		dst = appendHex(append(dst, " from="...), from)
		dst = appendHex(append(dst, " to="...), to)
	}
	if n := ev.OpenedOver(); n != 0 {
		dst = strconv.AppendUint(append(dst, " over="...), uint64(n), 10)
	}
	if real := ev.Files[0].Real; real != "" {
		dst = stracetext.AppendQuoted(append(dst, " real="...), []byte(real))
	}
	return dst
}

// appendMounts appends what the event of a process at the start says of mounts.
func appendMounts(dst []byte, ev *event.Event) []byte {
	if ev.Mounts() == nil {
		return dst
	}
	dst = stracetext.AppendQuoted(append(dst, " mounts "...), ev.Bufs[0].Inline)
	for i := range ev.Paths {
		p := &ev.Paths[i]
		for _, name := range [...]string{p.Raw, p.Abs, p.Real} {
			dst = stracetext.AppendQuoted(append(dst, ' '), []byte(name))
		}
	}
	return dst
}
