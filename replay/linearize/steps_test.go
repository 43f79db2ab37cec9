// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/linearize"
)

// stepped is a call that looks its file up at one moment and does the rest at another, as
// the kernel does an open with O_TRUNC and a link.
type stepped struct {
	*call
	lookup int64
	found  *inode
	ended  bool // by the lookup
}

// first does the lookup of a call.
func (c *stepped) first(w *world) {
	c.found = w.names[c.a]
	switch {
	case c.found == nil && c.op.op == event.OpLink:
		c.want, c.ended = answer{ret: -1, errno: syscall.ENOENT}, true
	case c.op.op == event.OpOpen:
		o := c.op
		o.flags &^= event.OpenTrunc
		c.want = w.do(&o)
		c.ended = c.want.errno != 0 || c.want.created || c.op.flags&event.OpenTrunc == 0
	}
}

// rest does what comes after it.
func (c *stepped) rest(w *world) {
	switch {
	case c.ended:
	case c.op.op == event.OpOpen:
		c.found.size, c.want.size = 0, 0
	case w.names[c.b] != nil:
		c.want = answer{ret: -1, errno: syscall.EEXIST}
	case c.found.links == 0:
		c.want = answer{ret: -1, errno: syscall.ENOENT}
	default:
		w.names[c.b] = c.found
		c.found.links++
	}
}

// runSteps is history.run for calls some of which take effect in steps.
func runSteps(h history, inSteps []*stepped) []event.Event {
	type moment struct {
		at int64
		do func(w *world)
	}
	var all []moment
	for _, c := range h {
		i := slices.IndexFunc(inSteps, func(s *stepped) bool { return s.call == c })
		if i < 0 {
			all = append(all, moment{c.effect, func(w *world) { c.want = w.do(&c.op) }})
			continue
		}
		s := inSteps[i]
		all = append(all, moment{s.lookup, s.first}, moment{c.effect, s.rest})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return int(a.at - b.at) })
	w := newWorld()
	for _, m := range all {
		m.do(w)
	}
	return h.tape()
}

// redo makes the calls of a linear order as they were given, and says which give something
// else, although that call is explained. A call that failed and is not explained is not made, as in a replay.
func (h history) redo(order []event.Event, unexplained map[uint64]linearize.Unexplained) error {
	var wrong []string
	w := newWorld()
	for i := range order {
		ev := &order[i]
		if ev.Kind != event.Call {
			continue
		}
		c := h[ev.Seq]
		o, want := c.op, c.want
		if unexplained[ev.Seq] != 0 && want.errno != 0 {
			continue
		}
		switch {
		case ev.Flags&event.Synthetic != 0:
			o, want = op{op: ev.Op, open: ev.Files[0].Open, off: int64(ev.Args[1])}, answer{}
		case ev.Op == event.OpOpen:
			o.flags = ev.Args[1]
		case ev.Op == event.OpLink:
			o.a = ev.Paths[0].Abs
		}
		if d := same(&o, want, w.do(&o)); d != "" && unexplained[ev.Seq] == 0 {
			wrong = append(wrong, fmt.Sprintf("event %d, %v %s %s: %s", ev.Seq, ev.Op, o.a, o.b, d))
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "\n"))
}

// TestSteps has calls that others came between the steps of.
func TestSteps(t *testing.T) {
	const creat, trunc = uint64(event.OpenCreat | 2), uint64(event.OpenTrunc | 2)
	make := func(name string, open event.OpenID) op {
		return op{op: event.OpOpen, a: name, flags: creat, open: open}
	}
	stat := func(name string) op { return op{op: event.OpStat, a: name} }
	for _, c := range []struct {
		name        string
		before      []op
		steps       op   // its lookup comes before those between, the rest after
		between     []op // by another thread, one after the other
		after       []op
		unexplained int
	}{
		{
			name: "a file that is written before the open empties it", before: []op{make("/w/x", 1), make("/w/y", 2)},
			steps: op{op: event.OpOpen, a: "/w/x", flags: trunc, open: 7},
			between: []op{{op: event.OpRename, a: "/w/y", b: "/w/x"}, {op: event.OpPwrite64, open: 1, len: 50},
				{op: event.OpFstat, open: 1}, stat("/w/x")},
			after: []op{{op: event.OpFstat, open: 1}, {op: event.OpFstat, open: 7}, stat("/w/x")},
		},
		{
			name: "a link to a file that another name has by then", before: []op{make("/w/x", 1), make("/w/y", 2)},
			steps: op{op: event.OpLink, a: "/w/x", b: "/w/z"},
			between: []op{{op: event.OpRename, a: "/w/x", b: "/w/u"}, {op: event.OpRename, a: "/w/y", b: "/w/x"},
				stat("/w/z"), stat("/w/x")},
			after: []op{stat("/w/z"), stat("/w/u"), stat("/w/x")},
		},
		{
			name: "a link in place of its own name", before: []op{make("/w/x", 1)},
			steps:   op{op: event.OpLink, a: "/w/x", b: "/w/x"},
			between: []op{{op: event.OpRename, a: "/w/x", b: "/w/y"}, stat("/w/x")},
			after:   []op{stat("/w/x"), stat("/w/y")},
		},
		{
			name: "a link to a file that lost its last name", before: []op{make("/w/x", 1), make("/w/y", 2)},
			steps:   op{op: event.OpLink, a: "/w/x", b: "/w/z"},
			between: []op{{op: event.OpRename, a: "/w/y", b: "/w/x"}, stat("/w/x")},
			after:   []op{stat("/w/x"), stat("/w/z")}, unexplained: 1, // which is not made
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			now := int64(10)
			add := func(tid uint32, ops []op) {
				for _, o := range ops {
					h = append(h, &call{op: o, tid: tid, enter: now, effect: now + 1, exit: now + 2})
					now += 10
				}
			}
			add(1, c.before)
			long := &call{op: c.steps, tid: 2, enter: now}
			h = append(h, long)
			now += 10
			add(1, c.between)
			long.effect, long.exit = now, now+1
			now += 10
			add(1, c.after)
			tape := runSteps(h, []*stepped{{call: long, lookup: long.enter + 1}})
			order, unexplained := linearized(t, tape, nil)
			if err := h.redo(order, unexplained); err != nil || len(unexplained) != c.unexplained {
				t.Errorf("%v; unexplained: %v; tape:\n%sorder:\n%s", err, unexplained, show(tape), show(order))
			}
		})
	}
}

// TestStepHistories orders random histories with such calls. About one call in 8,000 has
// an unexplained result (333 of 2,754,022 were seen); the limit of one in 1,000 needs so many histories
// that chance cannot reach it.
func TestStepHistories(t *testing.T) {
	defer setHistories(t, "4000")()
	calls, unexplainedCalls := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h, inSteps := drawSteps(t)
		tape := runSteps(h, inSteps)
		order, unexplained := linearized(t, tape, nil)
		for seq := range unexplained {
			if c := h[seq]; c.op.op != event.OpLink || c.want.errno != syscall.ENOENT {
				unexplainedCalls++
			}
		}
		calls += len(h)
		if err := h.redo(order, unexplained); err != nil && len(unexplained) == 0 {
			t.Fatalf("%v; unexplained: %v; tape:\n%s\norder:\n%s", err, unexplained, show(tape), show(order))
		}
	})
	t.Logf("%d calls, %d unexplained", calls, unexplainedCalls)
	if most := calls / 1000; unexplainedCalls > most {
		t.Errorf("%d of %d calls are unexplained, want at most %d", unexplainedCalls, calls, most)
	}
}

func drawSteps(t *rapid.T) (h history, inSteps []*stepped) {
	names := []string{"/w/a", "/w/b", "/w/c"}
	for i, name := range names {
		at := int64(10 * i)
		h = append(h, &call{
			op: op{op: event.OpOpen, a: name, flags: event.OpenCreat | 2, open: event.OpenID(1 + i)}, tid: 1, enter: at,
			effect: at + 1, exit: at + 2,
		})
	}
	next := event.OpenID(10)
	for tid := range rapid.IntRange(2, 4).Draw(t, "threads") {
		now := int64(100)
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			name := func() string { return rapid.SampledFrom(names).Draw(t, "name") }
			var o op
			switch k := rapid.SampledFrom([]event.Op{event.OpOpen, event.OpLink, event.OpRename, event.OpUnlink,
				event.OpStat, event.OpPwrite64, event.OpFstat}).Draw(t, "op"); k {
			case event.OpOpen:
				o = op{
					op: k, a: name(), flags: rapid.SampledFrom([]uint64{event.OpenTrunc | 2,
						event.OpenCreat | event.OpenTrunc | 2, event.OpenCreat | 2}).Draw(t, "flags"), open: next,
				}
				next++
			case event.OpUnlink, event.OpStat:
				o = op{op: k, a: name()}
			case event.OpRename, event.OpLink:
				o = op{op: k, a: name(), b: name()}
			default:
				o = op{
					op: k, open: event.OpenID(rapid.IntRange(1, 3).Draw(t, "file")),
					off: int64(rapid.IntRange(0, 3).Draw(t, "off")) * 10, len: 5,
				}
			}
			at := func(x int64) int64 { return x*8 + int64(tid) } // no two at one moment
			enter := now + int64(rapid.IntRange(1, 5).Draw(t, "think"))
			lookup := enter + int64(rapid.IntRange(1, 10).Draw(t, "until lookup"))
			effect := lookup + int64(rapid.IntRange(1, 10).Draw(t, "until effect"))
			exit := effect + int64(rapid.IntRange(0, 10).Draw(t, "until return"))
			c := &call{op: o, tid: uint32(1 + tid), enter: at(enter), effect: at(effect), exit: at(exit)}
			h = append(h, c)
			if o.op == event.OpLink || o.op == event.OpOpen {
				inSteps = append(inSteps, &stepped{call: c, lookup: at(lookup)})
			}
			now = exit
		}
	}
	return h, inSteps
}
