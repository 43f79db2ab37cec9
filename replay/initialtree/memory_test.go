// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// BenchmarkInferManyFiles looks at many files that nothing made, each in the way of a
// backup: a listing would name it, stat tells of it. It reports how much memory the
// inference holds for each while it goes on, and how much of the result.
func BenchmarkInferManyFiles(b *testing.B) {
	const files = 200_000
	tape := manyFiles(b, files)
	for b.Loop() {
		before := heap()
		in := newInference(tape, nil)
		if err := in.readAll(b.Context()); err != nil {
			b.Fatal(err)
		}
		during := heap()
		in.decide()
		sk := in.result
		*in = inference{}
		after := heap()
		b.ReportMetric(float64(during-before)/files, "B/file")
		b.ReportMetric(float64(after-before)/files, "B/file-of-result")
		n := 0
		for range sk.Entries() {
			n++
		}
		if n < files {
			b.Fatalf("%d entries", n)
		}
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// manyFiles makes a tape that looks at n files in directories of a thousand.
func manyFiles(b *testing.B, n int) *trace.Tape {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		b.Fatal(err)
	}
	stat := make([]byte, event.LayoutStat.Bytes(event.AMD64))
	stat[16] = 1                    // links
	stat[24], stat[25] = 0xa4, 0x81 // a file, 0644
	for i := range n {
		name := fmt.Sprintf("/srv/backup/data/directory-%04d/file-with-a-usual-name-%04d.dat", i/1000, i%1000)
		stat[8], stat[9], stat[10], stat[48] = byte(i), byte(i>>8), byte(i>>16), byte(i)
		ev := event.Event{Op: event.OpLstat, PID: 1, TID: 1, Enter: int64(i) * 10, Exit: int64(i)*10 + 5,
			Args: [6]uint64{0x1000, 0x2000}, Offset: -1, Count: -1,
			Paths: []event.Path{{Arg: 0, Raw: name}},
			Bufs:  []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: int64(len(stat)), Inline: stat}}}
		if err := w.Write(&ev); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(&trace.Manifest{Program: "test",
		Hosts: []trace.Host{{Head: trace.Head{Host: "h", Arch: "amd64"}}}}); err != nil {
		b.Fatal(err)
	}
	t, err := trace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Close() })
	return t
}
