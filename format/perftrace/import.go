// SPDX-License-Identifier: Apache-2.0

package perftrace

import (
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/babeltrace"
	"github.com/iotape/iotape/trace"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxThreads = 1 << 16
	maxFDs     = 1 << 12  // of a thread
	maxHeld    = 64 << 20 // bytes of calls that have not returned
)

// What is left out, by the names that a user sees.
const (
	halves = "calls of which the text has one half"
	words  = "values of arguments that are not understood"
	crowd  = "threads beyond the first 65,536: what they had open is not known"
)

type importer struct {
	w       *format.Writer
	im      *format.Import
	threads map[uint32]*thread
	held    int    // bytes of lines of calls that have not returned
	now     uint64 // the end of the last call, ns
}

// mapAnonymous is MAP_ANONYMOUS (asm-generic/mman-common.h).
const mapAnonymous = 0x20

// thread is a thread, which stands for a process: the text does not say which threads share one.
type thread struct {
	comm  string
	begun *line // a call that has not returned
	fds   map[int32]bool
}

// lost says that events were lost behind the last line.
func (x *importer) lost(n uint64) error {
	return x.w.Record(&trace.Record{Type: trace.RecLoss, Exit: x.now, Count: n, Reason: trace.LossRing})
}

func (x *importer) line(l *line) error {
	x.now = max(x.now, l.start+l.took)
	if l.tid == 0 {
		l.tid = 1 // perf leaves it out where there is one thread
	}
	t := x.threads[l.tid]
	if t == nil {
		t = &thread{fds: map[int32]bool{}}
		if len(x.threads) < maxThreads {
			x.threads[l.tid] = t
		} else {
			x.im.LeftOut(crowd, 1)
		}
	}
	if l.comm != "" && l.comm != t.comm {
		t.comm = l.comm
		if err := x.w.Task(&format.Task{PID: l.tid, TID: l.tid, Comm: l.comm}, l.start); err != nil {
			return err
		}
	}
	switch {
	case l.continued && (t.begun == nil || t.begun.name != l.name):
		if len(l.args) == 0 {
			x.im.LeftOut(halves, 1)
			return nil
		}
	case l.continued:
		l.args, l.start = t.begun.args, t.begun.start
		x.held -= t.begun.size
		t.begun = nil
	case l.result == "":
		if t.begun != nil {
			x.im.LeftOut(halves, 1)
			x.held -= t.begun.size
			t.begun = nil
		}
		if x.held+l.size > maxHeld {
			x.im.LeftOut(halves, 1)
			return nil
		}
		first := *l
		t.begun = &first
		x.held += l.size
		return nil
	}
	return x.call(t, l)
}

// call writes a call.
func (x *importer) call(t *thread, l *line) error {
	op, nr, _, ok := babeltrace.Argument(l.name, "")
	if !ok {
		x.im.LeftOut("calls of "+l.name+", which is not known", 1)
		return nil
	}
	x.im.Records++
	spec := event.Lookup(op)
	c := &format.Call{Op: op, PID: l.tid, TID: l.tid, Enter: l.start, Exit: l.start + l.took, Untimed: !l.timed}
	if op == event.OpUnknown {
		c.NR = nr
	}
	c.Ret, c.Interrupted = result(l.result)
	for i := range l.args {
		a := &l.args[i]
		_, _, n, _ := babeltrace.Argument(l.name, a.name)
		if n < 0 || n >= len(c.Args) || n >= len(spec.Args) {
			continue
		}
		x.argument(c, &spec.Args[n], n, a)
		if err := x.unseen(t, c, spec, n, a); err != nil {
			return err
		}
	}
	if c.Op == event.OpMmap && c.Args[3]&mapAnonymous != 0 {
		c.Args[4] = math.MaxUint64 // no file
	}
	c.Moved(spec)
	switch {
	case op == event.OpClose:
		delete(t.fds, int32(c.Args[0]))
	case c.Ret >= 0 && spec.Result == event.KindFD && len(t.fds) < maxFDs:
		t.fds[int32(c.Ret)] = true
	}
	return x.w.Call(c)
}

// unseen says that a descriptor was open before the trace: perf names its file.
func (x *importer) unseen(t *thread, c *format.Call, spec *event.Spec, n int, a *arg) error {
	fd := int32(c.Args[n])
	kind := spec.Args[n].Kind
	if kind != event.KindFD && kind != event.KindDirFD || !strings.HasPrefix(a.note, "/") || fd < 0 || t.fds[fd] ||
		len(t.fds) >= maxFDs || c.Ret < 0 {
		return nil
	}
	t.fds[fd] = true
	return x.w.Open(c.PID, trace.Object{FD: fd}, a.note, c.Enter)
}

// argument takes what the text says of an argument.
func (x *importer) argument(c *format.Call, spec *event.Arg, n int, a *arg) {
	switch {
	case a.text && (spec.Kind == event.KindPath || spec.Kind == event.KindText):
		c.Text(n, a.value, false)
	case a.text || a.value == "": // content, which is escaped and cut off; a structure
	case a.value == "CWD":
		at := int64(event.AtFDCWD)
		c.Args[n] = uint64(at)
	default:
		v, ok := number(spec, a.value)
		if !ok {
			x.im.LeftOut(words, 1)
			c.Unknown |= 1 << n
			return
		}
		c.Args[n] = v
	}
}

// number reads a value of an argument: a number, or names without their prefix (RDONLY|CLOEXEC).
func number(spec *event.Arg, s string) (v uint64, ok bool) {
	for part := range strings.SplitSeq(s, "|") {
		n, found := event.ParseNumber(part)
		if !found {
			n, found = permissions[part]
		}
		if !found {
			n, found = named(spec.Set, part)
		}
		if !found {
			return v, false
		}
		v |= n
	}
	return v, true
}

// named looks a name up in a set, whose names have a prefix.
func named(set *event.Set, name string) (uint64, bool) {
	if set == nil || name == "" {
		return 0, false
	}
	for i := range set.Items {
		if it := &set.Items[i]; it.Name == name || strings.HasSuffix(it.Name, "_"+name) ||
			it.Name == name+"_OK" { // access
			return it.Value, true
		}
	}
	return 0, false
}

// permissions are the names of modes (sys/stat.h, linux/stat.h) without S_.
var permissions = map[string]uint64{
	"IRUSR": 0o400, "IWUSR": 0o200, "IXUSR": 0o100, "IRWXU": 0o700, "IRGRP": 0o40, "IWGRP": 0o20, "IXGRP": 0o10,
	"IRWXG": 0o70, "IROTH": 4, "IWOTH": 2, "IXOTH": 1, "IRWXO": 7, "IRUGO": 0o444, "IWUGO": 0o222, "IXUGO": 0o111,
	"IRWXUGO": 0o777, "IALLUGO": 0o7777, "ISUID": 0o4000, "ISGID": 0o2000, "ISVTX": 0o1000,
}

// result reads what a call returned.
func result(s string) (ret int64, interrupted bool) {
	word, rest, _ := strings.Cut(s, " ")
	if word == "-1" {
		name, _, _ := strings.Cut(rest, " ")
		if e, ok := event.ErrnoByName(name); ok {
			return -int64(e), false
		}
		return -1, false
	}
	word, _, _ = strings.Cut(word, "<")
	if v, ok := event.ParseNumber(word); ok {
		return int64(v), false
	}
	v, err := strconv.ParseInt(word, 10, 64)
	return v, err != nil || v < -math.MaxInt32
}
