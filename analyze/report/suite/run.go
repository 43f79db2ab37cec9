// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// run is the header: what was recorded, how much it did, and what the recording lacks,
// with the place of each loss.
type run struct {
	stat     *report.Collector
	byPID    map[int]*quality // by process
	manifest *trace.Manifest
}

// quality is what the recording lacks of one process's events.
type quality struct {
	Process     string `json:"process"`
	Events      uint64 `json:"events"`
	Missing     uint64 `json:"missing_bytes"`
	Omitted     uint64 `json:"omitted_bytes"`
	Interrupted uint64 `json:"interrupted"`
	Unknown     uint64 `json:"unknown_calls"`
}

// lossMark is a place where events are missing.
type lossMark struct {
	AtNS   int64  `json:"at_ns"` // since the first event
	Seq    uint64 `json:"seq"`
	Events int64  `json:"events"`
}

// maxLosses limits the list of lossMarks.
const maxLosses = 1000

type runData struct {
	Recording *report.Recording `json:"recording,omitempty"`
	Events    uint64            `json:"events"`
	Calls     uint64            `json:"calls"`
	Errors    uint64            `json:"errors"`
	Processes int               `json:"processes"`
	Threads   int               `json:"threads"`
	Files     int               `json:"files"`
	ReadBytes uint64            `json:"read_bytes"`
	Written   uint64            `json:"written_bytes"`
	ElapsedNS int64             `json:"elapsed_ns"`
	InCallsNS int64             `json:"in_calls_ns"`
	ByKind    map[string]int64  `json:"by_kind_ns"`
	Quality   report.Quality    `json:"quality"`
	PerProc   []quality         `json:"quality_by_process,omitempty"`
	Losses    []lossMark        `json:"loss_marks,omitempty"`
}

func newRun(c *collector) view {
	return &run{stat: report.NewCollector(&report.Options{Top: 1, Manifest: c.tape.Manifest(), CallName: c.o.CallName}),
		byPID: map[int]*quality{}, manifest: c.tape.Manifest()}
}

func (v *run) see(s *seen) {
	v.stat.See(s.Event)
	q := v.byPID[s.proc.id]
	if q == nil {
		q = &quality{}
		v.byPID[s.proc.id] = q
	}
	q.Events++
	for i := range s.Bufs {
		b := &s.Bufs[i]
		q.Missing += uint64(max(b.Missing, 0))
		q.Omitted += report.Unwanted(v.manifest, s.Event, b)
	}
	if s.Flags&event.Interrupted != 0 {
		q.Interrupted++
	}
	if s.Kind == event.Call && (s.Op == event.OpUnknown || !s.Op.Known()) {
		q.Unknown++
	}
}

func (v *run) section(c *collector) page.Section {
	st := v.stat.Finish()
	d := &runData{Recording: st.Recording, Events: st.Events, Calls: st.Calls, Errors: st.Errors,
		Processes: st.ProcessesTotal, Threads: st.Threads, Files: len(c.files.list),
		ReadBytes: st.ReadBytes, Written: st.WrittenBytes, ElapsedNS: st.ElapsedNS, InCallsNS: st.TotalNS,
		ByKind: map[string]int64{}, Quality: st.Quality, Losses: c.lost}
	d.Quality.DamagedBlocks, d.Quality.FirstDamage = c.bad, c.badIs
	for _, p := range c.procs.list {
		for k, ns := range p.took {
			d.ByKind[report.Work(k).String()] += ns
		}
		if q := v.byPID[p.id]; q != nil && q.Missing+q.Omitted+q.Interrupted+q.Unknown > 0 {
			q.Process = p.name()
			d.PerProc = append(d.PerProc, *q)
		}
	}
	s := page.Section{ID: "run", Title: "The run", Data: d,
		Note: "What was recorded, and what of it the recording does not have. A number in another section is of what " +
			"is there."}
	if r := d.Recording; r != nil {
		s.Blocks = append(s.Blocks, page.Line(strings.TrimSpace(strings.Join(r.Command, " ")+" "+r.Where())))
	}
	s.Blocks = append(s.Blocks,
		page.Line(fmt.Sprintf("%s calls (%s failed) by %s and %s on %s in %s", report.Count(d.Calls),
			report.Count(d.Errors), report.Plural(d.Processes, "process", "processes"),
			report.Plural(d.Threads, "thread", "threads"), report.Plural(d.Files, "file", "files"),
			report.Duration(d.ElapsedNS))),
		page.Line(fmt.Sprintf("read %s, wrote %s", report.Bytes(d.ReadBytes), report.Bytes(d.Written))),
		page.Line("quality: "+d.Quality.Line()))
	kinds := &page.Table{Title: "Time in calls, over all threads",
		Head: []string{"sort of work", "time", "of the time in calls"}, Left: 1}
	for k := range report.Works {
		kinds.Add(k.String(), span(d.ByKind[k.String()]), Percent(float64(d.ByKind[k.String()]), float64(d.InCallsNS)))
	}
	s.Blocks = append(s.Blocks, kinds)
	if len(d.PerProc) > 0 {
		s.Blocks = append(s.Blocks,
			tableOf("What is missing, by process",
				[]string{"process", "events", "content not recorded", "content left out as asked",
					"calls without a return", "unknown calls"}, 1, d.PerProc, c.o.Top, func(q *quality) []string {
					return []string{q.Process, Count(q.Events), Size(q.Missing), Size(q.Omitted),
						Count(q.Interrupted), Count(q.Unknown)}
				}))
	}
	if len(d.Losses) > 0 {
		lost := newBins(c)
		for _, l := range d.Losses {
			lost.add(c.first+l.AtNS, float64(l.Events))
		}
		s.Blocks = append(s.Blocks, &page.Chart{Title: "Where events were lost", X: page.NS, Step: float64(lost.step),
			Series: []page.Series{{Name: "events", Values: lost.values}}})
	}
	return s
}
