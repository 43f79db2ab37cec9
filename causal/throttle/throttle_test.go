// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
)

const ms = int64(time.Millisecond)

// recording builds the events of a run: nodes 1 and 1.1, and so on, that write.
type recording struct{ events []*event.Event }

func (x *recording) fork(child uint32) {
	x.add(&event.Event{Kind: event.Forked, TID: 1, PID: 1, Child: child, Ret: int64(child)})
}

func (x *recording) add(ev *event.Event) {
	ev.Seq = uint64(len(x.events))
	x.events = append(x.events, ev)
}

// write is a write from one time to another, in ms.
func (x *recording) write(tid uint32, enter, exit int64) {
	x.add(&event.Event{Op: event.OpPwrite64, PID: tid, TID: tid, Enter: enter * ms, Exit: exit * ms, CPU: enter * ms,
		Ret: 8, Args: [6]uint64{3, 0, 8, 0},
		Files: []event.File{{Arg: 0, FD: 3, Open: event.OpenID(tid), Known: true, Mode: 0o100644, Path: "/data/f"}}})
}

func (x *recording) all() iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		for _, ev := range x.events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// run builds a run from the times of each node's calls: enter, exit, enter, exit ….
func run(held string, nodes map[string][]int64) *Run {
	r := &Run{Version: runVersion, Serial: "s", Held: held, Period: 1}
	for name, times := range nodes {
		n := &Node{Name: name}
		last := int64(0)
		for i := 0; i < len(times); i += 2 {
			n.Calls = append(n.Calls, Call{Op: "pwrite64", Shape: [2]uint64{8, 0}, Enter: times[i] * ms,
				Exit: times[i+1] * ms, CPU: (times[i] - last) * ms})
			last = times[i+1]
		}
		r.Nodes = append(r.Nodes, n)
	}
	slices.SortFunc(r.Nodes, func(a, b *Node) int { return byName(a.Name, b.Name) })
	return r
}

// two is a run in which node 1 writes, 1.1 computes for 2 ms and writes because of it, and 1
// writes again, for reasons of its own.
func two() (*recording, *Run) {
	x := &recording{}
	x.fork(2)
	x.write(1, 1, 2)
	x.write(2, 4, 5)
	x.write(1, 8, 9)
	return x, run("", map[string][]int64{"1": {1, 2, 8, 9}, "1.1": {4, 5}})
}

func merged(t *testing.T, x *recording, runs ...*Run) *Result {
	t.Helper()
	r, err := Merge(x.all(), &Scope{}, nil, runs, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMerge(t *testing.T) {
	x, quiet := two()
	held := run("1", map[string][]int64{"1": {50, 51, 80, 81}, "1.1": {53, 54}})
	held.Holds = []Hold{{Call: 0, From: 1 * ms, Till: 50 * ms, Next: map[string]int{"1.1": 0}},
		{Call: 1, From: 60 * ms, Till: 80 * ms}}
	r := merged(t, x, quiet, held)
	// The lag is the shortest of all runs.
	if want := []causal.Found{{Event: 2, For: 1, Lag: 2 * time.Millisecond}}; !slices.Equal(r.Evidence.Waits, want) ||
		r.Refuted != 0 || len(r.Differ) != 0 {
		t.Errorf("%+v", r)
	}
	// Node 1 computed 6 ms between its calls and, where it was held, 9: it is held from 60 on.
	// What 1.1 ran for before its call was looking whether it may go on.
	for _, g := range r.Evidence.Gaps {
		if g.Event == 3 && g.Compute != 6*time.Millisecond {
			t.Errorf("gap %+v", g)
		}
	}
	notes, sum, err := causal.AnnotateWith(x.all(), &r.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Found[causal.Throttle] != 1 || !slices.Equal(notes.Before(2), []uint64{1}) {
		t.Errorf("found %v, event 2 waits for %v", sum.Found, notes.Before(2))
	}
}

// TestMergeRefutes drops a dependency that one run contradicts, though the watchdog saw it.
func TestMergeRefutes(t *testing.T) {
	x, quiet := two()
	held := run("1", map[string][]int64{"1": {50, 51, 80, 81}, "1.1": {53, 54}})
	held.Holds = []Hold{{Call: 0, From: 1 * ms, Till: 50 * ms, Next: map[string]int{"1.1": 0}}}
	other := run("1.1", map[string][]int64{"1": {6, 7, 8, 9}, "1.1": {4, 5}})
	if r := merged(t, x, quiet, held, other); len(r.Evidence.Waits) != 0 || r.Refuted != 1 {
		t.Errorf("%+v", r)
	}
}

func TestMergeDiffers(t *testing.T) {
	x, quiet := two()
	held := run("1", map[string][]int64{"1": {50, 51, 80, 81}, "1.1": {53, 54}, "1.2": {60, 61}})
	held.Nodes[0].Calls[1].Shape[0] = 9
	held.Holds = []Hold{{Call: 0, Till: 50 * ms, Next: map[string]int{"1.1": 0}},
		{Call: 1, Till: 80 * ms, Next: map[string]int{"1.1": 0}}}
	r := merged(t, x, quiet, held)
	var said []string
	for _, d := range r.Differ {
		said = append(said, d.String())
	}
	want := []string{"node 1, call 1: pwrite64(/data/f, 8, 0) when it was recorded, pwrite64(, 9, 0) when node 1 " +
		"was held", "node 1.2, call 0: no such node when it was recorded, pwrite64(, 8, 0) when node 1 was held"}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
	// What came before still counts.
	if len(r.Evidence.Waits) != 1 || r.Nodes[0].Agreed != 1 {
		t.Errorf("%+v", r)
	}

	x.add(&event.Event{Kind: event.LossMark})
	if _, err := Merge(x.all(), &Scope{}, nil, []*Run{quiet}, false); err == nil {
		t.Error("a tape with losses is taken")
	}
}

func TestBarrier(t *testing.T) {
	x := &recording{}
	x.fork(2)
	x.fork(3)
	for _, at := range []int64{10, 20, 30} {
		for tid := range int64(3) {
			x.write(uint32(tid+1), at+tid, at+tid+1)
		}
	}
	quiet := run("", map[string][]int64{"1": {10, 11, 20, 21, 30, 31}, "1.1": {11, 12, 21, 22, 31, 32},
		"1.2": {12, 13, 22, 23, 32, 33}})
	held := run("1", map[string][]int64{"1": {50, 51, 60, 61, 70, 71}, "1.1": {41, 42, 52, 53, 62, 63},
		"1.2": {42, 43, 52, 53, 62, 63}})
	for i := range 2 {
		held.Holds = append(held.Holds, Hold{Call: i, From: int64(40+10*i) * ms, Till: int64(50+10*i) * ms,
			Next: map[string]int{"1.1": i + 1, "1.2": i + 1}})
	}
	if r := merged(t, x, quiet, held); len(r.Barriers) != 2 || len(r.Evidence.Waits) != 4 {
		t.Errorf("%d barriers, waits %+v", len(r.Barriers), r.Evidence.Waits)
	}
	// One that went on before the last had come.
	quiet.Nodes[1].Calls[1].Enter = 12*ms + 1
	quiet.Nodes[1].Calls[1].Exit = 12*ms + 2
	if r := merged(t, x, quiet, held); len(r.Barriers) != 1 {
		t.Errorf("%d barriers", len(r.Barriers))
	}
	// Where a node has made no call yet, nobody can have waited for one of it.
	held.Holds[0].Next["1.2"] = 0
	if r := merged(t, x, quiet, held); len(r.Barriers) != 1 {
		t.Errorf("%d barriers", len(r.Barriers))
	}
}

func TestFamily(t *testing.T) {
	f := processTree{}
	for _, b := range []struct {
		parent, child uint32
		sibling       bool
		want          string
	}{{7, 8, false, "1.1"}, {7, 9, true, "1/1"}, {9, 10, false, "1.2"}, {10, 11, true, "1.2/1"}, {11, 12, true,
		"1.2/2"}, {12, 13, false, "1.2.1"}, {7, 8, false, "1.3"}} {
		if got := f.onFork(b.parent, b.child, b.sibling).name; got != b.want {
			t.Errorf("%+v: %s", b, got)
		}
	}
	names := []string{"1.10", "1/2", "1.2", "1", "1.2/1", "1.2.1"}
	slices.SortFunc(names, byName)
	if got := strings.Join(names, " "); got != "1 1.2 1/2 1.2.1 1.2/1 1.10" {
		t.Error(got)
	}
}

func TestScope(t *testing.T) {
	const reg, blk, pipe = 0o100644, 0o060660, 0o010600
	all, some := &Scope{}, &Scope{Under: []string{"/data", "/dev/sdb"}}
	for _, c := range []struct {
		mode      uint32
		path      string
		all, some bool
	}{{reg, "/data/x", true, true}, {reg, "/database/x", true, false}, {reg, "/usr/lib/x", false, false}, {blk,
		"/dev/sdb", true, true}, {pipe, "/data/p", false, false}, {reg, "/home/x", true, false},
		{reg, "/tmp/ompi.vm.0/pid.18179/contact.txt", false, false}, {reg, "/tmp/openmpi-sessions-0@vm_0/9/1/x", false, false}, {reg, "/data/ompi.d/x", true, true}, {reg, "/home/ompi.out", true, false}, {reg, "x", true, false}} {
		if all.counts(c.mode, c.path) != c.all || some.counts(c.mode, c.path) != c.some {
			t.Errorf("%+v", c)
		}
	}
}

// TestJoin puts the parts of a run together, on one clock, and takes them apart again.
func TestJoin(t *testing.T) {
	a, b := run("1", map[string][]int64{"1": {50, 51, 80, 81}}), run("",
		map[string][]int64{"1": {13, 14}, "1.1": {15, 16}})
	a.Holds = []Hold{{Call: 0, From: 1 * ms, Till: 50 * ms, Next: map[string]int{"b:1": 0}}}
	b.Exit, b.Abandoned = 3, "late"
	r := Join([]Host{{Name: "a", Run: a}, {Name: "b", Run: b, Ahead: 40 * time.Millisecond, Slack: time.Millisecond}},
		"a:1")
	var names []string
	for _, n := range r.Nodes {
		names = append(names, n.Name)
	}
	if strings.Join(names, " ") != "a:1 b:1 b:1.1" || r.node("b:1").Calls[0].Enter != 53*ms || r.Held != "a:1" ||
		r.Slack != 2*ms || r.Exit != 3 || r.Abandoned != "on b: late" || r.Holds[0].Next["b:1"] != 0 {
		t.Errorf("%+v", r)
	}
	if p := r.Part("a"); p.Held != "1" || len(p.Nodes) != 1 || p.Nodes[0].Name != "1" {
		t.Errorf("%+v", p)
	}
	if p := r.Part("b"); p.Held != "a:1" || len(p.Nodes) != 2 || p.Nodes[1].Name != "1.1" {
		t.Errorf("%+v", p)
	}

	// Clocks that are only about the same contradict nothing that is shorter.
	m := &merger{nodes: map[string]*recordedNode{"a:1": {calls: []recorded{{Call{Enter: 1, Exit: 2}, 0}}},
		"b:1": {calls: []recorded{{Call{Enter: 60 * ms}, 1}}}}, runs: []*Run{r}, same: []map[string]int{{"a:1": 1, "b:1": 1}}}
	r.node("b:1").Calls[0].Enter = 51*ms - 2*ms
	if m.refuted(place{"b:1", 0}, place{"a:1", 0}) {
		t.Error("refuted within the slack")
	}
	r.node("b:1").Calls[0].Enter--
	if !m.refuted(place{"b:1", 0}, place{"a:1", 0}) {
		t.Error("not refuted")
	}
}

func TestExpectations(t *testing.T) {
	_, quiet := two()
	held := run("1", map[string][]int64{"1": {1, 2, 5, 6}, "1.1": {53, 54}})
	e := expectations([]*Run{quiet, held})["1"]
	// The least: in the run in which it was held it had to wait for nobody.
	if len(e.gaps) != 3 || e.gaps[1].cpu != 3*ms || e.longest != 1*ms {
		t.Errorf("%+v", e)
	}
}

func TestHasNoEnd(t *testing.T) {
	minusOne := ^uint64(0)
	for _, c := range []struct {
		op   event.Op
		args [event.MaxArgs]uint64
		want bool
	}{
		{event.OpWait4, [6]uint64{}, true},
		{event.OpFutex, [6]uint64{}, true},
		{event.OpFutex, [6]uint64{3: 1}, false},
		{event.OpPoll, [6]uint64{2: minusOne}, true},
		{event.OpPoll, [6]uint64{2: 10}, false},
		{event.OpClockNanosleep, [6]uint64{}, false},
		{event.OpEpollWait, [6]uint64{3: minusOne & 0xffffffff}, true},
	} {
		if got := hasNoEnd(c.op, &c.args); got != c.want {
			t.Errorf("%v%v: %v", c.op, c.args, got)
		}
	}
}

func TestSuggest(t *testing.T) {
	sum := &causal.Summary{ElapsedNS: 100, ExplainedNS: 99}
	quiet := []*Run{{Elapsed: 1000 * ms}}
	r := &Result{Nodes: []NodeResult{{Name: "1", Calls: 10, Period: 10, Holds: 1, HeldNS: 20 * ms, WaitedFor: 1},
		{Name: "1.1", Calls: 30}, {Name: "1.2", Calls: 20}}}
	if s := Suggest(r, quiet, sum); s.Node != "" {
		t.Errorf("%v", s)
	}
	sum.ExplainedNS = 50
	if s := Suggest(r, quiet, sum); s.Node != "1.1" || s.Period != 10 || s.TakesNS != 1060*ms {
		t.Errorf("%+v", s)
	}
	r.Nodes[1].Period, r.Nodes[1].Holds, r.Nodes[1].WaitedFor = 10, 3, 9
	r.Nodes[2].Period, r.Nodes[2].Holds = 10, 2
	if s := Suggest(r, quiet, sum); s.Node != "1.1" || s.Period != 2 {
		t.Errorf("%+v", s)
	}
	for i := range r.Nodes {
		r.Nodes[i].Period = 1
	}
	if s := Suggest(r, quiet, sum); s.Node != "" || !strings.Contains(s.String(), "nothing: each call") {
		t.Errorf("%v", s)
	}
}

// FuzzReadRun merges whatever is taken for a run.
func FuzzReadRun(f *testing.F) {
	x, quiet := two()
	held := run("1", map[string][]int64{"1": {50, 51, 80, 81}, "1.1": {53, 54}})
	held.Holds = []Hold{{Call: 0, From: 1, Till: 50, Next: map[string]int{"1.1": 0}}}
	for _, r := range []*Run{quiet, held} {
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadRun(bytes.NewReader(b), "s")
		if err != nil {
			return
		}
		res, err := Merge(x.all(), &Scope{}, nil, []*Run{quiet, r}, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := causal.AnnotateWith(x.all(), &res.Evidence); err != nil {
			t.Errorf("what was found does not fit its own tape: %v", err)
		}
		if _, err := json.Marshal(Suggest(res, []*Run{quiet}, &causal.Summary{})); err != nil {
			t.Error(err)
		}
	})
}
