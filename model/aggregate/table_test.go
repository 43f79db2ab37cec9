// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
)

func TestBuckets(t *testing.T) {
	for i := range Buckets {
		low, high := BucketRange(i)
		if BucketOf(low) != i || BucketOf(high-1) != i || i < Buckets-1 && BucketOf(high) != i+1 {
			t.Fatalf("bucket %d is from %d to %d, which are in %d and %d", i, low, high, BucketOf(low),
				BucketOf(high-1))
		}
		if i > 0 && float64(high-low)/2 > 0.126*float64(low) {
			t.Errorf("bucket %d from %d to %d is too wide", i, low, high)
		}
	}
	if BucketOf(1<<63) != Buckets-1 {
		t.Error("the last bucket has an end")
	}
	for ns := uint64(2); ns < 1<<40; ns = ns*5/4 + 1 {
		if low, high := OctaveRange(Octave(ns)); ns < low || ns >= high {
			t.Fatalf("%d ns is not in its octave, from %d to %d", ns, low, high)
		}
	}
}

// TestQuantile holds quantiles against sorted latencies.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Counts
	var all []uint64
	for range 20000 {
		ns := uint64(100) << rng.Uint64N(20)
		ns += rng.Uint64N(ns)
		all = append(all, ns)
		c.Calls++
		c.MaxNS = max(c.MaxNS, ns)
		c.Latency[BucketOf(ns)]++
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want := float64(all[int(q*float64(len(all)))-1])
		if got := float64(c.Quantile(q)); got < 0.87*want || got > 1.13*want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if (&Counts{}).Quantile(0.5) != 0 {
		t.Error("nothing has a median")
	}
}

// TestProjectionKeepsSums merges and projects random tables: no call is lost, whatever the
// order, and however little room there is.
func TestProjectionKeepsSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	full := ByOp | ByUser | ByProcess | ByExtension | ByLatency
	for by := range full + 1 {
		rows := 1 + rng.IntN(30)
		whole, parts := NewTable(full, 0), NewTable(by, rows)
		for range 3 {
			part := NewTable(full, 0)
			for range 50 {
				k := Key{Op: event.Op(rng.IntN(5)), UID: rng.Uint32N(3), PID: rng.Uint32N(4),
					Ext: []string{"", "c", "o"}[rng.IntN(3)], Octave: uint8(rng.IntN(4))}
				part.Add(k, &Counts{Calls: 1 + rng.Uint64N(9), Failed: 1, Read: rng.Uint64N(99),
					MaxNS: rng.Uint64N(99)})
			}
			whole.Merge(part)
			parts.Merge(part)
		}
		if parts.Len() > rows+1 {
			t.Fatalf("%v: %d rows, room for %d", by, parts.Len(), rows)
		}
		if *whole.Total() != *parts.Total() {
			t.Fatalf("%v: %+v in all, %+v in parts", by, whole.Total(), parts.Total())
		}
		if other := parts.Row(Key{Other: true}); other == nil {
			for k, c := range whole.Project(by).Rows() {
				if p := parts.Row(k); p == nil || *p != *c {
					t.Fatalf("%v: row %+v differs", by, k)
				}
			}
		}
	}
}

func TestSorted(t *testing.T) {
	tab := NewTable(ByProcess, 3)
	for pid, n := range []uint64{5, 9, 9, 100, 100} { // of which the last two have no room
		tab.Add(Key{PID: uint32(pid + 1)}, &Counts{Calls: n})
	}
	var pids []uint32
	for _, r := range tab.Sorted(OrderCalls) {
		pids = append(pids, r.Key.PID)
	}
	if !slices.Equal(pids, []uint32{2, 3, 1, 0}) {
		t.Errorf("order %v", pids)
	}
}

func TestExtension(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt": "txt", "/a.b/c": "", ".bashrc": "bashrc", "x.tar.gz": "gz", "x.": "", "": "", "a/b.c/": "",
		"a.123456789012345": "123456789012345", "a.1234567890123456": "",
	} {
		if got := Extension(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestParseBy(t *testing.T) {
	by, err := ParseBy("op, ext,process")
	if err != nil || by != ByOp|ByExtension|ByProcess || by.String() != "process,op,extension" {
		t.Errorf("%v, %v", by, err)
	}
	for _, text := range []string{"", "op,", "size"} {
		if _, err := ParseBy(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
