// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"fmt"
	"math"

	"github.com/iotape/iotape/event"
	processfacts "github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// marks are the lines that are no calls.
var marks = map[string]func(c *compiler, p *scanner, t *times) error{
	"host": (*compiler).host, "command": (*compiler).command, "thread": (*compiler).thread,
	"fork": (*compiler).fork, "exit": (*compiler).exited, "start": (*compiler).start, "inherit": (*compiler).inherit,
	"note": (*compiler).note, "lost": (*compiler).lost, "woken": (*compiler).woken, "signal": (*compiler).signal,
	"process": (*compiler).process, stackWord: (*compiler).stack,
}

func markNames() []string {
	var list []string
	for name := range marks {
		list = append(list, name)
	}
	return list
}

// mark takes a line that is no call.
func (c *compiler) mark(p *scanner, word string, at int, t *times) error {
	f := marks[word]
	if f == nil {
		hint := didYouMean(word, append(markNames(), opNames()...))
		if _, ok := operations()[word]; ok {
			hint = "a call has arguments in parentheses"
		}
		return p.fail(at, first(word)+": no such event", hint)
	}
	if c.special&trace.CallStandIn != 0 {
		return p.fail(at, standInWord+" stands before calls only", "")
	}
	if err := f(c, p, t); err != nil {
		return err
	}
	if p.space(); !p.end() {
		return p.fail(p.i, fmt.Sprintf("%q: nothing more was expected", first(p.s[p.i:])), "")
	}
	return nil
}

var (
	hostKeys   = []string{"name", "kernel", "arch", "backend", "content", "dir", "uid", "gid", "first", "clock", "wall"}
	threadKeys = []string{"pid", "ppid", "pgid", "sid", "uid", "gid", "nspid", "nstid", "comm"}
)

// host says what is known of the recording.
func (c *compiler) host(p *scanner, _ *times) error {
	if len(c.threads) > 0 {
		return p.fail(0, "host stands in front of all events", "")
	}
	h := &c.w.Head
	return p.attributes(hostKeys, nil, func(key string, at int, v *told) error {
		n, ok := event.ParseNumber(v.Text)
		switch key {
		case "uid", "gid", "first", "clock", "wall":
			if !ok || n > math.MaxInt64 {
				return p.fail(v.at, key+": a number was expected", "")
			}
		}
		switch key {
		case "name":
			h.Host = string(v.Data)
		case "kernel":
			h.Kernel = string(v.Data)
		case "arch":
			if c.arch, ok = event.ParseArch(string(v.Data)); !ok && len(v.Data) > 0 {
				return p.fail(v.at, "arch: it is not known", `it is "amd64" or "arm64"`)
			}
			if len(v.Data) > 0 {
				h.Arch = string(v.Data)
			}
		case "backend":
			h.Backend = string(v.Data)
		case "content":
			h.Content = string(v.Data)
		case "dir":
			h.Dir = string(v.Data)
		case "uid":
			h.UID = int(n)
		case "gid":
			h.GID = int(n)
		case "first":
			c.base, c.exit = n, n
		case "clock":
			h.ClockNS = int64(n)
		case "wall":
			h.WallNS = int64(n)
		}
		return nil
	})
}

func (c *compiler) command(p *scanner, _ *times) error {
	v, err := p.value()
	if err != nil {
		return err
	}
	for i := range v.Parts {
		if v.Kind != layout.ToldItems || v.Parts[i].Kind != layout.ToldText {
			return p.fail(v.at, "a list of strings was expected", `it is ["git", "clone"]`)
		}
		c.w.Head.Command = append(c.w.Head.Command, string(v.Parts[i].Data))
	}
	return nil
}

// thread says who a thread is from now on.
func (c *compiler) thread(p *scanner, t *times) error {
	th := c.threads[t.tid]
	task := format.Task{PID: t.tid, TID: t.tid}
	if th != nil {
		task.PID = th.pid
	}
	r := trace.Record{Type: trace.RecTask}
	err := p.attributes(threadKeys, nil, func(key string, at int, v *told) error {
		if key == "comm" {
			task.Comm = string(v.Data)
			return nil
		}
		n, err := p.numberOf(v, key, math.MaxUint32)
		switch key {
		case "pid":
			task.PID = uint32(n)
		case "ppid":
			task.PPID = uint32(n)
		case "pgid":
			task.PGID = uint32(n)
		case "sid":
			task.SID = uint32(n)
		case "uid":
			task.UID = uint32(n)
		case "gid":
			task.GID = uint32(n)
		case "nspid":
			r.NSPID = uint32(n)
		case "nstid":
			r.NSTID = uint32(n)
		}
		return err
	})
	if err != nil {
		return err
	}
	if th == nil {
		if len(c.threads) >= maxThreads {
			return p.fail(0, "too many threads", "")
		}
		th = &lineThread{}
		c.threads[t.tid] = th
	}
	th.pid = task.PID
	r.PID, r.TID, r.PPID, r.PGID, r.SID, r.UID, r.GID, r.Exit = task.PID, task.TID, task.PPID, task.PGID, task.SID,
		task.UID, task.GID, t.exit
	copy(r.Comm[:len(r.Comm)-1], task.Comm)
	return c.record(&r)
}

// keyword reads a word that has to be there.
func (p *scanner) keyword(word string) error {
	p.space()
	at := p.i
	if p.word() != word {
		return p.fail(at, word+" was expected", "")
	}
	return nil
}

// pair reads NUMBER process NUMBER.
func (p *scanner) pair(what string) (tid, pid uint32, err error) {
	a, err := p.number(what, math.MaxUint32)
	if err == nil {
		err = p.keyword("process")
	}
	if err != nil {
		return 0, 0, err
	}
	b, err := p.number("a process", math.MaxUint32)
	return uint32(a), uint32(b), err
}

func (c *compiler) fork(p *scanner, t *times) error {
	tid, pid, err := p.pair("a thread")
	if err != nil {
		return err
	}
	share := uint64(0)
	if p.space(); !p.end() {
		if err := p.keyword("share"); err != nil {
			return err
		}
		if share, err = p.number("what is shared", math.MaxUint32); err != nil {
			return err
		}
	}
	if len(c.threads) >= maxThreads {
		return p.fail(0, "too many threads", "")
	}
	if c.threads[tid] == nil { // else it was seen before, and has a process
		c.threads[tid] = &lineThread{pid: pid}
	}
	return c.record(&trace.Record{Type: trace.RecFork, PID: t.pid, TID: t.tid, Exit: t.exit, Child: pid,
		ChildTID: tid, Share: share})
}

func (c *compiler) exited(p *scanner, t *times) error {
	status, err := p.number("a status as of wait(2)", math.MaxInt32)
	if err != nil {
		return err
	}
	delete(c.threads, t.tid)
	return c.record(&trace.Record{Type: trace.RecExit, PID: t.pid, TID: t.tid, Exit: t.exit, Ret: int64(status)})
}

func (c *compiler) start(p *scanner, t *times) error {
	dir, err := p.text("a directory")
	if err != nil {
		return err
	}
	umask := uint64(0o022)
	if p.space(); !p.end() {
		if err := p.keyword("umask"); err != nil {
			return err
		}
		if umask, err = p.number("a umask", 0o777); err != nil {
			return err
		}
	}
	root := "" // the machine's
	if p.space(); !p.end() {
		if err := p.keyword("root"); err != nil {
			return err
		}
		if root, err = p.text("a directory"); err != nil {
			return err
		}
	}
	ev := event.Event{Kind: event.Started}
	if dir != "" || root != "" { // else it is not known
		ev.Paths = append(ev.Paths, event.Path{Abs: dir})
	}
	if root != "" {
		ev.Paths = append(ev.Paths, event.Path{Abs: root})
	}
	if p.space(); !p.end() {
		if err := startMounts(p, &ev); err != nil {
			return err
		}
	}
	return c.record(&trace.Record{Type: trace.RecStart, PID: t.pid, TID: t.tid, Umask: uint32(umask), Exit: t.exit,
		Pieces: trace.StartPieces(&ev)})
}

// startMounts reads what appendMounts wrote.
func startMounts(p *scanner, ev *event.Event) error {
	if err := p.keyword("mounts"); err != nil {
		return err
	}
	text, err := p.text("a list of mounts")
	if err != nil {
		return err
	}
	ev.Bufs = []event.Buf{{Kind: event.KindText, Len: int64(len(text)), Inline: []byte(text)}}
	ev.Paths = nil
	for p.space(); !p.end(); p.space() {
		var names [3]string
		for i := range names {
			if names[i], err = p.text("a name"); err != nil {
				return err
			}
		}
		ev.Paths = append(ev.Paths, event.Path{Raw: names[0], Abs: names[1], Real: names[2]})
	}
	return nil
}

// inherit says that a descriptor was open at the start.
func (c *compiler) inherit(p *scanner, t *times) error {
	v, err := p.value()
	if err != nil {
		return err
	}
	fd, ok := event.ParseNumber(v.Text)
	if v.Kind != layout.ToldWord || !ok || fd > math.MaxInt32 && int64(fd) != event.MappedFD {
		return p.fail(v.at, "a descriptor was expected", "it is a number, or -1 of a file that was only mapped")
	}
	r := trace.Record{Type: trace.RecFile, PID: t.pid, TID: t.tid, Exit: t.exit}
	name, _ := factWords(v.Note)
	ev := event.Event{Kind: event.Inherited, Files: []event.File{{FD: int32(fd), Path: name}}}
	if err := p.attributes(inheritKeys, []string{"own"}, func(key string, at int, v *told) error {
		var n uint64
		if v != nil && key != "real" {
			if n, err = p.numberOf(v, key, math.MaxUint64); err != nil {
				return err
			}
		}
		switch key {
		case "own":
			r.Flags |= trace.FileOwn
		case "from":
			ev.Args[1] = n
		case "to":
			ev.Args[2] = n
		case "over":
			if n > uint64(trace.FileOverMask) {
				return p.fail(at, "over: it is too large", "")
			}
			r.Flags |= uint32(n) << trace.FileOverShift
		case "real":
			ev.Files[0].Real = string(v.Data)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := c.object(p, v.at, &r, fdOfStart, int32(fd), v.Note, event.OpUnknown); err != nil {
		return err
	}
	if len(r.Objects) == 0 {
		r.Objects = []trace.Object{{FD: int32(fd)}}
	}
	r.Pieces = trace.FilePieces(&ev) // the name is that of a socket too
	return c.record(&r)
}

// inheritKeys are the attributes of inherit: where a file is mapped, the bind mount that it was reached through, and
// its name without links.
var inheritKeys = []string{"from", "to", "over", "real"}

func (c *compiler) note(p *scanner, t *times) error {
	text, err := p.text("a text")
	if err != nil {
		return err
	}
	return c.record(&trace.Record{Type: trace.RecNote, PID: t.pid, TID: t.tid, Exit: t.exit,
		Pieces: []trace.Piece{{Len: uint32(len(text)), Data: []byte(text)}}})
}

func (c *compiler) lost(p *scanner, t *times) error {
	n, err := p.number("how many events were lost", math.MaxInt64)
	if err == nil {
		err = p.keyword("reason")
	}
	if err != nil {
		return err
	}
	reason, err := p.number("a reason", math.MaxUint32)
	if err != nil {
		return err
	}
	return c.record(&trace.Record{Type: trace.RecLoss, PID: t.pid, TID: t.tid, Exit: t.exit, Count: n,
		Reason: uint32(reason)})
}

func (c *compiler) woken(p *scanner, t *times) error {
	tid, pid, err := p.pair("a thread")
	if err != nil {
		return err
	}
	r := trace.Record{Type: trace.RecWake, PID: t.pid, TID: t.tid, Exit: t.exit, Child: pid, ChildTID: tid}
	if p.space(); !p.end() {
		if err := p.keyword("in"); err != nil {
			return err
		}
		p.space()
		at := p.i
		name := p.word()
		op, ok := operations()[name]
		if !ok {
			return p.fail(at, name+": no such operation", didYouMean(name, opNames()))
		}
		r.Op = uint16(op)
	}
	return c.record(&r)
}

// signal reads signal ACTION "siginfo_t".
func (c *compiler) signal(p *scanner, t *times) error {
	p.space()
	at := p.i
	action, ok := event.SignalActionByName(p.word())
	if !ok {
		return p.fail(at, "what is done with the signal was expected",
			"unknown, handled, ignored, terminates, core or stops")
	}
	p.space()
	at = p.i
	info, err := p.text("a siginfo_t")
	if err != nil {
		return err
	}
	if len(info) > event.SiginfoBytes || event.SignalNumber([]byte(info)) == 0 {
		return p.fail(at, fmt.Sprintf("a siginfo_t of at most %d bytes was expected", event.SiginfoBytes),
			"it begins with the signal's number")
	}
	return c.record(&trace.Record{Type: trace.RecSignal, PID: t.pid, TID: t.tid, Exit: t.exit, Flags: uint32(action),
		Pieces: []trace.Piece{{Len: uint32(len(info)), Data: []byte(info)}}})
}

// process reads process "FACTS" [env "…"] [args "…"], as package event/facts has them.
func (c *compiler) process(p *scanner, t *times) error {
	facts, err := p.text("facts")
	if err != nil {
		return err
	}
	r := trace.Record{Type: trace.RecProcess, PID: t.pid, TID: t.tid, Exit: t.exit}
	put := func(part uint8, text string) {
		r.Pieces = append(r.Pieces, trace.Piece{Arg: part, Len: uint32(len(text)), Data: bytes.Clone([]byte(text))})
	}
	put(processfacts.PartFacts, string(facts))
	for p.space(); !p.end(); p.space() {
		at := p.i
		part := uint8(processfacts.PartEnv)
		switch p.word() {
		case "env":
		case "args":
			part = processfacts.PartArgs
		default:
			return p.fail(at, "env or args was expected", "")
		}
		text, err := p.text("strings")
		if err != nil {
			return err
		}
		put(part, string(text))
	}
	return c.record(&r)
}
