// SPDX-License-Identifier: Apache-2.0

package count

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// need skips a test where nothing can be counted.
func need(t testing.TB) {
	t.Helper()
	if err := bpf.Check(); err != nil {
		testenv.Lacks(t, err.Error())
	}
}

// build returns a compiled test program.
func build(t testing.TB, source string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	if b, err := exec.Command("cc", "-O1", "-o", out, source, "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, b)
	}
	return out
}

// counted counts, and returns the sum of all read-outs and how many there were.
func counted(t testing.TB, o *capture.Options, co *Options) (sum *aggregate.Table, res *capture.Result, readOuts int) {
	t.Helper()
	need(t)
	sum = aggregate.NewTable(co.By, 1<<20)
	last := false
	res, err := Run(t.Context(), o, co, func(r *aggregate.IntervalSnapshot) error {
		if last || r.Elapsed <= 0 || r.Lost > 0 || r.Untracked > 0 {
			t.Errorf("read-out %d: %+v", readOuts, r)
		}
		last = r.Last
		readOuts++
		sum.Merge(r.Table)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !last || res.Events != sum.Total().Calls {
		t.Errorf("the last read-out came: %v; %d calls, %d in the tables", last, res.Events, sum.Total().Calls)
	}
	return sum, res, readOuts
}

// quiet is the output of commands that is of no interest.
func quiet(t testing.TB) *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestCountLosesNothing changes maps often while threads of all CPUs call all the time.
func TestCountLosesNothing(t *testing.T) {
	const n = 240_000
	loop := build(t, "../capture/ebpf/testdata/loop.c")
	dir := t.TempDir()
	command := fmt.Sprintf("for i in 1 2 3; do %s %s/$i.dat %d 100 & done; wait", loop, dir, n)
	sum, res, readOuts := counted(t, &capture.Options{Command: []string{"sh", "-c", command}, Stdout: quiet(t)},
		&Options{By: aggregate.ByOp | aggregate.ByExtension, Interval: MinInterval})
	for op, want := range map[event.Op]aggregate.Counts{
		event.OpPwrite64: {Calls: 3 * (n + 256), Written: 3 * (n + 256) * 100},
		event.OpPread64:  {Calls: 3 * n, Read: 3 * n * 100},
		event.OpLseek:    {Calls: 3 * n},
	} {
		c := sum.Row(aggregate.Key{Op: op, Ext: "dat"})
		if c == nil || c.Calls != want.Calls || c.Written != want.Written || c.Read != want.Read ||
			c.Failed+c.Unfinished > 0 {
			t.Errorf("%v: %+v, want %+v", op, c, want)
			continue
		}
		inBuckets := uint64(0)
		for _, n := range c.Latency {
			inBuckets += n
		}
		// A quantile is known to its bucket, a power of two.
		if mean := c.MeanNS(); inBuckets != c.Calls || mean == 0 || c.MaxNS < mean || c.Quantile(0) > 2*mean ||
			res.ExitStatus != 0 {
			t.Errorf("%v: %d calls in buckets, mean %d, max %d", op, inBuckets, mean, c.MaxNS)
		}
	}
	if readOuts < 3 {
		t.Errorf("%d read-outs: the maps hardly changed", readOuts)
	}
}

// TestCountWithoutRoom has more keys than rows: all calls are counted, some of them in one
// row.
func TestCountWithoutRoom(t *testing.T) {
	command := []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8; do cat /dev/null; done"}
	whole, _, _ := counted(t, &capture.Options{Command: command}, &Options{By: aggregate.ByOp})
	few, _, _ := counted(t, &capture.Options{Command: command},
		&Options{By: aggregate.ByOp | aggregate.ByProcess, Rows: 20})
	other := few.Row(aggregate.Key{Other: true})
	if other == nil || other.Calls == 0 || few.Len() != 21 {
		t.Fatalf("%d rows, for the rest %+v", few.Len(), other)
	}
	a, b := whole.Total(), few.Total()
	if a.Calls != b.Calls || a.Failed != b.Failed || a.Read != b.Read || a.Unfinished != b.Unfinished ||
		b.Unfinished != 9 {
		t.Errorf("with room %d calls, %d failed, %d read; without %d, %d, %d", a.Calls, a.Failed,
			a.Read, b.Calls, b.Failed, b.Read)
	}
}

// TestCountOfFilter counts what a filter lets through, exactly.
func TestCountOfFilter(t *testing.T) {
	g, err := predicate.New("op in {write, exit_group} and comm = dd or op = openat and failed", nil)
	if err != nil {
		t.Fatal(err)
	}
	prefilter, undecided := g.Exact()
	if len(undecided) > 0 {
		t.Fatalf("undecided: %v", undecided)
	}
	command := []string{"sh", "-c",
		"dd if=/dev/zero of=/dev/null bs=1 count=500 status=none; cat /no/such/file; echo written"}
	sum, _, _ := counted(t, &capture.Options{Command: command, Stdout: quiet(t), Stderr: quiet(t),
		Prefilter: prefilter}, &Options{By: aggregate.ByOp})
	writes, opens, exits := sum.Row(aggregate.Key{Op: event.OpWrite}), sum.Row(aggregate.Key{Op: event.OpOpenat}),
		sum.Row(aggregate.Key{Op: event.OpExitGroup})
	if sum.Len() != 3 || writes.Calls != 500 || writes.Written != 500 || opens.Failed != opens.Calls ||
		opens.Calls == 0 || exits.Calls != 1 {
		t.Errorf("%d rows: %+v, %+v, %+v", sum.Len(), writes, opens, exits)
	}
}

// TestCountOfNames counts by extension and by a filter for one, with names from every side.
func TestCountOfNames(t *testing.T) {
	const script = `exec 3>a.long.txt 4<>.rc 5>noext; echo 1 >&3; echo 22 >&4; echo 333 >&5
exec 6>&3; echo 4444 >&6; mkdir d.dir; cd d.dir; ln -s ../a.long.txt l.sym; cat l.sym; rm l.sym; echo 55555 >..toolongextension`
	dir := t.TempDir()
	written := func(prefilter *predicate.Prefilter) map[string]uint64 {
		sum, _, _ := counted(t, &capture.Options{Command: []string{"bash", "-c", script}, Dir: dir, Stdout: quiet(t),
			Prefilter: prefilter}, &Options{By: aggregate.ByExtension})
		os.RemoveAll(filepath.Join(dir, "d.dir"))
		got := map[string]uint64{}
		for k, c := range sum.Rows() {
			if c.Written > 0 {
				got[k.Ext] = c.Written
			}
		}
		return got
	}
	if got := fmt.Sprint(written(nil)); got != "map[:17 rc:3 txt:7]" { // "" has what cat wrote, too
		t.Errorf("written by extension: %s", got)
	}
	g, err := predicate.New("op = write and ext = txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	prefilter, _ := g.Exact()
	if got := fmt.Sprint(written(prefilter)); got != "map[txt:7]" {
		t.Errorf("written of one extension: %s", got)
	}
}

// TestCountOfRunning counts what runs already, until it ends.
func TestCountOfRunning(t *testing.T) {
	need(t)
	dir := t.TempDir()
	script := `echo $$ >pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.02; done
i=0; while [ $i -lt 300 ]; do echo x >>f.txt; i=$((i+1)); done; (echo y >>f.txt)`
	cmd := exec.Command("setsid", "--fork", "sh", "-c", script) // not a child: a recorder leaves out its own
	cmd.Dir = dir
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for deadline := time.Now().Add(20 * time.Second); pid == 0 &&
		time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	o := &capture.Options{PIDs: []int{pid},
		Started: func(int) { _ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600) }}
	sum, _, _ := counted(t, o, &Options{By: aggregate.ByOp | aggregate.ByExtension | aggregate.ByUser})
	c := sum.Row(aggregate.Key{Op: event.OpOpenat, Ext: "txt", UID: uint32(os.Getuid())})
	if c == nil || c.Calls != 301 || c.Failed > 0 {
		t.Errorf("opened f.txt: %+v", c)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), &capture.Options{PIDs: []int{gone.Process.Pid}}, &Options{},
		func(*aggregate.IntervalSnapshot) error { return nil }); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("of a process that has ended: %v", err)
	}
}

// TestCountOfAll sees others, not itself and what it starts, and ends when it is told to.
func TestCountOfAll(t *testing.T) {
	need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stranger := fmt.Sprintf("x%d", os.Getpid())
	dir := t.TempDir()
	for _, name := range []string{stranger, "own" + stranger} {
		if err := os.Symlink("/bin/cat", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// Threads of the shell's session are strangers: setsid's child has no parent here.
	other := fmt.Sprintf("for i in $(seq 1000); do [ -e %[1]s/done ] && exit; %[1]s/%[2]s /dev/null; sleep 0.05; done",
		dir, stranger)
	if err := exec.Command("setsid", "--fork", "sh", "-c", other).Run(); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(filepath.Join(dir, "done"), nil, 0o600)
	seen := false
	_, err := Run(ctx, &capture.Options{All: true}, &Options{By: aggregate.ByProcess, Interval: 200 * time.Millisecond},
		func(r *aggregate.IntervalSnapshot) error {
			for k := range r.Rows() {
				seen = seen || k.Comm == stranger
				if int(k.PID) == os.Getpid() || k.Comm == "own"+stranger {
					t.Errorf("it counts itself: %+v", k)
				}
			}
			if seen {
				cancel()
			}
			return exec.Command(filepath.Join(dir, "own"+stranger), "/dev/null").Run()
		})
	if err != nil || !seen {
		t.Errorf("%v; the other one was seen: %v", err, seen)
	}
}

// TestCountOfCommandsThatAreNone says why, and leaves nothing.
func TestCountOfCommandsThatAreNone(t *testing.T) {
	need(t)
	each := func(*aggregate.IntervalSnapshot) error { return nil }
	if _, err := Run(t.Context(), &capture.Options{Command: []string{"/dev/null"}}, &Options{},
		each); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a device: %v", err)
	}
	enough := errors.New("enough")
	if _, err := Run(t.Context(), &capture.Options{Command: []string{"true"}}, &Options{},
		func(*aggregate.IntervalSnapshot) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("an error of who reads: %v", err)
	}
	for _, interval := range []time.Duration{time.Millisecond, time.Hour, -1} {
		if _, err := Run(t.Context(), &capture.Options{Command: []string{"true"}},
			&Options{Interval: interval}, each); err == nil {
			t.Errorf("an interval of %s is taken", interval)
		}
	}
}

// TestCountOnOlderKernels counts without what kernels before 6.2 lack: loops are bounded or called, fields
// are read one by one, and threads are followed by a program.
func TestCountOnOlderKernels(t *testing.T) {
	testenv.Short(t, "it loads the programs in many variants")
	t.Setenv(bpf.WithoutName, "bpf_rdonly_cast bpf_task_from_pid bpf_iter_num_new bpf_iter_task_new PIDFD_THREAD")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"filter", TestCountOfFilter}, {"names", TestCountOfNames}, {"running", TestCountOfRunning},
		{"threads", TestCountOfThreads}, {"all", TestCountOfAll}, {"messages", TestCountOfMessages},
	} {
		t.Run(test.name, test.run)
	}
}

// TestCountOfThreads counts what threads do that ran before, and are not the first of their process.
func TestCountOfThreads(t *testing.T) {
	need(t)
	program, dir := build(t, "testdata/waiting_threads.c"), t.TempDir()
	cmd := exec.Command("setsid", "--fork", program, dir) // not a child: a recorder leaves out its own
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	o := &capture.Options{PIDs: []int{pid},
		Started: func(int) { _ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600) }}
	sum, _, _ := counted(t, o, &Options{By: aggregate.ByOp})
	if c := sum.Row(aggregate.Key{Op: event.OpPwrite64}); c == nil || c.Calls != 400 || c.Written != 4000 {
		t.Errorf("4 threads wrote 100 times 10 bytes each; counted %+v", c)
	}
}

// TestCountOfMessages: calls that return a number of messages are counted with the bytes of
// these.
func TestCountOfMessages(t *testing.T) {
	program, out := build(t, "testdata/messages.c"), filepath.Join(t.TempDir(), "out")
	to, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	sum, _, _ := counted(t, &capture.Options{Command: []string{program, "60"}, Stdout: to},
		&Options{By: aggregate.ByOp})
	b, err := os.ReadFile(out)
	var sent, got uint64
	if _, scanErr := fmt.Sscan(string(b), &sent, &got); err != nil || scanErr != nil || sent == 0 || sent != got {
		t.Fatalf("%q: %v, %v", b, err, scanErr)
	}
	s, r := sum.Row(aggregate.Key{Op: event.OpSendmmsg}), sum.Row(aggregate.Key{Op: event.OpRecvmmsg})
	if s == nil || r == nil || s.Calls != 120 || s.Failed != 60 || s.Written != sent || s.Read != 0 || r.Calls != 60 ||
		r.Read != sent || r.Written != 0 {
		t.Errorf("%d bytes went over: sendmmsg %+v, recvmmsg %+v", sent, s, r)
	}
}
