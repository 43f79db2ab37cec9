// SPDX-License-Identifier: Apache-2.0

package scap

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

type importer struct {
	im       *format.Import
	w        *format.Writer // once there is an event
	host     string
	threads  map[uint32]*thread
	opens    int
	last     uint64 // time
	followed format.Followed
}

type thread struct {
	pid, ppid, uid, gid uint32
	comm, dir           string
	files               []opened // of a process, at the start
	told, toldState     bool
	pending             *format.Call
	program             string // path of an execve under way
}

const maxThreads = 1 << 20

// thread returns a thread, nil if there are too many.
func (im *importer) thread(tid uint32) *thread {
	th := im.threads[tid]
	if th == nil && len(im.threads) < maxThreads {
		th = &thread{pid: tid}
		im.threads[tid] = th
	}
	return th
}

// event takes an event.
func (im *importer) event(b []byte, flags, counted bool) error {
	c := cursor{b: b}
	c.num(2)
	if flags {
		c.num(4)
	}
	whole := len(c.b)
	time, tid, length, typ := c.num(8), uint32(c.num(8)), int(c.num(4)), uint16(c.num(2))
	n := -1
	if counted {
		n = int(c.num(4))
	}
	if body := length - (whole - len(c.b)); !c.short && body >= 0 && body <= len(c.b) {
		c.b = c.b[:body] // options may follow
	} else {
		return fmt.Errorf("an event of %d bytes in a block with room for %d", length, whole)
	}
	im.im.Records++
	if im.w == nil {
		w, err := im.im.Host(im.host)
		if err != nil {
			return err
		}
		w.Head.Backend, w.Head.Content = "scap", "partial"
		w.Unsorted = true // who was made comes before the call that made it
		im.w = w
	}
	k := kinds()[typ]
	if k != nil && k.name == "drop" { // the events from here on, or to here
		im.followed.Forget()
	}
	switch {
	case k == nil:
		im.im.LeftOut(fmt.Sprintf("events of type %d", typ), 1)
		return nil
	case k.side == '.':
		return nil // its return is counted
	case k.side == '-' && k.name == "syscall":
		im.im.LeftOut("calls of which the capture has only the number", 1)
		return nil
	case k.side == '-':
		im.im.LeftOut(k.name, 1)
		return nil
	}
	params, ok := split(c.b, n, len(k.params))
	if !ok {
		im.im.LeftOut(k.name+" events whose parameters do not fit", 1)
		return nil
	}
	im.last = max(im.last, time)
	th := im.thread(tid)
	if th == nil {
		im.im.LeftOut("calls of too many threads", 1)
		return nil
	}
	return im.call(k, th, tid, time, params)
}

// split divides an event's parameters. Old events do not say how many there are: as
// many as fit exactly, at most those that are known.
func split(b []byte, n, known int) ([][]byte, bool) {
	if n >= 0 {
		return cut(b, n)
	}
	for n = known; n >= 0; n-- {
		if p, ok := cut(b, n); ok {
			total := 2 * n
			for _, x := range p {
				total += len(x)
			}
			if total == len(b) {
				return p, true
			}
		}
	}
	return nil, false
}

func cut(b []byte, n int) ([][]byte, bool) {
	if n < 0 || n > len(b)/2 {
		return nil, false
	}
	params, values := make([][]byte, 0, n), b[2*n:]
	for i := range n {
		size := int(binary.LittleEndian.Uint16(b[2*i:]))
		if size > len(values) {
			return nil, false
		}
		params = append(params, values[:size])
		values = values[size:]
	}
	return params, true
}

// call takes one side of a call.
func (im *importer) call(k *kind, th *thread, tid uint32, time uint64, params [][]byte) error {
	if k.name == "procexit" {
		if err := im.settle(th, tid, time); err != nil {
			return err
		}
		status := uint64(0)
		if len(params) > 0 {
			status = number(params[0], false)
		}
		pid := th.pid
		delete(im.threads, tid)
		return im.w.Record(&trace.Record{Type: trace.RecExit, PID: pid, TID: tid, Exit: time, Ret: int64(status)})
	}
	fc := th.pending
	if k.side == 'e' {
		if err := im.settle(th, tid, time); err != nil {
			return err
		}
		fc = newCall(k.op, th.pid, tid, time)
		th.pending = fc
		im.take(k, fc, th, params)
		return nil
	}
	child := isFork(k.op) && len(params) > 0 && number(params[0], true) == 0
	if child { // its maker returns by itself
		th.told, th.toldState = false, true
		made := &format.Call{}
		im.take(k, made, th, params)
		im.followed.Forked(th.ppid, th.pid, made.Share)
		return nil
	}
	if fc != nil && fc.Op != k.op {
		if err := im.interrupted(th, time); err != nil {
			return err
		}
		fc = nil
	}
	if fc == nil {
		if err := im.tell(th, tid, time); err != nil {
			return err
		}
		fc = newCall(k.op, th.pid, tid, time)
		fc.Untimed = true
	}
	th.pending = nil
	fc.Exit = time
	before := *th
	argv := im.take(k, fc, th, params)
	if fc.Ret >= 0 {
		addStat(fc)
	}
	switch {
	case isFork(k.op):
		if fc.Ret > 0 {
			im.made(uint32(fc.Ret), th, fc.Share)
		}
	case k.op == event.OpExecve:
		th.executed(fc, 0, argv, &before)
	case k.op == event.OpExecveat:
		th.executed(fc, 1, argv, &before)
	}
	im.followed.Call(fc)
	return im.w.Call(fc)
}

// newCall returns a call of which no number and no text is known yet. Forks say what the child shares.
func newCall(op event.Op, pid, tid uint32, enter uint64) *format.Call {
	fc := &format.Call{Op: op, PID: pid, TID: tid, Enter: enter}
	for i, a := range event.Lookup(op).Args {
		if !isFork(op) && (!a.Kind.IsMemory() || a.Kind == event.KindText) {
			fc.NotKnown(i)
		}
	}
	if op == event.OpSendto {
		const length = 5 // of no address, if there is none
		fc.Known(length)
	}
	return fc
}

// addStat gives a stat that succeeded the structure that it filled in, of which the capture has nothing.
func addStat(fc *format.Call) {
	for i, a := range event.Lookup(fc.Op).Args {
		if a.Layout == event.LayoutStat {
			fc.Bytes(i, nil, int64(event.LayoutStat.Bytes(event.AMD64)))
		}
	}
}

// executed completes an execve whose path is argument arg. before is the thread as it was.
func (th *thread) executed(fc *format.Call, arg int, argv []string, before *thread) {
	if th.program != "" {
		fc.Text(arg, th.program, false)
	}
	if len(argv) > 0 && argv[0] != "" {
		fc.Strings(arg+1, argv)
	}
	if fc.Ret != 0 {
		th.comm, th.uid, th.gid = before.comm, before.uid, before.gid
	} else if th.comm == before.comm && th.program != "" {
		th.comm = path.Base(th.program)
	}
	th.program = ""
	th.told = th.told && th.comm == before.comm
}

// settle writes what stands before an event that begins something new: a call of the
// thread that did not return, and who the thread is.
func (im *importer) settle(th *thread, tid uint32, time uint64) error {
	if err := im.interrupted(th, time); err != nil {
		return err
	}
	return im.tell(th, tid, time)
}

func isFork(op event.Op) bool {
	return op == event.OpFork || op == event.OpVfork || op == event.OpClone || op == event.OpClone3
}

// made notes the thread that a call made. Its own return may have come before.
func (im *importer) made(tid uint32, maker *thread, share uint64) {
	th := im.threads[tid]
	if th == nil {
		if th = im.thread(tid); th == nil {
			return
		}
		th.comm, th.uid, th.gid, th.ppid = maker.comm, maker.uid, maker.gid, maker.pid
	}
	th.toldState = true
	if share&trace.ShareThread != 0 {
		th.pid, th.ppid = maker.pid, maker.ppid
	}
}

// tell says who a thread is and, once, what its process had open.
func (im *importer) tell(th *thread, tid uint32, time uint64) error {
	if th.told {
		return nil
	}
	th.told = true
	task := format.Task{PID: th.pid, TID: tid, PPID: th.ppid, UID: th.uid, GID: th.gid, Comm: th.comm}
	if err := im.w.Task(&task, time); err != nil {
		return err
	}
	main := im.threads[th.pid]
	if main == nil || main.toldState {
		return nil
	}
	main.toldState = true
	if main.dir != "" {
		const umask = 0o22
		if err := im.w.Start(th.pid, path.Clean(main.dir), umask, time); err != nil {
			return err
		}
	}
	for _, f := range main.files {
		if err := im.w.Open(th.pid, f.object, f.path, time); err != nil {
			return err
		}
	}
	main.files = nil
	return nil
}

// number reads a number; one of 4 bytes can be signed.
func number(b []byte, signed bool) uint64 {
	switch {
	case len(b) == 4 && signed:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	case len(b) <= 8:
		return (&cursor{b: b}).num(len(b))
	}
	return 0
}

// take takes what an event's parameters say of a call and of its thread. argv is what
// an execve says of the program's arguments.
func (im *importer) take(k *kind, fc *format.Call, th *thread, params [][]byte) (argv []string) {
	for i, b := range params {
		if i >= len(k.params) || len(b) == 0 {
			continue
		}
		p := &k.params[i]
		if p.arg >= 0 {
			p.take(fc, th, k.op, b)
			continue
		}
		switch p.what {
		case "ret":
			fc.Ret = int64(number(b, true))
		case "exe":
			argv = append([]string{cString(b)}, argv...)
		case "args":
			argv = append(argv, strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")...)
		case "pid", "ppid", "uid", "gid", "comm", "cwd", "share":
			im.process(p.what, b, fc, th, k.op)
		case "ino":
			for n := range fc.Objects {
				fc.Objects[n].Ino, fc.Objects[n].Mode = number(b, false), modeFIFO
			}
		}
	}
	return argv
}

// take gives a call the argument that a parameter is.
func (p *param) take(fc *format.Call, th *thread, op event.Op, b []byte) {
	if p.what == "path" && (op == event.OpExecve || op == event.OpExecveat) {
		th.program = cmp.Or(text(b), th.program) // written at the end, once
		return
	}
	if fc.Op == op { // else it is a child's side of a fork
		p.argument(fc, &event.Lookup(op).Args[p.arg], b)
	}
}

// argument gives a call the argument that a parameter is.
func (p *param) argument(fc *format.Call, a *event.Arg, b []byte) {
	fc.Known(p.arg)
	switch {
	case p.code == "fd": // of a pair
		fd := int32(number(b, true))
		fc.Objects = append(fc.Objects, trace.Object{Arg: event.MemoryArg, FD: fd})
		if len(fc.Objects) == 2 {
			pair := binary.LittleEndian.AppendUint32(nil, uint32(fc.Objects[0].FD))
			fc.Bytes(p.arg, binary.LittleEndian.AppendUint32(pair, uint32(fd)), 0)
		}
	case p.code == "addr":
		if s := sockaddr(b); s != nil && fc.Args[p.arg] == 0 {
			fc.Bytes(p.arg, s, 0)
			fc.Args[p.arg+1] = uint64(len(s))
			fc.Known(p.arg + 1)
		}
	case a.Kind == event.KindPath || a.Kind == event.KindText:
		if s := text(b); s != "" && fc.Args[p.arg] == 0 { // or the entry said it
			fc.Text(p.arg, s, false)
		}
	case a.Kind == event.KindBuf:
		fc.Bytes(p.arg, b, max(fc.Ret, 0))
	case a.Kind == event.KindVec:
		fc.Shape(p.arg, []int64{max(fc.Ret, int64(len(b)))})
		fc.Bytes(p.arg, b, max(fc.Ret, 0))
		fc.Known(p.arg + 1)
		fc.Args[p.arg+1] = 1 // its elements are not known, only what they hold together
	case a.Layout == event.LayoutMsghdr:
		const size, vectorLength = 56, 24 // of struct msghdr (recvmsg(2)); its vector is taken for one element
		head := make([]byte, size)
		binary.LittleEndian.PutUint64(head[vectorLength:], 1)
		fc.Bytes(p.arg, head, 0)
		data := event.PartData.Of(p.arg)
		fc.Shape(data, []int64{max(fc.Ret, int64(len(b)))})
		fc.Bytes(data, b, max(fc.Ret, 0))
	default:
		signed := a.Kind == event.KindFD || a.Kind == event.KindDirFD || a.Kind == event.KindInt
		fc.Args[p.arg] = decoded(number(b, signed), p.code)
	}
}

// process takes what a fork or an execve says of its process.
func (im *importer) process(what string, b []byte, fc *format.Call, th *thread, op event.Op) {
	n := uint32(number(b, false))
	switch what {
	case "pid":
		th.pid = cmp.Or(n, th.pid)
	case "ppid":
		th.ppid = n
	case "uid":
		th.uid = n
	case "gid":
		th.gid = n
	case "comm":
		th.comm = cmp.Or(cString(b), th.comm)
	case "cwd":
		th.dir = cmp.Or(text(b), th.dir)
	case "share":
		fc.Share = decoded(uint64(n), "clone")
		if op == event.OpClone {
			fc.Args[0] = fc.Share
		}
	}
}

// text reads a string; "<NA>" and "(NULL)" are none.
func text(b []byte) string {
	switch s := cString(b); s {
	case "<NA>", "(NULL)":
		return ""
	default:
		return s
	}
}

// interrupted writes the call that a thread was in without a return.
func (im *importer) interrupted(th *thread, now uint64) error {
	fc := th.pending
	if fc == nil {
		return nil
	}
	th.pending = nil
	fc.Exit, fc.Interrupted = now, true
	return im.w.Call(fc)
}

// end writes the calls that have not returned.
func (im *importer) end() error {
	for _, tid := range slices.Sorted(maps.Keys(im.threads)) {
		if err := im.interrupted(im.threads[tid], im.last); err != nil {
			return err
		}
	}
	return nil
}
