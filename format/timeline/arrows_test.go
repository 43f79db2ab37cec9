// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/history"
)

// TestPipe: who gets an arrow from whom, whatever the sizes and the order of returns.
func TestPipe(t *testing.T) {
	type io struct {
		name        string
		write       bool
		n           int64
		enter, exit int64
	}
	for _, c := range []struct {
		name string
		ios  []io // by return
		want []string
	}{
		{"one to one", []io{{"w", true, 5, 1, 2}, {"r", false, 5, 3, 4}}, []string{"w>r"}},
		{"one read of two writes", []io{{"v", true, 2, 1, 2}, {"w", true, 3, 3, 4}, {"r", false, 5, 5, 6}}, []string{"v>r", "w>r"}},
		{"two reads of one write", []io{{"w", true, 5, 1, 2}, {"q", false, 2, 3, 4}, {"r", false, 3, 5, 6}}, []string{"w>q"}},
		{"the read waits", []io{{"w", true, 5, 3, 4}, {"r", false, 5, 1, 6}}, []string{"w>r late"}},
		{"the read returns first", []io{{"r", false, 5, 1, 4}, {"w", true, 5, 3, 5}}, []string{"w>r late"}},
		{"the read returns amid a write", []io{{"q", false, 2, 1, 4}, {"w", true, 5, 3, 5}, {"r", false, 3, 6, 7}}, []string{"w>q late", "w>r"}},
		{"somebody else writes", []io{{"r", false, 5, 1, 2}, {"w", true, 5, 3, 4}, {"q", false, 5, 5, 6}, {"v", true, 5, 7, 8}}, nil},
		{"nobody reads", []io{{"w", true, maxPipe + 1, 1, 2}, {"v", true, 1, 3, 4}, {"r", false, 1, 5, 6}}, nil},
	} {
		a, p := newArrows(), &pipe{}
		from := map[uint64]string{}
		to := map[uint64]string{}
		for _, x := range c.ios {
			if p.unsure {
				break
			}
			m := &history.EventContext{Event: &event.Event{Enter: x.enter, Exit: x.exit}}
			s := &Slice{}
			if x.write {
				a.write(p, m, x.n, s)
			} else {
				a.read(p, m, x.n, s)
			}
			for _, n := range s.Out {
				from[n] = x.name
			}
			for _, n := range s.In {
				to[n] += x.name
			}
			for _, n := range s.Received {
				to[n] += x.name + " late"
			}
		}
		var got []string
		for n, w := range from {
			if r := to[n]; r != "" {
				got = append(got, w+">"+r)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: arrows %q, want %q", c.name, got, c.want)
		}
	}
}
