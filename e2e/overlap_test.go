// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayOverlaps records two processes that write two files at the same time, and then their replay: calls of the
// two overlap there as well. What is made one after the other takes twice as long on a storage that can do two things.
func TestReplayOverlaps(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records many times")
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	const size = 256 << 10
	e := runEnv(t)
	e.run(t, e.iotape, "record", "--backend", "ebpf", "-o", "once.tape", "--", "sh", "-c",
		"for f in a b; do dd if=/dev/zero of=$f bs=256k count=400 status=none & done; wait")
	e.run(t, e.iotape, "record", "--backend", "ebpf", "--content", "none", "-o", "again.tape", "--",
		e.iotape, "replay", "once.tape", "--into", "again")
	for _, tape := range []string{"once.tape", "again.tape"} {
		writes := map[uint32][]event.Event{}
		e.events(t, tape, func(ev *event.Event) {
			if ev.Op == event.OpWrite && ev.Ret == size {
				writes[ev.TID] = append(writes[ev.TID], *ev)
			}
		})
		var threads [][]event.Event
		for _, w := range writes {
			threads = append(threads, w)
		}
		if len(threads) != 2 || len(threads[0]) != 400 || len(threads[1]) != 400 {
			t.Errorf("%s: writes by thread: %d of %d threads, want 400 of each of 2", tape, len(threads), len(writes))
			continue
		}
		if n := overlaps(threads[0], threads[1]); n == 0 {
			t.Errorf("%s: no write of the one overlaps with one of the other, want some of 400", tape)
		}
	}
}

// overlaps counts the pairs of calls of a and b, each in order, that were under way at the same time.
func overlaps(a, b []event.Event) (n int) {
	for len(a) > 0 && len(b) > 0 {
		endA, endB := a[0].Exit, b[0].Exit
		if a[0].Enter < endB && b[0].Enter < endA {
			n++
		}
		if endA < endB {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return n
}
