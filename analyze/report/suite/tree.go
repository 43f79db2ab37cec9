// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// lineage is the tree of processes with what each did, and how data went from one to
// another through files: written by one, read by another one later.
type lineage struct {
	files map[int]*flowing
}

// flowing is who has written a file, and who has read it then.
type flowing struct {
	writers map[int]uint64 // bytes by process
	readers map[int]uint64
}

// maxFlow limits the processes that are kept of one file.
const maxFlow = 64

func newProcesses(*collector) view { return &lineage{files: map[int]*flowing{}} }

func (v *lineage) see(s *seen) {
	if s.Kind != event.Call || s.io.Bytes() == 0 || s.file == nil {
		return
	}
	if s.io.Writes {
		if f := v.of(s.file); f != nil {
			grow(f.writers, s.proc.id, uint64(s.io.Written))
		}
		if s.from != nil {
			v.read(s.from, s)
		}
		return
	}
	v.read(s.file, s)
}

func (v *lineage) of(f *file) *flowing {
	g := v.files[f.id]
	if g == nil && len(v.files) < maxAccess {
		g = &flowing{map[int]uint64{}, map[int]uint64{}}
		v.files[f.id] = g
	}
	return g
}

func (v *lineage) read(f *file, s *seen) {
	if g := v.files[f.id]; g != nil && len(g.writers) > 0 { // only what was written in the recording
		grow(g.readers, s.proc.id, uint64(s.io.Read))
	}
}

func grow(m map[int]uint64, id int, n uint64) {
	if _, ok := m[id]; ok || len(m) < maxFlow {
		m[id] += n
	}
}

type processRow struct {
	Process string `json:"process"`
	PID     uint32 `json:"pid"`
	PPID    uint32 `json:"ppid"`
	Depth   int    `json:"depth"`
	FromNS  int64  `json:"from_ns"`
	ForNS   int64  `json:"for_ns"`
	Calls   uint64 `json:"calls"`
	Errors  uint64 `json:"errors"`
	Read    uint64 `json:"read_bytes"`
	Written uint64 `json:"written_bytes"`
	IONS    int64  `json:"io_ns"`
	Below   uint64 `json:"bytes_below"` // of it and all below it
}

type flowRow struct {
	From    string `json:"from"`
	File    string `json:"file"`
	To      string `json:"to"`
	Written uint64 `json:"written_bytes"`
	Read    uint64 `json:"read_bytes"`
}

func (v *lineage) section(c *collector) page.Section {
	rows := c.tree()
	flows := []flowRow{}
	for id, f := range v.files {
		for w, written := range f.writers {
			for r, read := range f.readers {
				if w != r {
					flows = append(flows,
						flowRow{c.procs.list[w].name(), c.files.list[id].path, c.procs.list[r].name(), written, read})
				}
			}
		}
	}
	slices.SortFunc(flows, func(a, b flowRow) int {
		return cmp.Or(cmp.Compare(b.Read, a.Read), cmp.Compare(a.File, b.File), cmp.Compare(a.From, b.From),
			cmp.Compare(a.To, b.To))
	})
	s := page.Section{ID: "processes", Title: "Processes and provenance",
		Data: map[string]any{"processes": rows[:min(len(rows), 10000)], "flows": flows[:min(len(flows), 1000)]},
		Note: "Who started whom, with what each process did itself, and bytes of it and all below it. Provenance is " +
			"through files: one process wrote the file, another one read it afterwards."}
	s.Blocks = []page.Block{
		tableOf("Processes", []string{"process", "from", "for", "calls", "failed", "read", "written", "in input and output", "bytes with all below"}, 1, rows, maxTreeRows, func(r *processRow) []string {
			return []string{strings.Repeat("  ", min(r.Depth, 20)) + r.Process, span(r.FromNS), span(r.ForNS),
				Count(r.Calls), Count(r.Errors), Size(r.Read), Size(r.Written), span(r.IONS), Size(r.Below)}
		}),
		tableOf("From process through file to process", []string{"written by", "file", "read by", "written", "read"}, 3, flows, 2*c.o.Top, func(r *flowRow) []string {
			return []string{r.From, r.File, r.To, Size(r.Written), Size(r.Read)}
		}),
	}
	return s
}

// maxTreeRows is how many processes the table has.
const maxTreeRows = 200

// tree returns the processes depth first, children behind their parents in the order of
// their first events.
func (c *collector) tree() []processRow {
	children, roots := map[int][]*process{}, []*process{}
	last := map[processKey]*process{} // by number, as numbers are used again
	for _, p := range c.procs.list {
		parent := last[processKey{p.host, p.ppid}]
		if parent != nil && parent != p && p.ppid != p.pid {
			children[parent.id] = append(children[parent.id], p)
		} else {
			roots = append(roots, p)
		}
		last[processKey{p.host, p.pid}] = p
	}
	rows := make([]processRow, 0, len(c.procs.list))
	// A stack: a hostile tape may have a chain of any depth.
	type item struct {
		p     *process
		depth int
		row   int // -1 before it is visited
	}
	stack := []item{}
	for i := len(roots) - 1; i >= 0; i-- {
		stack = append(stack, item{roots[i], 0, -1})
	}
	below := map[int]uint64{}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		p := top.p
		if top.row >= 0 { // its children are done
			sum := p.read + p.written
			for _, child := range children[p.id] {
				sum += below[child.id]
			}
			below[p.id], rows[top.row].Below = sum, sum
			stack = stack[:len(stack)-1]
			continue
		}
		top.row = len(rows)
		rows = append(rows, processRow{Process: p.name(), PID: p.pid, PPID: p.ppid, Depth: top.depth,
			FromNS: p.first - c.first, ForNS: p.last - p.first,
			Calls: p.calls, Errors: p.errors, Read: p.read, Written: p.written, IONS: p.io()})
		depth := top.depth + 1
		for i := len(children[p.id]) - 1; i >= 0; i-- {
			stack = append(stack, item{children[p.id][i], depth, -1})
		}
	}
	return rows
}
