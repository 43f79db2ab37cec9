// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// Threads append to one file. Each call is seen to have ended where the file ended
// when the call returned, which others may have moved on by then.
func TestOverlappingAppendsTileTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "calls")
		base := rapid.Int64Range(0, 100).Draw(t, "base")
		type done struct {
			it  *item
			end int64 // of the file when the kernel had done it
			at  int64 // time of that
		}
		var all []done
		at, clock := base, int64(1000)
		for i := range n {
			length := rapid.Int64Range(1, 50).Draw(t, "length")
			delay := rapid.Int64Range(0, 30).Draw(t, "delay")
			clock += rapid.Int64Range(1, 20).Draw(t, "gap")
			at += length
			it := &item{}
			it.ev = event.Event{Op: event.OpWrite, TID: uint32(i), PID: 1,
				Enter: clock - rapid.Int64Range(0, 20).Draw(t, "before"), Exit: clock + delay, Ret: length}
			it.ev.Files = []event.File{{FD: 3, Known: true, Mode: syscall.S_IFREG}}
			it.key = uint64(it.ev.Exit)
			all = append(all, done{it, at, clock})
		}
		// What each sees when it returns: the end of whatever is done by then.
		for i, d := range all {
			seen := d.end
			for _, later := range all[i:] {
				if later.at <= d.it.ev.Exit {
					seen = max(seen, later.end)
				}
			}
			d.it.ev.Files[0].Pos, d.it.ev.Offset = seen, seen-d.it.ev.Ret
		}
		var batch []*item
		for _, d := range all {
			batch = append(batch, d.it)
		}
		slices.SortStableFunc(batch, func(a, b *item) int { return int(a.key) - int(b.key) })
		p := newPositions()
		p.ends[positionKey{pid: 1, fd: 3}] = base
		p.order(batch)
		next := base
		for i, it := range batch {
			if it.ev.Offset != next {
				t.Fatalf("call %d of the order starts at %d, the one before ended at %d", i, it.ev.Offset, next)
			}
			next += it.ev.Ret
			if i > 0 && it.key < batch[i-1].key {
				t.Fatalf("time goes back at %d", i)
			}
			if it.key < uint64(it.ev.Enter) || it.key > uint64(it.ev.Exit) {
				t.Fatalf("call %d stands at %d, but was from %d to %d", i, it.key, it.ev.Enter, it.ev.Exit)
			}
			for _, later := range batch[i+1:] {
				if later.ev.Exit < it.ev.Enter {
					t.Fatalf("a call that had returned before another began comes after it")
				}
			}
		}
	})
}

// Threads write at one position. Where each begins was read before it had its turn, and
// the position once more after it, when others may have moved it on.
func TestOverlappingWritesTileTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "calls")
		type done struct {
			it    *item
			entry int64 // time at which the position was read
			end   int64
			at    int64
		}
		var all []done
		pos, clock := rapid.Int64Range(0, 100).Draw(t, "base"), int64(1000)
		base := pos
		for i := range n {
			clock += rapid.Int64Range(1, 20).Draw(t, "gap")
			pos += rapid.Int64Range(1, 1<<27).Draw(t, "length")
			enter := clock - rapid.Int64Range(0, 40).Draw(t, "before")
			it := &item{}
			it.ev = event.Event{Op: event.OpWrite, TID: uint32(i), PID: 1, Enter: enter,
				Exit: clock + rapid.Int64Range(0, 30).Draw(t, "delay")}
			it.ev.Files = []event.File{{FD: 3, Known: true, Mode: syscall.S_IFREG}}
			it.key = uint64(it.ev.Exit)
			all = append(all, done{it, enter, pos, clock})
		}
		at := func(time int64) int64 {
			seen := base
			for _, d := range all {
				if d.at <= time {
					seen = d.end
				}
			}
			return seen
		}
		next, ranges := base, map[*item][2]int64{}
		for _, d := range all {
			ev := &d.it.ev
			ev.Ret = d.end - next
			start := at(d.entry)
			if d.it.ev.Exit%3 == 0 || start >= d.end { // it waited, and read the position when it had its turn
				start = next
			}
			next = d.end
			if past := at(ev.Exit) - start - ev.Ret; past < 1<<31 {
				d.it.past = uint32(past) + 1
			} else {
				start = at(ev.Exit) - ev.Ret // as seen when it returned
			}
			ev.Offset = start
			lo, hi := d.it.ended()
			ranges[d.it] = [2]int64{lo, hi}
		}
		var batch []*item
		for _, d := range all {
			batch = append(batch, d.it)
		}
		slices.SortStableFunc(batch, func(a, b *item) int { return int(a.key) - int(b.key) })
		p := newPositions()
		p.ends[positionKey{pid: 1, fd: 3}] = base
		p.order(batch)
		next = base
		for i, it := range batch {
			if it.ev.Offset != next {
				t.Fatalf("call %d of the order starts at %d, the one before ended at %d", i, it.ev.Offset, next)
			}
			next += it.ev.Ret
			if seen := ranges[it]; next < seen[0] || next > seen[1] {
				t.Fatalf("call %d ends at %d, but was seen to end between %d and %d", i, next, seen[0], seen[1])
			}
			if it.key < uint64(it.ev.Enter) || it.key > uint64(it.ev.Exit) {
				t.Fatalf("call %d stands at %d, but was from %d to %d", i, it.key, it.ev.Enter, it.ev.Exit)
			}
		}
	})
}

// Two threads write at one position, and lose the processor: one before it has the lock, so
// that where it was to begin was read long before, the other when it has written. Which came
// first tells that the position was where the first ended when that returned. (A recording
// of workload/threads8-shared, in ns.)
func TestAWriteThatBeganLate(t *testing.T) {
	write := func(tid uint32, enter, exit, start, length, seen int64) *item {
		it := &item{key: uint64(exit), past: uint32(seen-start-length) + 1}
		it.ev = event.Event{Op: event.OpWrite, TID: tid, PID: 1, Enter: enter, Exit: exit, Ret: length, Offset: start}
		it.ev.Files = []event.File{{FD: 3, Known: true, Mode: syscall.S_IFREG}}
		return it
	}
	late, slow := write(2, 521781, 541791, 196968, 422, 199076), write(1, 528755, 547473, 198177, 477, 200031)
	batch := []*item{
		write(1, 522466, 523558, 196968, 366, 197334), write(1, 524609, 525661, 197334, 403, 197737), write(1, 526722, 527744, 197737, 440, 198177),
		late, write(2, 543243, 544395, 199076, 459, 199535), write(2, 545646, 546748, 199535, 496, 200031), slow,
	}
	p := newPositions()
	p.ends[positionKey{pid: 1, fd: 3}] = 196968
	p.order(batch)
	if late.ev.Offset != 198654 || slow.ev.Offset != 198177 {
		t.Errorf("the writes are at %d and %d, want 198654 and 198177", late.ev.Offset, slow.ev.Offset)
	}
}

func TestSeparatePositionsStayAsTheyAre(t *testing.T) {
	var batch []*item
	for i := range 4 {
		it := &item{key: uint64(100 + i)}
		it.ev = event.Event{Op: event.OpRead, TID: uint32(i), PID: uint32(i), Enter: 1, Exit: int64(100 + i), Ret: 10,
			Offset: int64(10 * (3 - i))}
		it.ev.Files = []event.File{{FD: 3, Known: true, Ino: 1, Mode: syscall.S_IFREG}}
		batch = append(batch, it)
	}
	p := newPositions()
	p.order(batch)
	for i, it := range batch {
		if it.ev.TID != uint32(i) || it.ev.Offset != int64(10*(3-i)) {
			t.Errorf("place %d has the call of thread %d at offset %d", i, it.ev.TID, it.ev.Offset)
		}
	}
}
