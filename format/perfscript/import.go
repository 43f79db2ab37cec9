// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/babeltrace"
)

// maxThreads limits what a hostile file can make the importer hold.
const maxThreads = 1 << 16

// What is left out, by the names that a user sees.
const (
	noEntry = "returns of calls that began before the trace, or whose entry is not in it"
	crowd   = "calls of threads beyond the first 65,536"
	names   = "names of files, of which the trace has only the address"
)

type importer struct {
	w       *format.Writer
	im      *format.Import
	threads map[uint32]*thread
}

type thread struct {
	comm  string
	begun *format.Call // a call that has not returned
	of    string       // its name, "" if it is known by number
	nr    uint32
}

// event of another kind: NAME:
var otherEvent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\s([a-z][a-z0-9_-]{0,40}:[a-z0-9_-]{1,60}):`)
})

// other counts a line that is not of a system call.
func (x *importer) other(text string) {
	if m := otherEvent().FindStringSubmatch(text); m != nil {
		x.im.LeftOut("events "+m[1], 1)
		return
	}
	x.im.LeftOut(format.BadLines, 1)
}

func (x *importer) line(l *line) error {
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
	if l.comm != "" && l.comm != t.comm {
		t.comm = strings.Clone(l.comm)
		if err := x.w.Task(&format.Task{PID: l.pid, TID: l.tid, Comm: t.comm}, l.time); err != nil {
			return err
		}
	}
	if l.entry {
		return x.entry(t, l)
	}
	if t.begun == nil || t.of != l.name || t.nr != l.nr {
		x.im.LeftOut(noEntry, 1)
		return nil
	}
	c := t.begun
	t.begun = nil
	c.Exit = l.time
	ret, ok := result(l.rest)
	c.Ret, c.Interrupted = ret, !ok
	return x.write(c)
}

// entry begins a call. One that the thread did not return from did not end.
func (x *importer) entry(t *thread, l *line) error {
	if t.begun != nil {
		if err := x.unfinished(t.begun); err != nil {
			return err
		}
		t.begun = nil
	}
	c := &format.Call{PID: l.pid, TID: l.tid, Enter: l.time}
	if l.name == "" {
		// perf script does not say the machine: numbers are those of x86-64.
		if c.Op = event.ByNumber(event.AMD64, int(l.nr)); c.Op == event.OpUnknown {
			c.NR = l.nr
		}
		var n int
		if c.Args, n = rawArguments(l.rest); c.Op != event.OpUnknown {
			x.notKnown(c, func(i int) bool { return i < n })
		}
	} else if !x.named(c, l) {
		return nil
	}
	t.begun, t.of, t.nr = c, strings.Clone(l.name), l.nr
	return nil
}

// notKnown marks the arguments that are numbers, and which the trace does not say.
func (x *importer) notKnown(c *format.Call, said func(i int) bool) {
	spec := event.Lookup(c.Op)
	for i := range spec.Args {
		switch k := spec.Args[i].Kind; {
		case k == event.KindPath && c.Args[i] != 0:
			x.im.LeftOut(names, 1)
		case !k.IsMemory() && !said(i):
			c.NotKnown(i)
		}
	}
}

// named takes the arguments of syscalls:sys_enter_NAME, which are NAME: 0xVALUE. It reports false for a
// call that is not known.
func (x *importer) named(c *format.Call, l *line) bool {
	name := strings.TrimPrefix(l.name, "new") // newstat and the like are called stat
	if name != "stat" && name != "lstat" && name != "fstat" && name != "uname" {
		name = l.name
	}
	op, nr, _, ok := babeltrace.Argument(name, "")
	if !ok {
		x.im.LeftOut("calls of "+l.name+", which is not known", 1)
		return false
	}
	if c.Op = op; op == event.OpUnknown {
		c.NR = nr
	}
	said := 0
	for n, part := range strings.Split(l.rest, ",") {
		key, value, _ := strings.Cut(part, ":")
		_, _, i, _ := babeltrace.Argument(name, strings.TrimSpace(key))
		v, ok := event.ParseNumber(strings.TrimSpace(value))
		if i < 0 { // the kernel's name of it is another one: they stand in their order
			i = n
		}
		if ok && i < len(c.Args) {
			c.Args[i] = v
			said |= 1 << i
		}
	}
	x.notKnown(c, func(i int) bool { return said&(1<<i) != 0 })
	return true
}

func (x *importer) unfinished(c *format.Call) error {
	c.Interrupted, c.Exit = true, c.Enter
	return x.write(c)
}

func (x *importer) write(c *format.Call) error {
	x.im.Records++
	spec := event.Lookup(c.Op)
	for i := range spec.Args { // an int, which the kernel shows without its sign
		if k := spec.Args[i].Kind; k == event.KindFD || k == event.KindDirFD {
			c.Args[i] = uint64(int64(int32(c.Args[i])))
		}
	}
	c.Moved(spec)
	return x.w.Call(c)
}

// finish writes the calls that did not return.
func (x *importer) finish() error {
	var left []uint32
	for tid, t := range x.threads {
		if t.begun != nil {
			left = append(left, tid)
		}
	}
	slices.Sort(left)
	for _, tid := range left {
		if err := x.unfinished(x.threads[tid].begun); err != nil {
			return err
		}
	}
	return nil
}
