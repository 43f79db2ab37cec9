// SPDX-License-Identifier: Apache-2.0

package processtree

import (
	"io"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/trace"
)

// Tree is the processes of a tape. It is also the JSON that `iotape ps --json` prints; fields
// are only ever added.
type Tree struct {
	Version int        `json:"version"` // 1
	Roots   []*Process `json:"processes"`
	Total   int        `json:"total"`          // all processes of the tree
	Damaged uint64     `json:"damaged_blocks"` // parts of the tape that could not be read
}

// Process is one process. A number that is used again is another process.
type Process struct {
	Host string `json:"host,omitempty"` // if the tape has several
	PID  uint32 `json:"pid"`
	PPID uint32 `json:"ppid"`             // 0 if unknown
	NS   uint32 `json:"ns_pid,omitempty"` // its number in its own pid namespace, if that is another
	UID  uint32 `json:"uid"`              // of file-system access, as last seen
	GID  uint32 `json:"gid"`
	Comm string `json:"comm"`          // the kernel's name, as last seen
	Dir  string `json:"dir,omitempty"` // working directory at the start of the recording

	// Programs are those that it executed, in order. A process that executes none runs its parent's.
	Programs []Program `json:"programs,omitempty"`

	// Facts are where it runs and with what, as last recorded; nil if that is not known.
	Facts *facts.Summary `json:"facts,omitempty"`

	Threads int   `json:"threads"`  // in all
	StartNS int64 `json:"start_ns"` // since the start of the trace
	EndNS   int64 `json:"end_ns"`   // its last event
	// Before says that it ran before the recording, Running that it still ran at the end.
	Before  bool   `json:"before"`
	Running bool   `json:"running"`
	Exit    *int   `json:"exit_status,omitempty"`
	Signal  string `json:"signal,omitempty"` // that ended it

	report.Totals

	Children []*Process `json:"children,omitempty"` // in the order in which they were made
}

// Program is what a process executed.
type Program struct {
	Path string   `json:"path"`
	Args []string `json:"args"` // as recorded; empty if the recording does not have them
}

type key struct{ host, pid uint32 }

// living is a process that runs, and the threads of it that do.
type living struct {
	*Process
	threads map[uint32]bool
}

type collector struct {
	tape  *trace.Tape
	tree  Tree
	alive map[key]*living
	first int64
	begun bool
	buf   []byte
}

// Collect finds the processes of a tape. correct puts the times of an event on the clock of all
// hosts; it may be nil.
func Collect(t *trace.Tape, correct func(*event.Event)) *Tree {
	c := &collector{tape: t, tree: Tree{Version: 1}, alive: map[key]*living{}}
	for ev, err := range t.Events() {
		if err != nil {
			c.tree.Damaged++
			continue
		}
		if correct != nil {
			correct(ev)
		}
		c.see(ev)
	}
	for _, p := range c.alive {
		p.Running = true
	}
	return &c.tree
}

func (c *collector) see(ev *event.Event) {
	if !c.begun {
		c.first, c.begun = ev.Enter, true
	}
	switch ev.Kind {
	case event.LossMark, event.NoteMark, event.Woken:
		return
	}
	p := c.process(ev)
	p.EndNS = max(p.EndNS, ev.Exit-c.first)
	if !p.threads[ev.TID] {
		p.threads[ev.TID] = true
		p.Threads++
	}
	switch ev.Kind {
	case event.Forked:
		c.forked(p, ev)
	case event.Described:
		c.described(p, ev)
	case event.Started:
		if len(ev.Paths) > 0 {
			p.Dir = ev.Paths[0].Abs
		}
	case event.Exited:
		c.exited(p, ev)
	case event.Call:
		p.UID, p.GID, p.Comm, p.NS = ev.UID, ev.GID, ev.Comm, ev.NSPID
		c.call(p, ev)
	}
}

// process returns the process of an event. One that nobody was seen to make ran before.
func (c *collector) process(ev *event.Event) *living {
	k := key{ev.Host, ev.PID}
	p := c.alive[k]
	if p == nil {
		p = c.add(nil, k, ev)
		p.PPID = ev.PPID
		p.Before = ev.Kind == event.Started || ev.Kind == event.Inherited || ev.Kind == event.Described
		p.UID, p.GID, p.Comm, p.NS = ev.UID, ev.GID, ev.Comm, ev.NSPID
	}
	if p.PPID == 0 {
		p.PPID = ev.PPID
	}
	return p
}

func (c *collector) add(parent *living, k key, ev *event.Event) *living {
	p := &living{&Process{PID: k.pid, StartNS: ev.Exit - c.first}, map[uint32]bool{}}
	p.EndNS = p.StartNS
	if hosts := c.tape.Manifest().Hosts; len(hosts) > 1 {
		p.Host = c.tape.Host(k.host).Host
	}
	c.alive[k] = p
	c.tree.Total++
	if parent == nil {
		c.tree.Roots = append(c.tree.Roots, p.Process)
	} else {
		parent.Children = append(parent.Children, p.Process)
	}
	return p
}

func (c *collector) forked(p *living, ev *event.Event) {
	made := ev.Fork()
	if made.IsThread() {
		p.threads[ev.Child] = true
		p.Threads++
		return
	}
	k := key{ev.Host, made.PID}
	if c.alive[k] != nil { // its own first events came before
		return
	}
	child := c.add(p, k, ev)
	child.PPID, child.UID, child.GID, child.Comm, child.Facts = p.PID, p.UID, p.GID, p.Comm, p.Facts
	child.threads[ev.Child] = true
	child.Threads = 1
}

// described notes where a process runs. One that ran before the recording has a program by that.
func (c *collector) described(p *living, ev *event.Event) {
	said := facts.Of(ev)
	p.Facts = said.Summary()
	if env, known := facts.Env(ev); known {
		p.Facts.WithEnv(env, false)
	}
	if args := facts.Args(ev); len(args) > 0 && len(p.Programs) == 0 {
		p.Programs = append(p.Programs, Program{Path: said.Exe, Args: args})
	}
}

func (c *collector) exited(p *living, ev *event.Event) {
	delete(p.threads, ev.TID)
	if ev.TID == ev.PID || p.Exit == nil && p.Signal == "" {
		p.Exit, p.Signal = nil, ""
		if sig := int(ev.Ret & 0x7f); sig != 0 {
			p.Signal = event.SignalName(sig)
		} else {
			status := int(ev.Ret >> 8 & 0xff)
			p.Exit = &status
		}
	}
	if len(p.threads) == 0 {
		delete(c.alive, key{ev.Host, ev.PID})
	}
}

func (c *collector) call(p *living, ev *event.Event) {
	p.Add(ev)
	if ev.Effect() == event.EffectExecute && ev.OK() {
		p.Programs = append(p.Programs, c.program(ev))
		// Its other threads are gone, without events of their own in some recordings.
		p.threads = map[uint32]bool{ev.PID: true}
	}
}

// maxArgs bounds the arguments of a program that are read, in bytes (ARG_MAX is 2 MiB by default).
const maxArgs = 4 << 20

// program returns what an execve executed. The arguments are its first strings.
func (c *collector) program(ev *event.Event) Program {
	p := Program{Args: []string{}}
	if len(ev.Paths) > 0 {
		if p.Path = ev.Paths[0].Abs; p.Path == "" {
			p.Path = ev.Paths[0].Raw
		}
	}
	i := slices.IndexFunc(ev.Bufs, func(b event.Buf) bool { return b.Kind == event.KindStrings })
	if i < 0 || ev.Bufs[i].Len > maxArgs {
		return p
	}
	var err error
	if c.buf, _, err = c.tape.ContentZero(&ev.Bufs[i], c.buf[:0]); err != nil {
		c.tree.Damaged++
		return p
	}
	if text := strings.TrimSuffix(string(c.buf), "\x00"); len(c.buf) > 0 {
		p.Args = strings.Split(text, "\x00")
	}
	return p
}

// JSON writes the tree as one indented JSON object.
func (t *Tree) JSON(w io.Writer) error { return jsonout.Object(w, t) }
