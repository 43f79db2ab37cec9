// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"testing"
	"time"

	"github.com/iotape/iotape/event"
)

// Who looks again and again for what another thread then writes was waiting, unless he
// computed from one look to the next, or found what had been there before.
func TestLooks(t *testing.T) {
	const us = 1000
	polls := func(x *tape, at int64, n int64) {
		x.add(1, at, at, event.OpPoll, func(e *event.Event) { e.Ret = n })
	}
	reads := func(x *tape, at int64, n int64) {
		if n == 0 {
			x.read(1, at, at, 10, 0)
			e := x.events[len(x.events)-1]
			e.Ret, e.Errno = -1, 11
		}
	}
	for _, tt := range []struct {
		name string
		look func(x *tape, at int64, n int64)
		gap  int64 // ns between looks, of which three find nothing
		sent int64 // when what is found was written
		late event.Op
		want time.Duration // computing between the first look and what was read
	}{
		{"polls", polls, 2 * us, 15 * us, 0, 1 * us},
		{"reads that return at once", reads, 2 * us, 15 * us, 0, 0},
		{"computing in between", polls, 20 * us, 55 * us, 0, 61 * us},
		{"found what was there before", polls, 2 * us, 5 * us, 0, 7 * us},
		{"looked for something else", polls, 2 * us, 15 * us, event.OpGetpid, 7 * us},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := &tape{t: t}
			x.pipe(1, 1, 10, 11)
			x.add(2, 1, 1, event.OpGetpid, nil)
			write := func() { x.write(2, tt.sent-1, tt.sent, 11, 1) }
			if tt.sent < 10*us {
				write()
			}
			first, at := len(x.events), int64(10*us)
			for range 3 {
				tt.look(x, at, 0)
				at += tt.gap
			}
			if tt.sent > 10*us {
				write()
			}
			if tt.late != 0 {
				x.add(1, at, at, tt.late, nil)
			}
			tt.look(x, at, 1)
			read := x.read(1, at+us, at+us, 10, 1)
			notes, _ := x.annotated()
			var got time.Duration
			c := notes.Cursor()
			for i := first + 1; i <= read; i++ {
				if x.events[i].TID == 1 {
					got += c.At(uint64(i)).Compute
				}
			}
			if got != tt.want {
				t.Errorf("computed for %v from the first look on, want %v", got, tt.want)
			}
			if on := x.waits(read); len(on) != 1 {
				t.Errorf("the read waits for %v, want the write only", on)
			}
		})
	}
}
