// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// target is a program that runs before it is recorded. It is not a child of the
// test's: a recorder waits for all of its own.
type target struct {
	pid    int
	status string // file that gets its exit status
}

// start runs a program of testdata until it says that it is ready.
func start(t *testing.T, name string, args ...string) *target {
	t.Helper()
	status := filepath.Join(t.TempDir(), "status")
	const script = `"$@" & echo $!; wait $!; echo $? >"$0.new"; mv "$0.new" "$0"`
	cmd := exec.Command("setsid", append([]string{"--fork", "sh", "-c", script, status, build(t, name)}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &target{status: status}
	t.Cleanup(func() {
		if _, err := os.Stat(status); err != nil && p.pid != 0 {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		p.pid, _ = strconv.Atoi(lines.Text())
	}
	if err := cmd.Wait(); err != nil || p.pid == 0 {
		t.Fatalf("%s: process %d, %v", name, p.pid, err)
	}
	return p
}

// ended waits for the program's exit status.
func (p *target) ended(t *testing.T, want int) {
	t.Helper()
	for range 500 {
		if b, err := os.ReadFile(p.status); err == nil {
			if got := strings.TrimSpace(string(b)); got != strconv.Itoa(want) {
				t.Errorf("the program ended with status %s, want %d", got, want)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the program does not end")
}

// attach records what runs already until it has ended or ctx is cancelled. begun is
// called when the recording has begun.
func attach(t *testing.T, ctx context.Context, o *capture.Options, begun func()) (*recording, *capture.Result) {
	t.Helper()
	var b bytes.Buffer
	o.Started = func(int) { begun() }
	o.Note = func(line string) { t.Log(line) }
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: name, Arch: "amd64", Shards: Shards(o)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Backend{}.Run(ctx, o, sw)
	if err != nil {
		t.Fatal(err)
	}
	_ = sw.Close(&trace.End{})
	return decode(t, b.Bytes()), res
}

func create(t *testing.T, name string) {
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Error(err)
	}
}

// largeFile is the flag that the kernel gives to every open of a 64-bit program, and
// that package unix has as 0.
const largeFile = 0o100000

func TestAttach(t *testing.T) {
	need(t)
	for _, overflow := range []capture.Overflow{capture.OverflowBlock, capture.OverflowDrop} {
		t.Run(string(overflow), func(t *testing.T) { testAttach(t, overflow) })
	}
}

func testAttach(t *testing.T, overflow capture.Overflow) {
	dir := t.TempDir()
	prog := start(t, "attached", dir)
	pid := prog.pid
	r, res := attach(t, t.Context(), &capture.Options{PIDs: []int{pid}, Overflow: overflow},
		func() { create(t, filepath.Join(dir, "go")) })
	prog.ended(t, 7)
	if res.Lost != 0 || res.ExitStatus != 0 {
		t.Errorf("result %+v", res)
	}

	// Where the processes are.
	starts := r.of(trace.RecStart)
	if len(starts) != 3 || starts[0].PID != uint32(pid) || starts[0].Umask != 0o27 ||
		string(starts[0].Pieces[0].Data) != dir {
		t.Errorf("%d RecStart, the first %+v", len(starts), starts[0])
	}
	threads := map[uint32]bool{}
	for _, f := range r.of(trace.RecFork) {
		if f.Child == uint32(pid) && f.Share == trace.ShareVM|trace.ShareFS|trace.ShareFiles|trace.ShareThread {
			threads[f.ChildTID] = true
		}
	}
	if len(threads) < 3 {
		t.Errorf("%d threads beside the first", len(threads))
	}

	// What they have open.
	type open struct {
		pid uint32
		fd  int32
	}
	files, numbers := map[open]trace.Object{}, map[uint32]int{}
	paths := map[open]string{}
	for _, f := range r.of(trace.RecFile) {
		k := open{f.PID, f.Objects[0].FD}
		files[k], paths[k] = f.Objects[0], string(f.Pieces[0].Data)
		numbers[f.Objects[0].Open]++
	}
	first := uint32(pid)
	for fd, want := range map[int32]struct {
		name  string
		pos   int64
		flags uint32
	}{
		3: {"a", 10, unix.O_RDWR | unix.O_CLOEXEC},
		4: {"a", 3, unix.O_RDONLY},
		5: {"log", 5, unix.O_WRONLY},
	} {
		o := files[open{first, fd}]
		if o.Pos != want.pos || o.Flags&^largeFile != want.flags ||
			paths[open{first, fd}] != filepath.Join(dir, want.name) {
			t.Errorf("descriptor %d: %q %+v", fd, paths[open{first, fd}], o)
		}
		if n := numbers[o.Open]; n != 3 { // the children have it, too
			t.Errorf("descriptor %d: its open file is that of %d descriptors", fd, n)
		}
	}
	if files[open{first, 3}].Open == files[open{first, 4}].Open {
		t.Error("two open files of one file have one number")
	}

	// What they do then.
	under := false
	for _, c := range r.op(event.OpRead) {
		switch text(c, 1) {
		case "through":
			under = c.Enter < c.Exit && c.Args[2] == 32
		case "34567":
			if c.Objects[0].Pos != 8 {
				t.Errorf("read of b ends at %d", c.Objects[0].Pos)
			}
		}
	}
	if !under {
		t.Error("the read that was under way is not there as a whole")
	}
	var written []string
	for _, c := range r.op(event.OpWrite) {
		if c.Ret > 0 {
			written = append(written, text(c, 1))
		}
		if c.gap > 0 {
			t.Errorf("write %v: %d bytes missing", c.Args, c.gap)
		}
	}
	for _, want := range []string{"after", "through", "child 0\n", "child 1\n", "end"} {
		if !strings.Contains(strings.Join(written, "|"), want) {
			t.Errorf("no write of %q in %q", want, written)
		}
	}
	exits := 0
	for _, e := range r.of(trace.RecExit) {
		if e.TID == e.PID {
			exits++
		}
	}
	if exits != 3 {
		t.Errorf("%d processes ended", exits)
	}
}

// TestAttachCancel stops a recording of a program that is held back; the program
// goes on unharmed, and the call that it waits in is not interrupted.
func TestAttachCancel(t *testing.T) {
	need(t)
	prog := start(t, "waiting")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, res := attach(t, ctx, &capture.Options{PIDs: []int{prog.pid}, RingBytes: 256 << 10},
		func() { time.AfterFunc(300*time.Millisecond, cancel) })
	if len(r.calls) == 0 {
		t.Error("nothing was recorded")
	}
	t.Logf("%+v", res)
	_ = unix.Kill(prog.pid, unix.SIGUSR1)
	prog.ended(t, 9)
}
