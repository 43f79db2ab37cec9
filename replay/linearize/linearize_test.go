// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/linearize"
)

// call is a call of a history: when it was made, took effect and returned.
type call struct {
	op
	tid                 uint32
	enter, effect, exit int64
	want                answer
}

// history is a tape made of calls.
type history []*call

// run gives the calls their answers, in the order of their effects, starting from w,
// and returns the events in the order of their returns.
func (h history) run(w *world) []event.Event {
	byEffect := slices.Clone(h)
	slices.SortStableFunc(byEffect, func(a, b *call) int { return int(a.effect - b.effect) })
	for _, c := range byEffect {
		c.want = w.do(&c.op)
	}
	return h.tape()
}

// tape returns the events of calls that have their answers.
func (h history) tape() []event.Event {
	slices.SortStableFunc(h, func(a, b *call) int { return int(a.exit - b.exit) })
	var tape []event.Event
	for tid := range uint32(4) {
		tape = append(tape, event.Event{Kind: event.Forked, TID: 1, Child: tid + 1, Enter: -1, Exit: -1})
	}
	for i, c := range h {
		ev := c.event(c.tid, c.enter, c.exit, c.want)
		ev.Seq = uint64(i)
		tape = append(tape, ev)
	}
	return tape
}

// source returns events one after the other, as a tape's reader does.
func source(tape []event.Event) func(*event.Event) error {
	return func(ev *event.Event) error {
		if len(tape) == 0 {
			return io.EOF
		}
		*ev = *tape[0].Clone()
		tape = tape[1:]
		return nil
	}
}

// linearized returns the events in their linear order, and those that are not explained. The order, stored and read
// again, gives the same events.
func linearized(t interface{ Fatal(...any) }, tape []event.Event, o *linearize.Options) (order []event.Event,
	unexplained map[uint64]linearize.Unexplained) {
	if o == nil {
		o = &linearize.Options{}
	}
	keeping, found := *o, new(linearize.Order)
	keeping.Found = found
	before := tape
	tape = slices.Clone(tape)
	for i := range tape {
		tape[i].Seq = uint64(i)
	}
	order, numbered := all(t, linearize.New(source(tape), &keeping))
	stored, err := linearize.ParseOrder(found.Bytes(), uint64(len(tape)))
	if err != nil {
		t.Fatal(err)
	}
	again, unexplainedAgain := all(t, linearize.NewGiven(source(tape), o.Arch, stored))
	if !maps.Equal(numbered, unexplainedAgain) || len(order) != len(again) {
		t.Fatal(fmt.Sprintf("%d events, unexplained %v; by the stored order %d, %v", len(order), numbered, len(again),
			unexplainedAgain))
	}
	for i := range order {
		if want, got := fmt.Sprintf("%+v", order[i]), fmt.Sprintf("%+v", again[i]); got != want {
			t.Fatal(fmt.Sprintf("event %d is %s; by the stored order it is %s", i, want, got))
		}
	}
	unexplained = map[uint64]linearize.Unexplained{}
	for i := range order {
		ev := &order[i]
		if un := numbered[ev.Seq]; un != 0 {
			unexplained[before[ev.Seq].Seq] = un
		}
		ev.Seq = before[ev.Seq].Seq
	}
	return order, unexplained
}

// all returns the events that a stage gives, and those that are not explained.
func all(t interface{ Fatal(...any) }, s interface {
	Next(*event.Event) error
	Unexplained() linearize.Unexplained
}) (order []event.Event, unexplained map[uint64]linearize.Unexplained) {
	unexplained = map[uint64]linearize.Unexplained{}
	for {
		var ev event.Event
		err := s.Next(&ev)
		if err == io.EOF {
			return order, unexplained
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Unexplained() != 0 {
			unexplained[ev.Seq] = s.Unexplained()
		}
		order = append(order, *ev.Clone())
	}
}

// check says what is wrong with an order of a history's calls: what inTime says, and
// answers that differ.
func (h history) check(order []event.Event, w *world) error {
	wrong := []error{h.inTime(order)}
	for _, ev := range order {
		if ev.Kind != event.Call {
			continue
		}
		c := h[ev.Seq]
		if d := same(&c.op, c.want, w.do(&c.op)); d != "" {
			wrong = append(wrong, fmt.Errorf("event %d, %v %s %s: %s", ev.Seq, c.op.op, c.a, c.b, d))
		}
	}
	return errors.Join(wrong...)
}

// inTime says which calls come before others that had returned, and whether any are missing.
func (h history) inTime(order []event.Event) error {
	var wrong []error
	latest := int64(0) // entry of those given
	seen := map[uint64]bool{}
	for _, ev := range order {
		if ev.Kind != event.Call {
			continue
		}
		if ev.Exit < latest {
			wrong = append(wrong, fmt.Errorf("event %d stands behind one that was made at %d, it returned at %d",
				ev.Seq, latest, ev.Exit))
		}
		latest = max(latest, ev.Enter)
		seen[ev.Seq] = true
	}
	if len(seen) != len(h) {
		wrong = append(wrong, fmt.Errorf("%d calls of %d", len(seen), len(h)))
	}
	return errors.Join(wrong...)
}

// TestRaces has races of two or three calls, whose effects came in another order than
// their returns.
func TestRaces(t *testing.T) {
	const oWrite = 1
	creat := uint64(event.OpenCreat | oWrite)
	// before is made, one call after the other, by thread 1. Then each of the racing
	// calls is made by a thread of its own, all at once; they take effect in the order
	// in which they stand, and return in the opposite one.
	for _, c := range []struct {
		name         string
		before, race []op
	}{
		{"unlink and open", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpUnlink, a: "/w/x"}, {op: event.OpOpen, a: "/w/x"}}},
		{"open and unlink", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpOpen, a: "/w/x", open: 7}, {op: event.OpUnlink, a: "/w/x"}}},
		{"two exclusive opens", nil,
			[]op{{op: event.OpOpen, a: "/w/x", flags: creat | event.OpenExcl, open: 7},
				{op: event.OpOpen, a: "/w/x", flags: creat | event.OpenExcl, open: 8}}},
		{"who creates", nil,
			[]op{{op: event.OpOpen, a: "/w/x", flags: creat | event.OpenExcl, open: 7},
				{op: event.OpOpen, a: "/w/x", flags: creat, open: 8}}},
		{"two unlinks", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpUnlink, a: "/w/x"}, {op: event.OpUnlink, a: "/w/x"}}},
		{"unlink, create, open", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpUnlink, a: "/w/x"}, {op: event.OpOpen, a: "/w/x", flags: creat, open: 8},
				{op: event.OpOpen, a: "/w/x", open: 9}}},
		{"rename and stat of both", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpRename, a: "/w/x", b: "/w/y"}, {op: event.OpStat, a: "/w/x"},
				{op: event.OpStat, a: "/w/y"}}},
		{"rename over what is opened", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1},
			{op: event.OpOpen, a: "/w/y", flags: creat, open: 2}},
			[]op{{op: event.OpOpen, a: "/w/y", open: 7}, {op: event.OpRename, a: "/w/x", b: "/w/y"},
				{op: event.OpOpen, a: "/w/y", open: 8}}},
		{"link and unlink", []op{{op: event.OpOpen, a: "/w/x", flags: creat}},
			[]op{{op: event.OpLink, a: "/w/x", b: "/w/y"}, {op: event.OpUnlink, a: "/w/x"},
				{op: event.OpStat, a: "/w/y"}}},
		{"mkdir within a directory that goes", []op{{op: event.OpMkdir, a: "/w/d"}},
			[]op{{op: event.OpRmdir, a: "/w/d"}, {op: event.OpMkdir, a: "/w/d/e"}}},
		{"rmdir of a directory that fills", []op{{op: event.OpMkdir, a: "/w/d"}},
			[]op{{op: event.OpMkdir, a: "/w/d/e"}, {op: event.OpRmdir, a: "/w/d"}}},
		{"rmdir of a directory that empties", []op{{op: event.OpMkdir, a: "/w/d"}, {op: event.OpMkdir, a: "/w/d/e"}},
			[]op{{op: event.OpRmdir, a: "/w/d/e"}, {op: event.OpRmdir, a: "/w/d"}}},
		{"size seen before a write", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1},
			{op: event.OpPwrite64, open: 1, len: 10}},
			[]op{{op: event.OpFstat, open: 1}, {op: event.OpPwrite64, open: 1, off: 100, len: 10}}},
		{"size seen after a write", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1},
			{op: event.OpPwrite64, open: 1, len: 10}},
			[]op{{op: event.OpPwrite64, open: 1, off: 100, len: 10}, {op: event.OpFstat, open: 1}}},
		{"short read before a truncation by name",
			[]op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1}, {op: event.OpPwrite64, open: 1, len: 100}},
			[]op{{op: event.OpPread64, open: 1, off: 50, len: 100}, {op: event.OpTruncate, a: "/w/x", off: 60},
				{op: event.OpPread64, open: 1, off: 50, len: 100}}},
		{"full read after a write", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1}},
			[]op{{op: event.OpPwrite64, open: 1, off: 0, len: 100}, {op: event.OpPread64, open: 1, off: 0, len: 100}}},
		{"truncating open", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1},
			{op: event.OpPwrite64, open: 1, len: 100}},
			[]op{{op: event.OpOpen, a: "/w/x", flags: event.OpenTrunc | oWrite, open: 7}, {op: event.OpFstat, open: 1}}},
		{"a lock is granted before the call that gave it back has returned",
			[]op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1}, {op: event.OpOpen, a: "/w/x", open: 2},
				{op: event.OpFlock, open: 1, flags: 2}},
			[]op{{op: event.OpFlock, open: 1, flags: 8}, {op: event.OpFlock, open: 2, flags: 2}}},
		{"a lock between two others", []op{
			{op: event.OpOpen, a: "/w/x", flags: creat, open: 1}, {op: event.OpOpen, a: "/w/x", open: 2},
			{op: event.OpOpen, a: "/w/x", open: 3}, {op: event.OpFlock, open: 1, flags: 2}},
			[]op{{op: event.OpFlock, open: 2, flags: 1}, {op: event.OpFlock, open: 1, flags: 8},
				{op: event.OpFlock, open: 2, flags: 2}, {op: event.OpFlock, open: 3, flags: 1}}},
		{"a shared lock that loses itself", []op{
			{op: event.OpOpen, a: "/w/x", flags: creat, open: 1}, {op: event.OpOpen, a: "/w/x", open: 2},
			{op: event.OpFlock, open: 1, flags: 1}, {op: event.OpFlock, open: 2, flags: 1}},
			[]op{{op: event.OpFlock, open: 2, flags: 2}, {op: event.OpFlock, open: 1, flags: 2},
				{op: event.OpFlock, open: 2, flags: 1}}},
		{"appends", []op{{op: event.OpOpen, a: "/w/x", flags: creat | event.OpenAppend, open: 1},
			{op: event.OpOpen, a: "/w/x", flags: oWrite | event.OpenAppend, open: 2}},
			[]op{{op: event.OpWrite, open: 1, len: 10}, {op: event.OpWrite, open: 2, len: 20},
				{op: event.OpLseek, open: 1, flags: 2}}},
		{"seek and read at one position", []op{{op: event.OpOpen, a: "/w/x", flags: creat, open: 1},
			{op: event.OpPwrite64, open: 1, len: 100}},
			[]op{{op: event.OpLseek, open: 1, off: 40}, {op: event.OpRead, open: 1, len: 10},
				{op: event.OpRead, open: 1, len: 20}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			now := int64(10)
			for _, o := range c.before {
				h = append(h, &call{op: o, tid: 1, enter: now, effect: now + 1, exit: now + 2})
				now += 10
			}
			for i, o := range c.race {
				h = append(h, &call{
					op: o, tid: uint32(1 + i), enter: now + int64(i), effect: now + 100 + int64(i),
					exit: now + 200 - int64(i),
				})
			}
			tape := h.run(newWorld())
			order, unexplained := linearized(t, tape, nil)
			if err := h.check(order, newWorld()); err != nil || len(unexplained) > 0 {
				t.Errorf("%v; unexplained: %v; order:\n%s", err, unexplained, show(order))
			}
		})
	}
}

func show(order []event.Event) string {
	var b strings.Builder
	for i := range order {
		ev := &order[i]
		fmt.Fprintf(&b, "  %d tid %d [%d %d] %v %s %x = %d %v\n", ev.Seq, ev.TID, ev.Enter, ev.Exit, ev.Op, ev.Name(),
			ev.Args[1], ev.Ret, ev.Errno)
	}
	return b.String()
}

// TestHistories orders random histories of several threads, in which every call took
// effect at once at some moment between its beginning and its return. IOTAPE_HISTORIES is
// how many, 100 if it is not set.
//
// The default window holds a whole history: then every result is explained. A window of 64
// events cannot: it returns a call when it has read 16 behind it, and the size or listing
// that proves which of two calls came first may come after that. So it must respect real
// time always and results in histories that fit into it; of all others one of a hundred may
// be wrong (2 of 10,000 were seen).
func TestHistories(t *testing.T) {
	defer setHistories(t, "100")()
	long, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		tape := h.run(newWorld())
		small := rapid.Bool().Draw(t, "small window")
		o := &linearize.Options{}
		if small {
			o.Window = smallWindow
		}
		order, unexplained := linearized(t, tape, o)
		if small && len(tape) > smallWindow-smallWindow/4 {
			if err := h.inTime(order); err != nil {
				t.Fatalf("%v; tape:\n%s\norder:\n%s", err, show(tape), show(order))
			}
			if long++; h.check(order, newWorld()) != nil {
				wrong++
			}
			return
		}
		if err := h.check(order, newWorld()); err != nil || len(unexplained) > 0 {
			t.Fatalf("%v; unexplained: %v; tape:\n%s\norder:\n%s", err, unexplained, show(tape), show(order))
		}
	})
	t.Logf("%d histories longer than a window, %d with a result that their order does not explain", long, wrong)
	if wrong > 1+long/100 {
		t.Error("too many")
	}
}

// setHistories has rapid check as many histories as IOTAPE_HISTORIES says, n if it is not
// set, until undone. With -short rapid checks a fifth of them.
func setHistories(t *testing.T, n string) (undo func()) {
	n = cmp.Or(os.Getenv("IOTAPE_HISTORIES"), n)
	checks := flag.Lookup("rapid.checks")
	was := checks.Value.String()
	if err := checks.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	return func() { _ = checks.Value.Set(was) }
}

const smallWindow = 64

func drawHistory(t *rapid.T) (h history) {
	threads := rapid.IntRange(2, 4).Draw(t, "threads")
	names := []string{"/w/a", "/w/b", "/w/c"}
	dirs := []string{"/w/d", "/w/d/e"}
	// Open files that all use, made by the first calls.
	for i := range 3 {
		flags := uint64(event.OpenCreat | 2)
		if i == 2 {
			flags |= event.OpenAppend
		}
		at := int64(10 * i)
		h = append(h, &call{
			op: op{op: event.OpOpen, a: fmt.Sprintf("/w/f%d", i/2), flags: flags, open: event.OpenID(i + 1)}, tid: 1,
			enter: at, effect: at + 1, exit: at + 2,
		})
	}
	// What is there in the beginning is known: otherwise more than one order may explain
	// the answers, each from another beginning.
	for i, name := range slices.Concat(names, dirs) {
		at := int64(40 + 10*i)
		h = append(h, &call{op: op{op: event.OpStat, a: name}, tid: 1, enter: at, effect: at + 1, exit: at + 2})
	}
	next := event.OpenID(10)
	for tid := range threads {
		now := int64(100)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			var o op
			name := func() string { return rapid.SampledFrom(names).Draw(t, "name") }
			switch k := rapid.SampledFrom([]event.Op{
				event.OpOpen, event.OpUnlink, event.OpRename, event.OpLink, event.OpStat, event.OpGetdents64,
				event.OpMkdir, event.OpRmdir, event.OpTruncate,
				event.OpFlock, event.OpPwrite64, event.OpPread64, event.OpWrite, event.OpRead, event.OpLseek,
				event.OpFtruncate, event.OpFstat,
			}).Draw(t, "op"); k {
			case event.OpOpen:
				o = op{
					op: k, a: name(), flags: rapid.SampledFrom([]uint64{0, event.OpenCreat | 2,
						event.OpenCreat | event.OpenExcl | 2, event.OpenCreat | event.OpenTrunc | 2}).Draw(t, "flags"),
					open: next,
				}
				next++
			case event.OpUnlink, event.OpStat:
				o = op{op: k, a: name()}
			case event.OpGetdents64:
				o = op{op: k, a: "/w"}
			case event.OpRename, event.OpLink:
				o = op{op: k, a: name(), b: name()}
			case event.OpMkdir, event.OpRmdir:
				o = op{op: k, a: rapid.SampledFrom(dirs).Draw(t, "dir")}
			case event.OpTruncate:
				o = op{op: k, a: "/w/f0", off: int64(rapid.IntRange(0, 8).Draw(t, "size")) * 10}
			default:
				o = op{
					op: k, open: event.OpenID(rapid.IntRange(1, 3).Draw(t, "file")),
					off: int64(rapid.IntRange(0, 8).Draw(t, "off")) * 10,
					len: int64(rapid.IntRange(1, 30).Draw(t, "len")),
				}
				if k == event.OpFlock {
					o.flags = rapid.SampledFrom([]uint64{1, 2, 8, 8}).Draw(t, "lock")
				}
				if k == event.OpLseek {
					o.flags = uint64(rapid.SampledFrom([]int{0, 2}).Draw(t, "whence"))
				}
				if o.open == 3 && (k == event.OpPwrite64 || k == event.OpRead) {
					o.op = event.OpFstat // the world knows no positional writes of files that append
				}
			}
			enter := now + int64(rapid.IntRange(1, 5).Draw(t, "think"))
			effect := enter + int64(rapid.IntRange(0, 20).Draw(t, "until effect"))
			exit := effect + int64(rapid.IntRange(0, 20).Draw(t, "until return"))
			// No two at one moment.
			at := func(x int64) int64 { return x*8 + int64(tid) }
			h = append(h, &call{op: o, tid: uint32(1 + tid), enter: at(enter), effect: at(effect), exit: at(exit)})
			now = exit
		}
	}
	return h
}
