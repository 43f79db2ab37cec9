// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/trace"
)

// totals are the sums that processes and files have in common.
type totals struct {
	events, calls, errors       int64
	opens, reads, writes, syncs int64
	readBytes, writtenBytes     int64
	busy                        int64 // ns within calls
	first, last                 int64 // ns
}

func (t *totals) add(r *row) {
	if t.events == 0 {
		t.first, t.last = r.Enter, r.Exit
	}
	t.first, t.last = min(t.first, r.Enter), max(t.last, r.Exit)
	t.events++
	if r.Kind != event.Call {
		return
	}
	t.calls++
	took, _ := r.Took()
	t.busy += took
	if r.Errno != 0 {
		t.errors++
	}
	if isOpen(r) {
		t.opens++
	}
	if r.spec.Class == event.Sync {
		t.syncs++
	}
	if r.io.Reads {
		t.reads++
	}
	if r.io.Writes {
		t.writes++
	}
	t.readBytes += r.io.Read
	t.writtenBytes += r.io.Written
}

func isOpen(r *row) bool {
	return r.Op.Effect() == event.EffectOpen || r.Op == event.OpOpenByHandleAt
}

// process is a row of the table processes. A process id that is used again after
// all its threads ended is another process.
type process struct {
	host             int
	pid, ppid        uint32
	uid, gid         uint32
	comm, exe, argv  string
	threads          map[uint32]bool // true while it runs
	count, live      int
	exited, known    bool  // known: status is
	status           int64 // wait status
	startWall, start int64
	endWall, end     int64
	facts            *facts.Described // nil: not known
	totals
}

// file is a row of the table files.
type file struct {
	host     int
	known    bool // dev, ino, mode and size are
	dev, ino uint64
	mode     uint32
	size     int64 // as last seen
	path     string
	totals
	firstWall, lastWall int64
}

type fileKey struct {
	host     uint32
	dev, ino uint64
}

type pathKey struct {
	host uint32
	path string
}

// summary collects the processes and files.
type summary struct {
	tape      *trace.Tape
	processes []*process
	running   map[uint64]*process // by host<<32 | pid
	files     []*file
	byID      map[fileKey]*file
	byPath    map[pathKey]*file
	described facts.Tracker
	buf       []byte
}

func newSummary(t *trace.Tape) *summary {
	return &summary{tape: t, running: make(map[uint64]*process), byID: make(map[fileKey]*file),
		byPath: make(map[pathKey]*file)}
}

func (s *summary) add(r *row) {
	s.described.See(r.Event)
	if p := s.running[uint64(r.Host)<<32|uint64(r.PID)]; p != nil && r.Kind == event.Described {
		p.facts = s.described.Of(r.Host, r.PID)
	}
	if r.Kind == event.Call || r.Kind == event.Exited {
		s.addProcess(r)
	}
	if r.Kind != event.Call {
		return
	}
	if len(r.Files) == 0 && len(r.Paths) == 0 {
		return
	}
	if f := s.fileOf(r); f != nil {
		if f.events == 0 {
			f.firstWall = r.wall
		}
		f.lastWall = r.wall
		io := r.io
		if len(r.Files) > 1 && io.Reads && io.Writes { // from one file to another
			s.half(r, io.From, event.Traffic{Read: io.Read, Reads: true})
			s.half(r, io.To, event.Traffic{Written: io.Written, Writes: true})
			return
		}
		f.totals.add(r)
	}
}

// half accounts for one side of a call that copies between files.
func (s *summary) half(r *row, ef *event.File, io event.Traffic) {
	if ef == nil {
		return
	}
	half := *r
	half.file, half.io = ef, io
	if f := s.fileOf(&half); f != nil {
		f.totals.add(&half)
	}
}

func (s *summary) addProcess(r *row) {
	key := uint64(r.Host)<<32 | uint64(r.PID)
	p := s.running[key]
	if p == nil || p.exited && p.live == 0 && r.Kind != event.Exited {
		p = &process{
			host: r.host, pid: r.PID, ppid: r.PPID, uid: r.UID, gid: r.GID, comm: r.Comm,
			threads: make(map[uint32]bool), start: r.Enter, startWall: r.wall,
			facts: s.described.Of(r.Host, r.PID),
		}
		if p.facts != nil {
			p.exe, p.argv = p.facts.Exe, arguments(p.facts.Args)
		}
		s.running[key] = p
		s.processes = append(s.processes, p)
	}
	runs, seen := p.threads[r.TID]
	if !seen {
		p.count++
	}
	if r.Kind == event.Exited {
		if runs {
			p.live--
		}
		p.threads[r.TID] = false
		p.exited = true
		if r.TID == r.PID || !p.known {
			p.status, p.known = r.Ret, true
		}
	} else if !runs {
		p.threads[r.TID] = true
		p.live++
	}
	p.end, p.endWall = max(p.end, r.Exit), r.wall+r.Exit-r.Enter
	p.comm = r.Comm
	if r.Effect() == event.EffectExecute && r.OK() {
		s.exec(p, r)
	}
	p.totals.add(r)
}

// exec notes what a process has become.
func (s *summary) exec(p *process, r *row) {
	if p.exe = r.abs(0); p.exe == "" {
		p.exe = r.path(0)
	}
	for i := range r.Bufs {
		if b := &r.Bufs[i]; b.Kind == event.KindStrings {
			if b.Len > 1<<20 {
				continue
			}
			var err error
			if s.buf, _, err = s.tape.ContentZero(b, s.buf[:0]); err != nil {
				continue
			}
			p.argv = arguments(s.buf)
			return
		}
	}
}

// arguments joins strings that each have a NUL behind them.
func arguments(b []byte) string {
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
}

// fileOf returns the file that a row is about.
func (s *summary) fileOf(r *row) *file {
	if r.file == nil || !r.file.Known {
		name := r.Name()
		if name == "" {
			return nil
		}
		key := pathKey{r.Host, name}
		f := s.byPath[key]
		if f == nil {
			f = &file{host: r.host, path: name}
			s.byPath[key] = f
			s.files = append(s.files, f)
		}
		return f
	}
	ef := r.file
	key := fileKey{r.Host, ef.Dev, ef.Ino}
	f := s.byID[key]
	if f == nil {
		// What was seen under its name before is the same file, if not known to be another.
		path := pathKey{r.Host, r.Name()}
		if f = s.byPath[path]; f == nil || f.known || path.path == "" {
			f = &file{host: r.host, path: path.path}
			s.files = append(s.files, f)
		}
		s.byID[key] = f
		if path.path != "" {
			s.byPath[path] = f
		}
		f.known, f.dev, f.ino = true, ef.Dev, ef.Ino
	}
	f.mode, f.size = ef.Mode, ef.Size
	return f
}

func totalColumns[R any](of func(*R) *totals) []column[R] {
	n := func(name string, f func(*totals) int64) column[R] {
		return numberColumn(name, func(r *R) int64 { return f(of(r)) })
	}
	return []column[R]{
		n("events", func(t *totals) int64 { return t.events }),
		n("calls", func(t *totals) int64 { return t.calls }),
		n("errors", func(t *totals) int64 { return t.errors }),
		n("opens", func(t *totals) int64 { return t.opens }),
		n("reads", func(t *totals) int64 { return t.reads }),
		n("writes", func(t *totals) int64 { return t.writes }),
		n("syncs", func(t *totals) int64 { return t.syncs }),
		n("bytes_read", func(t *totals) int64 { return t.readBytes }),
		n("bytes_written", func(t *totals) int64 { return t.writtenBytes }),
		n("busy_ns", func(t *totals) int64 { return t.busy }),
	}
}

// processColumns is the table processes.
func processColumns(hosts []string) []column[process] {
	status := func(f func(int64) (int32, bool)) func(*process) (int32, bool) {
		return func(p *process) (int32, bool) {
			if !p.known {
				return 0, false
			}
			return f(p.status)
		}
	}
	return append([]column[process]{
		timeColumn("start_time", func(p *process) (int64, bool) { return p.startWall, true }),
		timeColumn("end_time", func(p *process) (int64, bool) { return p.endWall, true }),
		enumColumn("host", hosts, func(p *process) int { return p.host }),
		numberColumn("pid", func(p *process) uint32 { return p.pid }),
		numberColumn("ppid", func(p *process) uint32 { return p.ppid }),
		numberColumn("uid", func(p *process) uint32 { return p.uid }),
		numberColumn("gid", func(p *process) uint32 { return p.gid }),
		textColumn("comm", func(p *process) string { return p.comm }),
		textColumn("exe", func(p *process) string { return p.exe }),
		textColumn("argv", func(p *process) string { return p.argv }),
		numberColumn("threads", func(p *process) uint32 { return uint32(p.count) }),
		numberColumn("start_ns", func(p *process) int64 { return p.start }),
		numberColumn("end_ns", func(p *process) int64 { return p.end }),
		numberColumn("duration_ns", func(p *process) int64 { return p.end - p.start }),
		factColumn("cwd", func(f *facts.Described) string { return f.Cwd }),
		factColumn("cgroup", func(f *facts.Described) string { return f.Cgroup }),
		factColumn("unit", func(f *facts.Described) string { return facts.Unit(f.Cgroup) }),
		factColumn("container", func(f *facts.Described) string { return facts.Container(f.Cgroup) }),
		factColumn("pod", func(f *facts.Described) string { return facts.Pod(f.Cgroup) }),
		factColumn("env", func(f *facts.Described) string { return strings.Join(facts.Strings(f.Env), "\n") }),
		maybeColumn("caps", func(p *process) (uint64, bool) {
			if p.facts == nil || p.facts.Caps == nil {
				return 0, false
			}
			return *p.facts.Caps, true
		}),
		namespaceColumn("mnt"), namespaceColumn("net"), namespaceColumn("pid"), namespaceColumn("user"),
		maybeColumn("exit_status", status(func(s int64) (int32, bool) { return int32(s >> 8 & 0xff), s&0x7f == 0 })),
		maybeColumn("signal", status(func(s int64) (int32, bool) { return int32(s & 0x7f), s&0x7f != 0 })),
	}, totalColumns(func(p *process) *totals { return &p.totals })...)
}

// factColumn is what is known of where a process runs, as last recorded.
func factColumn(name string, f func(*facts.Described) string) column[process] {
	return textColumn(name, func(p *process) string {
		if p.facts == nil {
			return ""
		}
		return f(p.facts)
	})
}

// namespaceColumn is the inode number of a namespace.
func namespaceColumn(name string) column[process] {
	i := slices.Index(facts.Namespaces[:], name)
	return maybeColumn("ns_"+name, func(p *process) (uint64, bool) {
		if p.facts == nil || p.facts.Namespaces[i] == 0 {
			return 0, false
		}
		return p.facts.Namespaces[i], true
	})
}

// fileColumns is the table files.
func fileColumns(hosts []string) []column[file] {
	return append([]column[file]{
		timeColumn("first_time", func(f *file) (int64, bool) { return f.firstWall, true }),
		timeColumn("last_time", func(f *file) (int64, bool) { return f.lastWall, true }),
		enumColumn("host", hosts, func(f *file) int { return f.host }),
		textColumn("path", func(f *file) string { return f.path }),
		enumColumn("type", typeNames, func(f *file) int { return typeOfMode(f.mode, f.known) }),
		maybeColumn("dev", func(f *file) (uint64, bool) { return f.dev, f.known }),
		maybeColumn("ino", func(f *file) (uint64, bool) { return f.ino, f.known }),
		maybeColumn("mode", func(f *file) (uint32, bool) { return f.mode, f.known }),
		maybeColumn("size", func(f *file) (int64, bool) { return f.size, f.known }),
		numberColumn("first_ns", func(f *file) int64 { return f.first }),
		numberColumn("last_ns", func(f *file) int64 { return f.last }),
	}, totalColumns(func(f *file) *totals { return &f.totals })...)
}

var typeNames = []string{"file", "directory", "symlink", "fifo", "socket", "chardev", "blockdev", "other"}

// typeOfMode returns the position of the name of the type in st_mode (S_IFMT,
// inode(7)), -1 if the mode is not known.
func typeOfMode(mode uint32, known bool) int {
	if !known {
		return -1
	}
	switch event.FileType(mode) {
	case event.TypeRegular:
		return 0
	case event.TypeDir:
		return 1
	case event.TypeSymlink:
		return 2
	case event.TypeFIFO:
		return 3
	case event.TypeSocket:
		return 4
	case event.TypeChar:
		return 5
	case event.TypeBlock:
		return 6
	}
	return 7
}
