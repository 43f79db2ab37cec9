// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// attached is testdata/attached.c while it runs. It is not a child of the test's.
type attached struct {
	pid         int
	dir, status string
}

func startAttached(t *testing.T, idle int) *attached {
	t.Helper()
	a := &attached{dir: t.TempDir()}
	a.status = filepath.Join(t.TempDir(), "status")
	const script = `"$@" & echo $!; wait $!; echo $? >"$0.new"; mv "$0.new" "$0"`
	cmd := exec.Command("setsid", "--fork", "sh", "-c", script, a.status, program(t, "attached"), a.dir,
		strconv.Itoa(idle))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(a.status); err != nil && a.pid != 0 {
			_ = unix.Kill(a.pid, unix.SIGKILL)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		a.pid, _ = strconv.Atoi(lines.Text())
	}
	if err := cmd.Wait(); err != nil || a.pid == 0 {
		t.Fatalf("process %d, %v", a.pid, err)
	}
	return a
}

// ends lets the program end, and checks that it saw nothing of the recordings.
func (a *attached) ends(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(a.dir+"/end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(a.status); err == nil {
			if got := strings.TrimSpace(string(b)); got != "7" {
				t.Errorf("the program ended with status %s, want 7", got)
			}
			return
		}
	}
	t.Error("the program does not end")
}

// recordRunning records a process for a while after the recording has begun. It returns how long it took to begin.
func recordRunning(t *testing.T, pid int, long time.Duration) (*recording, time.Duration) {
	t.Helper()
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: "ptrace"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, took := time.Now(), time.Duration(0)
	res, err := Backend{}.Run(ctx, &capture.Options{PIDs: []int{pid}, Started: func(int) {
		took = time.Since(began)
		time.AfterFunc(long, cancel)
	}}, sw)
	if err == nil {
		err = sw.Close(&trace.End{})
	}
	if err != nil || res.Lost != 0 {
		t.Fatalf("result %+v, %v", res, err)
	}
	return decode(t, &b), took
}

// TestAttach attaches to a program under load and leaves it, again and again: the program sees nothing of it, and
// each recording has all that happened in between.
func TestAttach(t *testing.T) {
	cycles := 100
	if testing.Short() {
		cycles = 15
	}
	a := startAttached(t, 0)
	calls := 0
	for range cycles {
		rec, _ := recordRunning(t, a.pid, 5*time.Millisecond)
		calls += checkWrites(t, rec, a)
	}
	a.ends(t)
	if calls < cycles {
		t.Errorf("%d writes recorded in %d recordings", calls, cycles)
	}
	for i := range 4 {
		b, err := os.ReadFile(fmt.Sprintf("%s/%d", a.dir, i))
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(b); at += 8 {
			if n := binary.LittleEndian.Uint64(b[at:]); n != uint64(at/8) {
				t.Fatalf("file %d has the number %d at %d", i, n, at)
			}
		}
	}
}

// checkWrites checks that the writes of each thread are there without a gap, from where its file was when the
// recording began. It returns how many.
func checkWrites(t *testing.T, rec *recording, a *attached) (calls int) {
	t.Helper()
	next := map[int32]int64{} // number, by descriptor
	for _, r := range rec.ofType(trace.RecFile) {
		name := string(r.Pieces[0].Data)
		if int(r.PID) == a.pid && filepath.Dir(name) == a.dir {
			next[r.Objects[0].FD] = r.Objects[0].Pos / 8
		}
	}
	if len(next) != 4 {
		t.Fatalf("%d files that were open when the recording began, want 4", len(next))
	}
	for _, r := range rec.calls(event.OpWrite) {
		fd := int32(r.Args[0])
		want, ok := next[fd]
		if !ok || int(r.PID) != a.pid || r.Flags&trace.CallInterrupted != 0 {
			continue
		}
		if got := content(r, 1); len(got) != 8 || int64(binary.LittleEndian.Uint64(got)) != want {
			t.Fatalf("descriptor %d: % x is written, want the number %d", fd, got, want)
		}
		next[fd]++
		calls++
	}
	return calls
}

// TestAttachThreads attaches to a program with many threads.
func TestAttachThreads(t *testing.T) {
	const threads = 1000
	a := startAttached(t, threads)
	rec, took := recordRunning(t, a.pid, 10*time.Millisecond)
	a.ends(t)
	described := map[uint32]bool{}
	for _, r := range rec.ofType(trace.RecTask) {
		described[r.TID] = true
	}
	if len(described) < threads+9 {
		t.Errorf("%d threads described, want %d", len(described), threads+9)
	}
	t.Logf("recording began after %v", took)
	if limit := 5 * time.Second; took > limit { // 0.2 s when the machine is idle
		t.Errorf("recording began after %v, want at most %v", took, limit)
	}
}

// TestAttachRefused checks what is said of processes that cannot be recorded.
func TestAttachRefused(t *testing.T) {
	run := func(pid int) error {
		sw, err := trace.NewStreamWriter(&bytes.Buffer{}, 1, &trace.Head{Backend: "ptrace"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Backend{}.Run(t.Context(), &capture.Options{PIDs: []int{pid}}, sw)
		return err
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if err := run(gone.Process.Pid); err == nil || !strings.Contains(err.Error(), "there is no process") {
		t.Errorf("a process that has ended: error %v", err)
	}
	a := startAttached(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		sw, err := trace.NewStreamWriter(&bytes.Buffer{}, 1, &trace.Head{Backend: "ptrace"})
		if err == nil {
			_, err = Backend{}.Run(ctx, &capture.Options{PIDs: []int{a.pid}, Started: func(int) { close(begun) }}, sw)
		}
		first <- err
	}()
	select {
	case <-begun:
		if err := run(a.pid); err == nil || !strings.Contains(err.Error(), "traces it") {
			t.Errorf("a process that is traced: error %v", err)
		}
	case err := <-first:
		t.Error(err)
	}
	cancel()
	<-first
	a.ends(t)
}

// TestUntraced records children that their maker wanted to be left alone: they are unharmed, and recorded.
func TestUntraced(t *testing.T) {
	for _, args := range [][]string{{}, {"clone3"}} {
		for _, survive := range []bool{false, true} {
			rec := record(t, &capture.Options{
				Command: append([]string{program(t, "untraced")}, args...), Survive: survive,
			})
			if rec.result.ExitStatus != 0 {
				t.Errorf("%v, survive %v: the program ended with %d", args, survive, rec.result.ExitStatus)
			}
			children := slices.DeleteFunc(rec.calls(event.OpWrite), func(r *trace.Record) bool {
				return string(content(r, 1)) != "child"
			})
			if len(children) != 1 {
				t.Errorf("%v, survive %v: %d writes of the child recorded, want 1", args, survive, len(children))
			}
			makers := slices.Concat(rec.calls(event.OpClone), rec.calls(event.OpClone3))
			flags := func(r *trace.Record) uint64 {
				if b := content(r, 0); len(b) >= 8 {
					return binary.LittleEndian.Uint64(b)
				}
				return r.Args[0]
			}
			if len(makers) != 1 || flags(makers[0])&unix.CLONE_UNTRACED == 0 {
				t.Errorf("%v: %d calls made a thread, want 1 with the program's own flags", args, len(makers))
			}
		}
	}
}
