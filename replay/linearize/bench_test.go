// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/linearize"
)

// lender gives events over and over as a tape's reader does: into the caller's memory, with
// content in its own.
type lender struct {
	tape []event.Event
	n, i int
}

func (l *lender) next(ev *event.Event) error {
	if l.i == l.n {
		return io.EOF
	}
	from := &l.tape[l.i%len(l.tape)]
	files, paths, bufs := append(ev.Files[:0], from.Files...), append(ev.Paths[:0], from.Paths...),
		append(ev.Bufs[:0], from.Bufs...)
	*ev = *from
	ev.Files, ev.Paths, ev.Bufs = files, paths, bufs
	ev.Seq = uint64(l.i)
	round := int64(l.i/len(l.tape)) * (l.tape[len(l.tape)-1].Exit + 1)
	ev.Enter, ev.Exit = ev.Enter+round, ev.Exit+round
	l.i++
	return nil
}

// threadsTape has threads that make calls all the time, each overlapping with one of every
// other.
func threadsTape(threads, calls int, makes func(tid, i int) op) []event.Event {
	var h history
	for i := range calls {
		for tid := range threads {
			at := int64(i*threads*10 + tid*10)
			h = append(h, &call{
				op: makes(tid, i), tid: uint32(tid + 1), enter: at, effect: at + 1, exit: at + int64(threads)*10 - 1,
			})
		}
	}
	w := newWorld()
	for tid := range threads {
		for f := range threads {
			o := op{
				op: event.OpOpen, a: fmt.Sprintf("/w/%d", f), flags: event.OpenCreat | 2,
				open: event.OpenID(1 + tid*threads + f),
			}
			w.do(&o)
			w.do(&op{op: event.OpPwrite64, open: o.open, off: 1 << 20, len: 1})
		}
	}
	return h.run(w)
}

func BenchmarkNext(b *testing.B) {
	random := func(tid, i int) int64 { return int64(uint32(i*2654435761+tid*40503)%256) * 4096 }
	own := func(tid, i int) op {
		return op{
			op: []event.Op{event.OpPread64, event.OpPwrite64}[i%2], open: event.OpenID(1 + tid*4 + tid),
			off: random(tid, i), len: 4096,
		}
	}
	for _, c := range []struct {
		name    string
		threads int
		makes   func(tid, i int) op
	}{
		{"one", 1, own},
		{"four/files of their own", 4, own},
		{"four/one file", 4, func(tid, i int) op {
			o := own(tid, i)
			o.open = event.OpenID(1 + tid*4)
			return o
		}},
		{"four/names of their own", 4, func(tid, i int) op {
			return op{
				op: []event.Op{event.OpOpen, event.OpStat, event.OpUnlink}[i%3],
				a:  fmt.Sprintf("/w/dir%d/name%d", tid, i/3%50), flags: event.OpenCreat | 2,
				open: event.OpenID(100 + tid*10000 + i),
			}
		}},
		{"four/sizes", 4, func(tid, i int) op {
			return op{
				op: []event.Op{event.OpPwrite64, event.OpFstat, event.OpFtruncate}[i%3], open: event.OpenID(1 + tid*4),
				off: int64(i) * 10, len: 10,
			}
		}},
	} {
		tape := threadsTape(c.threads, 3000, c.makes)
		if c.threads == 1 {
			tape = tape[4:] // none of which make threads
		}
		b.Run(c.name+"/read", func(b *testing.B) {
			l := lender{tape: tape, n: b.N}
			spend(b, l.next)
		})
		b.Run(c.name+"/linearize", func(b *testing.B) {
			l := lender{tape: tape, n: b.N}
			s := linearize.New(l.next, nil)
			spend(b, s.Next)
		})
	}
}

// spend reads to the end, and reports the CPU time of each event: that which elapses
// depends on what else runs.
func spend(b *testing.B, next func(*event.Event) error) {
	b.ReportAllocs()
	var ev event.Event
	from := cpuTime(b)
	for next(&ev) == nil {
	}
	b.ReportMetric(float64(cpuTime(b)-from)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
