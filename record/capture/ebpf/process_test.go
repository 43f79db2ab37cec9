// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

func TestProcesses(t *testing.T) {
	procs := build(t, "procs")
	const n = 2000
	r, res := record(t, &capture.Options{Dir: t.TempDir()}, procs, strconv.Itoa(n))
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	forks, exits := r.of(trace.RecFork), r.of(trace.RecExit)
	if len(forks) != n+5 {
		t.Errorf("%d RecFork, want %d", len(forks), n+5)
	}
	// The thread that called execve lives on under its leader's number.
	if len(exits) != len(forks)+1 {
		t.Errorf("%d RecExit for %d RecFork", len(exits), len(forks))
	}
	var argvs []string
	for _, c := range r.op(event.OpExecve) {
		if c.Ret != 0 {
			t.Errorf("execve = %d", c.Ret)
		}
		if c.gap > 0 {
			t.Errorf("execve %.60q: something is missing", text(c, 1))
		}
		if p := text(c, 0); p != procs && p != "/proc/self/exe" {
			t.Errorf("execve of %.60q", p)
		}
		argvs = append(argvs, text(c, 1))
	}
	long := procs
	for i := 1; i <= 12; i++ {
		long += "\x00" + strings.Repeat(string(rune('a'+i)), 100000)
	}
	want := []string{
		procs + "\x00" + strconv.Itoa(n), "/proc/self/exe\x000", long,
		procs + "\x000\x00from a file", procs + "\x00third",
	}
	if len(argvs) != len(want) {
		t.Fatalf("%d execve, want %d", len(argvs), len(want))
	}
	for i := range want {
		if argvs[i] != want[i] {
			t.Errorf("argv %d: %.80q of %d bytes, want %.80q of %d", i, argvs[i], len(argvs[i]), want[i], len(want[i]))
		}
	}
	var vfork bool
	for _, f := range forks {
		vfork = vfork || f.Share&trace.ShareVM != 0 && f.Share&trace.ShareThread == 0
	}
	if !vfork {
		t.Error("no RecFork of a vfork")
	}
	codes := map[int64]int{}
	for _, e := range exits {
		codes[e.Ret>>8]++
	}
	if codes[127] != n/128 {
		t.Errorf("%d processes ended with 127, want %d", codes[127], n/128)
	}
}

func TestPython(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	dir := t.TempDir()
	script := `
import threading, os, subprocess
def work(i):
    for k in range(50):
        with open("f%d" % i, "wb") as f:
            f.write(b"%d:%d" % (i, k))
        os.rename("f%d" % i, "g%d" % i)
ts = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print(subprocess.run(["/bin/echo", "hi"], capture_output=True).stdout)
`
	r, res := record(t, &capture.Options{Dir: dir}, "python3", "-c", script)
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	written := map[string]bool{}
	for _, c := range r.op(event.OpWrite) {
		written[text(c, 1)] = true
	}
	for i := range 8 {
		for k := range 50 {
			if s := strconv.Itoa(i) + ":" + strconv.Itoa(k); !written[s] {
				t.Errorf("no write of %q", s)
			}
		}
	}
	if n := len(r.op(event.OpRename)); n != 400 {
		t.Errorf("%d renames", n)
	}
	threads := 0
	for _, f := range r.of(trace.RecFork) {
		if f.Share&trace.ShareThread != 0 {
			threads++
		}
	}
	if threads < 8 {
		t.Errorf("%d threads", threads)
	}
	for _, c := range r.calls {
		if c.gap > 0 && c.Ret >= 0 {
			t.Errorf("%s %x = %d: %d bytes missing", c.spec.Name, c.Args, c.Ret, c.gap)
		}
	}
}

// TestCounts compares the calls of a deterministic program with strace's count.
func TestCounts(t *testing.T) {
	testenv.NeedProgram(t, "strace")
	need(t)
	content, dir := build(t, "content"), shm(t)
	file := filepath.Join(t.TempDir(), "counts")
	if b, err := exec.Command("strace", "-f", "-c", "-U", "name,calls", "-o", file, content, dir, "small",
		"20").CombinedOutput(); err != nil {
		t.Fatalf("strace: %v\n%s", err, b)
	}
	want := map[string]int{}
	out, err := exec.Command("cat", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)\s+(\d+)`).FindAllSubmatch(out, -1) {
		want[string(m[1])], _ = strconv.Atoi(string(m[2]))
	}
	r, res := record(t, &capture.Options{}, content, dir, "small", "20")
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	got := map[string]int{}
	for _, c := range r.calls {
		got[c.spec.Name]++
	}
	for _, op := range []event.Op{event.OpRead, event.OpWrite, event.OpPread64, event.OpPwrite64, event.OpReadv,
		event.OpWritev,
		event.OpPreadv, event.OpPwritev, event.OpOpenat, event.OpClose, event.OpDup, event.OpFcntl, event.OpLseek,
		event.OpSendfile, event.OpCopyFileRange, event.OpSplice, event.OpPipe2, event.OpExecve, event.OpNewfstatat, event.OpAccess, event.OpClone3} {
		if got[op.String()] != want[op.String()] {
			t.Errorf("%s: %d recorded, strace counts %d", op, got[op.String()], want[op.String()])
		}
	}
}

func TestSignals(t *testing.T) {
	r, res := record(t, &capture.Options{}, "sh", "-c", "kill -TERM $$")
	if res.Signal != int(unix.SIGTERM) {
		t.Errorf("result %+v", res)
	}
	exits := r.of(trace.RecExit)
	if len(exits) != 1 || exits[0].Ret&0x7f != int64(unix.SIGTERM) {
		t.Errorf("exits %v", exits)
	}
}

// TestCancel stops a recording under back-pressure; the program goes on unharmed.
func TestCancel(t *testing.T) {
	need(t)
	dir := t.TempDir()
	w := &slow{pause: 5 * time.Millisecond}
	o := &capture.Options{
		Dir: dir, RingBytes: 256 << 10,
		Command: []string{"sh", "-c", "head -c 60000000 /dev/zero | tr '\\0' x > out; echo $? > done"},
	}
	sw, err := trace.NewStreamWriter(w, 1, &trace.Head{Shards: Shards(o)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Started = func(int) { time.AfterFunc(300*time.Millisecond, cancel) }
	res, err := Backend{}.Run(ctx, o, sw)
	if err != nil {
		t.Fatal(err)
	}
	if res.Lost != 0 {
		_ = sw.Close(&trace.End{})
		t.Errorf("result %+v: lost %s", res, losses(decode(t, w.Bytes())))
	}
	for range 100 {
		if b, err := os.ReadFile(filepath.Join(dir, "done")); err == nil && len(b) > 0 {
			if st, err := os.Stat(filepath.Join(dir, "out")); err != nil || st.Size() != 60000000 ||
				string(b) != "0\n" {
				t.Errorf("out: %v %v, done: %q", st, err, b)
			}
			t.Logf("%+v", res)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the program did not go on: %+v", res)
}
