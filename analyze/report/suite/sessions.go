// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// SessionOptions say what counts as a session: a stretch of time in which files are used.
// Zero values are the defaults, which are those of DFSTrace's sessions(1) for a tape of
// four hours or more.
type SessionOptions struct {
	// Interval is what time is divided into. 0 is 15 minutes, or of a tape of less than
	// four hours the sixteenth part.
	Interval time.Duration
	// Activity is how many calls of files an interval has at least that is active. 0 is 16.
	Activity uint64
	// Gap is how many intervals in a row that are not active a session may have in it. 0
	// is 4; less than 0 is none.
	Gap int
	// Transient is how many active intervals a stretch has at most that is no session but
	// a passing one. 0 is none.
	Transient int
}

// An active interval is low; it is medium with 10 and high with 100 times the least
// activity.
const (
	mediumActivity = 10
	highActivity   = 100
)

// maxIntervals limits the memory: with more, intervals are made longer.
const maxIntervals = 1 << 18

// sessions are the stretches of a recording in which files were used.
type sessions struct {
	o         SessionOptions
	first     int64 // ns
	step      int64 // ns
	intervals []sessionInterval
}

type sessionInterval struct{ calls, changes uint64 }

type sessionRow struct {
	StartNS  int64  `json:"start_ns"` // from the first event
	LengthNS int64  `json:"length_ns"`
	Calls    uint64 `json:"calls"`
	Changes  uint64 `json:"changes"` // of them, that changed a file, a name or attributes
	Active   int    `json:"active"`  // intervals
	Low      int    `json:"low"`     // of them
	Medium   int    `json:"medium"`
	High     int    `json:"high"`
	Level    string `json:"level"` // of the mean active interval
	calls    uint64 // in active intervals
}

// complete sets what is the same for all tapes.
func (o *SessionOptions) complete() {
	if o.Activity == 0 {
		o.Activity = 16
	}
	switch {
	case o.Gap == 0:
		o.Gap = 4
	case o.Gap < 0:
		o.Gap = 0
	}
}

// Session is a stretch of time in which files are used.
type Session = sessionRow

// FindSessions returns the sessions in a series of intervals of the length o.Interval, of each of
// which the number of calls of files is given, and how many stretches were too short to be one. It
// does not know which calls changed something.
func FindSessions(o SessionOptions, calls []uint64) (list []Session, passing int) {
	o.complete()
	v := &sessions{o: o, step: int64(o.Interval)}
	for _, n := range calls {
		v.intervals = append(v.intervals, sessionInterval{calls: n})
	}
	return v.find()
}

func newSessions(c *collector) view {
	v := &sessions{o: c.o.Sessions}
	length := max(c.last-c.first, 1)
	if v.o.Interval <= 0 {
		v.o.Interval = 15 * time.Minute
		if length < int64(16*v.o.Interval) {
			v.o.Interval = max(time.Duration(length/16), time.Millisecond)
		}
	}
	v.o.complete()
	v.first = c.first
	v.step = max(int64(v.o.Interval), length/maxIntervals+1)
	return v
}

func (v *sessions) see(s *seen) {
	if s.Kind != event.Call || !s.kind.IsIO() {
		return
	}
	at := min(max((s.Enter-v.first)/v.step, 0), maxIntervals)
	for int64(len(v.intervals)) <= at {
		v.intervals = append(v.intervals, sessionInterval{})
	}
	v.intervals[at].calls++
	if s.OK() && (s.io.Writes || s.spec.Class == event.Namespace || s.creates()) {
		v.intervals[at].changes++
	}
}

// find returns the sessions, and how many stretches were too short to be one.
func (v *sessions) find() (list []sessionRow, passing int) {
	list = []sessionRow{}
	var now *sessionRow
	start, idle := 0, 0
	end := func(last int) {
		if now == nil {
			return
		}
		if now.Active <= v.o.Transient {
			passing++
		} else {
			now.StartNS, now.LengthNS = int64(start)*v.step, int64(last-start)*v.step
			now.Level = levelOf(now.calls/uint64(now.Active), v.o.Activity)
			list = append(list, *now)
		}
		now = nil
	}
	var gap sessionInterval // calls of the intervals since the last active one
	for i, in := range v.intervals {
		if in.calls < v.o.Activity {
			idle++
			gap.calls, gap.changes = gap.calls+in.calls, gap.changes+in.changes
			if idle > v.o.Gap {
				end(i + 1 - idle)
			}
			continue
		}
		if now == nil {
			now, start = &sessionRow{}, i
		} else {
			now.Calls, now.Changes = now.Calls+gap.calls, now.Changes+gap.changes
		}
		idle, gap = 0, sessionInterval{}
		now.Active++
		now.Calls += in.calls
		now.Changes += in.changes
		now.calls += in.calls
		switch levelOf(in.calls, v.o.Activity) {
		case "low":
			now.Low++
		case "medium":
			now.Medium++
		default:
			now.High++
		}
	}
	end(len(v.intervals) - idle)
	return list, passing
}

func levelOf(calls, activity uint64) string {
	switch {
	case calls >= activity*highActivity:
		return "high"
	case calls >= activity*mediumActivity:
		return "medium"
	}
	return "low"
}

func (v *sessions) section(*collector) page.Section {
	list, passing := v.find()
	return page.Section{ID: "sessions", Title: "Sessions",
		Note: "Time is divided into intervals; one with enough calls of files is active. A session is a stretch of " +
			"active intervals with short gaps; a stretch with too few of them is passing. An interval is medium with " +
			"10 and high with 100 times the least activity, low below.",
		Data: map[string]any{"interval_ns": v.step, "activity": v.o.Activity, "gap": v.o.Gap,
			"transient": v.o.Transient, "intervals": len(v.intervals), "passing": passing, "sessions": list},
		Blocks: []page.Block{
			page.Line(fmt.Sprintf("intervals of %s, active with %s, gaps of at most %s; %s passing", report.Duration(v.step), report.Plural(v.o.Activity, "call", "calls"), report.Plural(v.o.Gap, "interval", "intervals"), Count(uint64(passing)))),
			tableOf("", []string{"start", "length", "level", "calls", "changes", "active", "low", "medium", "high"}, 0, list, 0, func(r *sessionRow) []string {
				return []string{report.Duration(r.StartNS), span(r.LengthNS), r.Level, Count(r.Calls), Count(r.Changes),
					Count(uint64(r.Active)), Count(uint64(r.Low)), Count(uint64(r.Medium)), Count(uint64(r.High))}
			})}}
}
