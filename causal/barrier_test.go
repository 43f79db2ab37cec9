// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"math"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
)

// futex makes a call one on the word at an address: 0 sleeps on it, 1 wakes n who do.
func futex(op, n uint64) func(*event.Event) {
	return func(e *event.Event) { e.Args[0], e.Args[1], e.Args[2], e.Ret = 0x1000, op, n, 1 }
}

// passing is the events of one time that threads pass a barrier.
type passing struct {
	woken []int // the wake-ups
	last  int   // the call of the last one
	slept []int // the calls of the others
}

// passes has a thread wake others at a time, who began to sleep a ms before.
func (x *tape) passes(at int64, last uint32, others ...uint32) (p passing) {
	for _, tid := range others {
		p.woken = append(p.woken, x.woken(tid, last, at, event.OpFutex))
	}
	p.last = x.add(last, at-1, at+1, event.OpFutex, futex(1, math.MaxInt32))
	for _, tid := range others {
		p.slept = append(p.slept, x.add(tid, at-ms, at+2, event.OpFutex, futex(0, 7)))
	}
	return p
}

// others are the threads but one.
func others(than uint32) []uint32 {
	return slices.DeleteFunc([]uint32{1, 2, 3}, func(tid uint32) bool { return tid == than })
}

// rounds has three threads pass a barrier every 10 ms.
func (x *tape) rounds(lasts ...uint32) (p passing, at int64) {
	for tid := range uint32(3) {
		x.add(tid+1, 0, 0, event.OpGetpid, nil)
	}
	for _, last := range lasts {
		at += 10 * ms
		p = x.passes(at, last, others(last)...)
	}
	return p, at
}

// waits returns which events one waits for, by the annotations.
func (x *tape) waits(event int) (on []int) {
	x.t.Helper()
	n, _, err := Annotate(x.all())
	if err != nil {
		x.t.Fatal(err)
	}
	an := n.Cursor().At(uint64(event))
	for _, w := range an.Waits {
		on = append(on, int(w.Event))
	}
	return on
}

func TestBarrier(t *testing.T) {
	t.Run("all wait for all", func(t *testing.T) {
		x := &tape{t: t}
		p, _ := x.rounds(3, 3, 1, 2, 1)
		if got := x.waits(p.last); !slices.Equal(got, p.woken) {
			t.Errorf("the last one waits for %v, want the others' wake-ups %v", got, p.woken)
		}
		for _, s := range p.slept {
			if got := x.waits(s); !slices.Equal(got, []int{p.last}) {
				t.Errorf("one that slept waits for %v, want the last one's call %d", got, p.last)
			}
		}
		n, sum, err := Annotate(x.all())
		if err != nil || sum.Found[Barrier] != 10 {
			t.Fatalf("found %d of barriers, want 2 in each of 5 rounds (%v)", sum.Found[Barrier], err)
		}
		// What a thread computed before it arrived is over when it can be woken.
		c := n.Cursor()
		for i, w := range p.woken {
			if arrived := c.At(uint64(w)).Compute; arrived < 8e6 {
				t.Errorf("wake-up %d comes after %v of computing", w, arrived)
			}
			if after := c.At(uint64(p.slept[i])).Compute; after != 0 {
				t.Errorf("call %d comes after %v more", p.slept[i], after)
			}
		}
	})
	t.Run("one that is back first waits for all who came", func(t *testing.T) {
		x := &tape{t: t}
		_, at := x.rounds(3, 3, 1, 2)
		at += 10 * ms
		x.woken(2, 1, at, event.OpFutex)
		third := x.woken(3, 1, at, event.OpFutex)
		back := x.add(2, at-ms, at+1, event.OpFutex, futex(0, 7))
		x.add(1, at-1, at+2, event.OpFutex, futex(1, math.MaxInt32))
		x.add(3, at-ms, at+3, event.OpFutex, futex(0, 7))
		if got := x.waits(back); !slices.Contains(got, third) {
			t.Errorf("it waits for %v, want %d among them", got, third)
		}
	})
	for name, lasts := range map[string][]uint32{
		"too few rounds":                   {3, 3, 1},
		"one hands out work to the others": {1, 1, 1, 1, 1, 1},
		"a turn is passed on":              {1, 2, 3, 1, 2, 3, 1, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			x := &tape{t: t}
			p, _ := x.rounds(lasts...)
			for _, w := range p.woken {
				if slices.Contains(x.waits(p.last), w) {
					t.Errorf("who wakes the others waits for %v", x.waits(p.last))
				}
			}
		})
	}
	t.Run("not always the same threads", func(t *testing.T) {
		x := &tape{t: t}
		_, at := x.rounds(3, 3, 1, 2)
		x.passes(at+10*ms, 1, 2)
		p := x.passes(at+20*ms, 1, 2, 3)
		if got := x.waits(p.last); slices.Contains(got, p.woken[1]) {
			t.Errorf("who wakes the others waits for %v", got)
		}
	})
	t.Run("woken one at a time", func(t *testing.T) {
		x := &tape{t: t}
		p, _ := x.rounds(3, 3, 1, 2, 1)
		for _, e := range x.events {
			if e.Op == event.OpFutex && e.Args[1] == 1 {
				e.Args[2] = 1
			}
		}
		if got := x.waits(p.last); slices.Contains(got, p.woken[0]) {
			t.Errorf("who wakes the others waits for %v", got)
		}
	})
	t.Run("what one computed stays its own", func(t *testing.T) {
		x := &tape{t: t}
		x.rounds()
		for i, last := range []uint32{1, 1, 2, 2, 1} {
			at, other := int64(i+1)*10*ms, 3-last
			x.woken(other, last, at, event.OpFutex)
			x.woken(3, other, at+1, event.OpFutex) // passed on in the same call
			x.add(last, at-1, at+2, event.OpFutex, futex(1, math.MaxInt32))
			x.add(other, at-ms, at+3, event.OpFutex, futex(0, 7))
			x.add(3, at-2*ms, at+4, event.OpFutex, futex(0, 7))
		}
		n, sum, err := Annotate(x.all())
		if err != nil || sum.Found[Barrier] == 0 {
			t.Fatalf("found %d of barriers (%v)", sum.Found[Barrier], err)
		}
		computed := map[uint32]int64{}
		c := n.Cursor()
		for _, e := range x.events {
			computed[e.TID] += int64(c.At(e.Seq).Compute)
		}
		for _, node := range sum.Nodes {
			if got := computed[node.TID]; got != node.Compute {
				t.Errorf("thread %d computes for %d ns by its events, and %d in all", node.TID, got, node.Compute)
			}
		}
	})
}
