// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// runs is a program that runs, and is not a child of the test's.
type runs struct {
	pid         int
	dir, status string
}

func start(t *testing.T, source string, args ...string) *runs {
	t.Helper()
	r := &runs{dir: t.TempDir()}
	r.status = filepath.Join(t.TempDir(), "status")
	const script = `sh -c 'echo $$; exec "$@"' sh "$@" & wait $!; echo $? >"$0.new"; mv "$0.new" "$0"`
	cmd := exec.Command("setsid", append([]string{"--fork", "sh", "-c", script, r.status, program(t, source), r.dir},
		args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(r.status); err != nil && r.pid != 0 {
			_ = unix.Kill(r.pid, unix.SIGKILL)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		r.pid, _ = strconv.Atoi(lines.Text())
	}
	if err := cmd.Wait(); err != nil || r.pid == 0 {
		t.Fatalf("process %d, %v", r.pid, err)
	}
	const often = 15
	last, same := "", 0
	for ; same < often; time.Sleep(10 * time.Millisecond) { // until all threads run, and it has closed its output
		if now := r.state(t); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return r
}

// ends lets the program end, and checks that it saw nothing of the recordings.
func (r *runs) ends(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(r.dir+"/end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(r.status); err == nil {
			if got := strings.TrimSpace(string(b)); got != "7" {
				t.Errorf("the program ended with status %s, want 7", got)
			}
			return
		}
	}
	t.Error("the program does not end")
}

// state returns the mappings of a program, and what its threads do with signals.
func (r *runs) state(t *testing.T) string {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", r.pid)
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		t.Fatal(err)
	}
	if len(maps) == 0 {
		end, _ := os.ReadFile(r.status)
		t.Fatalf("the program has ended: %q", end)
	}
	text := string(maps)
	status, _ := os.ReadFile(proc + "status")
	for line := range strings.Lines(string(status)) {
		for _, name := range []string{"SigIgn:", "SigCgt:", "Threads:", "TracerPid:"} {
			if strings.HasPrefix(line, name) {
				text += line
			}
		}
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(proc + "fd/" + fd.Name())
		text += fd.Name() + " is " + to + "\n"
	}
	return text
}

// changes returns the lines that differ.
func changes(before, after string) (list []string) {
	for _, x := range [][3]string{{before, after, "-"}, {after, before, "+"}} {
		for line := range strings.Lines(x[0]) {
			if !strings.Contains(x[1], line) {
				list = append(list, x[2]+line)
			}
		}
	}
	return list
}

// attach records a program for a while after the recording has begun.
func (r *runs) attach(t *testing.T, long time.Duration) *recording {
	t.Helper()
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rec := &recording{}
	var mu sync.Mutex
	o := &capture.Options{PIDs: []int{r.pid}, Started: func(int) { time.AfterFunc(long, cancel) }}
	o.Note = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		rec.notes = append(rec.notes, s)
	}
	rec.result, err = Backend{}.Run(ctx, o, sw)
	var lacks *capture.UnsupportedError
	if errors.As(err, &lacks) {
		testenv.Lacks(t, err.Error())
	}
	if err == nil {
		err = sw.Close(&trace.End{})
	}
	if err != nil || rec.result.Lost != 0 {
		t.Fatalf("result %+v, %v", rec.result, err)
	}
	rec.records = decodeStream(t, &b)
	return rec
}

// leftCode reports whether the recording says that it could not take its code out of a process.
func (r *recording) leftCode() bool {
	return strings.Contains(strings.Join(r.notes, "\n"), "go on with code of the recording")
}

func attachCycles() int {
	if testing.Short() {
		return 10
	}
	return 100
}

// TestAttach attaches to a program under load and leaves it, again and again: the program sees nothing of it, it is
// as before, and each recording has all that happened in between.
func TestAttach(t *testing.T) {
	r := start(t, "../../ptrace/testdata/attached", "0", "stops")
	calls, fast, cycles := 0, 0, attachCycles()
	for i := range cycles {
		before := r.state(t)
		rec := r.attach(t, 5*time.Millisecond)
		calls += checkNumbers(t, rec, r, 4)
		if len(rec.notes) == 0 {
			fast++
		} else {
			t.Log(i, rec.notes)
		}
		if rec.leftCode() { // a thread did not stop in time: it goes on all the same
			r.ends(t)
			r = start(t, "../../ptrace/testdata/attached", "0", "stops")
		} else if after := r.state(t); after != before {
			t.Fatalf("recording %d changed the program: %v", i, changes(before, after))
		}
	}
	r.ends(t)
	if calls < cycles || fast < cycles*9/10 {
		t.Errorf("%d writes in %d recordings, %d of them in process", calls, cycles, fast)
	}
	for i := range 4 {
		checkFile(t, fmt.Sprintf("%s/%d", r.dir, i))
	}
}

// TestAttachOwnHandler attaches to a program that handles and blocks SIGSYS itself.
func TestAttachOwnHandler(t *testing.T) {
	r := start(t, "ownsys")
	for i := range attachCycles() {
		before := r.state(t)
		rec := r.attach(t, 3*time.Millisecond)
		if len(rec.notes) > 0 {
			t.Log(i, rec.notes)
		}
		checkNumbers(t, rec, r, 1)
		if rec.leftCode() {
			r.ends(t)
			r = start(t, "ownsys")
		} else if after := r.state(t); after != before {
			t.Fatalf("recording %d changed the program: %v", i, changes(before, after))
		}
	}
	r.ends(t)
	checkFile(t, r.dir+"/numbers")
}

// attachTo names the process that this test's program is to record, started again, until it is killed.
const attachTo = "IOTAPE_TEST_ATTACH"

func attachUntilKilled(process string) {
	pid, _ := strconv.Atoi(process)
	sw, err := trace.NewStreamWriter(io.Discard, 1, &trace.Head{Backend: name})
	if err == nil {
		_, err = Backend{}.Run(context.Background(), &capture.Options{PIDs: []int{pid}, Started: func(int) {
			fmt.Println("started")
		}}, sw)
	}
	fmt.Println("over:", err)
	os.Exit(1)
}

// TestAttachKilled kills a recorder of what runs already, at random moments: also while it attaches. The program
// goes on and sees nothing of it, and can be recorded again.
func TestAttachKilled(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	patched := 0
	for i := range rounds {
		source, file := "../../ptrace/testdata/attached", "0"
		if i%4 == 3 {
			source, file = "ownsys", "numbers"
		}
		r := start(t, source, "0", "stops")
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprint(attachTo, "=", r.pid))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			lines := bufio.NewScanner(out)
			if lines.Scan(); lines.Text() != "started" {
				t.Fatalf("the recorder says %q", lines.Text())
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		} else {
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		switch end := r.goesOn(t, r.dir+"/"+file); {
		case end == "133" && patched < 3: // SIGTRAP
			patched++
			t.Logf("round %d: the recorder was killed while it patched (docs/limits.md)", i)
			continue
		case end != "":
			t.Fatalf("round %d: the program does not go on; it ended with %q; %s", i, end, r.threads())
		}
		if i%8 == 0 {
			checkNumbers(t, r.attach(t, 5*time.Millisecond), r, 4)
		}
		if r.ends(t); t.Failed() {
			t.Fatalf("in round %d", i)
		}
		checkFile(t, r.dir+"/"+file)
	}
}

func size(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// goesOn waits until a program writes more to its file. It returns how the program ended if it does not, "" if it does.
func (r *runs) goesOn(t *testing.T, file string) string {
	before := size(t, file)
	for deadline := time.Now().Add(10 * time.Second); size(t, file) < before+64; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(r.status); err == nil {
			return strings.TrimSpace(string(b))
		}
		if time.Now().After(deadline) {
			return "no end"
		}
	}
	return ""
}

// threads says what the threads of a program do.
func (r *runs) threads() string {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", r.pid))
	var text []byte
	for _, name := range names {
		b, _ := os.ReadFile(name)
		text = append(text, b...)
	}
	return string(text)
}

// checkFile checks that a file has the numbers from 0.
func checkFile(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b); at += 8 {
		if n := binary.LittleEndian.Uint64(b[at:]); n != uint64(at/8) {
			t.Fatalf("%s has the number %d at %d", name, n, at)
		}
	}
}

// checkNumbers checks that the writes to some files are there without a gap, from where they were when the recording
// began to where they were when it ended. It returns how many.
func checkNumbers(t *testing.T, rec *recording, r *runs, files int) (calls int) {
	t.Helper()
	next := map[int32]int64{} // number, by descriptor
	for _, x := range rec.ofType(trace.RecFile) {
		if int(x.PID) == r.pid && filepath.Dir(string(x.Pieces[0].Data)) == r.dir {
			next[x.Objects[0].FD] = x.Objects[0].Pos / 8
		}
	}
	if len(next) != files {
		t.Fatalf("%d files that were open when the recording began, want %d", len(next), files)
	}
	for _, x := range rec.calls(event.OpWrite) {
		fd := int32(x.Args[0])
		want, ok := next[fd]
		if !ok || int(x.PID) != r.pid || x.Flags&trace.CallInterrupted != 0 {
			continue
		}
		b := content(x, 1)
		if len(b) != 8 || int64(binary.LittleEndian.Uint64(b)) != want {
			t.Fatalf("a write to descriptor %d of % x; want the number %d", fd, b, want)
		}
		next[fd]++
		calls++
	}
	return calls
}
