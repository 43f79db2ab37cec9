// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// benchStream returns a stream of threads that open a file, write and read pages of it, and
// close it, in frames as drains write them, and how many calls it has.
func benchStream(b *testing.B) (stream []byte, calls int) {
	b.Helper()
	const threads, rounds, frames = 8, 16, 64
	var out bytes.Buffer
	sw, err := trace.NewStreamWriter(&out, 1, &trace.Head{Arch: "amd64", Shards: 2})
	if err != nil {
		b.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	page := make([]byte, 4096)
	now := uint64(1e9)
	file := []trace.Object{{Arg: 0, FD: 3, Ino: 7, Dev: 9, Mode: 0o100644, Flags: 2, Size: 1 << 20, Nlink: 1}}
	for f := range uint32(frames) {
		var payload []byte
		put := func(r *trace.Record) { payload = trace.AppendRecord(payload, r) }
		for range rounds {
			for tid := uint32(100); tid < 100+threads; tid++ {
				call := func(op event.Op, ret int64, args [6]uint64, o []trace.Object, pieces ...trace.Piece) {
					now += 1000
					calls++
					put(&trace.Record{
						Type: trace.RecCall, Op: uint16(op), PID: 100, TID: tid, Enter: now - 500, Exit: now,
						Ret: ret, Args: args, Objects: o, Pieces: pieces,
					})
				}
				put(&trace.Record{Type: trace.RecTask, PID: 100, TID: tid, Exit: now, PPID: 1})
				opened := []trace.Object{file[0]}
				opened[0].Arg = event.ResultArg
				name := []byte("/data/file")
				path := trace.Piece{Arg: 1, Len: uint32(len(name)), Data: name}
				call(event.OpOpenat, 3, [6]uint64{^uint64(99), 0, 2}, opened, path)
				for i := range uint64(8) {
					random.Read(page[:64])
					data := trace.Piece{Arg: 1, Len: 4096, Data: page}
					call(event.OpPwrite64, 4096, [6]uint64{3, 0, 4096, 4096 * i}, file, data)
					call(event.OpPread64, 4096, [6]uint64{3, 0, 4096, 4096 * i}, file, data)
				}
				call(event.OpClose, 0, [6]uint64{3}, file)
			}
		}
		if err := sw.WriteRecords(trace.Frame{Shard: 0, Round: f + 1, Until: now}, payload); err != nil {
			b.Fatal(err)
		}
	}
	if err := sw.Close(&trace.End{}); err != nil {
		b.Fatal(err)
	}
	return out.Bytes(), calls
}

// perCall reports what a stream's events cost.
func perCall(b *testing.B, calls int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(calls), "ns/call")
}

func BenchmarkSeal(b *testing.B) {
	stream, calls := benchStream(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		tw, err := trace.CreateTape(filepath.Join(b.TempDir(), "x.tape"))
		if err != nil {
			b.Fatal(err)
		}
		st, err := seal.Seal(context.Background(), bytes.NewReader(stream), tw, nil)
		if err != nil {
			b.Fatal(err)
		}
		if st.Calls != uint64(calls) || st.Lost > 0 {
			b.Fatalf("got %d calls, %d lost, want %d and none", st.Calls, st.Lost, calls)
		}
		tw.Abort()
	}
	perCall(b, calls)
}

func BenchmarkWatch(b *testing.B) {
	stream, calls := benchStream(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		_, err := seal.Watch(context.Background(), bytes.NewReader(stream), &seal.Viewer{
			Started: func(*trace.Head) error { return nil },
			Seen:    func(*event.Event) error { seen++; return nil }, Idle: func() error { return nil }})
		if err != nil || seen != calls {
			b.Fatalf("got %d events, error %v, want %d", seen, err, calls)
		}
	}
	perCall(b, calls)
}

func BenchmarkFollower(b *testing.B) {
	stream, calls := benchStream(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		applied := 0
		f := seal.NewFollower(func(uint64) { applied++ })
		fr := trace.NewFrameReader(bytes.NewReader(stream))
		for {
			h, payload, err := fr.Next()
			if err != nil {
				break
			}
			if h.Kind != trace.FrameRecords {
				continue
			}
			if _, err := f.Frame(&h, payload, 0); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Flush(^uint64(0)); err != nil || applied != calls {
			b.Fatalf("got %d events applied, error %v, want %d", applied, err, calls)
		}
	}
	perCall(b, calls)
}
