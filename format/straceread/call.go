// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"errors"
	"math"
	"path"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	socketname "github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// field is an argument as the line tells it.
type field = layout.Told

// result is what stands behind the arguments.
type result struct {
	ret         int64
	interrupted bool
	note        string  // of a descriptor
	what        []field // in parentheses
	took        uint64  // ns
	timed       bool    // took is said
}

// call writes a call. resumed is when its second half stood in the trace, 0 if it is of
// one line. dumps are what -e read and -e write show of its content.
func (x *importer) call(t *thread, text string, enter, resumed uint64, dumps [][]byte) error {
	name, args, r, err := parseCall(text)
	if err != nil {
		x.done.LeftOut(notUnderstood, 1)
		return nil
	}
	called := name
	name, args = present(name, args, &r)
	op, nr, ok := lookup(name)
	if !ok {
		x.done.LeftOut("calls of "+clip(called)+", which is not known", 1)
		return nil
	}
	args = ofNumber(name, op, args)
	dumped(args, op, dumps)
	x.calls++
	x.done.Records++
	c := &format.Call{Op: op, NR: nr, PID: t.p.pid, TID: t.tid, Ret: r.ret}
	c.Interrupted = r.interrupted && !event.Lookup(op).NoReturn
	c.Enter = max(enter, t.exit)
	c.Exit = max(c.Enter+r.took, c.Enter)
	if at, ok := x.early[uint32(r.ret)]; ok && r.ret > 0 && makesThread(name) && at < c.Enter {
		c.Enter, c.Exit = max(at, t.exit), max(c.Exit, enter)
		delete(x.early, uint32(r.ret))
	}
	if !r.timed && resumed > 0 {
		c.Exit = max(c.Exit, resumed)
	}
	// The two halves of a call say when it returned only if lines have exact times.
	c.Untimed = !r.timed && (resumed == 0 || x.clock.rough)
	t.exit = c.Exit
	if resumed == 0 {
		x.clock.passed(c.Exit)
	}
	x.arguments(c, args, &r)
	if r.note != "" && r.ret >= 0 && r.ret <= math.MaxInt32 {
		// What kind of thing the descriptor is. Of files with names, that is not said.
		if o, name := object(r.note); o.Mode != 0 {
			o.FD, o.Arg = int32(r.ret), event.ResultArg
			c.Objects = append(c.Objects, o)
			c.Socket(name)
		}
	}
	if err := x.before(t, c, args); err != nil {
		return err
	}
	if err := x.opensLink(t, c, args, &r); err != nil {
		return err
	}
	t.p.fds.Position(c)
	if err := x.w.Call(c); err != nil {
		return err
	}
	return x.after(t, c, &r)
}

// ofNumber returns the arguments that a call has: if strace did not know it, all six registers are shown.
func ofNumber(name string, op event.Op, args []field) []field {
	if !strings.HasPrefix(name, "syscall_") || op == event.OpUnknown {
		return args
	}
	return args[:min(len(args), len(event.Lookup(op).Args))]
}

// clip shortens what a file says for a message.
func clip(s string) string { return s[:min(len(s), 32)] }

// parseCall takes a call apart: name(arguments) = result <duration>.
func parseCall(text string) (name string, args []field, r result, err error) {
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return "", nil, r, errNotation
	}
	text, r.took, r.timed = duration(text)
	text = withoutOutput(text)
	p := notation{s: text, i: open + 1}
	// A thread that was killed in a call: read(3,  <unfinished ...>) = ?
	if head, ok := strings.CutSuffix(strings.TrimRight(text, " "), "= ?"); ok {
		if head, ok = strings.CutSuffix(strings.TrimRight(head, " "), "<unfinished ...>)"); ok {
			p.s = head + ") = ?"
		}
	}
	if args, _, err = p.items(')'); err != nil {
		return "", nil, r, err
	}
	p.space()
	if !p.has("=") {
		return "", nil, r, p.fail("no result")
	}
	return text[:open], args, r, p.result(&r)
}

// duration takes <0.000012> off the end.
func duration(s string) (rest string, ns uint64, known bool) {
	i := strings.LastIndexByte(s, '<')
	if i <= 0 || s[len(s)-1] != '>' || s[i-1] != ' ' {
		return s, 0, false
	}
	v, ok := parseSeconds(s[i+1 : len(s)-1])
	if !ok || v < 0 {
		return s, 0, false
	}
	return s[:i-1], uint64(v), true
}

func (p *notation) result(r *result) error {
	p.space()
	rest := p.s[p.i:]
	word, more, _ := strings.Cut(rest, " ")
	switch word {
	case "?", "-1":
		name, _, _ := strings.Cut(more, " ")
		if e, ok := event.ErrnoByName(name); ok {
			r.ret = -int64(e)
			return nil
		}
		if n, ok := strings.CutPrefix(more, "(errno "); ok {
			n, _, _ = strings.Cut(n, ")")
			if v, ok := event.ParseNumber(n); ok && v > 0 && v < 4096 {
				r.ret = -int64(v)
				return nil
			}
		}
		r.ret, r.interrupted = -1, word == "?"
		if r.interrupted {
			r.ret = 0
		}
		return nil
	}
	v, err := p.word()
	if err != nil {
		return err
	}
	n, ok := event.ParseNumber(v.Text)
	if !ok {
		return p.fail("no number")
	}
	r.ret, r.note = int64(n), v.Note
	if p.space(); p.has("(") {
		// What does not read as values says nothing more than the number.
		r.what, _, err = p.items(')')
		if err != nil && !errors.Is(err, errNotation) {
			return err
		}
	}
	return nil
}

// sameNumbers is the least number from which on all architectures have the same calls (Linux 5.1).
const sameNumbers = 424

// lookup returns the operation of a call's name, and the call's number if the operation table
// does not have it. Calls that strace did not know have their numbers as names.
func lookup(name string) (op event.Op, nr uint32, ok bool) {
	if op, ok := ops[name]; ok {
		return op, 0, true
	}
	if n, ok := strings.CutPrefix(name, "syscall_"); ok {
		v, ok := event.ParseNumber(n)
		if ok && v >= sameNumbers && v < math.MaxUint32 {
			if op = event.ByNumber(event.AMD64, int(v)); op != event.OpUnknown {
				return op, 0, true
			}
		}
		return 0, uint32(v), ok && v < math.MaxUint32
	}
	nr, ok = otherNames[name]
	return 0, nr, ok
}

// ops are the operations by name; otherNames the numbers of calls that are none.
var ops, otherNames = func() (map[string]event.Op, map[string]uint32) {
	m, others := map[string]event.Op{}, map[string]uint32{}
	for i := range event.Specs() {
		if s := &event.Specs()[i]; s.Op != event.OpUnknown {
			m[s.Name] = s.Op
		}
	}
	for nr := range uint32(1 << 10) {
		if name := stracetext.CallName(event.AMD64, nr); name != "" && m[name] == 0 {
			others[name] = nr
		}
	}
	return m, others
}()

// before says what was open, and where the process was, if the line tells that for the
// first time.
func (x *importer) before(t *thread, c *format.Call, args []field) error {
	for i := range args {
		a := &args[i]
		if a.Note == "" {
			continue
		}
		if a.Text == "AT_FDCWD" || a.Text == "-100" {
			if dir := unescape(a.Note); t.p == t.p.first && strings.HasPrefix(dir, "/") {
				if err := x.startedIn(t.p, dir); err != nil {
					return err
				}
			}
			continue
		}
		fd, ok := event.ParseNumber(a.Text)
		if !ok || fd > math.MaxInt32 || len(t.p.fds) >= maxFDs || strings.HasPrefix(a.Note, "...") {
			continue
		}
		old, known := t.p.fds[int32(fd)]
		// Names change when files are renamed; where calls that open files are not in
		// the trace, another name is another file.
		if known && (t.p.opens || old.Name == a.Note) {
			continue
		}
		f := &format.OpenFile{Name: strings.Clone(a.Note), Pos: -1}
		t.p.set(int64(fd), f)
		o, name := object(a.Note)
		o.FD = int32(fd)
		if o.Mode == 0 && strings.HasPrefix(name, "/") {
			x.proof(c, i).give(f, &o)
		}
		if err := x.w.Open(t.p.pid, o, name, c.Enter); err != nil {
			return err
		}
	}
	return x.unseen(t, c)
}

// defaultUmask is what a process's umask is taken for: strace does not say it.
const defaultUmask = 0o022

// after follows what a call did to threads and descriptors.
func (x *importer) after(t *thread, c *format.Call, r *result) error {
	switch c.Op {
	case event.OpExitGroup, event.OpExit:
		t.ended = c.Op == event.OpExitGroup
		return nil
	}
	if c.Ret < 0 || c.Interrupted {
		return nil
	}
	switch c.Op {
	case event.OpChroot, event.OpPivotRoot, event.OpSetns, event.OpUnshare:
		t.p.jailed = true
	case event.OpFork, event.OpVfork, event.OpClone, event.OpClone3:
		share := c.Share
		if c.Op == event.OpClone {
			share |= c.Args[0]
		}
		if tid := uint32(c.Ret); tid > 0 && x.threads[tid] == nil {
			child, err := x.newThread(tid, t, share&trace.ShareThread != 0)
			if err != nil {
				return err
			}
			if share&trace.ShareFiles != 0 {
				child.p.fds = t.p.fds
			}
			child.p.by = nil
		} else if child := x.threads[tid]; child != nil && child.p.by != nil && tid == child.p.pid {
			if child.p.by != t.p {
				child.p.madeBy(t.p, child.p.by)
			}
			child.p.by = nil
		}
	case event.OpExecve, event.OpExecveat:
		if path, ok := execPath(c, x.fields); ok {
			t.comm = path
			return x.w.Task(&format.Task{PID: t.p.pid, TID: t.tid, PPID: t.p.parent, Comm: path}, c.Exit)
		}
	}
	x.descriptors(t.p, c, r, x.fields)
	return nil
}

// execPath returns the name that the kernel gives to a program.
func execPath(c *format.Call, args []*field) (string, bool) {
	i := 0
	if c.Op == event.OpExecveat {
		i = 1
	}
	if i >= len(args) || args[i] == nil || args[i].Kind != layout.ToldText {
		return "", false
	}
	return path.Base(string(args[i].Data)), true
}

// object returns what a descriptor stands for, from what -y says of it.
func object(note string) (o trace.Object, name string) {
	const fifo, socket, char, block = 0o010600, 0o140777, 0o020000, 0o060000
	// -yy: the kind and number of a device stand behind its name.
	if i := strings.LastIndexByte(note, '<'); i > 0 && note[len(note)-1] == '>' {
		kind, number, _ := strings.Cut(note[i+1:len(note)-1], " ")
		major, minor, _ := strings.Cut(number, ":")
		a, ok1 := event.ParseNumber(major)
		b, ok2 := event.ParseNumber(minor)
		if ok1 && ok2 && (kind == "char" || kind == "block") {
			if o.Mode = char; kind == "block" {
				o.Mode = block
			}
			o.Rdev = uint32(a<<20 | b&0xfffff)
			note = note[:i]
		}
	}
	name = unescape(note)
	name = strings.TrimSuffix(name, " (deleted)")
	kind, inside, ok := strings.Cut(name, ":[")
	switch {
	case !ok || strings.HasPrefix(name, "/"):
	case kind == "pipe":
		o.Mode = fifo
		if n, ok := event.ParseNumber(strings.TrimSuffix(inside, "]")); ok {
			o.Ino = n
		}
	case kind == "socket" || protocol(kind):
		o.Mode = socket
		if n, ok := event.ParseNumber(strings.TrimSuffix(inside, "]")); ok {
			o.Ino = n
		} else if e, ok := socketname.Parse(name); ok {
			o.Ino = e.Ino
		}
	}
	return o, name
}
