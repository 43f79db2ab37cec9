// SPDX-License-Identifier: Apache-2.0

package sysdig

import (
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxThreads = 1 << 16
	maxFDs     = 1 << 12 // of a process
	maxHeld    = 64 << 20
)

// What is left out, by the names that a user sees.
const (
	crowd     = "calls of threads beyond the first 65,536"
	notCalls  = "events that are no system calls of the operation table: "
	bareCalls = "returns without fields, of calls whose entry is not in the text"
)

type importer struct {
	w         *format.Writer
	im        *format.Import
	threads   map[uint32]*thread
	processes map[uint32]*process
	last, day uint64 // time of the line before, and what the days before it add
	held      int    // bytes of calls that have not returned
	followed  format.Followed
	threaded  bool
}

type thread struct {
	comm  string
	begun *line // a call that has not returned
}

// process is what the descriptors of a process stand for.
type process struct{ files map[int32]string }

// names are calls that sysdig calls otherwise.
var names = map[string]string{"pread": "pread64", "pwrite": "pwrite64", "fstat64": "fstat", "stat64": "stat",
	"lstat64": "lstat", "llseek": "lseek", "getdents64": "getdents64", "mmap2": "mmap", "procexit": "", "switch": ""}

func (x *importer) line(l *line) error {
	x.clock(l)
	t := x.threads[l.tid]
	if t == nil {
		if len(x.threads) >= maxThreads {
			x.im.LeftOut(crowd, 1)
			return nil
		}
		t = &thread{}
		x.threads[l.tid] = t
		if l.pid != l.tid {
			if err := x.w.Thread(l.pid, l.tid, l.time); err != nil {
				return err
			}
		}
	}
	if l.comm != "" && l.comm != "<NA>" && l.comm != t.comm {
		t.comm = strings.Clone(l.comm)
		if err := x.w.Task(&format.Task{PID: l.pid, TID: l.tid, Comm: t.comm}, l.time); err != nil {
			return err
		}
	}
	name := l.name
	if other, ok := names[name]; ok {
		name = other
	}
	op := event.ByName(name)
	if op == event.OpUnknown {
		x.im.LeftOut(notCalls+l.name, 1)
		return nil
	}
	if l.entry {
		if t.begun != nil {
			if err := x.unfinished(t); err != nil {
				return err
			}
		}
		if size := len(l.fields["data"]) + 256; x.held+size <= maxHeld {
			first := *l
			t.begun = &first
			x.held += size
		}
		return nil
	}
	c := &format.Call{Op: op, PID: l.pid, TID: l.tid, Enter: l.time, Exit: l.time, Untimed: true}
	all := l.fields
	if b := t.begun; b != nil && b.name == l.name {
		all = maps.Clone(b.fields)
		maps.Copy(all, l.fields)
		c.Enter, c.Untimed = b.time, false
		x.forget(t)
	} else if len(all) == 0 {
		x.im.LeftOut(bareCalls, 1)
		return nil
	}
	return x.call(c, all)
}

// clock goes on past midnight.
func (x *importer) clock(l *line) {
	const day = 24 * 3600e9
	if l.day {
		if l.time+day/2 < x.last {
			x.day += day
		}
		x.last = l.time
		l.time += x.day
	}
}

func (x *importer) forget(t *thread) {
	x.held -= len(t.begun.fields["data"]) + 256
	t.begun = nil
}

func (x *importer) unfinished(t *thread) error {
	b := t.begun
	x.forget(t)
	name := b.name
	if other, ok := names[name]; ok {
		name = other
	}
	c := &format.Call{Op: event.ByName(name), PID: b.pid, TID: b.tid, Enter: b.time, Exit: b.time, Interrupted: true}
	return x.call(c, b.fields)
}

// call writes a call with the fields of its entry and its return.
func (x *importer) call(c *format.Call, f map[string]string) error {
	x.im.Records++
	spec := event.Lookup(c.Op)
	x.result(c, spec, f)
	paths := 0
	for i := range spec.Args {
		a := &spec.Args[i]
		switch a.Kind {
		case event.KindFD:
			if err := x.descriptor(c, spec, f, i); err != nil {
				return err
			}
		case event.KindDirFD: // the names that sysdig prints are completed
			cwd := int64(event.AtFDCWD)
			c.Args[i] = uint64(cwd)
		case event.KindPath:
			if s, ok := path(f, paths); ok {
				c.Text(i, s, false)
			}
			paths++
		default:
			scalar(c, a, i, f)
		}
	}
	c.Moved(spec)
	x.opened(c, spec, f)
	x.follow(c, f)
	return x.w.Call(c)
}

// follow adds positions to a call. Where the trace says threads and not their processes, there are none once a thread
// has been made: others may move them.
func (x *importer) follow(c *format.Call, f map[string]string) {
	if c.PID == c.TID && strings.Contains(f["flags"], "CLONE_THREAD") {
		x.threaded = true
	}
	if x.threaded {
		return
	}
	share := uint64(0)
	if strings.Contains(f["flags"], "CLONE_FILES") {
		share = trace.ShareFiles
	}
	if maker, _, ok := number(f["ptid"], 10); ok && c.Ret == 0 && !c.Interrupted {
		x.followed.Forked(uint32(maker), c.PID, share)
	}
	c.Share |= share
	x.followed.Call(c)
}

// path returns the nth name of a call.
func path(f map[string]string, nth int) (string, bool) {
	list := [...][]string{{"name", "path", "oldpath", "target", "exe", "filename"}, {"newpath", "linkpath"}}
	if nth >= len(list) {
		return "", false
	}
	for _, k := range list[nth] {
		s, ok := f[k]
		if ok && s != "" && s != "<NA>" {
			if given, full, both := strings.Cut(s, "("); both && strings.HasSuffix(full, ")") && given != "" {
				s = strings.TrimSuffix(full, ")") // a(/home/a)
			}
			return s, true
		}
	}
	return "", false
}

// result takes what the call returned.
func (x *importer) result(c *format.Call, spec *event.Spec, f map[string]string) {
	said := false
	for _, k := range []string{"res", "fd"} {
		if k == "fd" && (spec.Result != event.KindFD || c.Interrupted) {
			break
		}
		v, inside, ok := number(f[k], 10)
		if !ok {
			continue
		}
		if e, is := event.ErrnoByName(inside); is && v < 0 {
			v = -int64(e)
		}
		c.Ret, said = v, true
		break
	}
	if !said && !spec.NoReturn {
		c.Interrupted = true
	}
}

// descriptor takes what call argument i is about.
func (x *importer) descriptor(c *format.Call, spec *event.Spec, f map[string]string, i int) error {
	name := "fd"
	if other := spec.Args[i].Name; f[other] != "" {
		name = other
	}
	v, inside, ok := number(f[name], 10)
	if !ok || spec.Result == event.KindFD && name == "fd" && f["res"] == "" && c.Op != event.OpAccept {
		c.NotKnown(i)
		return nil
	}
	fd := int32(v)
	c.Args[i] = uint64(int64(fd))
	known, typed := file(inside)
	p := x.process(c.PID)
	if known == "" || fd < 0 || c.Ret < 0 || p.files[fd] == known || len(p.files) >= maxFDs {
		if c.Op == event.OpClose && c.Ret == 0 && !c.Interrupted {
			delete(p.files, fd)
		}
		return nil
	}
	if p.files[fd] = strings.Clone(known); c.Op == event.OpClose {
		delete(p.files, fd)
	}
	if !strings.HasPrefix(known, "/") {
		known = socketName(known, typed)
	}
	return x.w.Open(c.PID, trace.Object{FD: fd, Mode: types[typed]}, known, c.Enter)
}

// types are the kinds of descriptors that sysdig prints, as the kernel's file types.
var types = map[string]uint32{"f": 0o100000, "d": 0o040000, "p": 0o010000, "4t": 0o140000, "6t": 0o140000,
	"4u": 0o140000, "6u": 0o140000, "u": 0o140000}

// socketName names what has no path.
func socketName(name, typed string) string {
	switch typed {
	case "4t", "6t":
		return "TCP:[" + name + "]"
	case "4u", "6u":
		return "UDP:[" + name + "]"
	case "u":
		return "UNIX:[" + name + "]"
	}
	return name
}

func (x *importer) process(pid uint32) *process {
	p := x.processes[pid]
	if p == nil {
		p = &process{files: map[int32]string{}}
		if len(x.processes) < maxThreads {
			x.processes[pid] = p
		}
	}
	return p
}

// opened notes the descriptor that a call made.
func (x *importer) opened(c *format.Call, spec *event.Spec, f map[string]string) {
	if spec.Result != event.KindFD || c.Ret < 0 || c.Interrupted {
		return
	}
	p := x.process(c.PID)
	_, inside, _ := number(f["fd"], 10)
	name, typed := file(inside)
	if name == "" || len(p.files) >= maxFDs {
		return
	}
	p.files[int32(c.Ret)] = strings.Clone(name)
	if mode := types[typed]; mode != 0 && !strings.HasPrefix(name, "/") {
		c.Objects = append(c.Objects, trace.Object{FD: int32(c.Ret), Arg: event.ResultArg, Mode: mode})
		c.Socket(socketName(name, typed))
	}
}

// scalar takes an argument that is a number or a set of names.
func scalar(c *format.Call, a *event.Arg, i int, f map[string]string) {
	s, base := f[a.Name], 10
	switch {
	case a.Kind.IsMemory():
		return
	case a.Kind == event.KindSize && f["size"] != "":
		s = f["size"]
	case a.Kind == event.KindOff && f["pos"] != "":
		s = f["pos"]
	case a.Kind == event.KindMode:
		s, base = f["mode"], 8
	}
	v, inside, ok := number(s, base)
	switch {
	case !ok:
		c.NotKnown(i)
		return
	case a.Set != nil && inside != "": // sysdig has numbers of its own for them
		if n, ok := a.Set.ParseValue(inside); ok {
			c.Args[i] = n
		} else {
			c.NotKnown(i)
		}
		return
	case a.Set != nil && v != 0:
		c.NotKnown(i)
		return
	}
	c.Args[i] = uint64(v)
}

// finish writes the calls that did not return.
func (x *importer) finish() error {
	for _, tid := range slices.Sorted(maps.Keys(x.threads)) {
		if t := x.threads[tid]; t.begun != nil {
			if err := x.unfinished(t); err != nil {
				return err
			}
		}
	}
	return nil
}
