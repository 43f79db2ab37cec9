// SPDX-License-Identifier: Apache-2.0

package blkparse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "blkparse text",
	ID:       "blkparse",
	Suffixes: []string{".blkparse"},
	About:    "requests to block devices, as blktrace records and blkparse prints them",
	Match:    match,
	Read:     func(ctx context.Context, in *os.File, im *format.Import) error { return Import(ctx, in, im) },
}

// match wants an event in the first line that is not empty.
func match(head []byte) bool {
	for b := range bytes.Lines(head) {
		if b = bytes.TrimSpace(b); len(b) > 0 {
			_, ok := parse(b)
			return ok
		}
	}
	return false
}

const (
	maxLine = 1 << 16
	// maxPending limits how many requests can be under way.
	maxPending = 1 << 20
	sectorSize = 512
)

// Import writes the requests that were completed as calls, in the order of their
// completion; those of which the trace has no completion as calls that did not return. Times
// are ns since the trace began, which is all that the text says. Content is omitted.
func Import(ctx context.Context, in io.Reader, im *format.Import) error {
	lines := format.NewLines(ctx, in, maxLine)
	x := importer{
		im: im, pending: requests{at: map[place][]request{}}, fds: map[device]int32{},
		next: map[uint32]int32{}, comms: map[uint32]string{},
	}
	for lines.Next() {
		text := lines.Text()
		if lines.Long() {
			im.LeftOut(format.LongLines, 1)
			continue
		}
		l, ok := parse(text)
		switch {
		case ok:
			if err := x.event(&l); err != nil {
				return err
			}
		case x.w != nil && summary(text):
			return x.finish()
		case len(bytes.TrimSpace(text)) > 0:
			im.LeftOut(format.BadLines, 1)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if x.w == nil {
		return nil
	}
	return x.finish()
}

// summary reports whether a line begins what blkparse prints in the end.
func summary(text []byte) bool {
	return bytes.HasPrefix(text, []byte("CPU")) || bytes.HasPrefix(text, []byte("Total (")) ||
		bytes.HasPrefix(text, []byte("Throughput ("))
}

type importer struct {
	im      *format.Import
	w       *format.Writer
	pending requests
	first   uint64 // time of the first of a request so far, ns
	fds     map[device]int32
	next    map[uint32]int32 // lowest number that is free, less 3, by process
	comms   map[uint32]string
}

// device is one that a process has open.
type device struct{ pid, major, minor uint32 }

// event takes an event.
func (x *importer) event(l *line) error {
	x.im.Records++
	if x.w == nil {
		var err error
		if x.w, err = x.im.Host(""); err != nil {
			return err
		}
		x.w.Head.Backend, x.w.Head.Content, x.w.Unsorted = "blktrace", "none", true
		x.first = math.MaxUint64
	}
	at := place{l.major, l.minor, l.sector}
	op := operation(l)
	switch l.action {
	case "Q", "D", "C":
		switch {
		case strings.HasPrefix(l.rwbs, "F") && (!l.sized || l.sectors == 0):
			x.im.LeftOut("events of flushes", 1)
			return nil
		case !l.sized || op == 0:
			x.im.LeftOut("events of commands that pass through", 1)
			return nil
		}
		x.first = min(x.first, l.ns)
	}
	switch l.action {
	case "Q":
		if err := x.task(l); err != nil {
			return err
		}
		x.began(x.pending.add(at, request{pid: l.pid, start: l.ns, op: op, sectors: l.sectors}))
	case "D":
		known, ok := x.pending.issue(at, request{pid: l.pid, start: l.ns, issued: true, op: op, sectors: l.sectors})
		if x.began(ok); !known {
			return x.task(l)
		}
	case "C":
		return x.completed(l, at, op)
	case "X":
		x.pending.split(at, op, l.second)
	case "M", "F":
		// A request that was queued is part of another one. What the driver gets, or what
		// completes, says the size of both.
	default:
		x.im.LeftOut(fmt.Sprintf("events %s", l.action), 1)
	}
	return nil
}

// began counts a request that was not kept.
func (x *importer) began(ok bool) {
	if !ok {
		x.im.LeftOut("requests beyond the first million under way", 1)
	}
}

// completed writes a request that was completed.
func (x *importer) completed(l *line, at place, op event.Op) error {
	r, ok := x.pending.complete(at, op, l.sectors)
	if !ok {
		x.im.LeftOut("times at which requests began: the trace has their ends alone", 1)
		r = request{pid: l.pid, start: l.ns, op: op, sectors: l.sectors, untimed: true}
	}
	result := l.number
	if result >= 1<<15 && result < 1<<16 {
		result -= 1 << 16 // the trace's errors have 16 bits
	}
	return x.call(at, &r, l.ns, result, false)
}

// operation returns what call a request is like; 0 if none.
func operation(l *line) event.Op {
	switch {
	case strings.ContainsRune(l.rwbs, 'D'):
		return event.OpFallocate
	case strings.ContainsRune(l.rwbs, 'W'):
		return event.OpPwrite64
	case strings.ContainsRune(l.rwbs, 'R'):
		return event.OpPread64
	}
	return 0
}

// task says who a process is, if that is news.
func (x *importer) task(l *line) error {
	if l.what == "" || x.comms[l.pid] == l.what {
		return nil
	}
	x.comms[l.pid] = l.what
	return x.w.Task(&format.Task{PID: l.pid, TID: l.pid, Comm: l.what}, l.ns)
}

// blockMode is the mode of a block device, and openReadWrite how it is open.
const (
	blockMode     = 0o060000
	openReadWrite = 2
)

// descriptor returns the descriptor of a process's device. The trace does not say how
// devices were opened: they are open before their first request.
func (x *importer) descriptor(at place, r *request) (int32, error) {
	d := device{r.pid, at.major, at.minor}
	fd, ok := x.fds[d]
	if ok {
		return fd, nil
	}
	fd = x.next[r.pid] + 3
	x.next[r.pid]++
	x.fds[d] = fd
	o := trace.Object{FD: fd, Arg: event.ResultArg, Mode: blockMode, Rdev: at.major<<20 | at.minor,
		Flags: openReadWrite}
	return fd, x.w.Open(r.pid, o, fmt.Sprintf("/dev/block/%d:%d", at.major, at.minor), min(x.first, r.start))
}

// fallocate's FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, which discards.
const punchHole = 2 | 1

// call writes a request; result is 0 or -errno.
func (x *importer) call(at place, r *request, end uint64, result int64, unfinished bool) error {
	fd, err := x.descriptor(at, r)
	if err != nil {
		return err
	}
	offset, length := at.sector*sectorSize, r.sectors*sectorSize
	c := format.Call{Op: r.op, PID: r.pid, TID: r.pid, Enter: r.start, Exit: max(end, r.start), Interrupted: unfinished,
		Untimed: r.untimed}
	if c.Args = [event.MaxArgs]uint64{uint64(fd), 1, length, offset}; r.op == event.OpFallocate {
		c.Args = [event.MaxArgs]uint64{uint64(fd), punchHole, offset, length}
	}
	switch {
	case result != 0:
		c.Ret = -max(result, -result)
	case r.op != event.OpFallocate && !unfinished:
		c.Ret = int64(length)
		c.Bytes(1, nil, int64(length))
	}
	return x.w.Call(&c)
}

// finish writes what was under way at the end.
func (x *importer) finish() error {
	for _, u := range x.pending.all() {
		if err := x.call(u.place, &u.request, u.start, 0, true); err != nil {
			return err
		}
	}
	return nil
}
