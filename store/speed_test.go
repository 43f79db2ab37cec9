// SPDX-License-Identifier: Apache-2.0

package store

import (
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/busytape"
	"github.com/iotape/iotape/trace"
)

var (
	speedEvents = flag.Int("events", 200_000, "events of the tape that benchmarks index and query")
	speedTape   = flag.String("tape", "", "where to keep that tape")
)

// loadTape makes the tape of the flags.
func loadTape(b *testing.B) *trace.Tape {
	b.Helper()
	dir := *speedTape
	if dir == "" {
		dir = filepath.Join(b.TempDir(), "load.tape")
	}
	if _, err := os.Stat(dir); err != nil {
		if err := busytape.Write(dir, *speedEvents); err != nil {
			b.Fatal(err)
		}
	}
	tape, err := trace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tape.Close() })
	return tape
}

func BenchmarkIndex(b *testing.B) {
	tape := loadTape(b)
	before := cpu(b)
	for b.Loop() {
		if err := Index(b.Context(), tape, nil); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(tape.Manifest().Counts.Events)
	b.ReportMetric((cpu(b)-before)/n/float64(b.N), "cpu-ns/event")
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	for _, name := range []string{"events", "opens", "content"} {
		st, err := os.Stat(filepath.Join(tape.Dir(), parquetName(name)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.Size())/n, name+"-B/event")
	}
}

// cpu returns the CPU time that this process has used, ns.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkQuery groups all events by call and file.
func BenchmarkQuery(b *testing.B) {
	tape := loadTape(b)
	if err := Index(b.Context(), tape, nil); err != nil {
		b.Fatal(err)
	}
	before := cpu(b)
	for b.Loop() {
		rows, err := Query(b.Context(), []*trace.Tape{tape},
			"SELECT op, file, count(*), sum(bytes), sum(duration_ns) FROM events GROUP BY op, file ORDER BY 3 DESC "+
				"LIMIT 10", nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Close(); err != nil || n != 10 {
			b.Fatal(n, err)
		}
	}
	n := float64(tape.Manifest().Counts.Events)
	b.ReportMetric((cpu(b)-before)/n/float64(b.N), "cpu-ns/event")
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
