// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/trace"
)

// TestEndStream cuts a stream at every byte of its last frames and ends it.
func TestEndStream(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "stream")
	f, err := os.Create(whole)
	if err != nil {
		t.Fatal(err)
	}
	sw, err := trace.NewStreamWriter(f, 77, &trace.Head{Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	head := sw.Bytes()
	for range 2 {
		payload := trace.AppendRecord(nil, &trace.Record{Type: trace.RecLoss, Count: 3, Reason: trace.LossRing})
		if err := sw.WriteRecords(trace.Frame{Lost: 2}, payload); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	frame := (int64(len(b)) - head) / 2
	for n := int64(0); n <= int64(len(b)); n++ {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "cut"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(b[:n])
		err = endStream(f, &trace.End{Lost: 100, ClockNS: 5, ExitStatus: 9})
		if n < head {
			if !errors.Is(err, trace.ErrTruncated) {
				t.Errorf("cut at %d: %v", n, err)
			}
			f.Close()
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		good := (n - head) / frame // whole frames that are left
		last, lost, off, err := goodFrames(f)
		fi, _ := f.Stat()
		if err != nil || last.Kind != trace.FrameEnd || last.Stream != 77 || last.Seq != uint64(good)+2 ||
			lost != 100 || off != fi.Size() {
			t.Errorf("cut at %d: last frame %+v, lost %d, ends at %d of %d, %v", n, last, lost, off, fi.Size(), err)
		}
		f.Close()
	}
}

func TestCompressionIsMeasured(t *testing.T) {
	for _, tt := range []struct {
		name     string
		fill     func([]byte)
		low, top float64
	}{
		{"zeros", func([]byte) {}, 0, 0.01},
		{"random", func(b []byte) {
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
		}, 0.99, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			g, err := newSpaceGuard(f, f.Name()+".hold")
			if err != nil {
				t.Fatal(err)
			}
			defer g.release()
			b := make([]byte, 8<<20)
			tt.fill(b)
			if _, err := g.Write(b); err != nil {
				t.Fatal(err)
			}
			if r := g.compression(); r < tt.low || r > tt.top {
				t.Errorf("compression %v", r)
			}
		})
	}
}
