// SPDX-License-Identifier: Apache-2.0

package auditd

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxPending   = 64 // events whose records may still come
	maxRecords   = 64 // of an event
	maxProcesses = 1 << 16
)

// What is left out, by the names that a user sees.
const (
	otherArch  = "calls of programs for another architecture than x86-64 and arm64"
	notCalls   = "records that are of no system call"
	setBack    = "events with an earlier time than one before (the clock was set back): they are placed behind it"
	splitWords = "programs with arguments that the log does not have"
)

type importer struct {
	im    *format.Import
	hosts map[string]*host
	order []*host
	calls int
}

// host is a machine of the log.
type host struct {
	x         *importer
	w         *format.Writer
	now       uint64 // time of the last event
	pending   []*auditEvent
	processes map[uint32]*process
}

type process struct {
	comm     string
	uid, gid uint32
}

// auditEvent is the records of one serial number.
type auditEvent struct {
	serial  uint64
	time    uint64
	records []record
	ended   bool
}

// record adds a record to its event. Records of events may be mixed.
func (x *importer) record(r *record) error {
	h := x.hosts[r.node]
	if h == nil {
		w, err := x.im.Host(r.node)
		if err != nil {
			return err
		}
		w.Head.Backend, w.Head.Content = "auditd", "none"
		h = &host{x: x, w: w, processes: map[uint32]*process{}}
		x.hosts[r.node] = h
		x.order = append(x.order, h)
	}
	for _, e := range h.pending {
		if e.serial == r.serial && e.time == r.time {
			if r.kind == "EOE" {
				e.ended = true
			} else if len(e.records) < maxRecords {
				e.records = append(e.records, *r)
			}
			return h.flush(maxPending)
		}
	}
	if r.kind == "EOE" {
		return nil
	}
	h.pending = append(h.pending, &auditEvent{serial: r.serial, time: r.time, records: []record{*r}})
	return h.flush(maxPending)
}

// flush writes events, oldest first, that have ended or are more than can be kept.
func (h *host) flush(keep int) error {
	for len(h.pending) > 0 && (h.pending[0].ended || len(h.pending) > keep) {
		e := h.pending[0]
		h.pending = h.pending[1:]
		if err := h.event(e); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first record of a kind.
func (e *auditEvent) find(kind string) *record {
	for i := range e.records {
		if e.records[i].kind == kind {
			return &e.records[i]
		}
	}
	return nil
}

// architecture reads what AUDIT_ARCH_* says (linux/audit.h).
func architecture(s string) (event.Arch, bool) {
	switch strings.ToLower(s) {
	case "c000003e", "x86_64":
		return event.AMD64, true
	case "c00000b7", "aarch64":
		return event.ARM64, true
	}
	return 0, false
}

// event writes an event as a call.
func (h *host) event(e *auditEvent) error {
	im, sys := h.x.im, e.find("SYSCALL")
	if sys == nil {
		im.LeftOut(notCalls, uint64(len(e.records)))
		return nil
	}
	im.Records++
	op, nr, ok := sys.systemCall()
	if !ok {
		im.LeftOut(otherArch, 1)
		return nil
	}
	if e.time < h.now/1e6*1e6 {
		im.LeftOut(setBack, 1)
	}
	h.now = max(e.time, h.now+1000) // times are in ms: what has the same one keeps its order
	h.x.calls++
	c := &format.Call{Op: op, PID: sys.identity("pid"), TID: sys.identity("pid"), Enter: h.now, Untimed: true}
	if op == event.OpUnknown {
		c.NR = nr
	}
	spec := event.Lookup(op)
	sys.arguments(c, spec)
	ret, ok := sys.result()
	c.Ret, c.Interrupted = ret, !ok && !spec.NoReturn
	cwd := ""
	if r := e.find("CWD"); r != nil {
		cwd, _ = r.text("cwd")
	}
	if err := h.process(sys, c.PID, cwd); err != nil {
		return err
	}
	h.names(c, spec, e, cwd)
	h.memory(c, spec, e)
	return h.w.Call(c)
}

// arguments gives a call its arguments. The log has four of them.
func (r *record) arguments(c *format.Call, spec *event.Spec) {
	for i := range max(4, len(spec.Args)) {
		a, known := &event.Arg{}, false
		if i < len(spec.Args) {
			a = &spec.Args[i]
		}
		if i < 4 {
			c.Args[i], known = r.argument(i, a)
		}
		if !known && i < len(spec.Args) && !a.Kind.IsMemory() {
			c.NotKnown(i)
		}
	}
}

// process says who a process is, when it is new or another one.
func (h *host) process(sys *record, pid uint32, cwd string) error {
	comm, _ := sys.text("comm")
	now := process{comm, sys.user("uid"), sys.user("gid")}
	old := h.processes[pid]
	if old != nil && *old == now {
		return nil
	}
	if old == nil && strings.HasPrefix(cwd, "/") {
		const umask = 0o022 // which the log does not say
		if err := h.w.Start(pid, cwd, umask, h.now-1); err != nil {
			return err
		}
	}
	if len(h.processes) < maxProcesses || old != nil {
		h.processes[pid] = &now
	}
	return h.w.Task(&format.Task{
		PID: pid, TID: pid, PPID: sys.identity("ppid"), UID: now.uid, GID: now.gid, Comm: comm,
	}, h.now-1)
}

// names gives a call the names of its PATH records. Records of parent directories are left out.
// Relative names are completed by the working directory, because the log need not have the calls
// that change it.
func (h *host) names(c *format.Call, spec *event.Spec, e *auditEvent, cwd string) {
	names := e.names()
	if len(names) == 0 {
		return
	}
	if c.Op == event.OpSymlink || c.Op == event.OpSymlinkat {
		if c.Text(0, names[0], false); len(names) == 1 {
			return
		}
		names = names[len(names)-1:] // the link; the other one is what it leads to
	}
	var at []int
	for i := range spec.Args {
		if spec.Args[i].Kind == event.KindPath {
			at = append(at, i)
		}
	}
	for n, i := range at {
		name := names[0]
		if n > 0 { // a rename also has the file that it replaced
			name = names[len(names)-1]
		}
		fromDir := i > 0 && spec.Args[i-1].Kind == event.KindDirFD && int32(c.Args[i-1]) != event.AtFDCWD
		if !fromDir && name != "" && name[0] != '/' && strings.HasPrefix(cwd, "/") {
			name = path.Join(cwd, name)
		}
		if n == 0 || len(names) > 1 {
			c.Text(i, name, false)
		}
	}
}

// names returns the names of an event, but for those of parent directories.
func (e *auditEvent) names() (names []string) {
	records := slices.Clone(e.records)
	slices.SortStableFunc(records, func(a, b record) int { // ausearch -i prints the last one first
		return cmp.Compare(a.number("item", 10), b.number("item", 10))
	})
	for i := range records {
		r := &records[i]
		if name, ok := r.text("name"); ok && r.kind == "PATH" && r.value("nametype") != "PARENT" {
			names = append(names, name)
		}
	}
	return names
}

// memory adds what other records say of a call's memory, and the lengths of what it moved.
func (h *host) memory(c *format.Call, spec *event.Spec, e *auditEvent) {
	const mapAnonymous = 0x20
	if c.Op == event.OpMmap && c.Args[3]&mapAnonymous != 0 {
		c.Args[4] = math.MaxUint64 // no file
		c.Known(4)
	}
	executed := false
	for i := range e.records {
		r := &e.records[i]
		switch r.kind {
		case "EXECVE":
			if !executed { // the others have the rest of its arguments
				h.words(c, e)
			}
			executed = true
		case "MMAP":
			if c.Op == event.OpMmap {
				c.Args[4] = uint64(int32(r.number("fd", 10)))
				c.Known(4)
			}
		case "SOCKADDR":
			if b, ok := r.address(); ok && len(b) <= 128 && len(spec.Args) > 2 &&
				(c.Op == event.OpConnect || c.Op == event.OpBind) {
				c.Sockaddr(1, 2, b)
			}
		}
	}
	c.Moved(spec)
}

// words gives execve the arguments of the program. Many arguments are in several records, long ones in parts:
// a2_len=9000 a2[0]=… a2[1]=….
func (h *host) words(c *format.Call, e *auditEvent) {
	said := map[string]string{}
	for i := range e.records {
		if r := &e.records[i]; r.kind == "EXECVE" {
			for _, f := range r.fields {
				if said[f.name] = f.value; r.words && f.name != "argc" {
					said[f.name] = `"` + f.value + `"`
				}
			}
		}
	}
	var words []string
	argc, _ := strconv.ParseUint(said["argc"], 10, 32)
	for i := range argc {
		name := fmt.Sprintf("a%d", i)
		word, ok := decode(said[name])
		for part := 0; said[name] == ""; part++ {
			more, known := decode(said[fmt.Sprintf("%s[%d]", name, part)])
			if !known {
				break
			}
			word, ok = word+more, true
		}
		if !ok {
			h.x.im.LeftOut(splitWords, 1)
			break
		}
		words = append(words, word)
	}
	switch {
	case len(words) == 0:
	case c.Op == event.OpExecve:
		c.Strings(1, words)
	case c.Op == event.OpExecveat:
		c.Strings(2, words)
	}
}
