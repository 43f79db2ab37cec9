// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	"cmp"
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
	im    *format.Import
	hosts map[string]*host
	wrong string // what is wrong with the first line that is not understood
}

// host is what is known of one host.
type host struct {
	w       *format.Writer
	im      *format.Import
	threads map[uint32]*thread
	cpus    map[int64]uint32 // the thread that runs
	// threads that were made up, by program or processor
	invented map[string]uint32
	tables   map[int64]uint32 // processes by their tables of descriptors
	last     int64            // time
	days     int64            // ns that have passed at the last midnight, for times of day
	followed format.Followed
}

type thread struct {
	pid, ppid uint32
	comm      string
	told      bool // as it is now
	pending   *format.Call
	call      *call
	name      string // of the pending event
	program   string // that it executes
	unknown   bool   // it is in a call that is left out
	grouped   bool   // pid is its process, and not its own number for lack of that
}

// Limits of what a hostile file can make the import hold.
const (
	maxThreads = 1 << 20
	maxCPUs    = 1 << 13
)

// firstInvented is the number of the first thread that is made up, above the kernel's
// (PID_MAX_LIMIT).
const firstInvented = 1<<22 + 1

// maxComm is what the kernel keeps of a program's name, in bytes (TASK_COMM_LEN).
const maxComm = 15

// event takes an event.
func (p *importer) event(l *line) error {
	h := p.hosts[l.host]
	if h == nil {
		w, err := p.im.Host(l.host)
		if err != nil {
			return err
		}
		w.Head.Backend = "LTTng"
		w.Head.Content = "none"
		w.Unsorted = true // who was made comes before the call that made it
		h = &host{
			w: w, im: p.im, threads: map[uint32]*thread{}, cpus: map[int64]uint32{}, tables: map[int64]uint32{},
			invented: map[string]uint32{},
		}
		p.hosts[l.host] = h
	}
	p.im.Records++
	if l.daytime {
		const day, half = 24 * 3600 * 1e9, 12 * 3600 * 1e9
		if l.time+h.days < h.last-half { // it is past midnight
			h.days += day
		}
		l.time += h.days
	}
	h.last = max(h.last, l.time)
	if nameless(l.context) && nameless(l.payload) && len(l.context)+len(l.payload) > 0 {
		p.im.LeftOut("events whose fields have no names; babeltrace2 prints them unless --names=none is given", 1)
		return nil
	}
	return h.event(l)
}

func nameless(list []value) bool {
	return !slices.ContainsFunc(list, func(v value) bool { return v.name != "" })
}

func (h *host) event(l *line) error {
	kind, name := "", strings.TrimPrefix(l.name, "compat_")
	for _, k := range []string{"syscall_entry_", "syscall_exit_"} {
		if n, ok := strings.CutPrefix(name, k); ok {
			kind, name = k, n
		}
	}
	// LTTng before 2.6: sys_open, and one event for the returns of all calls.
	if n, ok := strings.CutPrefix(name, "sys_"); ok {
		kind, name = "syscall_entry_", n
	} else if name == "exit_syscall" {
		kind, name = "syscall_exit_", ""
	}
	switch {
	case kind != "":
		return h.syscall(l, kind == "syscall_entry_", name)
	case l.name == "sched_switch":
		cpu, ok := number(l.context, "cpu_id")
		next, known := number(l.payload, "next_tid")
		if ok && known && (len(h.cpus) < maxCPUs || h.cpus[cpu] != 0) {
			h.cpus[cpu] = uint32(next)
			if comm := find(l.payload, "next_comm"); comm != nil && next != 0 {
				h.is(uint32(next), 0, 0, comm.text)
			}
		}
		return nil
	case l.name == "sched_process_fork":
		tid, _ := number(l.payload, "child_tid")
		pid, _ := number(l.payload, "child_pid")
		parent, _ := number(l.payload, "parent_pid")
		if pid == parent {
			parent = 0
		} else {
			h.followed.Forked(uint32(parent), uint32(pid), 0)
		}
		h.is(uint32(tid), uint32(pid), uint32(parent), "")
		return nil
	case l.name == "lttng_statedump_process_state":
		tid, _ := number(l.payload, "tid", "vtid")
		pid, _ := number(l.payload, "pid", "vpid")
		ppid, _ := number(l.payload, "ppid", "vppid")
		comm := ""
		if v := find(l.payload, "name"); v != nil {
			comm = v.text
		}
		if table, ok := number(l.payload, "file_table_address"); ok && len(h.tables) < maxThreads {
			h.tables[table] = uint32(pid)
		}
		h.is(uint32(tid), uint32(pid), uint32(ppid), comm)
		return nil
	case l.name == "lttng_statedump_file_descriptor":
		return h.open(l)
	}
	h.im.LeftOut(l.name+" events", 1)
	return nil
}

// is notes who a thread is; what is not known is 0 or "". It returns nil if there are
// too many.
func (h *host) is(tid, pid, ppid uint32, comm string) *thread {
	th := h.threads[tid]
	if th == nil {
		if len(h.threads) == maxThreads {
			return nil
		}
		th = &thread{pid: tid}
		h.threads[tid] = th
	}
	th.grouped = th.grouped || pid != 0
	if pid != 0 && pid != th.pid || ppid != 0 && ppid != th.ppid || comm != "" && comm != th.comm {
		th.pid, th.ppid, th.comm, th.told = cmp.Or(pid, th.pid), cmp.Or(ppid, th.ppid), cmp.Or(comm, th.comm), false
	}
	return th
}

// open takes what a state dump says of a descriptor.
func (h *host) open(l *line) error {
	fd, _ := number(l.payload, "fd")
	flags, _ := number(l.payload, "flags")
	name := find(l.payload, "filename")
	pid, ok := number(l.payload, "pid", "vpid")
	if table, has := number(l.payload, "file_table_address"); has {
		var p uint32
		if p, ok = h.tables[table]; ok {
			pid = int64(p)
		}
	}
	if !ok || name == nil {
		h.im.LeftOut("open files of unknown processes", 1)
		return nil
	}
	return h.w.Open(uint32(pid), trace.Object{FD: int32(fd), Flags: uint32(flags)}, name.text, uint64(l.time))
}

// running returns the thread of a call whose line does not say it: the one that was switched
// to on the processor, else one that is made up, of the program or of the processor.
func (h *host) running(l *line) (tid int64) {
	cpu, _ := number(l.context, "cpu_id")
	if t, known := h.cpus[cpu]; known {
		return int64(t)
	}
	h.im.LeftOut("threads of calls; LTTng's contexts tid, pid and procname say who made them", 1)
	who := fmt.Sprintf("processor %d", cpu)
	if v := find(l.context, "procname"); v != nil {
		who = v.text
	}
	t, ok := h.invented[who]
	if !ok {
		if t = firstInvented + uint32(len(h.invented)); len(h.invented) < maxCPUs {
			h.invented[who] = t
		}
	}
	return int64(t)
}

func (h *host) syscall(l *line, entry bool, name string) error {
	tid, ok := number(l.context, "tid", "vtid")
	if !ok {
		tid = h.running(l)
	}
	pid, _ := number(l.context, "pid", "vpid")
	ppid, _ := number(l.context, "ppid", "vppid")
	comm := ""
	if v := find(l.context, "procname"); v != nil {
		comm = v.text
	}
	th := h.is(uint32(tid), uint32(pid), uint32(ppid), comm)
	if th == nil {
		h.im.LeftOut("calls of too many threads", 1)
		return nil
	}
	if !entry {
		return h.exit(l, uint32(tid), th, name)
	}
	if err := h.interrupted(th, l.time); err != nil {
		return err
	}
	c := calls()[name]
	if th.unknown = c == nil; th.unknown {
		h.im.LeftOut(name, 1)
		return nil
	}
	if !th.told {
		th.told = true
		if err := h.w.Task(&format.Task{PID: th.pid, TID: uint32(tid), PPID: th.ppid, Comm: th.comm},
			uint64(l.time)); err != nil {
			return err
		}
	}
	th.call, th.name = c, name
	th.pending = &format.Call{Op: c.op, NR: c.nr, PID: th.pid, TID: uint32(tid), Enter: uint64(l.time)}
	c.fields(th.pending, l.payload)
	if v := find(l.payload, "filename"); v != nil && comm == "" &&
		(c.op == event.OpExecve || c.op == event.OpExecveat) {
		th.program = path.Base(v.text) // or the context says it
	}
	if c.op == event.OpExit || c.op == event.OpExitGroup {
		th.pending.Exit = uint64(l.time)
		err := h.w.Call(th.pending)
		delete(h.threads, uint32(tid))
		return err
	}
	return nil
}

// exit completes a call.
func (h *host) exit(l *line, tid uint32, th *thread, name string) error {
	fc := th.pending
	if name == "" && fc == nil {
		if th.told && !th.unknown { // else it is a child's first return, or of a call that is left out
			h.im.LeftOut("returns without their calls", 1)
		}
		th.unknown = false
		return nil
	}
	if fc == nil || name != "" && th.name != name {
		if strings.HasPrefix(name, "clone") || strings.HasSuffix(name, "fork") {
			return nil // it is the child's first return
		}
		if calls()[name] != nil { // or it is left out anyway
			h.im.LeftOut("returns without their calls", 1)
		}
		return nil
	}
	th.pending = nil
	fc.Exit = uint64(l.time)
	fc.Ret, _ = number(l.payload, "ret")
	th.call.fields(fc, l.payload)
	fc.Moved(event.Lookup(th.call.op))
	if th.program != "" && fc.Ret == 0 {
		h.is(tid, 0, 0, th.program[:min(len(th.program), maxComm)])
	}
	th.program = ""
	if fc.Op == event.OpClone && fc.Ret > 0 && fc.Args[0]&trace.ShareThread != 0 {
		h.is(uint32(fc.Ret), th.pid, 0, "")
	}
	if th.grouped { // else other threads may move the positions, too
		h.followed.Call(fc)
	}
	return h.w.Call(fc)
}

// interrupted writes the call that a thread was in without a return.
func (h *host) interrupted(th *thread, now int64) error {
	fc := th.pending
	if fc == nil {
		return nil
	}
	th.pending = nil
	fc.Exit, fc.Interrupted = uint64(now), true
	return h.w.Call(fc)
}

// end writes the calls that have not returned.
func (p *importer) end() error {
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		h := p.hosts[name]
		for _, tid := range slices.Sorted(maps.Keys(h.threads)) {
			if err := h.interrupted(h.threads[tid], h.last); err != nil {
				return err
			}
		}
	}
	return nil
}
