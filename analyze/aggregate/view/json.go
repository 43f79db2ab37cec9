// SPDX-License-Identifier: Apache-2.0

package view

import (
	"io"
	"time"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/model/aggregate"
)

// object is what JSON writes of a read-out. Fields are only ever added.
type object struct {
	Version   int       `json:"version"` // 1
	Time      time.Time `json:"time"`    // end of the interval
	ElapsedNS int64     `json:"elapsed_ns"`
	Last      bool      `json:"last,omitempty"`
	Lost      uint64    `json:"uncounted_calls,omitempty"`
	Untracked uint64    `json:"untracked_threads,omitempty"`
	By        []string  `json:"by"`
	Total     row       `json:"total"`
	Rows      []row     `json:"rows"`
	More      int       `json:"more_rows,omitempty"` // that are not listed
}

type row struct {
	Other     bool    `json:"other,omitempty"` // calls that found no room in a row of their own
	PID       *uint32 `json:"pid,omitempty"`
	Comm      *string `json:"comm,omitempty"`
	UID       *uint32 `json:"uid,omitempty"`
	Op        *string `json:"op,omitempty"`
	Signal    *string `json:"signal,omitempty"`
	Extension *string `json:"extension,omitempty"`
	File      *string `json:"file,omitempty"`
	Dir       *string `json:"dir,omitempty"`
	Container *string `json:"container,omitempty"`
	Cgroup    *string `json:"cgroup,omitempty"`
	Unit      *string `json:"unit,omitempty"`
	Pod       *string `json:"pod,omitempty"`
	// The latencies of the row, from low to before high; absent for calls that did not return, and where it is not
	// known when.
	LowNS  *uint64 `json:"low_ns,omitempty"`
	HighNS *uint64 `json:"high_ns,omitempty"`

	Calls      uint64   `json:"calls"`
	Failed     uint64   `json:"failed"`
	Unfinished uint64   `json:"unfinished"`
	Untimed    uint64   `json:"untimed,omitempty"`
	ReadBytes  uint64   `json:"read_bytes"`
	Written    uint64   `json:"written_bytes"`
	TotalNS    uint64   `json:"total_ns"`
	P50NS      uint64   `json:"p50_ns"`
	P90NS      uint64   `json:"p90_ns"`
	P99NS      uint64   `json:"p99_ns"`
	MaxNS      uint64   `json:"max_ns"`
	Latency    []bucket `json:"latency,omitempty"` // those with calls
}

type bucket struct {
	LowNS  uint64 `json:"low_ns"`
	HighNS uint64 `json:"high_ns"`
	Calls  uint64 `json:"calls"`
}

// JSON writes a read-out as one object in one line.
func (o *Options) JSON(w io.Writer, r *aggregate.IntervalSnapshot) error {
	x := object{
		Version: 1, Time: r.At, ElapsedNS: int64(r.Elapsed), Last: r.Last, Lost: r.Lost, Untracked: r.Untracked,
		By: r.By.Names(), Total: rowOf(0, aggregate.Row{Counts: r.Total()}), Rows: []row{},
	}
	rows := r.Sorted(o.order())
	if o.Rows > 0 && len(rows) > o.Rows {
		x.More = len(rows) - o.Rows
		rows = rows[:o.Rows]
	}
	for i := range rows {
		x.Rows = append(x.Rows, rowOf(r.By, rows[i]))
	}
	return jsonout.Line(w, &x)
}

func rowOf(by aggregate.By, r aggregate.Row) row {
	x := row{
		Other: r.Key.Other, Calls: r.Calls, Failed: r.Failed, Unfinished: r.Unfinished, Untimed: r.Untimed,
		ReadBytes: r.Read, Written: r.Written,
		TotalNS: r.NS, P50NS: r.Quantile(0.5), P90NS: r.Quantile(0.9), P99NS: r.Quantile(0.99), MaxNS: r.MaxNS,
	}
	for i, n := range r.Latency {
		if n > 0 {
			low, high := aggregate.BucketRange(i)
			x.Latency = append(x.Latency, bucket{low, high, n})
		}
	}
	if r.Key.Other {
		return x
	}
	op := r.Key.Op.String()
	if by&aggregate.ByProcess != 0 {
		x.PID, x.Comm = &r.Key.PID, &r.Key.Comm
	}
	if by&aggregate.ByUser != 0 {
		x.UID = &r.Key.UID
	}
	if by&aggregate.ByOp != 0 {
		x.Op = &op
	}
	if by&aggregate.BySignal != 0 {
		name := event.SignalName(int(r.Key.Signal))
		x.Signal = &name
	}
	if by&aggregate.ByExtension != 0 {
		x.Extension = &r.Key.Ext
	}
	if by&aggregate.ByFile != 0 {
		x.File = &r.Key.File
	}
	if by&aggregate.ByDir != 0 {
		x.Dir = &r.Key.Dir
	}
	if by&aggregate.ByContainer != 0 {
		x.Container = &r.Key.Place.Container
	}
	if by&aggregate.ByCgroup != 0 {
		x.Cgroup = &r.Key.Place.Cgroup
	}
	if by&aggregate.ByUnit != 0 {
		x.Unit = &r.Key.Place.Unit
	}
	if by&aggregate.ByPod != 0 {
		x.Pod = &r.Key.Place.Pod
	}
	if by&aggregate.ByLatency != 0 && r.Key.Octave > 0 {
		low, high := aggregate.OctaveRange(r.Key.Octave)
		x.LowNS, x.HighNS = &low, &high
	}
	return x
}

// alarmObject is what AlarmJSON writes.
type alarmObject struct {
	Version int       `json:"version"` // 1
	Alarm   string    `json:"alarm"`   // on, over
	Rule    string    `json:"rule"`
	Time    time.Time `json:"time"`
	Since   time.Time `json:"since"`
	Value   float64   `json:"value"`
	Limit   float64   `json:"limit"`
	PID     *uint32   `json:"pid,omitempty"`
	Comm    *string   `json:"comm,omitempty"`
	UID     *uint32   `json:"uid,omitempty"`
	Op      *string   `json:"op,omitempty"`
	Ext     *string   `json:"extension,omitempty"`
}

// AlarmJSON writes an alarm as one object in one line.
func AlarmJSON(w io.Writer, a *alarm.Alarm) error {
	x := alarmObject{Version: 1, Alarm: "over", Rule: a.Rule.Source, Time: a.At, Since: a.Since,
		Value: a.Value, Limit: a.Limit}
	if a.On {
		x.Alarm = "on"
	}
	r := rowOf(a.Rule.By, aggregate.Row{Key: a.Key, Counts: &aggregate.Counts{}})
	x.PID, x.Comm, x.UID, x.Op, x.Ext = r.PID, r.Comm, r.UID, r.Op, r.Extension
	return jsonout.Line(w, &x)
}
