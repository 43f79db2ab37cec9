// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
	"github.com/iotape/iotape/trace"
)

// Options for Collect. Nil and zero values are the defaults.
type Options struct {
	// Top limits the files and processes that the Stat lists. 0 is 10; negative is
	// all.
	Top int
	// MaxFiles limits the files that are told apart; those beyond it are summed up
	// as one. 0 is 1 Mi.
	MaxFiles int
	// MaxProcesses likewise. 0 is 256 Ki.
	MaxProcesses int
	// CallName names calls that are not in the operation table. It may be nil.
	CallName func(a event.Arch, nr uint32) string
	// Manifest is the tape's, for losses and the description of the recording.
	Manifest *trace.Manifest
	// Filter is what was picked of the trace, to be said; "" if that is all.
	Filter string
	// Correct puts the times of an event on the clock of all hosts. It may be nil.
	Correct func(*event.Event)
}

// Stat is the summary of a trace. It is also the JSON that `iotape stat --json`
// prints; fields are only ever added.
type Stat struct {
	Version   int        `json:"version"` // 1
	Recording *Recording `json:"recording,omitempty"`
	Filter    string     `json:"filter,omitempty"` // of the events that are summed up
	// Content says how much of the content is stored once; nil without a manifest.
	Content *trace.ContentTotals `json:"content,omitempty"`

	Events    uint64 `json:"events"`
	Calls     uint64 `json:"calls"`
	Errors    uint64 `json:"errors"` // calls that failed
	ReadBytes uint64 `json:"read_bytes"`
	// WrittenBytes counts what calls of class data and socket handed over; bytes
	// that move inside the kernel (sendfile, …) count as both.
	WrittenBytes uint64 `json:"written_bytes"`
	TotalNS      int64  `json:"total_ns"` // spent in calls, over all threads
	ElapsedNS    int64  `json:"elapsed_ns"`
	Threads      int    `json:"threads"`

	Ops            []OpStat      `json:"ops"`               // by total time, longest first
	Signals        []SignalStat  `json:"signals,omitempty"` // that were delivered, most frequent first
	Files          []FileStat    `json:"files"`
	FilesTotal     int           `json:"files_total"`
	Processes      []ProcessStat `json:"processes"`
	ProcessesTotal int           `json:"processes_total"`
	Quality        Quality       `json:"quality"`
}

// Recording says how a trace was made.
type Recording struct {
	Host       string   `json:"host"`
	Hosts      []string `json:"hosts,omitempty"` // all of them, if there are several
	Kernel     string   `json:"kernel"`
	Arch       string   `json:"arch"`
	Backend    string   `json:"backend"`
	Content    string   `json:"content"`
	Command    []string `json:"command"`
	Target     string   `json:"target,omitempty"` // what was recorded, if not a command
	ExitStatus int      `json:"exit_status"`
	Signal     int      `json:"signal,omitempty"`
	// Window is set if it is a part that a flight recorder kept.
	Window *trace.Window `json:"window,omitempty"`
	// Assembly is set if it is a part of what an agent recorded.
	Assembly *trace.Assembly `json:"assembly,omitempty"`
}

// OpStat sums up one operation. Quantiles are within 1 %.
type OpStat struct {
	Op      string `json:"op"`
	Class   string `json:"class"`
	Count   uint64 `json:"count"`
	Errors  uint64 `json:"errors"`
	Bytes   uint64 `json:"bytes"`             // moved
	Untimed uint64 `json:"untimed,omitempty"` // calls whose duration is not known; the times are of the others
	TotalNS int64  `json:"total_ns"`
	P50NS   int64  `json:"p50_ns"`
	P99NS   int64  `json:"p99_ns"`
	MaxNS   int64  `json:"max_ns"`
}

// SignalStat counts how often one signal was delivered, and what was done with it.
type SignalStat struct {
	Signal  string `json:"signal"`
	Count   uint64 `json:"count"`
	Handled uint64 `json:"handled"` // by the program's handler
	Ignored uint64 `json:"ignored"`
	Fatal   uint64 `json:"fatal"` // it ended the process
}

// FileStat sums up what happened to one file through descriptors.
type FileStat struct {
	Path         string `json:"path"`            // the last name that was seen, without symbolic links
	Given        string `json:"given,omitempty"` // a name by which programs opened it, if that is another
	Dev          uint64 `json:"dev"`
	Ino          uint64 `json:"ino"`
	Opens        uint64 `json:"opens"`
	Calls        uint64 `json:"calls"`
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
	Untimed      uint64 `json:"untimed,omitempty"` // calls whose duration is not known
	TotalNS      int64  `json:"total_ns"`
}

func (f *FileStat) bytes() uint64 { return f.ReadBytes + f.WrittenBytes }

// ProcessStat sums up one process.
type ProcessStat struct {
	PID          uint32 `json:"pid"`
	PPID         uint32 `json:"ppid"`
	Comm         string `json:"comm"`
	Threads      int    `json:"threads"`
	Calls        uint64 `json:"calls"`
	Errors       uint64 `json:"errors"`
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
	Untimed      uint64 `json:"untimed,omitempty"` // calls whose duration is not known
	TotalNS      int64  `json:"total_ns"`
	FirstNS      int64  `json:"first_ns"`
	LastNS       int64  `json:"last_ns"`
}

// Quality says what a trace lacks.
type Quality struct {
	LostRecords    uint64       `json:"lost_records"`
	Losses         []trace.Loss `json:"losses,omitempty"`
	LossMarks      uint64       `json:"loss_marks"`           // places in the trace where records are missing
	MissingBytes   uint64       `json:"missing_bytes"`        // of content, could not be recorded
	UnwantedBytes  uint64       `json:"unwanted_bytes"`       // of content, left out by the policy
	Incomplete     uint64       `json:"incomplete"`           // events without some of their content
	Interrupted    uint64       `json:"interrupted"`          // calls whose return was not seen
	Untimed        uint64       `json:"untimed,omitempty"`    // calls that returned, but the trace does not say when
	Late           uint64       `json:"late"`                 // events out of order
	UnknownCalls   uint64       `json:"unknown_calls"`        // not in the operation table: raw arguments only
	Unfinished     string       `json:"unfinished,omitempty"` // why the recording is not whole
	DamagedBlocks  uint64       `json:"damaged_blocks"`       // could not be read
	FirstDamage    string       `json:"first_damage,omitempty"`
	DamageAfterSeq uint64       `json:"damage_after_seq,omitempty"`
}

// Perfect reports whether nothing is missing that was asked for.
func (q *Quality) Perfect() bool {
	return q.LostRecords == 0 && q.LossMarks == 0 && q.MissingBytes == 0 && q.Incomplete == 0 &&
		q.Unfinished == "" && q.DamagedBlocks == 0
}

const (
	defaultTop     = 10
	maxFiles       = 1 << 20
	maxProcesses   = 256 << 10
	otherFiles     = "(other files)"
	otherProcesses = "(others)"
)

type fileKey struct {
	host     uint32
	dev, ino uint64
}

// pathKey is a file of which a foreign trace says no more.
type pathKey struct {
	host uint32
	path string
}

type namedFile struct {
	*FileStat
	known bool // the kernel's facts are
}

type processKey struct{ host, pid uint32 }

type opKey struct {
	op event.Op
	nr uint32 // for operations that are not in the operation table
}

type opTally struct {
	OpStat
	times histogram.Histogram
}

type collector struct {
	stat      Stat
	o         Options
	ops       map[opKey]*opTally
	signals   map[int]*SignalStat
	all       []*FileStat           // at most MaxFiles, and one for all others
	files     map[fileKey]*FileStat // those of which the kernel's facts are known
	named     map[pathKey]namedFile // those whose path is known, as last seen
	processes map[processKey]*ProcessStat
	threads   map[processKey]struct{}
	first     int64
	last      int64
	lastSeq   uint64
}

// Collect sums up events. Errors that the iterator yields are counted as damage.
func Collect(events iter.Seq2[*event.Event, error], o *Options) *Stat {
	c := newCollector(o)
	for e, err := range events {
		if err != nil {
			q := &c.stat.Quality
			if q.DamagedBlocks == 0 {
				q.FirstDamage, q.DamageAfterSeq = err.Error(), c.lastSeq
			}
			q.DamagedBlocks++
			continue
		}
		if c.o.Correct != nil {
			c.o.Correct(e)
		}
		c.see(e)
	}
	return c.finish()
}

func newCollector(o *Options) *collector {
	c := &collector{ops: map[opKey]*opTally{}, signals: map[int]*SignalStat{},
		files: map[fileKey]*FileStat{}, named: map[pathKey]namedFile{},
		processes: map[processKey]*ProcessStat{}, threads: map[processKey]struct{}{}}
	if o != nil {
		c.o = *o
	}
	c.stat.Filter = c.o.Filter
	c.o.Top = cmp.Or(c.o.Top, defaultTop)
	c.o.MaxFiles = cmp.Or(c.o.MaxFiles, maxFiles)
	c.o.MaxProcesses = cmp.Or(c.o.MaxProcesses, maxProcesses)
	return c
}

// A Collector is Collect for who goes over the events anyway.
type Collector struct{ c *collector }

// NewCollector returns a Collector that has seen nothing.
func NewCollector(o *Options) *Collector { return &Collector{newCollector(o)} }

// See counts an event.
func (c *Collector) See(e *event.Event) { c.c.see(e) }

// Finish returns the summary. It is called once.
func (c *Collector) Finish() *Stat { return c.c.finish() }

func (c *collector) see(e *event.Event) {
	s := &c.stat
	c.lastSeq = e.Seq
	s.Events++
	if s.Events == 1 {
		c.first, c.last = e.Enter, e.Exit
	}
	c.first, c.last = min(c.first, e.Enter), max(c.last, e.Exit)
	c.quality(e)
	switch e.Kind {
	case event.LossMark, event.NoteMark:
		return
	}
	p := c.process(e)
	if e.Kind == event.Signalled {
		c.signal(e)
	}
	if e.Kind != event.Call {
		return
	}
	took, timed := e.Took()
	io := e.Traffic()
	read, written := uint64(io.Read), uint64(io.Written)
	s.Calls++
	s.TotalNS += took
	s.ReadBytes += read
	s.WrittenBytes += written
	p.Calls++
	p.TotalNS += took
	p.ReadBytes += read
	p.WrittenBytes += written
	op := c.op(e)
	op.Count++
	op.Bytes += max(read, written)
	op.TotalNS += took
	if timed {
		op.times.Add(took)
	} else {
		op.Untimed++
		p.Untimed++
	}
	if e.Errno != 0 {
		s.Errors++
		p.Errors++
		op.Errors++
	}
	c.file(e, took, timed)
}

// signal counts a delivered signal. There are few numbers, but for a tape that is damaged.
func (c *collector) signal(e *event.Event) {
	const signals = 64
	sig, action := e.Signal()
	if sig < 1 || sig > signals {
		return
	}
	s := c.signals[sig]
	if s == nil {
		s = &SignalStat{Signal: event.SignalName(sig)}
		c.signals[sig] = s
	}
	s.Count++
	switch action {
	case event.SignalHandled:
		s.Handled++
	case event.SignalIgnored:
		s.Ignored++
	case event.SignalTerminates, event.SignalDumps:
		s.Fatal++
	}
}

func (c *collector) quality(e *event.Event) {
	q := &c.stat.Quality
	if e.Kind == event.LossMark {
		q.LossMarks++
		q.LostRecords += e.Loss().Records
	}
	if e.Flags&event.Interrupted != 0 {
		q.Interrupted++
	}
	if e.Flags&event.Untimed != 0 {
		q.Untimed++
	}
	if e.Flags&event.Late != 0 {
		q.Late++
	}
	if e.Flags&event.Incomplete != 0 {
		q.Incomplete++
	}
	if e.Kind == event.Call && (e.Op == event.OpUnknown || !e.Op.Known()) {
		q.UnknownCalls++
	}
	for i := range e.Bufs {
		q.MissingBytes += uint64(max(e.Bufs[i].Missing, 0))
		q.UnwantedBytes += Unwanted(c.o.Manifest, e, &e.Bufs[i])
	}
}

// Unwanted returns how many bytes of a buffer the policy left out. Pages of a mapped file
// that an earlier event has are not among them, where the policy is to keep everything.
func Unwanted(m *trace.Manifest, e *event.Event, b *event.Buf) uint64 {
	if !b.Omitted || e.Op == event.OpMmapPread && m != nil && int(e.Host) < len(m.Hosts) &&
		m.Hosts[e.Host].Content == "full" {
		return 0
	}
	return uint64(max(b.Len-b.Missing-b.Kept(), 0))
}

func (c *collector) op(e *event.Event) *opTally {
	key := opKey{op: e.Op}
	if e.Op == event.OpUnknown || !e.Op.Known() {
		key = opKey{nr: e.NR}
	}
	t := c.ops[key]
	if t == nil {
		spec := e.Spec()
		t = &opTally{OpStat: OpStat{Op: spec.Name, Class: spec.Class.String()}}
		if key.op == event.OpUnknown {
			t.Op = c.rawName(e)
		}
		c.ops[key] = t
	}
	return t
}

// rawName names a call that is not in the operation table.
func (c *collector) rawName(e *event.Event) string {
	if m := c.o.Manifest; c.o.CallName != nil && m != nil && int(e.Host) < len(m.Hosts) {
		if a, ok := event.ParseArch(m.Hosts[e.Host].Arch); ok {
			if name := c.o.CallName(a, e.NR); name != "" {
				return name
			}
		}
	}
	return "syscall_0x" + strconv.FormatUint(uint64(e.NR), 16)
}

// process counts the event's process and thread.
func (c *collector) process(e *event.Event) *ProcessStat {
	key := processKey{e.Host, e.PID}
	p := c.processes[key]
	if p == nil {
		if len(c.processes) >= c.o.MaxProcesses {
			key = processKey{host: ^uint32(0)}
			p = c.processes[key]
		}
		if p == nil {
			p = &ProcessStat{PID: e.PID, PPID: e.PPID, FirstNS: e.Enter}
			if key.host == ^uint32(0) {
				p.PID, p.PPID = 0, 0
			}
			c.processes[key] = p
		}
	}
	if thread := (processKey{e.Host, e.TID}); len(c.threads) < 4*c.o.MaxProcesses {
		if _, ok := c.threads[thread]; !ok {
			c.threads[thread] = struct{}{}
			p.Threads++
		}
	}
	if e.TID == e.PID || p.Comm == "" {
		p.Comm = e.Comm
	}
	if key.host == ^uint32(0) {
		p.Comm = otherProcesses
	}
	if p.PPID == 0 && key.host != ^uint32(0) {
		p.PPID = e.PPID // a process's first event may come before its description
	}
	p.LastNS = max(p.LastNS, e.Exit)
	return p
}

// file adds the call to the files whose descriptors it used or made.
func (c *collector) file(e *event.Event, took int64, timed bool) {
	io := e.Traffic()
	spec := e.Spec()
	for i := range e.Files {
		f := &e.Files[i]
		if !f.Known && f.Path == "" || event.FileType(f.Mode) == event.TypeDir {
			continue
		}
		t := c.fileStat(e.Host, f)
		t.Calls++
		t.TotalNS += took
		if !timed {
			t.Untimed++
		}
		if (f.Path != "" || t.Path == "") && t.Path != otherFiles {
			t.Path = f.Reached()
			if f.Path != "" && f.Path != t.Path {
				t.Given = f.Path
			}
		}
		if f.Arg == event.ResultArg && spec.Class == event.Descriptor && e.PathArg(0) != nil ||
			f.Arg == event.ResultArg && e.PathArg(1) != nil {
			t.Opens++
		}
		if f == io.From {
			t.ReadBytes += uint64(io.Read)
		}
		if f == io.To {
			t.WrittenBytes += uint64(io.Written)
		}
	}
}

func (c *collector) fileStat(host uint32, f *event.File) *FileStat {
	key, name := fileKey{host, f.Dev, f.Ino}, pathKey{host, f.Reached()}
	t, before := c.files[key], c.named[name]
	if !f.Known {
		t = before.FileStat
	}
	if t != nil {
		return t
	}
	// What was seen under its name before is the same file, if not known to be another.
	if t = before.FileStat; t == nil || before.known {
		if len(c.all) > c.o.MaxFiles {
			return c.all[c.o.MaxFiles]
		}
		t = &FileStat{}
		c.all = append(c.all, t)
		if len(c.all) > c.o.MaxFiles {
			t.Path = otherFiles
			return t
		}
	}
	t.Dev, t.Ino = f.Dev, f.Ino
	if f.Known {
		c.files[key] = t
	}
	if f.Path != "" {
		c.named[name] = namedFile{t, f.Known}
	}
	return t
}

func (c *collector) finish() *Stat {
	s := &c.stat
	s.Version = 1
	s.ElapsedNS = c.last - c.first
	s.Threads = len(c.threads)
	for _, t := range c.ops {
		t.P50NS, t.P99NS, t.MaxNS = t.times.Quantile(0.50), t.times.Quantile(0.99), t.times.Max
		s.Ops = append(s.Ops, t.OpStat)
	}
	slices.SortFunc(s.Ops, func(a, b OpStat) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op))
	})
	for _, t := range c.signals {
		s.Signals = append(s.Signals, *t)
	}
	slices.SortFunc(s.Signals, func(a, b SignalStat) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Signal, b.Signal))
	})
	for _, t := range c.all {
		s.Files = append(s.Files, *t)
	}
	s.FilesTotal = len(s.Files)
	slices.SortFunc(s.Files, func(a, b FileStat) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Ino, b.Ino))
	})
	for _, t := range c.processes {
		s.Processes = append(s.Processes, *t)
	}
	s.ProcessesTotal = len(s.Processes)
	slices.SortFunc(s.Processes, func(a, b ProcessStat) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.PID, b.PID))
	})
	if c.o.Top > 0 {
		s.Files = slices.Clip(s.Files[:min(c.o.Top, len(s.Files))])
		s.Processes = slices.Clip(s.Processes[:min(c.o.Top, len(s.Processes))])
	}
	c.describe()
	return s
}

// describe adds what the manifest says.
func (c *collector) describe() {
	m := c.o.Manifest
	if m == nil {
		return
	}
	totals := m.Content
	c.stat.Content = &totals
	q := &c.stat.Quality
	q.Losses = m.Losses
	lost := uint64(0)
	for _, l := range m.Losses {
		lost += l.Records
	}
	q.LostRecords = max(q.LostRecords, lost)
	if m.Incomplete {
		q.Unfinished = cmp.Or(m.Reason, "the recording did not end in order")
	}
	if len(m.Hosts) > 0 {
		h := &m.Hosts[0]
		c.stat.Recording = &Recording{Host: h.Host, Kernel: h.Kernel, Arch: h.Arch,
			Backend: h.Backend, Content: h.Content,
			Command: h.Command, Target: h.Target, ExitStatus: m.ExitStatus, Signal: m.Signal,
			Window: h.Window, Assembly: m.Assembly}
		if len(m.Hosts) > 1 {
			for i := range m.Hosts {
				c.stat.Recording.Hosts = append(c.stat.Recording.Hosts, m.Hosts[i].Host)
			}
		}
	}
}
