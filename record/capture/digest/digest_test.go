// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// However a call's bytes come, the hashes are those of their parts.
func TestHashesDoNotDependOnTheCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(capture.Everywhere(capture.KeepHash))
		size := rapid.IntRange(1, 5*event.HashBytes).Draw(t, "size")
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i*7 + i>>9)
		}
		missing := rapid.SliceOfN(rapid.IntRange(0, size-1), 0, 2).Draw(t, "missing")
		isMissing := func(i int) bool {
			for _, m := range missing {
				if i >= m && i < m+100 {
					return true
				}
			}
			return false
		}

		var payloads [][]byte
		var payload []byte
		r := trace.Record{Type: trace.RecCall, Op: uint16(event.OpWritev), PID: 1, TID: 2, Enter: 3, Exit: 4,
			Ret: int64(size)}
		r.Pieces = []trace.Piece{{Arg: 1, Flags: trace.PieceShape, Len: 16, Data: make([]byte, 16)}}
		for off := 0; off < size; {
			n := min(rapid.SampledFrom([]int{1, 4096, 10000, 65536, 1 << 20}).Draw(t, "piece"), size-off)
			p := trace.Piece{Arg: 1, Off: uint64(off)}
			gone := isMissing(off)
			for k := range n {
				if isMissing(off+k) != gone {
					n = k
					break
				}
			}
			p.Len = uint32(n)
			if gone {
				p.Flags = trace.PieceMissing
			} else {
				p.Data = data[off : off+n]
			}
			r.Pieces = append(r.Pieces, p)
			off += n
			if off == size || rapid.IntRange(0, 3).Draw(t, "cut") > 0 {
				continue
			}
			if r.Type == trace.RecCall {
				r.Flags = trace.CallMore
			}
			payload = trace.AppendRecord(payload, &r)
			r = trace.Record{Type: trace.RecData, Op: r.Op, PID: 1, TID: 2, Enter: 3}
			if rapid.Bool().Draw(t, "frame") {
				payloads = append(payloads, payload)
				payload = nil
			}
		}
		if r.Type == trace.RecData {
			r.Flags = trace.DataLast
		}
		payloads = append(payloads, trace.AppendRecord(payload, &r))

		at := 0
		for _, p := range payloads {
			for _, r := range records(t, w.Payload(p)) {
				for _, p := range r.Pieces {
					if p.Flags&trace.PieceShape != 0 {
						continue
					}
					end := min(at+event.HashBytes, size)
					if int(p.Off) != at || int(p.Len) != end-at || p.Flags&trace.PieceHash == 0 {
						t.Fatalf("piece at %d of %d bytes, flags %#x, wanted one from %d to %d", p.Off, p.Len, p.Flags,
							at, end)
					}
					want := blake3.Sum256(data[at:end])
					gone := false
					for i := at; i < end; i++ {
						gone = gone || isMissing(i)
					}
					if gone != (p.Flags&trace.PieceMissing != 0) || !gone && !bytes.Equal(p.Data, want[:]) {
						t.Fatalf("part at %d: flags %#x, %x, wanted %x, missing: %v", at, p.Flags, p.Data, want, gone)
					}
					at = end
				}
			}
		}
		if at != size {
			t.Fatalf("%d bytes hashed of %d", at, size)
		}
		if len(w.open) != 0 {
			t.Fatalf("%d calls left open", len(w.open))
		}
	})
}

// records decodes a payload.
func records(t interface{ Fatal(...any) }, payload []byte) (all []trace.Record) {
	for body, err := range trace.Records(payload) {
		var r trace.Record
		if err == nil {
			err = r.Decode(bytes.Clone(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// What is not to be hashed stays as it is, byte for byte.
func TestOthersStay(t *testing.T) {
	w := New(capture.Content{Write: capture.Policy{Rule: capture.KeepHash}})
	var payload []byte
	for _, r := range []trace.Record{
		{Type: trace.RecTask, PID: 1, TID: 1},
		{Type: trace.RecCall, Op: uint16(event.OpRead), Ret: 3, Pieces: []trace.Piece{{Arg: 1, Len: 3, Data: []byte("abc")}}},
		{Type: trace.RecCall, Op: uint16(event.OpConnect), Pieces: []trace.Piece{{Arg: 1, Len: 5, Data: []byte("where")}}},
		{Type: trace.RecCall, Op: uint16(event.OpOpen), Pieces: []trace.Piece{{Arg: 0, Len: 2, Data: []byte("/x")}}},
		{Type: 77},
	} {
		payload = trace.AppendRecord(payload, &r)
	}
	if got := w.Payload(payload); !bytes.Equal(got, payload) {
		t.Errorf("payload\n%x\nbecame\n%x", payload, got)
	}
	send := trace.AppendRecord(nil, &trace.Record{Type: trace.RecCall, Op: uint16(event.OpSendto), Ret: 3,
		Pieces: []trace.Piece{
			{Arg: 1, Len: 3, Data: []byte("abc")}, {Arg: 4, Len: 4, Data: []byte("addr")}}})
	p := records(t, w.Payload(send))[0].Pieces
	if len(p) != 2 || string(p[0].Data) != "addr" || p[1].Flags != trace.PieceHash || len(p[1].Data) != 32 ||
		p[1].Len != 3 {
		t.Errorf("pieces of sendto: %+v", p)
	}
}

// A call's content is read when it returns: what is read before is in a record that
// does not say of which operation it is.
func TestNoContentAtEntry(t *testing.T) {
	for _, s := range event.Specs() {
		for i := range s.Args {
			if s.IsContent(i) && s.Args[i].When == event.AtEntry {
				t.Errorf("%s: content %s is read at entry, where no policy reaches it", s.Name, s.Args[i].Name)
			}
		}
	}
}

func TestNothingToHash(t *testing.T) {
	if w := New(capture.Everywhere(capture.KeepNone)); w != nil || string(w.Payload([]byte("12345678"))) != "12345678" {
		t.Error("a Rewriter for nothing")
	}
}

func BenchmarkPayload(b *testing.B) {
	for _, size := range []int{64, 4096, 65536, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := New(capture.Everywhere(capture.KeepHash))
			var payload []byte
			n := 0
			for len(payload) < 8<<20 {
				payload = trace.AppendRecord(payload, &trace.Record{
					Type: trace.RecCall, Op: uint16(event.OpWrite), Ret: int64(size), Objects: make([]trace.Object, 1),
					Pieces: []trace.Piece{{Arg: 1, Len: uint32(size), Data: make([]byte, size)}},
				})
				n++
			}
			b.SetBytes(int64(n * size))
			b.ReportAllocs()
			for b.Loop() {
				w.Payload(payload)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// However a call's bytes come, signatures are those of their parts, and of like parts they
// are alike.
func TestSignatures(t *testing.T) {
	data := make([]byte, 3*event.HashBytes/2)
	for i := range data {
		data[i] = byte(i * i >> 7 * 13)
	}
	var d similar.Digester
	first, sketch := d.Sign(nil, data[:event.HashBytes])
	second, sketch := d.Sign(sketch, data[event.HashBytes:])
	want := []event.Digest{event.Digest(first), event.Digest(second)}
	for _, cut := range []int{1, 1000, event.HashBytes, event.HashBytes + 5, len(data) - 1} {
		w := New(capture.Everywhere(capture.KeepSignature))
		call := trace.Record{Type: trace.RecCall, Op: uint16(event.OpWrite), TID: 1, Enter: 7, Flags: trace.CallMore,
			Pieces: []trace.Piece{{Arg: 1, Len: uint32(cut), Data: data[:cut]}}}
		rest := trace.Record{Type: trace.RecData, Op: uint16(event.OpWrite), TID: 1, Enter: 7, Flags: trace.DataLast,
			Pieces: []trace.Piece{{Arg: 1, Len: uint32(len(data) - cut), Off: uint64(cut), Data: data[cut:]}}}
		out := bytes.Clone(w.Payload(trace.AppendRecord(nil, &call)))
		out = append(out, w.Payload(trace.AppendRecord(nil, &rest))...)
		if bytes.Contains(out, data[100:200]) {
			t.Errorf("cut at %d: the content is still there", cut)
		}
		var got []event.Digest
		var gotSketch []byte
		for body, err := range trace.Records(out) {
			if err != nil {
				t.Fatal(err)
			}
			var r trace.Record
			if err := r.Decode(body); err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Pieces {
				if p.Flags&trace.PieceSketch != 0 {
					gotSketch = append(gotSketch, p.Data...)
					continue
				}
				got = append(got, event.Digest(p.Data))
			}
		}
		if !bytes.Equal(gotSketch, sketch) {
			t.Errorf("cut at %d: sketches %x, want %x", cut, gotSketch, sketch)
		}
		if !slices.Equal(got, want) {
			t.Errorf("cut at %d: %x, want %x", cut, got, want)
		}
	}
}
