// SPDX-License-Identifier: Apache-2.0

package fiolog

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Export writes what a tape's calls did to the content of files: what was read and
// written, flushed and punched out, in the order of returns. Times are those of the
// calls' begin; one that began before the line above it has that line's time. Files
// are open from their first open to their last close, once each: an iolog is one job's.
func Export(out io.Writer, tape *trace.Tape) (*format.Done, error) {
	if n := len(tape.Manifest().Hosts); n > 1 {
		return nil, fmt.Errorf("the tape has events of %d hosts, an iolog is of one: iotape slice makes a tape of each",
			n)
	}
	x := exporter{w: bufio.NewWriter(out), last: map[event.OpenID]uint64{}, used: map[event.OpenID]bool{},
		names: map[string]*name{}, done: &format.Done{}}
	x.line(version3)
	// What is open, and until when, has to be known before the first line of it.
	var quiet format.Done
	for ev, err := range tape.Events() {
		if err != nil {
			return nil, err
		}
		for i := range ev.Files {
			if id := ev.Files[i].Open; id != 0 {
				x.last[id] = ev.Seq
			}
		}
		x.acts = appendActions(x.acts[:0], ev, &quiet)
		for _, a := range x.acts {
			if a.file.Open != 0 {
				x.used[a.file.Open] = true
			}
		}
	}
	for ev, err := range tape.Events() {
		if err != nil {
			return nil, err
		}
		x.event(ev)
	}
	idle := len(x.last) - len(x.used)
	if idle > 0 {
		x.done.LeftOut("opens of what is then neither read nor written", uint64(idle))
	}
	return x.done, x.w.Flush()
}

type exporter struct {
	w     *bufio.Writer
	buf   []byte
	last  map[event.OpenID]uint64 // event that mentions it last
	used  map[event.OpenID]bool   // something is done to its content
	names map[string]*name
	acts  []action
	done  *format.Done
	start int64 // ns, of the first line
	clock int64 // µs, of the last line; 0 before the first
}

// name is a file as fio knows it.
type name struct{ open map[event.OpenID]bool }

// action is a line's worth.
type action struct {
	file           *event.File
	what           string
	offset, length int64
}

func (x *exporter) event(ev *event.Event) {
	x.acts = appendActions(x.acts[:0], ev, x.done)
	if ev.Kind == event.Call || ev.Kind == event.Inherited {
		for i := range ev.Files {
			if f := &ev.Files[i]; x.used[f.Open] && exportable(f) == "" {
				x.open(ev, f)
			}
		}
	}
	for _, a := range x.acts {
		x.open(ev, a.file)
		for left := a.length; left > 0 || a.length == 0; {
			n := min(left, math.MaxUint32)
			x.put(ev, a.file.Path, a.what, a.offset, n)
			if a.offset, left = a.offset+n, left-n; left == 0 {
				break
			}
		}
	}
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Open != 0 && x.last[f.Open] == ev.Seq {
			x.close(ev, f)
		}
	}
}

// open opens a file unless it is open.
func (x *exporter) open(ev *event.Event, f *event.File) {
	n := x.names[f.Path]
	if n == nil {
		n = &name{open: map[event.OpenID]bool{}}
		x.names[f.Path] = n
		x.put(ev, f.Path, "add", -1, 0)
	}
	if len(n.open) == 0 {
		x.put(ev, f.Path, "open", -1, 0)
	}
	n.open[f.Open] = true
}

// close closes a file if nobody else has it open.
func (x *exporter) close(ev *event.Event, f *event.File) {
	n := x.names[f.Path]
	if n == nil || !n.open[f.Open] {
		return
	}
	if delete(n.open, f.Open); len(n.open) == 0 {
		x.put(ev, f.Path, "close", -1, 0)
	}
}

// put writes a line; an offset below 0 is that of an action on the whole file.
func (x *exporter) put(ev *event.Event, name, what string, offset, length int64) {
	if x.clock == 0 {
		// Not 0: fio takes that for no time and forgets the pause after it.
		x.start, x.clock = ev.Enter, 1
	}
	x.clock = max(x.clock, (ev.Enter-x.start)/1000+1)
	b := strconv.AppendInt(x.buf[:0], x.clock, 10)
	b = append(append(append(append(b, ' '), name...), ' '), what...)
	if offset >= 0 {
		b = strconv.AppendInt(append(b, ' '), offset, 10)
		b = strconv.AppendInt(append(b, ' '), length, 10)
	}
	x.buf = b
	x.line(string(b))
	x.done.Records++
}

// line writes a line. An error stays in the writer until it is flushed.
func (x *exporter) line(s string) {
	x.w.WriteString(s)
	x.w.WriteByte('\n')
}

// exportable says why a file can be no file of an iolog, "" if it can.
func exportable(f *event.File) string {
	switch {
	case f.Known && event.FileType(f.Mode) != event.TypeRegular && event.FileType(f.Mode) != event.TypeBlock,
		!strings.HasPrefix(f.Path, "/"),
		!f.Known && strings.HasPrefix(f.Path, "/dev/") && !strings.HasPrefix(f.Path, "/dev/block/"):
		return "of pipes, sockets, terminals and other devices"
	case strings.HasPrefix(f.Path, "/proc/"), strings.HasPrefix(f.Path, "/sys/"):
		return "of /proc and /sys"
	case len(f.Path) > maxName, strings.ContainsAny(f.Path, " \t\n\v\f\r"):
		return "of files whose names fio cannot read"
	}
	return ""
}

// appendActions appends what an event did to the content of files, and counts in done
// what cannot be said of it.
func appendActions(acts []action, ev *event.Event, done *format.Done) []action {
	if ev.Kind != event.Call {
		return acts
	}
	t := ev.Traffic()
	op := ev.Op.Like()
	if t.Reads || t.Writes {
		return appendTraffic(acts, ev, &t, done)
	}
	switch op {
	case event.OpClose, event.OpLseek, event.OpOpen, event.OpOpenat, event.OpOpenat2, event.OpCreat:
		return acts // said by other lines, or nothing without them
	}
	if !ev.OK() {
		done.LeftOut("calls that failed", 1)
		return acts
	}
	switch f := ev.FileArg(0); {
	case op == event.OpFsync && f != nil:
		acts = appendAction(acts, action{f, "sync", 0, 0}, done)
	case op == event.OpFdatasync && f != nil:
		acts = appendAction(acts, action{f, "datasync", 0, 0}, done)
	case op == event.OpFallocate && f != nil && punchesHole(ev):
		acts = appendAction(acts, action{f, "trim", int64(ev.Args[2]), int64(ev.Args[3])}, done)
	case op == event.OpIoctl && f != nil && ev.Args[1] == blkDiscard:
		if b := ev.BufArg(2); b != nil && len(b.Inline) >= 16 {
			offset, length := binary.LittleEndian.Uint64(b.Inline), binary.LittleEndian.Uint64(b.Inline[8:])
			acts = appendAction(acts, action{f, "trim", int64(offset), int64(length)}, done)
		}
	default:
		done.LeftOut(ev.Spec().Name, 1)
	}
	return acts
}

// punchesHole reports whether a fallocate takes the content of a range away.
func punchesHole(ev *event.Event) bool {
	return ev.Args[1] == punchHole && int64(ev.Args[2]) >= 0 && int64(ev.Args[3]) > 0
}

// appendTraffic appends what an event read and wrote.
func appendTraffic(acts []action, ev *event.Event, t *event.Traffic, done *format.Done) []action {
	switch {
	case !ev.OK():
		done.LeftOut("calls that failed", 1)
		return acts
	case ev.Op.Like() == event.OpMmapPread && ev.Args[4]&event.MappedCode != 0:
		done.LeftOut("reads of program code that is mapped", 1)
		return acts
	case t.Bytes() == 0:
		done.LeftOut("reads and writes of nothing, such as at the end of a file", 1)
		return acts
	}
	if t.Reads {
		acts = appendMove(acts, ev, "read", t.From, t.Read, done)
	}
	if t.Writes {
		acts = appendMove(acts, ev, "write", t.To, t.Written, done)
	}
	return acts
}

// blkDiscard is the ioctl BLKDISCARD of linux/fs.h.
const blkDiscard = 0x1277

// appendMove appends a read or a write.
func appendMove(acts []action, ev *event.Event, what string, f *event.File, n int64, done *format.Done) []action {
	if f == nil {
		done.LeftOut(what+"s of files that are not known", 1)
		return acts
	}
	if exportable(f) != "" {
		return appendAction(acts, action{file: f, what: what}, done)
	}
	offset := ev.Offset
	if offset < 0 && f.Known && f.Pos >= n {
		offset = f.Pos - n // of a call with two files
	}
	if offset < 0 {
		done.LeftOut(what+"s at positions that are not known", 1)
		return acts
	}
	return appendAction(acts, action{f, what, offset, n}, done)
}

func appendAction(acts []action, a action, done *format.Done) []action {
	if why := exportable(a.file); why != "" {
		done.LeftOut(a.what+"s "+why, 1)
		return acts
	}
	if a.offset < 0 || a.length < 0 {
		done.LeftOut(a.what+"s outside any file", 1)
		return acts
	}
	if a.length > maxLength {
		done.LeftOut(a.what+"s of more than 1 TiB at once", 1)
		return acts
	}
	return append(acts, a)
}

// maxLength is the largest length of an action, which is 256 lines then: a hole can be as large as a number.
const maxLength = 1 << 40
