// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"cmp"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// cloneArguments are the places of clone's arguments, which have names.
var cloneArguments = map[string]int{"flags": 0, "child_stack": 1, "stack": 1, "parent_tid": 2, "parent_tidptr": 2,
	"child_tid": 3, "child_tidptr": 3, "tls": 4}

// arguments fills in a call's arguments and memory.
func (x *importer) arguments(c *format.Call, told []field, r *result) {
	spec := event.Lookup(c.Op)
	at := append(x.fields[:0], make([]*field, len(spec.Args))...)
	x.fields = at
	if c.Op == event.OpClone {
		for n := range told {
			if i, ok := cloneArguments[told[n].Name]; ok && i < len(at) {
				at[i] = &told[n]
				a := spec.Argument(i, &c.Args)
				x.number(c, spec, &a, i, at[i])
			}
		}
	} else {
		n := 0
		for i := range at {
			a := spec.Argument(i, &c.Args)
			if a.Kind == event.KindNone {
				continue
			}
			if n == len(told) {
				break
			}
			at[i] = &told[n]
			n++
			x.number(c, spec, &a, i, at[i])
		}
		for n < len(told) && told[n].Text == "0" && told[n].Kind == layout.ToldWord {
			n++ // -e raw=all shows what the kernel does not look at
		}
		if n < len(told) && (told[n].Text != "" || told[n].Kind != layout.ToldWord) {
			x.lost(c, spec, "more arguments")
		}
	}
	for i, t := range at {
		if t == nil {
			continue
		}
		if a := spec.Argument(i, &c.Args); a.Kind.IsMemory() && (t.Kind != layout.ToldWord || t.Text != "NULL") {
			x.memory(c, spec, &a, i, t, r)
		}
	}
}

// lost counts a part of a call that the tape does not get.
func (x *importer) lost(_ *format.Call, spec *event.Spec, what string) {
	x.done.LeftOut("of "+spec.Name+": "+what, 1)
}

type valueKey struct {
	set  *event.Set
	text string
}

// maxValues limits the cache of names' values.
const maxValues = 1 << 14

// value is Set.ParseValue, of which the same texts are asked again and again.
func (x *importer) value(s *event.Set, text string) (uint64, bool) {
	if v, ok := x.values[valueKey{s, text}]; ok {
		return v, true
	}
	v, ok := s.ParseValue(text)
	if ok && len(text) < 256 && len(x.values) < maxValues && text[0] > '9' {
		x.values[valueKey{s, strings.Clone(text)}] = v
	}
	return v, ok
}

// number sets an argument to the number that the line tells.
func (x *importer) number(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	if t.Kind != layout.ToldWord {
		if c.Args[i] = 1; !a.Kind.IsMemory() { // some address
			x.lost(c, spec, a.Name)
		}
		return
	}
	if t.Text == "" && t.Note == "" { // only a comment
		c.Args[i] = 1
		return
	}
	v, ok := uint64(0), false
	switch a.Kind {
	case event.KindMode:
		v, ok = layout.ParseMode(t.Text)
	case event.KindDev:
		v, ok = layout.ParseDevice(t)
	case event.KindFD, event.KindDirFD:
		const cwd = event.AtFDCWD
		switch {
		case t.Text == "AT_FDCWD":
			v, ok = ^uint64(-cwd-1), true
		case t.Text == "" && t.Note != "": // a mapped file
			v, ok = 1<<32-1, x.mapped(c, i, t)
		default:
			v, ok = event.ParseNumber(t.Text)
		}
	case event.KindSignal:
		var n int
		if n, ok = event.SignalByName(t.Text); ok {
			v = uint64(n)
		} else {
			v, ok = event.ParseNumber(t.Text)
		}
	default:
		if t.Text == "" && t.Note != "" { // restart_syscall(<... resuming …>)
			return
		}
		if v, ok = composed(t); !ok && t.Text != "" {
			v, ok = x.value(a.Set, plainNumber(cmp.Or(narrowNames[t.Text], t.Text)))
		}
	}
	if c.Args[i] = v; !ok {
		c.NotKnown(i)
		if t.Text != "?" { // as iotape writes it
			x.lost(c, spec, a.Name)
		}
	}
}

// narrowNames are names of 32-bit programs for what x86-64 has under another one.
var narrowNames = map[string]string{"F_GETLK64": "F_GETLK", "F_SETLK64": "F_SETLK", "F_SETLKW64": "F_SETLKW"}

// plainNumber takes C's suffix off a number: strace wrote 1u and 4096UL for sizes.
func plainNumber(text string) string {
	if digit(text[0]) {
		return strings.TrimRight(text, "uUlL")
	}
	return text
}

// mapped says which file was read or stored to through a mapping. The tape finds it by
// its inode, which is not said of files with a name.
func (x *importer) mapped(c *format.Call, i int, t *field) bool {
	n, ok := strings.CutPrefix(t.Note, "inode ")
	ino, isNumber := event.ParseNumber(n)
	if ok = ok && isNumber; ok {
		c.Objects = append(c.Objects, trace.Object{FD: -1, Arg: int8(i), Ino: ino})
	}
	return ok
}

// composed returns the value of what is made of parts, as in the kernel's headers.
func composed(t *field) (uint64, bool) {
	if len(t.Parts) == 0 {
		return 0, false
	}
	name, _, _ := strings.Cut(t.Text, "(")
	var v [4]uint64
	if len(t.Parts) > len(v) {
		return 0, false
	}
	for i := range t.Parts {
		var s *event.Set
		if name == "_IOC" && i == 0 {
			s = directions
		}
		var ok bool
		if v[i], ok = s.ParseValue(t.Parts[i].Text); !ok {
			return 0, false
		}
	}
	switch {
	case name == "_IOC" && len(t.Parts) == 4:
		return v[0]<<30 | v[3]<<16 | v[1]<<8 | v[2], true
	case name == "QCMD" && len(t.Parts) == 2:
		return v[0]<<8 | v[1], true
	case name == "IOPRIO_PRIO_VALUE" && len(t.Parts) == 2:
		return v[0]<<13 | v[1], true
	case name == "htons" || name == "htonl":
		return v[0], true
	}
	return 0, false
}

var directions = event.Bits("ioc", "",
	event.Item{Name: "_IOC_NONE"}, event.Item{Name: "_IOC_WRITE", Value: 1}, event.Item{Name: "_IOC_READ", Value: 2})

// memory rebuilds what an argument points to.
func (x *importer) memory(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field, r *result) {
	n, counted := length(c, a)
	if !a.Cond.Holds(&c.Args) {
		return
	}
	if t.Kind == layout.ToldWord && (t.Text == "" || digit(t.Text[0])) {
		// An address. Directory entries are only counted without -v.
		if counted && n > 0 && a.Len == event.LenRet {
			c.Bytes(i, nil, n)
		} else if n, ok := unsaid(t.Comment); ok {
			c.Bytes(i, nil, n)
		}
		return
	}
	if unmoved(c, a) || a.Len == event.LenRet && n == 0 { // a recording has nothing either
		return
	}
	if _, ok := unsaid(t.Comment); ok && t.Kind == layout.ToldText { // zeros stand for some of it
		c.Bytes(i, nil, int64(len(t.Data)))
		return
	}
	x.content(c, spec, a, i, t, r)
}

// content rebuilds what an argument points to from its text.
func (x *importer) content(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field, r *result) {
	switch {
	case a.Kind == event.KindStrings:
		x.strings(c, spec, a, i, t)
	case a.Kind == event.KindPath || a.Kind == event.KindText:
		if t.Kind != layout.ToldText {
			x.lost(c, spec, a.Name)
			return
		}
		if a.Kind == event.KindText && t.Cut {
			c.Bytes(i, t.Data, int64(len(t.Data))+1) // there is more, but not how much
			return
		}
		c.Text(i, string(t.Data), t.Cut)
	case a.Kind == event.KindVec:
		x.vector(c, spec, a, i, t)
	case a.Layout == event.LayoutMsghdr:
		x.message(c, spec, a, i, t)
	case a.Layout == event.LayoutMmsghdr:
		x.messages(c, spec, a, i, t)
	case a.Layout == event.LayoutSigsetRef:
		x.sigmask(c, spec, a, i, t)
	case t.Kind == layout.ToldText && a.Kind == event.KindBuf:
		x.buffer(c, spec, a, i, t)
	default:
		x.structure(c, spec, a, i, t, r)
	}
}

// unmoved reports whether an argument's memory holds what a call moves, and the call
// moved nothing.
func unmoved(c *format.Call, a *event.Arg) bool {
	moved := a.Len == event.LenRet || a.Len == event.LenVec || a.Len == event.LenMsg && a.Dir == event.Out
	return moved && (c.Ret < 0 || c.Interrupted)
}

// buffer rebuilds bytes, of which the text may have only the first.
func (x *importer) buffer(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	n, counted := length(c, a)
	data, total := t.Data, int64(len(t.Data))
	if c.Op == event.OpGetcwd {
		data, total = append(data, 0), total+1
	}
	switch {
	case counted && a.Len == event.LenRet:
		data, total = data[:min(int64(len(data)), n)], min(n, max(total, count(t.Cut, n)))
	case counted && t.Cut:
		total = max(n, total)
	case t.Cut:
		x.lost(c, spec, a.Name+"'s rest")
	}
	c.Bytes(i, data, total)
}

// unsaid returns how many bytes print says that a tape does not have: "12 bytes, not
// wanted", "12 bytes not recorded".
func unsaid(comment string) (n int64, ok bool) {
	number, what, ok := strings.Cut(comment, " bytes")
	if !ok || !strings.HasPrefix(strings.TrimPrefix(what, ","), " not ") {
		return 0, false
	}
	v, ok := event.ParseNumber(number)
	return int64(min(v, maxMoved)), ok
}

func count(cut bool, n int64) int64 {
	if cut {
		return n
	}
	return 0
}

// maxMoved is more than a call can move (MAX_RW_COUNT in linux/fs.h).
const maxMoved = 1 << 32

// length returns how many bytes an argument's memory has, if other arguments or the
// result say so.
func length(c *format.Call, a *event.Arg) (n int64, ok bool) {
	arg := int64(1<<63 - 1)
	if int(a.LenArg) < len(c.Args) {
		arg = int64(c.Args[a.LenArg])
	}
	if arg < 0 {
		arg = 0
	}
	switch a.Len {
	case event.LenRet:
		return max(min(c.Ret, arg, maxMoved), 0), true
	case event.LenArg:
		return min(arg, maxMoved), int(a.LenArg) < len(c.Args)
	case event.LenBits:
		return (min(arg, 1<<20) + 63) / 64 * 8, true
	case event.LenConst, event.LenPositive, event.LenInterrupted:
		return int64(a.Bytes(event.AMD64)), true
	}
	return 0, false
}

func (x *importer) strings(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	if t.Kind != layout.ToldItems {
		x.lost(c, spec, a.Name)
		return
	}
	list, cut := make([]string, 0, len(t.Parts)), t.Cut
	for j := range t.Parts {
		list = append(list, string(t.Parts[j].Data))
		cut = cut || t.Parts[j].Cut || t.Parts[j].Kind != layout.ToldText
	}
	if cut {
		x.lost(c, spec, a.Name+"'s rest")
	}
	c.Strings(i, list)
}

// was adds the number that an argument pointed to before the call.
func (x *importer) was(c *format.Call, i int, t *field) {
	if v, ok := event.ParseNumber(t.Text); ok {
		c.Bytes(event.PartBefore.Of(i), []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}, 0)
	}
}

// structure rebuilds a structure.
func (x *importer) structure(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field, r *result) {
	m := layout.Memory{
		Arch: event.AMD64, Layout: a.Layout, Op: c.Op, Arg: i, Args: &c.Args, One: a.Len == event.LenConst,
	}
	if c.Op == event.OpGetdents64 {
		m.Layout = event.LayoutDirents64
	}
	n, _ := length(c, a)
	if room, ok := x.room(a); ok {
		n = room
	}
	switch m.Layout {
	case event.LayoutPollfd:
		answered(t, r)
	case event.LayoutOffset:
		m.Result = c.Ret
	}
	b, lost, ok := m.Encode(t, min(n, 1<<20))
	if !ok {
		x.lost(c, spec, a.Name)
		return
	}
	if lost > 0 {
		x.lost(c, spec, a.Name+"'s fields")
	}
	if a.When == event.AtBoth { // what the call was given; the rest stands behind the result
		c.Bytes(event.PartBefore.Of(i), b, 0)
		x.afterwards(c, &m, a, i, len(b), r)
		return
	}
	c.Bytes(i, b, 0)
	switch {
	case m.Layout == event.LayoutU32 && len(t.Parts) == 1 && t.Parts[0].Was != nil:
		x.was(c, i, t.Parts[0].Was)
	case m.Layout == event.LayoutFDPair && t.Kind == layout.ToldItems:
		paired(c, t.Parts)
	case m.Layout == event.LayoutCloneArgs:
		for j := range t.Parts {
			if p := &t.Parts[j]; p.Name == "flags" {
				v, _ := x.value(event.CloneNames, p.Text)
				c.Share = v & trace.ForkFlags
			}
		}
	}
}

// room returns how many bytes an argument's memory has where another argument points to
// that number: of a socket's address, the smaller one of the room for it and its length.
func (x *importer) room(a *event.Arg) (n int64, ok bool) {
	if a.Len != event.LenPtr || int(a.LenArg) >= len(x.fields) {
		return 0, false
	}
	t := x.fields[a.LenArg]
	if t == nil || len(t.Parts) != 1 {
		return 0, false
	}
	v, _ := event.ParseNumber(t.Parts[0].Text)
	if before := t.Parts[0].Was; before != nil {
		was, _ := event.ParseNumber(before.Text)
		v = min(v, was)
	}
	return int64(min(v, 1<<16)), true
}

// paired adds the two ends that pipe or socketpair made.
func paired(c *format.Call, fds []layout.Told) {
	passed(c, fds)
	for j := range c.Objects { // O_RDONLY and O_WRONLY, or O_RDWR
		if o := &c.Objects[j]; c.Op == event.OpSocketpair {
			o.Mode, o.Flags = 0o140777, 2
		} else {
			o.Mode, o.Flags = 0o010600, uint32(j&1)
		}
	}
}

// afterwards adds what a call that waits made of memory of size bytes: sets of
// descriptors that are ready, and the time that was left.
func (x *importer) afterwards(c *format.Call, m *layout.Memory, a *event.Arg, i, size int, r *result) {
	if c.Ret < 0 || c.Interrupted {
		return
	}
	name := "left"
	if m.Layout == event.LayoutFDSet && i <= 3 {
		name = [...]string{"", "in", "out", "except"}[i]
	}
	for j := range r.what {
		if r.what[j].Text == name && j+1 < len(r.what) {
			if b, lost, ok := m.Encode(&r.what[j+1], int64(size)); ok && lost == 0 {
				c.Bytes(i, b, 0)
				return
			}
		}
	}
	if m.Layout == event.LayoutFDSet || c.Ret == 0 { // none, or no time
		c.Bytes(i, make([]byte, size), 0)
	}
}

// sigmask rebuilds pselect6's last argument: a pointer to a signal set, and its size.
func (x *importer) sigmask(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	head := make([]byte, 16)
	var set []byte
	for j := range t.Parts {
		switch p := &t.Parts[j]; p.Name {
		case "sigmask":
			m := layout.Memory{Layout: event.LayoutSigset}
			if b, _, ok := m.Encode(p, 8); ok {
				set, head[0] = b, 1
			} else if p.Text != "NULL" {
				x.lost(c, spec, a.Name)
			}
		case "sigsetsize":
			v, _ := event.ParseNumber(p.Text)
			head[8] = byte(v)
		}
	}
	c.Bytes(i, head, 0)
	if set != nil {
		c.Bytes(event.PartTarget.Of(i), set, 0)
	}
}

// answered adds poll's answers, which stand behind the result, to what was asked.
func answered(t *field, r *result) {
	if t.Kind != layout.ToldItems || len(r.what) == 0 {
		return
	}
	for j := range r.what[0].Parts {
		var fd, revents *field
		for k := range r.what[0].Parts[j].Parts {
			switch p := &r.what[0].Parts[j].Parts[k]; p.Name {
			case "fd":
				fd = p
			case "revents":
				revents = p
			}
		}
		for k := range t.Parts {
			if asked := t.Parts[k].Parts; fd != nil && revents != nil && len(asked) == 2 && asked[0].Text == fd.Text {
				t.Parts[k].Parts = append(asked[:2:2], *revents)
				break
			}
		}
	}
}
