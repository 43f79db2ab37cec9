// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// Copies have directories of their own, and one report with the calls of all.
func TestRunCopies(t *testing.T) {
	t.Parallel()
	s := tapescript.New(t)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "d")
	s.Open(3, "d/f", event.OpenCreat|2)
	for i := range 10 {
		s.On(event.OpPwrite64, 3, 5, 0, [6]uint64{0, 0x1000, 5, uint64(5 * i)}, event.Buf{
			Arg: 1, Kind: event.KindBuf, Len: 5, Inline: []byte("hello"),
		})
	}
	into, n := filepath.Join(t.TempDir(), "out"), 3
	all, err := RunCopies(t.Context(), s.Close(), &Options{Into: into, Checks: CheckAll, Pace: PaceRecorded}, n)
	if err != nil || !all.OK() || len(all.Copies) != n {
		t.Fatalf("%v, %+v", err, all)
	}
	for i := range n {
		b, err := os.ReadFile(filepath.Join(into, strconv.Itoa(i+1), "work/d/f"))
		if want := strings.Repeat("hello", 10); string(b) != want {
			t.Errorf("copy %d has %q (%v), want %q", i+1, b, err, want)
		}
	}
	byOp := map[string]OpTiming{}
	for _, o := range all.Ops {
		byOp[o.Op] = o
	}
	o := byOp["pwrite64"]
	if o.Recorded.Count != 10 || o.Replayed.Count != 30 || o.Replayed.Timed != 30 || o.Recorded.P50NS != 10 ||
		o.Replayed.P50NS <= 0 || o.Replayed.P50NS > o.Replayed.P99NS || o.Replayed.P99NS > o.Replayed.MaxNS {
		t.Errorf("pwrite64: %+v", o)
	}
	if all.MinNS > all.MedianNS || all.MedianNS > all.MaxNS || all.MaxNS == 0 || all.RecordedNS == 0 {
		t.Errorf("%d to %d, median %d; recorded %d", all.MinNS, all.MaxNS, all.MedianNS, all.RecordedNS)
	}
}

// An interrupt ends all copies; what cannot be is refused before anything is made.
func TestCopiesEnd(t *testing.T) {
	t.Parallel()
	s := tapescript.New(t)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
	anHourLater(s)
	tape := s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	into := filepath.Join(t.TempDir(), "out")
	if all, err := RunCopies(ctx, tape, &Options{Into: into, Pace: PaceRecorded}, 2); err == nil {
		t.Errorf("%+v, want an error", all)
	}
	for _, n := range []int{0, -1, maxCopies + 1} {
		none := filepath.Join(t.TempDir(), "none")
		if _, err := RunCopies(t.Context(), tape, &Options{Into: none}, n); err == nil {
			t.Errorf("%d copies: no error", n)
		}
		if _, err := os.Stat(none); !os.IsNotExist(err) {
			t.Errorf("%d copies: %v", n, err)
		}
	}
}
