// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
)

func BenchmarkWrite(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	evs := make([]event.Event, 1<<16)
	for i := range evs {
		simple(&evs[i], i, rng)
	}
	w, err := CreateTape(filepath.Join(b.TempDir(), "x.tape"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Abort()
	n := 0
	for b.Loop() {
		if err := w.Write(&evs[n%len(evs)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := w.Close(&Manifest{Hosts: make([]Host, 1)}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(w.events.off)/float64(n), "B/event")
}

func BenchmarkNext(b *testing.B) {
	tape, err := Open(makeTape(b, 1<<20))
	if err != nil {
		b.Fatal(err)
	}
	defer tape.Close()
	r := tape.NewEventReader()
	var ev event.Event
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		err := r.Next(&ev)
		if err == io.EOF {
			err = r.Seek(0)
		}
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkAddChunk adds 4 KiB chunks as a database writes them: half text-like,
// half random.
func BenchmarkAddChunk(b *testing.B) {
	for _, share := range []int{0, 90} {
		b.Run(fmt.Sprintf("repeated=%d%%", share), func(b *testing.B) {
			w, err := CreateTape(filepath.Join(b.TempDir(), "x.tape"))
			if err != nil {
				b.Fatal(err)
			}
			defer w.Abort()
			rng := rand.New(rand.NewPCG(1, 2))
			chunk := make([]byte, ChunkBytes)
			for i := 0; i < len(chunk); i += 16 {
				copy(chunk[i:], fmt.Sprintf("key%013d", rng.Uint32()))
				if i%32 == 0 {
					for k := range 16 {
						chunk[i+k] = byte(rng.Uint32())
					}
				}
			}
			b.SetBytes(ChunkBytes)
			for b.Loop() {
				if rng.IntN(100) >= share {
					for k := 0; k < ChunkBytes; k += 256 {
						v := rng.Uint64()
						for s := range 8 {
							chunk[k+s] = byte(v >> (8 * s))
						}
					}
				}
				if _, err := w.AddChunk(chunk); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(&Manifest{}); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(w.totals.UniqueBytes)/float64(w.totals.StoredBytes), "ratio")
		})
	}
}

func BenchmarkChunk(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "x.tape")
	w, err := CreateTape(dir)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	chunk, n := make([]byte, ChunkBytes), uint64(1<<15)
	for range n {
		for k := range chunk {
			chunk[k] = byte('a' + rng.IntN(16))
		}
		if _, err := w.AddChunk(chunk); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(&Manifest{}); err != nil {
		b.Fatal(err)
	}
	tape, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer tape.Close()
	b.SetBytes(ChunkBytes)
	id := uint64(0)
	for b.Loop() {
		if _, err := tape.Chunk(id%n + 1); err != nil {
			b.Fatal(err)
		}
		id++
	}
}
