// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// paced is a tape of three writes, 40 ms apart, of which the thread computes half.
func paced(t *testing.T) *tapescript.Script {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	for i := range int64(3) {
		ev := event.Event{Op: event.OpPwrite64, Ret: 1, Offset: i, Count: 1, Args: [6]uint64{3, 0x1000, 1, uint64(i)},
			Enter: s.Clock + 40e6, Exit: s.Clock + 40e6 + 10, CPU: (i + 1) * 20e6,
			Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: 0o100644, Ino: s.Ino}},
			Bufs:  []event.Buf{{Arg: 1, Dir: event.In, Kind: event.KindBuf, Len: 1, Inline: []byte{'x'}}}}
		s.Add(ev)
	}
	return s
}

// A pace sets the least time that a replay takes; what the machine adds is its own.
func TestPace(t *testing.T) {
	tape := paced(t).Close()
	for _, tt := range []struct {
		pace  Pace
		speed float64
		least time.Duration
	}{
		{PaceAFAP, 1, 0},
		{PaceRecorded, 1, 120 * time.Millisecond},
		{PaceRecorded, 2, 60 * time.Millisecond},
		{PaceThink, 1, 60 * time.Millisecond},
		{PaceThink, 0.5, 120 * time.Millisecond},
	} {
		rep, err := Run(t.Context(), tape, &Options{
			Into: t.TempDir(), Checks: CheckAll, Pace: tt.pace, Speed: tt.speed,
		})
		if err != nil || !rep.OK() {
			t.Fatalf("%v, %+v", err, rep)
		}
		got := rep.Timing
		if got.Pace != tt.pace || got.Speed != tt.speed || time.Duration(got.RecordedNS) < 119*time.Millisecond ||
			time.Duration(got.RecordedNS) > 121*time.Millisecond {
			t.Errorf("%s × %g: %+v", tt.pace, tt.speed, got)
		}
		// The first call may come late, and then the time counts from there.
		if time.Duration(got.ReplayedNS) < tt.least/2 {
			t.Errorf("%s × %g took %v, want %v or so at least", tt.pace, tt.speed, time.Duration(got.ReplayedNS),
				tt.least)
		}
	}
}

// The time counts from the first call, here as in the recording: what was there at the
// start, a working directory and open files, is made before.
func TestTimeBeginsWithCalls(t *testing.T) {
	const before = 400 * time.Millisecond
	s := tapescript.New(t)
	s.Clock += int64(before)
	s.Open(3, "f", event.OpenCreat|2)
	rep, err := Run(t.Context(), s.Close(), &Options{Into: t.TempDir(), Checks: CheckAll, Pace: PaceRecorded})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if got := rep.Timing; time.Duration(max(got.ReplayedNS, got.RecordedNS)) > before/2 {
		t.Errorf("one call took %v, as recorded %v", time.Duration(got.ReplayedNS), time.Duration(got.RecordedNS))
	}
}

// TestPaceBeginsWithStoredFiles: what a replay begins with has reached the storage when calls
// whose time counts are made.
func TestPaceBeginsWithStoredFiles(t *testing.T) {
	s := tapescript.New(t)
	s.Size = 5
	s.Open(3, "f", 0)
	s.Move(event.OpPread64, 3, 0, "hello")
	into := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(into, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("%s: %v, or in memory, where nothing is stored", into, err)
	}
	if _, err := Run(t.Context(), s.Close(), &Options{Into: into, Pace: PaceThink}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(into + "/work/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0); err != nil {
		t.Skipf("cachestat: %v", err)
	}
	if pages.Dirty != 0 || pages.Writeback != 0 || pages.Cache == 0 {
		t.Errorf("%+v", pages)
	}
}
