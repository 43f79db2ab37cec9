// SPDX-License-Identifier: Apache-2.0

package viewmodel_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/busytape"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/viewmodel"
)

var (
	speedEvents = flag.Int("events", 200_000, "events of the tape that benchmarks show")
	speedTape   = flag.String("tape", "", "where to keep that tape")
)

func busy(b *testing.B) *trace.Tape {
	b.Helper()
	dir := *speedTape
	if dir == "" {
		dir = filepath.Join(b.TempDir(), "busy.tape")
	}
	if _, err := os.Stat(dir); err != nil {
		if err := busytape.Write(dir, *speedEvents); err != nil {
			b.Fatal(err)
		}
	}
	t, err := trace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Close() })
	return t
}

// BenchmarkOpen makes the index of a tape.
func BenchmarkOpen(b *testing.B) {
	t := busy(b)
	for b.Loop() {
		s, err := viewmodel.Open(context.Background(), []*trace.Tape{t}, &viewmodel.Options{InMemory: true})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
	b.ReportMetric(float64(t.Manifest().Counts.Events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkWindow asks for windows of all sizes in random places, as who zooms does, with
// as many rows and columns as a large screen has, and arrows.
func BenchmarkWindow(b *testing.B) {
	s, err := viewmodel.Open(context.Background(), []*trace.Tape{busy(b)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Order(); err != nil {
		b.Fatal(err)
	}
	a := s.About()
	rnd := rand.New(rand.NewPCG(1, 2))
	var took, worked []float64 // ms, and ms of processor time: what counts on a busy machine
	for b.Loop() {
		length := (a.ToNS - a.FromNS) >> rnd.IntN(24)
		from := a.FromNS + rnd.Int64N(a.ToNS-a.FromNS-length+1)
		w := &viewmodel.Window{FromNS: from, ToNS: from + max(length, 1000), Columns: 1000, Arrows: true}
		// The rows that are busy there, as who looks would have scrolled to them.
		for i, r := range a.Rows {
			if r.FromNS <= w.ToNS && r.ToNS >= w.FromNS && len(w.Rows) < 50 {
				w.Rows = append(w.Rows, viewmodel.RowRef{Row: i})
			}
		}
		start, used := time.Now(), cpu(b)
		if _, err := s.Window(context.Background(), w); err != nil {
			b.Fatal(err)
		}
		took, worked = append(took, time.Since(start).Seconds()*1000), append(worked, cpu(b)-used)
	}
	slices.Sort(took)
	slices.Sort(worked)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(took[len(took)-1], "max-ms")
	b.ReportMetric(worked[len(worked)*99/100], "p99-cpu-ms")
	b.ReportMetric(worked[len(worked)-1], "max-cpu-ms")
}

// cpu is the processor time of this process, ms.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
