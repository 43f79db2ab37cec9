// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// stallingWriter blocks in its Write while the gate is not read from, and fails after so many bytes.
type stallingWriter struct {
	bytes.Buffer
	gate chan struct{} // nil: it does not stall
	fail bool
}

func (w *stallingWriter) Write(b []byte) (int, error) {
	if w.gate != nil {
		<-w.gate
	}
	if w.fail {
		return 0, errors.New("broken")
	}
	return w.Buffer.Write(b)
}

// calls makes the payload of a frame of n calls.
func calls(n int) (b []byte) {
	for range n {
		b = trace.AppendRecord(b, &trace.Record{Type: trace.RecCall, PID: 1, TID: 1, Enter: 1, Exit: 2})
	}
	return b
}

// TestPatientSink lets an output stall: writers do not wait for it, and the stream says what is not in it.
func TestPatientSink(t *testing.T) {
	for _, tt := range []struct {
		name           string
		fails          bool
		written, total uint64 // calls in the stream, and calls in it or lost
	}{
		{"it goes on", false, 2 + 3 + 7, 2 + 3 + 5 + 1 + 7},
		{"it fails", true, 2, 2 + 3 + 5 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &stallingWriter{}
			var said []string
			note := func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }
			s := newPatientSink(w, time.Millisecond, note)
			defer s.close()
			sw, err := trace.NewStreamWriterTo(s, 1, &trace.Head{})
			if err != nil {
				t.Fatal(err)
			}
			s.most = 0 // no stall yet: time does not matter
			write := func(n int) error { return sw.WriteRecords(trace.Frame{}, calls(n)) }
			if err := write(2); err != nil {
				t.Fatal(err)
			}
			s.most, w.gate = time.Millisecond, make(chan struct{})
			for _, n := range []int{3, 5, 1} { // the first is under way, the others are dropped
				if err := write(n); err != nil {
					t.Fatalf("write while the output stalls: %v", err)
				}
			}
			w.fail = tt.fails
			gate := w.gate
			go func() {
				for range 2 { // the parts of the frame under way
					gate <- struct{}{}
				}
			}()
			res := &capture.Result{Events: 11}
			if tt.fails {
				s.settle(res)
				if res.WriteErr == nil || write(7) == nil {
					t.Error("the failure of the output is not told")
				}
				if res.Lost != tt.total-tt.written {
					t.Errorf("%d records are lost; want %d", res.Lost, tt.total-tt.written)
				}
				return
			}
			s.settle(nil)
			w.gate = nil
			if err := write(7); err != nil {
				t.Fatal(err)
			}
			s.settle(res)
			if err := sw.Close(&trace.End{Lost: res.Lost}); err != nil {
				t.Fatal(err)
			}
			written, lost := countStream(t, &w.Buffer)
			if written != tt.written || written+lost != tt.total || res.Lost != lost {
				t.Errorf("%d calls written, %d lost, %d in the result; want %d of %d", written, lost, res.Lost,
					tt.written, tt.total)
			}
			if text := strings.Join(said, "\n"); !strings.Contains(text, "accepted nothing") ||
				!strings.Contains(text, "6 records were lost") {
				t.Errorf("said %q", text)
			}
		})
	}
}

// countStream returns how many calls a stream has, and how many records it says are lost.
func countStream(t *testing.T, r io.Reader) (calls, lost uint64) {
	t.Helper()
	fr := trace.NewFrameReader(r)
	for seq := uint64(0); ; seq++ {
		f, payload, err := fr.Next()
		if err == io.EOF {
			return calls, lost
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Seq != seq {
			t.Errorf("frame %d has number %d", seq, f.Seq)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(payload) {
			var rec trace.Record
			if err != nil || rec.Decode(body) != nil {
				t.Fatal("a bad record", err)
			}
			switch rec.Type {
			case trace.RecCall:
				calls++
			case trace.RecLoss:
				lost += rec.Count
			}
		}
	}
}
