package replay

import (
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// paced is a tape of three writes, 40 ms apart, of which the thread computes half.
func paced(t *testing.T) *script {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	for i := range int64(3) {
		ev := event.Event{Op: event.OpPwrite64, Ret: 1, Offset: i, Count: 1, Args: [6]uint64{3, 0x1000, 1, uint64(i)},
			Enter: s.clock + 40e6, Exit: s.clock + 40e6 + 10, CPU: (i + 1) * 20e6,
			Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: 0o100644, Ino: s.ino}},
			Bufs:  []event.Buf{{Arg: 1, Dir: event.In, Kind: event.KindBuf, Len: 1, Inline: []byte{'x'}}}}
		s.add(ev)
	}
	return s
}

// A pace sets the least time that a replay takes; what the machine adds is its own.
func TestPace(t *testing.T) {
	tape := paced(t).close()
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
		rep, err := Run(t.Context(), tape, &Options{Into: t.TempDir(), Checks: CheckAll, Pace: tt.pace, Speed: tt.speed})
		if err != nil || !rep.OK() {
			t.Fatalf("%v, %+v", err, rep)
		}
		got := rep.Timing
		if got.Pace != tt.pace || got.Speed != tt.speed || time.Duration(got.RecordedNS) < 119*time.Millisecond || time.Duration(got.RecordedNS) > 121*time.Millisecond {
			t.Errorf("%s × %g: %+v", tt.pace, tt.speed, got)
		}
		// The first call may come late, and then the time counts from there.
		if time.Duration(got.ReplayedNS) < tt.least/2 {
			t.Errorf("%s × %g took %v, want %v or so at least", tt.pace, tt.speed, time.Duration(got.ReplayedNS), tt.least)
		}
	}
}

// The time counts from the first call, here as in the recording: what was there at the
// start, a working directory and open files, is made before.
func TestTimeBeginsWithCalls(t *testing.T) {
	const before = 400 * time.Millisecond
	s := newScript(t)
	s.clock += int64(before)
	s.open(3, "f", effect.OCreat|2)
	rep, err := Run(t.Context(), s.close(), &Options{Into: t.TempDir(), Checks: CheckAll, Pace: PaceRecorded})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if got := rep.Timing; time.Duration(max(got.ReplayedNS, got.RecordedNS)) > before/2 {
		t.Errorf("one call took %v, as recorded %v", time.Duration(got.ReplayedNS), time.Duration(got.RecordedNS))
	}
}

// A thread that waits for times is never early, and does not wait for what has gone by: so
// what one wait was too long the next one makes up for.
func TestUntil(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends, and its timer slack
	sleepExactly()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || slack != 1 {
		t.Errorf("timer slack is %d ns, %v", slack, err)
	}
	var halted atomic.Bool
	s := schedule{halted: &halted}
	start := clock()
	for i := range int64(20) {
		due := start + i*3*spinNS
		s.until(due)
		if now := clock(); now < due {
			t.Fatalf("wait %d ended %d ns too early", i, due-now)
		}
	}
	s.until(start)
	halted.Store(true)
	s.until(start + int64(time.Hour))
}

// A plan says of every call whether it is made, and why not.
func TestDryRun(t *testing.T) {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2|oDirect)
	s.move(event.OpPwrite64, 3, 0, "hello")
	s.call(event.OpClose, 0, 0, [6]uint64{3})
	s.call(event.OpMkdir, -1, syscall.ENOSPC, [6]uint64{}, "d")
	s.call(event.OpAccess, 0, 0, [6]uint64{}, "/proc/self/status")
	s.call(event.OpUnknown, 0, 0, [6]uint64{})
	into := t.TempDir()
	p, err := DryRun(t.Context(), s.close(), &Options{Into: into})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, op := range p.Ops {
		if got[op.Op] = op.Reason; op.Made {
			got[op.Op] = "made"
		}
	}
	for op, want := range map[string]string{"openat": "made", "pwrite64": "made", "close": "itself", "mkdir": "machine", "access": "/proc", "syscall": "operation table"} {
		if !strings.Contains(got[op], want) {
			t.Errorf("%s: %q, want %q", op, got[op], want)
		}
	}
	needs := map[string]uint64{}
	for _, n := range p.Needs {
		needs[n.What] = n.Count
	}
	if needs[needDirect] != 1 || needs[needNames] < 1 || needs[needSpace] < 5 {
		t.Errorf("needs %v", p.Needs)
	}
	if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
		t.Errorf("the target has %v in it now: %v", left, err)
	}
}

// What is not asked for is not compared, and the first difference can be the last.
func TestChecks(t *testing.T) {
	make := func(t *testing.T) *script {
		s := newScript(t)
		s.open(3, "f", effect.OCreat|2)
		s.move(event.OpWrite, 3, 0, "hello")
		s.move(event.OpPread64, 3, 0, "help!") // differs in its bytes
		s.move(event.OpPread64, 3, 0, "hello there")
		return s
	}
	for _, tt := range []struct {
		checks string
		abort  bool
		fields []string
	}{
		{"all", false, []string{"content", "result"}},
		{"all", true, []string{"content"}},
		{"returns", false, []string{"result"}},
		{"data", false, []string{"content", "content"}},
		{"stat,dirs,tree", false, nil},
		{"none", true, nil},
	} {
		checks, err := ParseChecks(tt.checks)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Run(t.Context(), make(t).close(), &Options{Into: t.TempDir(), Checks: checks, Abort: tt.abort})
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, m := range rep.Mismatches {
			fields = append(fields, m.Field)
		}
		if len(fields) != len(tt.fields) {
			t.Errorf("%s, abort %v: %+v, want %q", tt.checks, tt.abort, rep.Mismatches, tt.fields)
			continue
		}
		for i := range fields {
			if fields[i] != tt.fields[i] {
				t.Errorf("%s: difference %d in %s, want %s", tt.checks, i, fields[i], tt.fields[i])
			}
		}
		if rep.Aborted != (tt.abort && len(fields) > 0) {
			t.Errorf("%s: aborted %v", tt.checks, rep.Aborted)
		}
	}
	if _, err := ParseChecks("returns,sizes"); err == nil {
		t.Error("sizes can be verified")
	}
}

// TestPaceBeginsWithStoredFiles: what a replay begins with has reached the storage when calls
// whose time counts are made.
func TestPaceBeginsWithStoredFiles(t *testing.T) {
	s := newScript(t)
	s.size = 5
	s.open(3, "f", 0)
	s.move(event.OpPread64, 3, 0, "hello")
	into := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(into, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("%s: %v, or in memory, where nothing is stored", into, err)
	}
	if _, err := Run(t.Context(), s.close(), &Options{Into: into, Pace: PaceThink}); err != nil {
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
