// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// BenchmarkRecorder passes calls with content through a Recorder whose memory is
// full: as many as come in are applied and forgotten.
func BenchmarkRecorder(b *testing.B) {
	for _, size := range []int{1, 4096} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			r, err := New(&Options{Bytes: MinBytes, Triggers: []Trigger{{Errno: 5}, {Op: event.OpFsync, Slow: 1e6}}})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			sw, err := trace.NewStreamWriterTo(r, 1, &trace.Head{Arch: "amd64"})
			if err != nil {
				b.Fatal(err)
			}
			var payload []byte
			var calls []int // offsets
			payload = trace.AppendRecord(payload, &trace.Record{Type: trace.RecStart, PID: 7, TID: 7, Exit: 1,
				Pieces: []trace.Piece{{Len: 2, Data: []byte("/d")}}})
			payload = trace.AppendRecord(payload, &trace.Record{Type: trace.RecFile, PID: 7, TID: 7, Exit: 1,
				Objects: []trace.Object{{FD: 3, Ino: 9, Mode: 0o100644}},
				Pieces:  []trace.Piece{{Len: 4, Data: []byte("/d/f")}}})
			for len(payload) < 1<<20 {
				calls = append(calls, len(payload)+trace.WordBytes)
				payload = trace.AppendRecord(payload, &trace.Record{
					Type: trace.RecCall, Op: uint16(event.OpPwrite64), PID: 7, TID: 7, Ret: int64(size),
					Args:    [6]uint64{3, 4096, uint64(size), 4096},
					Objects: []trace.Object{{FD: 3, Ino: 9, Mode: 0o100644, Size: 1 << 20}},
					Pieces:  []trace.Piece{{Arg: 1, Len: uint32(size), Data: make([]byte, size)}},
				})
			}
			clock, n := uint64(1e9), 0
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				for _, at := range calls {
					clock += 1000
					binary.LittleEndian.PutUint64(payload[at+16:], clock-500)
					binary.LittleEndian.PutUint64(payload[at+24:], clock)
				}
				n++
				if err := sw.WriteRecords(trace.Frame{Round: uint32(n), Until: clock}, payload); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(len(calls))/b.Elapsed().Seconds(), "events/s")
		})
	}
}
