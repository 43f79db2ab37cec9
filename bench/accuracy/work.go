// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Work is what an application asked of the storage system in one run.
type Work struct {
	Data    uint64 `json:"data"`    // calls that read or write files
	Flushes uint64 `json:"flushes"` // calls that make a file durable, and writes that do
	Bytes   int64  `json:"bytes"`
}

// Does compares what an application did elsewhere with what was recorded: 1 is the same.
// Where it does other work, because it works as long as it waits or puts together what
// has come meanwhile, no replay of the recorded calls can take as long as it does.
type Does struct {
	Data    float64 `json:"data"`
	Flushes float64 `json:"flushes"`
	Bytes   float64 `json:"bytes"`
}

// Tolerance is within which an application does the same work.
const Tolerance = 0.03

// Same reports whether it does the same work.
func (d *Does) Same() bool {
	const exact = 1e-9 // of the division
	return d != nil && math.Abs(d.Data-1) <= Tolerance+exact && math.Abs(d.Flushes-1) <= Tolerance+exact &&
		math.Abs(d.Bytes-1) <= Tolerance+exact
}

// String is all as per cent.
func (d *Does) String() string {
	if d == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f/%.0f/%.0f %%", 100*d.Data, 100*d.Flushes, 100*d.Bytes)
}

// does is the median of how the work there compares with the recorded, of several turns.
func does(turns []Turn) *Does {
	var data, flushes, bytes []float64
	for _, t := range turns {
		if t.There != nil && t.Recorded != nil {
			data = append(data, share(t.There.Data, t.Recorded.Data))
			flushes = append(flushes, share(t.There.Flushes, t.Recorded.Flushes))
			bytes = append(bytes, share(uint64(t.There.Bytes), uint64(t.Recorded.Bytes)))
		}
	}
	if len(data) == 0 {
		return nil
	}
	return &Does{Data: median(data), Flushes: median(flushes), Bytes: median(bytes)}
}

// share is a / b. Of nothing, nothing is the same, and each call counts as if there had
// been one.
func share(a, b uint64) float64 {
	if b == 0 {
		return 1 + float64(a)
	}
	return float64(a) / float64(b)
}

// flushes are the calls that make files durable.
var flushes = []event.Op{event.OpFsync, event.OpFdatasync, event.OpSyncFileRange, event.OpMsync,
	event.OpSyncfs, event.OpSync}

// oDsync is a flag of open(2).
const oDsync = 0o10000

// moved is bytes at a time.
type moved struct{ at, bytes int64 }

// worker counts the work of a run.
type worker struct {
	under string // only files below count
	work  Work
	from  int64 // ns, of the first call and to that of the last
	to    int64
	moved []moved
}

func (w *worker) event(e *event.Event) {
	spec := e.Spec()
	if spec == nil || !e.OK() {
		return
	}
	if slices.Contains(flushes, e.Op) {
		if f := e.Subject(); f == nil || w.counts(f) {
			w.work.Flushes++
			w.span(e)
		}
		return
	}
	t := e.Traffic()
	f := t.From
	if t.Writes {
		f = t.To
	}
	if !t.Reads && !t.Writes || f == nil || !w.counts(f) {
		return
	}
	w.work.Data++
	w.work.Bytes += t.Bytes()
	if t.Writes && f.Flags&oDsync != 0 { // O_SYNC has this bit as well
		w.work.Flushes++
	}
	w.span(e)
	w.moved = append(w.moved, moved{e.Exit, t.Bytes()})
}

func (w *worker) span(e *event.Event) {
	if w.to == 0 || e.Enter < w.from {
		w.from = e.Enter
	}
	w.to = max(w.to, e.Exit)
}

func (w *worker) counts(f *event.File) bool {
	return event.FileType(f.Mode) == event.TypeRegular && strings.HasPrefix(f.Path, w.under+"/")
}

// rate is the bytes over time.
func (w *worker) rate() rate {
	const bins = 240
	r := rate{BinNS: max((w.to-w.from)/bins, 1), Bytes: make([]int64, bins)}
	for _, m := range w.moved {
		r.Bytes[min(max((m.at-w.from)/r.BinNS, 0), bins-1)] += m.bytes
	}
	return r
}

// counted reads a tape and counts the work on files below a directory.
func counted(tape, under string) (*worker, error) {
	t, err := trace.Open(tape)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	w := &worker{under: under}
	for e, err := range t.Events() {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tape, err)
		}
		w.event(e)
	}
	return w, nil
}
