package scene_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"iotape/internal/busytape"
	"iotape/scene"
	"iotape/trace"
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
	t, err := trace.OpenTape(dir)
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
		s, err := scene.Open(context.Background(), []*trace.Tape{t}, &scene.Options{InMemory: true})
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
	s, err := scene.Open(context.Background(), []*trace.Tape{busy(b)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Order(); err != nil {
		b.Fatal(err)
	}
	a := s.About()
	rnd := rand.New(rand.NewPCG(1, 2))
	var took []float64
	for b.Loop() {
		length := (a.ToNS - a.FromNS) >> rnd.IntN(24)
		from := a.FromNS + rnd.Int64N(a.ToNS-a.FromNS-length+1)
		w := &scene.Window{FromNS: from, ToNS: from + max(length, 1000), Columns: 1000, Arrows: true}
		// The rows that are busy there, as who looks would have scrolled to them.
		for i, r := range a.Rows {
			if r.FromNS <= w.ToNS && r.ToNS >= w.FromNS && len(w.Rows) < 50 {
				w.Rows = append(w.Rows, scene.RowRef{Row: i})
			}
		}
		start := time.Now()
		if _, err := s.Window(context.Background(), w); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start).Seconds()*1000)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(took[len(took)-1], "max-ms")
}
