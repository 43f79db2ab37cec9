// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/trace/raw"
)

// FuzzSeal seals records of which nothing can be trusted but that their frame's
// checksum fits: no panic, no unbounded memory, and the tape that comes of it is sound.
func FuzzSeal(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var stream bytes.Buffer
		if err := raw.Build(&stream, bytes.NewReader(a.Files[0].Data)); err != nil {
			f.Fatal(err)
		}
		var payloads []byte
		for fr := trace.NewFrameReader(&stream); ; {
			frame, payload, err := fr.Next()
			if err != nil {
				break
			}
			if frame.Kind == trace.FrameRecords {
				payloads = append(payloads, payload...)
			}
		}
		f.Add(payloads, uint8(0))
		f.Add(payloads, uint8(3))
	}
	f.Fuzz(func(t *testing.T, payload []byte, cut uint8) {
		payload = payload[:len(payload)&^7]
		var stream bytes.Buffer
		sw, err := trace.NewStreamWriter(&stream, 1, &trace.Head{Arch: "amd64", Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		// Two shards, so that their order is at stake as well.
		at := min(len(payload)*int(cut)/256&^7, len(payload))
		for shard, p := range [][]byte{payload[:at], payload[at:]} {
			if len(p) == 0 {
				continue
			}
			if err := sw.WriteRecords(trace.Frame{Shard: uint32(shard), Until: uint64(cut) << 20}, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := sw.Close(&trace.End{}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "x.tape")
		tw, err := trace.CreateTape(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Abort()
		st, err := seal.Seal(t.Context(), &stream, tw, nil)
		if err != nil {
			return
		}
		if err := tw.Close(st.Manifest("fuzz")); err != nil {
			t.Fatalf("sealed, and then: %v", err)
		}
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		rep, err := tape.Check(t.Context(), nil)
		if err != nil || !rep.OK() {
			t.Fatalf("the tape is damaged: %v %v", err, rep)
		}
	})
}

// FuzzFrames reads a stream of which nothing can be trusted: it ends, and what is read
// is whole frames.
func FuzzFrames(f *testing.F) {
	var stream bytes.Buffer
	sw, err := trace.NewStreamWriter(&stream, 1, &trace.Head{Arch: "amd64", Shards: 1})
	if err != nil {
		f.Fatal(err)
	}
	if err := sw.WriteRecords(trace.Frame{},
		trace.AppendRecord(nil, &trace.Record{Type: trace.RecTask, PID: 1, TID: 1})); err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		fr := trace.NewFrameReader(bytes.NewReader(b))
		var total uint64
		for {
			frame, payload, err := fr.Next()
			if err != nil {
				if payload != nil {
					t.Fatal("an error and a payload")
				}
				if err == io.EOF && uint64(len(b)) != total {
					t.Fatalf("the end after %d of %d bytes", total, len(b))
				}
				return
			}
			if uint64(len(payload)) != frame.Length {
				t.Fatalf("%d bytes of %d", len(payload), frame.Length)
			}
			total += trace.FrameHeaderBytes + frame.Length
			for body, err := range trace.Records(payload) {
				var r trace.Record
				if err == nil {
					_ = r.Decode(body)
				}
			}
		}
	})
}
