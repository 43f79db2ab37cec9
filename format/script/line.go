package script

import (
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
)

// What stands behind a call's result: memory that is not what an argument points to, by
// event.Part, with the argument's number; and descriptors that are no arguments.
var partWords = [...]string{event.PartWhole: "moved", event.PartBefore: "before", event.PartName: "name", event.PartData: "iov", event.PartControl: "control", event.PartTarget: "target"}

const (
	requestWord = "request" // event.RequestArg
	fdsWord     = "fds"     // event.MemoryArg
	resultWord  = "result"  // the descriptor that a call made, if its number is not the result: a slot of an io_uring
	addressWord = "address" // of memory that a mapping is known by
	fileWord    = "file"    // of an argument that is no descriptor
	unknownWord = "unknown" // a call that is not in the operation table; its number is the first argument
)

// appendCall writes name(arguments) = result and what stands behind it.
func (w *writer) appendCall(dst []byte, ev *event.Event) ([]byte, error) {
	spec := ev.Spec()
	if ev.Op == event.OpUnknown || !ev.Op.Known() {
		dst = append(append(dst, unknownWord...), '(')
		dst = strconv.AppendUint(dst, uint64(ev.NR), 10)
		for _, v := range ev.Args {
			dst = appendHex(append(dst, ", "...), v)
		}
		return w.appendResult(append(dst, ')'), ev, spec), nil
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
		return append(dst, nothing...), nil
	}
	if !a.Kind.IsMemory() {
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
		return w.appendBuf(dst, ev, &a, i, b)
	}
	if v == 0 {
		return append(dst, "NULL"...), nil
	}
	return appendHex(dst, v), nil
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
	separator := " with "
	label := func(word string, n int) {
		dst = append(append(dst, separator...), word...)
		if n >= 0 {
			dst = strconv.AppendInt(dst, int64(n), 10)
		}
		dst = append(dst, '=')
		separator = ", "
	}
	if f := ev.FileArg(event.ResultArg); f != nil && int64(f.FD) != ev.Ret && ev.Errno == 0 {
		label(resultWord, -1)
		dst = w.appendNote(strconv.AppendInt(dst, int64(f.FD), 10), f, true)
	}
	if spec.NoCall {
		for i := range spec.Args {
			if spec.Args[i].Kind.IsMemory() {
				label(addressWord, i)
				dst = appendHex(dst, ev.Args[i])
			}
		}
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		part, arg := event.SplitPart(int(b.Arg))
		var a event.Arg
		switch {
		case int(b.Arg) == event.RequestArg:
			label(requestWord, -1)
		case arg >= len(spec.Args) || int(part) >= len(partWords):
			continue
		default:
			a = spec.Argument(arg, &ev.Args)
			if part == event.PartWhole && a.Kind.IsMemory() {
				continue
			}
			label(partWords[part], arg)
		}
		var err error
		if dst, err = w.appendBuf(dst, ev, &a, arg, b); err != nil {
			return dst, err
		}
	}
	for i := range ev.Paths { // through an argument that is no path
		if p := &ev.Paths[i]; p.Arg >= 0 && int(p.Arg) < len(spec.Args) && spec.Argument(int(p.Arg), &ev.Args).Kind != event.KindPath {
			label(partWords[event.PartWhole], int(p.Arg))
			dst = stracetext.AppendQuoted(dst, []byte(p.Raw))
		}
	}
	inMemory := false
	for i := range ev.Files {
		f := &ev.Files[i]
		switch {
		case f.Arg == event.MemoryArg:
			if inMemory {
				dst = append(dst, ", "...)
			} else {
				label(fdsWord, -1)
				dst = append(dst, '[')
				inMemory = true
			}
			dst = strconv.AppendInt(dst, int64(f.FD), 10)
			dst = w.appendNote(dst, f, true)
		case inMemory:
			dst, inMemory = append(dst, ']'), false
		}
	}
	if inMemory {
		dst = append(dst, ']')
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Arg < 0 || int(f.Arg) >= len(spec.Args) || !f.Known {
			continue
		}
		if a := spec.Argument(int(f.Arg), &ev.Args); a.Kind != event.KindFD && a.Kind != event.KindDirFD {
			label(fileWord, int(f.Arg))
			dst = strconv.AppendInt(dst, int64(f.FD), 10)
			dst = w.appendNote(dst, f, false)
		}
	}
	return dst, nil
}

// appendMark writes an event that is no call.
func (w *writer) appendMark(dst []byte, ev *event.Event) []byte {
	number := func(word string, v uint64) {
		dst = strconv.AppendUint(append(append(dst, word...), ' '), v, 10)
	}
	switch ev.Kind {
	case event.Exited:
		number("exit", uint64(ev.Ret))
		delete(w.threads, ev.TID)
	case event.LossMark:
		number("lost", uint64(ev.Ret))
		number(" reason", ev.Args[0])
	case event.NoteMark:
		dst = append(dst, "note "...)
		if len(ev.Bufs) > 0 {
			dst = stracetext.AppendQuoted(dst, ev.Bufs[0].Inline)
		}
	case event.Forked:
		number("fork", uint64(ev.Child))
		number(" process", uint64(ev.Ret))
		dst = appendHex(append(dst, " share "...), ev.Args[0])
		child := w.threads[ev.TID]
		if child.pid = uint32(ev.Ret); ev.Args[0]&event.ShareThread == 0 {
			child.ppid = ev.PID
		}
		if _, ok := w.threads[ev.Child]; !ok {
			w.threads[ev.Child] = child
		}
	case event.Started:
		dst = append(dst, "start "...)
		if len(ev.Paths) > 0 {
			dst = stracetext.AppendQuoted(dst, []byte(ev.Paths[0].Abs))
		}
		dst = strconv.AppendUint(append(dst, " umask 0"...), ev.Args[0], 8)
	case event.Inherited:
		dst = w.appendInherited(dst, ev)
	case event.Woken:
		number("woken", uint64(ev.Child))
		number(" process", uint64(ev.Ret))
		if op := event.Op(ev.Args[0]); op.Known() {
			dst = append(append(dst, " in "...), op.String()...)
		}
	}
	return dst
}

func (w *writer) appendInherited(dst []byte, ev *event.Event) []byte {
	if len(ev.Files) > 0 && ev.Files[0].FD == event.MappedFD {
		// Only a part of a recording has such, and no stream can say it.
		return w.appendNote(append(dst, "# mapped: "...), &ev.Files[0], true)
	}
	dst = append(dst, "inherit"...)
	for i := range ev.Files {
		f := &ev.Files[i]
		dst = strconv.AppendInt(append(dst, ' '), int64(f.FD), 10)
		dst = w.appendNote(dst, f, true)
	}
	if ev.Args[0]&event.OwnFile != 0 {
		dst = append(dst, " own"...)
	}
	return dst
}
