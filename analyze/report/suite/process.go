// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
)

// process is one process of one host, with what several views sum up.
type process struct {
	id          int
	host        uint32
	pid, ppid   uint32
	comm        string
	first, last int64 // ns
	ended       bool
	threads     map[uint32]*lifetime
	threadNS    int64 // of threads that have ended
	calls       uint64
	errors      uint64
	read        uint64 // bytes
	written     uint64
	took        [report.Works]int64
}

// lifetime is from a thread's first event to its last.
type lifetime struct{ first, last int64 }

type processKey struct{ host, pid uint32 }

type processes struct {
	max  int
	list []*process
	by   map[processKey]*process
}

const otherProcesses = "(others)"

// maxThreads limits the threads whose lifetimes are kept, per process.
const maxThreads = 4096

// of returns the process of an event.
func (x *processes) of(ev *event.Event) *process {
	if x.by == nil {
		x.by = map[processKey]*process{}
	}
	key := processKey{ev.Host, ev.PID}
	p := x.by[key]
	if p == nil || p.ended && ev.Kind != event.Exited {
		if len(x.list) > x.max {
			return x.list[x.max]
		}
		p = &process{id: len(x.list), host: ev.Host, pid: ev.PID, ppid: ev.PPID, first: ev.Enter,
			threads: map[uint32]*lifetime{}}
		x.list = append(x.list, p)
		if len(x.list) > x.max {
			p.comm = otherProcesses
			return p
		}
		x.by[key] = p
	}
	if p.ppid == 0 {
		p.ppid = ev.PPID
	}
	if ev.Comm != "" && (ev.TID == ev.PID || p.comm == "") && p.comm != otherProcesses {
		p.comm = ev.Comm
	}
	p.first, p.last = min(p.first, ev.Enter), max(p.last, ev.Exit)
	switch t := p.threads[ev.TID]; {
	case t == nil && len(p.threads) < maxThreads && ev.Kind != event.Exited:
		p.threads[ev.TID] = &lifetime{ev.Enter, ev.Exit}
	case t != nil:
		t.last = max(t.last, ev.Exit)
		if ev.Kind == event.Exited {
			p.threadNS += t.last - t.first
			delete(p.threads, ev.TID)
			p.ended = len(p.threads) == 0
		}
	}
	return p
}

func (p *process) call(s *seen) {
	p.calls++
	if s.Errno != 0 {
		p.errors++
	}
	p.read += uint64(s.io.Read)
	p.written += uint64(s.io.Written)
	p.took[s.kind] += s.took
}

// finish ends the threads that had not ended when the tape does.
func (x *processes) finish(int64) {
	for _, p := range x.list {
		for _, t := range p.threads {
			p.threadNS += t.last - t.first
		}
		p.threads = nil
	}
}

// name is how a process is called: its command and number.
func (p *process) name() string {
	switch p.comm {
	case otherProcesses:
		return p.comm
	case "":
		return fmt.Sprintf("process %d", p.pid)
	}
	return fmt.Sprintf("%s %d", p.comm, p.pid)
}

// io is the time in calls that are input or output of files.
func (p *process) io() (ns int64) {
	for k := range report.Works {
		if k.IsIO() {
			ns += p.took[k]
		}
	}
	return ns
}
