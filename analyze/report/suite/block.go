// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
)

// mostRecent is how many requests are kept to be compared with the sync that may have waited for them.
const mostRecent = 1 << 16

// blockRequests is what block devices were asked to do: by device, by file, and what syncs and reads
// waited for.
type blockRequests struct {
	c       *collector
	devices map[deviceOp]*deviceRow
	files   map[int]*blockFileRow
	recent  []blockRequest       // a ring, in the order of their ends
	next    int                  // of the ring
	reads   map[thread]int64     // when its last block_read began
	writers map[int]map[int]bool // of a file: the processes that wrote to it
	syncs   []syncRow
	total   readsRow
}

type deviceOp struct {
	host   uint32
	device uint64
	op     event.Op
}

type thread struct{ host, tid uint32 }

type deviceRow struct {
	Device   string `json:"device"`
	Op       string `json:"op"`
	Requests uint64 `json:"requests"`
	Errors   uint64 `json:"errors"`
	Bytes    uint64 `json:"bytes"`
	TotalNS  int64  `json:"total_ns"`
	P50NS    int64  `json:"p50_ns"`
	P99NS    int64  `json:"p99_ns"`
	MaxNS    int64  `json:"max_ns"`
	Queued   uint64 `json:"queued_requests"` // of which it is known how long they were queued
	QueuedNS int64  `json:"queued_ns"`
	QueueP99 int64  `json:"queued_p99_ns"`
	queues   histogram.Histogram
	times    histogram.Histogram
}

type blockFileRow struct {
	File    string   `json:"file"`
	Reads   uint64   `json:"reads"`
	Read    uint64   `json:"read_bytes"`
	Writes  uint64   `json:"writes"`
	Written uint64   `json:"written_bytes"`
	TotalNS int64    `json:"total_ns"`
	By      []string `json:"written_by"` // processes
}

// syncRow is a sync, and the requests that were under way while it waited.
type syncRow struct {
	AtNS     int64  `json:"at_ns"`
	Seq      uint64 `json:"seq"`
	Process  string `json:"process"`
	Op       string `json:"op"`
	File     string `json:"file"`
	TookNS   int64  `json:"took_ns"`
	BusyNS   int64  `json:"busy_ns"`    // in which a device worked
	Own      uint64 `json:"own_bytes"`  // of the file
	Meta     uint64 `json:"meta_bytes"` // of no file: the file system's own
	Flushes  uint64 `json:"flushes"`
	Others   uint64 `json:"other_bytes"` // of other files
	Requests uint64 `json:"requests"`
}

// readsRow is the reads of regular files, and those in which the thread asked a device.
type readsRow struct {
	Calls      uint64 `json:"calls"`
	Bytes      uint64 `json:"bytes"`
	TotalNS    int64  `json:"total_ns"`
	Waited     uint64 `json:"waited_calls"`
	WaitedByte uint64 `json:"waited_bytes"`
	WaitedNS   int64  `json:"waited_ns"`
	Missed     uint64 `json:"missed_calls"`
	MissedByte uint64 `json:"missed_bytes"`
}

type blockRequest struct {
	host        uint32
	enter, exit int64
	file        int // its number; -1: none
	bytes       uint64
	op          event.Op
}

func newBlockRequests(c *collector) view {
	return &blockRequests{c: c, devices: map[deviceOp]*deviceRow{}, files: map[int]*blockFileRow{},
		reads: map[thread]int64{}, writers: map[int]map[int]bool{}}
}

func (v *blockRequests) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	switch {
	case s.spec.Class == event.Block:
		v.request(s)
	case s.kind == report.Syncing && s.OK():
		v.sync(s)
	case s.file != nil && s.io.Reads && s.OK() && !s.spec.NoCall:
		v.read(s)
	}
	if s.file != nil && s.io.Writes && s.io.Written > 0 && s.spec.Class != event.Block {
		w := v.writers[s.file.id]
		if w == nil {
			w = map[int]bool{}
			v.writers[s.file.id] = w
		}
		if len(w) < maxTop {
			w[s.proc.id] = true
		}
	}
}

func (v *blockRequests) request(s *seen) {
	key := deviceOp{s.Host, s.Args[1], s.Op}
	d := v.devices[key]
	if d == nil {
		d = &deviceRow{}
		v.devices[key] = d
	}
	bytes := s.Args[3]
	d.Requests++
	d.TotalNS += s.took
	d.times.Add(s.took)
	if s.Flags&event.Delays != 0 {
		d.Queued++
		d.QueuedNS += int64(s.DelayBefore)
		d.queues.Add(int64(s.DelayBefore))
	}
	if !s.OK() {
		d.Errors++
		bytes = 0
	}
	d.Bytes += bytes
	r := blockRequest{s.Host, s.Enter, s.Exit, -1, bytes, s.Op}
	if s.file != nil {
		r.file = s.file.id
		v.file(s, bytes)
	}
	if len(v.recent) < mostRecent {
		v.recent = append(v.recent, r)
	} else {
		v.recent[v.next] = r
		v.next = (v.next + 1) % mostRecent
	}
	if s.Op == event.OpBlockRead {
		v.reads[thread{s.Host, s.TID}] = s.Enter
	}
}

// file counts a request for pages of a file.
func (v *blockRequests) file(s *seen, bytes uint64) {
	f := v.files[s.file.id]
	if f == nil {
		f = &blockFileRow{}
		v.files[s.file.id] = f
	}
	f.TotalNS += s.took
	if s.Op == event.OpBlockRead {
		f.Reads++
		f.Read += bytes
	} else {
		f.Writes++
		f.Written += bytes
	}
}

// read counts a read, and whether its thread asked a device for it.
func (v *blockRequests) read(s *seen) {
	t, n := &v.total, uint64(s.io.Read)
	t.Calls++
	t.Bytes += n
	t.TotalNS += s.took
	if s.Flags&event.Missed != 0 {
		t.Missed++
		t.MissedByte += n
	}
	if at, ok := v.reads[thread{s.Host, s.TID}]; ok && at >= s.Enter && at <= s.Exit {
		t.Waited++
		t.WaitedByte += n
		t.WaitedNS += s.took
	}
}

// sync notes what was under way while a sync waited.
func (v *blockRequests) sync(s *seen) {
	r := syncRow{AtNS: s.Enter - v.c.first, Seq: s.Seq, Process: s.proc.name(), Op: s.name, File: s.Name(),
		TookNS: s.took}
	own := -1
	if s.file != nil {
		own = s.file.id
	}
	var busy intervals
	for i := range v.recent { // from the last to end: those before ended earlier
		q := &v.recent[(v.next+len(v.recent)-1-i)%len(v.recent)]
		if q.host != s.Host || q.enter >= s.Exit {
			continue
		}
		if q.exit <= s.Enter {
			break
		}
		r.Requests++
		busy.add(max(q.enter, s.Enter), min(q.exit, s.Exit))
		switch {
		case q.op == event.OpBlockFlush:
			r.Flushes++
		case q.file < 0:
			r.Meta += q.bytes
		case q.file == own:
			r.Own += q.bytes
		default:
			r.Others += q.bytes
		}
	}
	r.BusyNS = busy.total()
	v.syncs = append(v.syncs, r)
	if len(v.syncs) >= 2*maxTop {
		v.slowest()
	}
}

// slowest drops all but the slowest syncs.
func (v *blockRequests) slowest() {
	slices.SortFunc(v.syncs, func(a, b syncRow) int {
		return cmp.Or(cmp.Compare(b.TookNS, a.TookNS), cmp.Compare(a.Seq, b.Seq))
	})
	v.syncs = v.syncs[:min(len(v.syncs), maxTop)]
}

// section is empty if the tape has no requests and nobody asks for them by name.
func (v *blockRequests) section(c *collector) page.Section {
	recorded := len(v.devices) > 0
	for i := range c.tape.Manifest().Hosts {
		recorded = recorded || c.tape.Host(uint32(i)).BlockRequests
	}
	s := page.Section{ID: "block", Title: "Block devices"}
	if !recorded {
		if c.o.Sections == nil {
			return page.Section{}
		}
		s.Blocks = []page.Block{page.Line("the requests to block devices were not recorded: iotape record " +
			"--block-requests does that")}
		s.Data = map[string]any{"recorded": false}
		return s
	}
	s.Note = "Requests that drivers of block devices got, of all programs of the machine. A request takes from " +
		"when its driver gets it until the device has done it; before that it is queued. A request is about the file " +
		"of its first page; those without a file are for the file system's own data, or transfers that pass by " +
		"the page cache. A read waited if its thread asked a device meanwhile: what was read ahead does not " +
		"count. It missed the page " +
		"cache if it had to bring a page there that it read. \"Device " +
		"works\" is the part of a sync in which a request was under way, whosever it was."
	devices, files := v.deviceRows(), v.fileRows()
	v.slowest()
	t := &v.total
	s.Data = map[string]any{"recorded": true, "devices": devices, "files": files[:min(len(files), 1000)],
		"syncs": v.syncs, "reads": t}
	s.Blocks = []page.Block{
		page.Line(fmt.Sprintf("%s of %s reads of files (%s of %s) waited for a device, for %s of %s", Count(t.Waited),
			Count(t.Calls), Size(t.WaitedByte), Size(t.Bytes), span(t.WaitedNS), span(t.TotalNS))),
		page.Line(fmt.Sprintf("%s of %s reads of files (%s of %s) missed the page cache", Count(t.Missed), Count(t.Calls),
			Size(t.MissedByte), Size(t.Bytes))),
		tableOf("By device", []string{"requests", "errors", "bytes", "total", "p50", "p99", "max", "queued",
			"queued p99", "operation", "device"}, -2, devices, 0, func(d *deviceRow) []string {
			return []string{Count(d.Requests), Count(d.Errors), Size(d.Bytes), span(d.TotalNS), span(d.P50NS),
				span(d.P99NS), span(d.MaxNS), d.queued(d.QueuedNS), d.queued(d.QueueP99), d.Op, d.Device}
		}),
		tableOf("Slowest syncs", []string{"at", "took", "device works", "its data", "file system", "flushes",
			"other files", "event", "call", "process", "file"}, -3, v.syncs, c.o.Top, func(r *syncRow) []string {
			return []string{span(r.AtNS), span(r.TookNS), span(r.BusyNS), Size(r.Own), Size(r.Meta), Count(r.Flushes),
				Size(r.Others), fmt.Sprint(r.Seq), r.Op, r.Process, r.File}
		}),
		tableOf("By file", []string{"reads", "read", "writes", "written", "total", "written by", "file"}, -2, files,
			c.o.Top, func(f *blockFileRow) []string {
				by := "–"
				if len(f.By) > 0 {
					by = f.By[0]
				}
				if len(f.By) > 1 {
					by += fmt.Sprintf(" and %d more", len(f.By)-1)
				}
				return []string{Count(f.Reads), Size(f.Read), Count(f.Writes), Size(f.Written), span(f.TotalNS), by,
					f.File}
			}),
	}
	return s
}

// queued writes a time in the queue, a dash if the device keeps no such times.
func (d *deviceRow) queued(ns int64) string {
	if d.Queued == 0 {
		return "–"
	}
	return span(ns)
}

func (v *blockRequests) deviceRows() []deviceRow {
	list := []deviceRow{}
	for key, d := range v.devices {
		d.Device, d.Op = fmt.Sprintf("%d:%d", unix.Major(key.device), unix.Minor(key.device)), key.op.String()
		if len(v.c.tape.Manifest().Hosts) > 1 {
			d.Device += " on " + v.c.tape.Host(key.host).Host
		}
		d.QueueP99 = d.queues.Quantile(.99)
		d.P50NS, d.P99NS, d.MaxNS = d.times.Quantile(.5), d.times.Quantile(.99), d.times.Max
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b deviceRow) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Op, b.Op))
	})
	return list
}

func (v *blockRequests) fileRows() []blockFileRow {
	list := []blockFileRow{}
	for id, f := range v.files {
		f.File, f.By = v.c.files.list[id].path, []string{}
		for _, p := range slices.Sorted(maps.Keys(v.writers[id])) {
			f.By = append(f.By, v.c.procs.list[p].name())
		}
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b blockFileRow) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.File, b.File))
	})
	return list
}
