// SPDX-License-Identifier: Apache-2.0

package alarm

import (
	"slices"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
)

// looked holds read-outs of one second each against a rule: calls of unlink by process.
func looked(t *testing.T, rule string, seconds ...map[uint32]uint64) (alarms [][]Alarm) {
	t.Helper()
	r, err := ParseRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch(r)
	for i, calls := range seconds {
		tab := aggregate.NewTable(r.Needs()|aggregate.ByUser, 0) // more than needed does no harm
		for pid, n := range calls {
			tab.Add(aggregate.Key{Op: event.OpUnlink, PID: pid, Comm: "rm", UID: 5},
				&aggregate.Counts{Calls: n, NS: n * 1000, MaxNS: 1000})
			tab.Add(aggregate.Key{Op: event.OpUnlink, PID: pid, Comm: "rm", UID: 6}, &aggregate.Counts{Calls: n})
			tab.Add(aggregate.Key{Op: event.OpRead, PID: pid, Comm: "rm"}, &aggregate.Counts{Calls: 1e9})
		}
		alarms = append(alarms,
			w.Look(&aggregate.IntervalSnapshot{Table: tab, At: time.Unix(int64(i)+1, 0), Elapsed: time.Second}))
	}
	return alarms
}

type calls = map[uint32]uint64

func TestAlarmIsRaisedOnceAndEnds(t *testing.T) {
	got := looked(t, "unlink by process > 100/s for 3s",
		calls{1: 60, 2: 10}, // 1 begins: both users' calls are one process's
		calls{1: 51, 2: 900},
		calls{1: 60, 2: 20}, // 1: three seconds; 2 was wild for one
		calls{1: 60},
		calls{1: 40},
		calls{},
		calls{1: 60})
	var lengths []int
	for _, a := range got {
		lengths = append(lengths, len(a))
	}
	if !slices.Equal(lengths, []int{0, 0, 1, 0, 1, 0, 0}) {
		t.Fatalf("alarms %v: %+v", lengths, got)
	}
	on, off := got[2][0], got[4][0]
	if !on.On || on.Key != (aggregate.Key{PID: 1, Comm: "rm"}) || on.Value != 120 || on.Limit != 100 ||
		!on.Since.Equal(time.Unix(0, 0)) {
		t.Errorf("raised: %+v", on)
	}
	if off.On || off.Key != on.Key || off.Value != 80 {
		t.Errorf("ended: %+v", off)
	}
	if env := on.Env(); !slices.Contains(env, "IOTAPE_ALARM_PID=1") || !slices.Contains(env, "IOTAPE_ALARM=on") ||
		!slices.Contains(env, "IOTAPE_ALARM_VALUE=120") {
		t.Errorf("environment %q", env)
	}
}

func TestSigmaKnowsWhatIsOrdinary(t *testing.T) {
	var seconds []map[uint32]uint64
	for i := range 30 {
		seconds = append(seconds, calls{1: 500 + uint64(i%5)*10, 2: 5}) // 1 is always busy
	}
	seconds = append(seconds, calls{1: 530, 2: 400}, calls{1: 530, 2: 400}, calls{1: 530, 2: 5})
	var raised []Alarm
	for _, a := range looked(t, "unlink by process > 6 sigma", seconds...) {
		raised = append(raised, a...)
	}
	if len(raised) != 2 || raised[0].Key.PID != 2 || !raised[0].On || raised[1].On {
		t.Errorf("%+v", raised)
	}
}

func TestSilenceIsSeen(t *testing.T) {
	got := looked(t, "unlink < 5/s for 2s", calls{1: 50}, calls{}, calls{}, calls{1: 50})
	if len(got[0])+len(got[1]) > 0 || len(got[2]) != 1 || !got[2][0].On || len(got[3]) != 1 || got[3][0].On {
		t.Errorf("%+v", got)
	}
}

func TestKeysAreBounded(t *testing.T) {
	r, err := ParseRule("any by process > 1/s")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch(r)
	tab := aggregate.NewTable(aggregate.ByProcess, 3*maxWatched)
	for pid := range uint32(2 * maxWatched) {
		tab.Add(aggregate.Key{PID: pid}, &aggregate.Counts{Calls: 5})
	}
	if n := len(w.Look(&aggregate.IntervalSnapshot{Table: tab, Elapsed: time.Second})); n != maxWatched ||
		w.Unwatched == 0 {
		t.Errorf("%d alarms, %d not watched", n, w.Unwatched)
	}
}
