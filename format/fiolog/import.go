// SPDX-License-Identifier: Apache-2.0

package fiolog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// maxLine is fio's own limit.
const maxLine = 4096

// maxTime is the latest time within a log, in ns; many can follow each other.
const maxTime = 1 << 56

// punchHole is fallocate(2)'s FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, which is how a
// file is trimmed.
const punchHole = 2 | 1

// Import writes the actions of an iolog as calls that moved all they asked for. Their
// content is omitted. Names that are not absolute count from the root.
//
// Times are ns since the start of the log: those that version 3 gives; in version 2
// each action is a microsecond after the one before it, and at least where a wait has
// led, which counts as fio 3 does it: in ms since the start, whatever the HOWTO says.
// A log that fio appended to another's file goes on where that ended, as another
// process.
func Import(ctx context.Context, in io.Reader, im *format.Import) error {
	lines := format.NewLines(ctx, in, maxLine)
	x := importer{im: im}
	for lines.Next() {
		line := lines.Text()
		switch {
		case lines.Long():
			im.LeftOut(format.LongLines, 1)
			continue
		case bytes.HasPrefix(line, []byte(version2)):
			x.begin(false)
			continue
		case bytes.HasPrefix(line, []byte(version3)):
			x.begin(true)
			continue
		case x.process == 0:
			return fmt.Errorf("line %d: %.40q, where %q or %q is expected", lines.Number(), line, version2, version3)
		}
		if x.w == nil {
			var err error
			if x.w, err = im.Host(""); err != nil {
				return err
			}
			x.w.Head.Backend, x.w.Head.Content = "fio", "none"
		}
		if err := x.line(line); err != nil {
			return err
		}
	}
	return lines.Err()
}

type importer struct {
	im *format.Import
	w  *format.Writer
	// Of the log at hand: an iolog is of one job.
	process uint32
	timed   bool             // version 3
	rooted  bool             // the process has the root as its working directory
	start   uint64           // ns
	clock   uint64           // ns, of the last action
	files   map[string]int32 // descriptors of open files
	free    []int32          // descriptors that were closed
	nextFD  int32
}

// begin begins a log.
func (x *importer) begin(timed bool) {
	x.process++
	x.timed, x.rooted, x.start = timed, false, min(x.clock, 1<<62)
	x.files, x.free, x.nextFD = map[string]int32{}, nil, 3
}

// line takes one action.
func (x *importer) line(line []byte) error {
	words := bytes.Fields(line)
	if len(words) == 0 {
		return nil
	}
	if x.timed {
		t, err := strconv.ParseUint(string(words[0]), 10, 64)
		if err != nil || t > maxTime/1000 {
			x.bad()
			return nil
		}
		words, x.clock = words[1:], max(x.clock, x.start+t*1000)
	} else {
		x.clock += 1000
	}
	switch {
	case len(words) == 2:
		return x.manage(string(words[0]), string(words[1]))
	case len(words) >= 4:
		offset, err := strconv.ParseUint(string(words[2]), 10, 63)
		length, err2 := strconv.ParseUint(string(words[3]), 10, 32)
		if err == nil && err2 == nil && offset+length <= math.MaxInt64 {
			return x.access(string(words[0]), string(words[1]), offset, length)
		}
	}
	x.bad()
	return nil
}

func (x *importer) bad() { x.im.LeftOut(format.BadLines, 1) }

// manage adds, opens or closes a file.
func (x *importer) manage(name, action string) error {
	fd, open := x.files[name]
	switch {
	case action == "add":
	case action == "open" && !open:
		if fd = x.nextFD; len(x.free) > 0 {
			fd = x.free[len(x.free)-1]
			x.free = x.free[:len(x.free)-1]
		} else {
			x.nextFD++
		}
		x.files[name] = fd
		if name[0] != '/' && !x.rooted {
			x.rooted = true
			if err := x.w.Start(x.process, "/", 0o22, x.clock); err != nil {
				return err
			}
		}
		c := format.Call{Op: event.OpOpen, Ret: int64(fd), Args: [event.MaxArgs]uint64{1: syscall.O_RDWR}}
		c.Text(0, name, false)
		return x.call(&c)
	case action == "close" && open:
		delete(x.files, name)
		x.free = append(x.free, fd)
		return x.call(&format.Call{Op: event.OpClose, Args: [event.MaxArgs]uint64{uint64(fd)}})
	case action == "open":
		x.im.LeftOut("opens of files that are open", 1)
	case action == "close":
		x.im.LeftOut("closes of files that are not open", 1)
	default:
		x.bad()
		return nil
	}
	x.im.Records++
	return nil
}

// access takes an action on a file's content.
func (x *importer) access(name, action string, offset, length uint64) error {
	if action == "wait" {
		if x.timed {
			x.im.LeftOut("waits, which version 3 does not have", 1)
		} else if offset < maxTime/1_000_000 {
			x.clock = max(x.clock, x.start+offset*1e6)
			x.im.Records++
		}
		return nil
	}
	fd, open := x.files[name]
	c := format.Call{Args: [event.MaxArgs]uint64{0: uint64(fd)}}
	switch action {
	case "read", "write":
		c.Op = event.OpPread64
		if action == "write" {
			c.Op = event.OpPwrite64
		}
		c.Args[2], c.Args[3], c.Ret = length, offset, int64(length)
		c.Bytes(1, nil, int64(length))
	case "sync":
		c.Op = event.OpFsync
	case "datasync":
		c.Op = event.OpFdatasync
	case "trim":
		c.Op = event.OpFallocate
		c.Args[1], c.Args[2], c.Args[3] = punchHole, offset, length
	default:
		x.bad()
		return nil
	}
	if !open {
		x.im.LeftOut("actions on files that are not open", 1)
		return nil
	}
	return x.call(&c)
}

func (x *importer) call(c *format.Call) error {
	x.im.Records++
	c.PID, c.TID, c.Enter, c.Untimed = x.process, x.process, x.clock, true
	return x.w.Call(c)
}
