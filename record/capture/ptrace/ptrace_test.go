// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

func TestUntracedIsNotReplayed(t *testing.T) {
	seen := map[int]bool{}
	for _, e := range Untraced() {
		if op := event.ByNumber(event.AMD64, e.NR); event.Lookup(op).Replay == event.Native &&
			runtime.GOARCH == "amd64" {
			t.Errorf("%s is let through, but a replay makes the call", op)
		}
		if seen[e.NR] || e.Reason == "" {
			t.Errorf("%s: listed twice or without reason", e.Name)
		}
		seen[e.NR] = true
	}
}

func TestPrograms(t *testing.T) {
	testenv.Short(t, "it records every workload")
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		argv   []string
		exit   int
		signal syscall.Signal
	}{
		{"true", []string{"/bin/true"}, 0, 0},
		{"false", []string{"false"}, 1, 0},
		{"pipeline", []string{"sh", "-c", "(echo a; echo b; echo c) | sort -r | (read x; echo $x) > " + dir + "/p; cat " + dir + "/p"}, 0, 0},
		{"signal", []string{"sh", "-c", "kill -TERM $$"}, 0, syscall.SIGTERM},
		{"handler", []string{"sh", "-c", "trap 'exit 5' USR1; (kill -USR1 $$) & sleep 5; wait"}, 5, 0},
		{"killed while forking", []string{"sh", "-c", `
			for i in 1 2 3 4 5 6 7 8 9 10; do
				setsid sh -c 'echo $$; while :; do (:) & (:); done' | (read p; sleep 0.0$((i%5)); kill -KILL -$p)
			done 2>/dev/null; exit 8`}, 8, 0},
		{"spawn", []string{program(t, "spawn")}, 6, 0},
		{"threads", []string{program(t, "threads"), dir}, 0, 0},
		{"short-lived", []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"}, 0, 0},
		{"daemon", []string{"sh", "-c", "(sleep .3; echo late > " + dir + "/late) & exit 2"}, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, &capture.Options{Command: c.argv})
			if rec.result.ExitStatus != c.exit || rec.result.Signal != int(c.signal) {
				t.Errorf("result %+v, want exit %d, signal %d", rec.result, c.exit, c.signal)
			}
			first := rec.ofType(trace.RecCall)[0]
			if event.Op(first.Op) != event.OpExecve || first.Ret != 0 {
				t.Errorf("the first call is %+v", summary(first))
			}
		})
	}
	for file, want := range map[string]string{"late": "late\n", "exec": "from the new image\n", "p": "c\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
}

func TestContent(t *testing.T) {
	dir := t.TempDir()
	rec := record(t, &capture.Options{Command: []string{program(t, "content"), dir}})
	if rec.result.ExitStatus != 9 {
		t.Fatalf("result %+v", rec.result)
	}
	checkContent(t, rec, dir)
}

// checkContent checks the calls of testdata/content.c.
func checkContent(t *testing.T, rec *recording, dir string) {
	t.Helper()
	big := make([]byte, 3<<20)
	for i := range big {
		big[i] = byte(i*7 + i>>8)
	}
	const a = "HEllo, worldonethree"
	has := func(op event.Op, arg int, want []byte) {
		t.Helper()
		for _, r := range rec.calls(op) {
			if bytes.Equal(content(r, arg), want) {
				return
			}
		}
		t.Errorf("%s has no call with argument %d = %.40q", op, arg, want)
	}
	has(event.OpWrite, 1, []byte("hello, world"))
	has(event.OpWritev, 1, []byte("onethree"))
	has(event.OpPwrite64, 1, []byte("HE"))
	has(event.OpPread64, 1, []byte(a))
	has(event.OpReadv, 1, []byte(a))
	has(event.OpWrite, 1, big)
	has(event.OpPread64, 1, big)
	has(event.OpSendfile, 1, big[100:1100])
	has(event.OpSendfile, 1, big[5000:7000])
	has(event.OpCopyFileRange, 0, big[7000:10000])
	has(event.OpSplice, 0, []byte(a[:10]))
	has(event.OpSendto, 1, []byte("datagram"))
	has(event.OpRecvfrom, 1, []byte("datagram"))
	has(event.OpReadlink, 1, []byte("a"))
	has(event.OpReadlink, 0, []byte("l"))
	has(event.OpFsetxattr, 2, []byte("value"))
	has(event.OpFsetxattr, 1, []byte("user.k"))
	has(event.OpOpenat, 1, []byte("none"))
	has(event.OpOpenat2, 1, []byte("a"))
	has(event.OpChdir, 0, []byte(dir))
	for _, r := range rec.calls(event.OpSplice) {
		if string(content(r, 0)) != a[:10] {
			t.Errorf("splice moved %q", content(r, 0))
		}
	}
	shapes := 0
	for _, p := range rec.calls(event.OpWritev)[0].Pieces {
		if p.Flags&trace.PieceShape != 0 && p.Len == 48 {
			shapes++
		}
	}
	if shapes != 1 {
		t.Errorf("writev has %d iovec arrays", shapes)
	}
	checkObjects(t, rec, dir)

	unknown := false
	for _, r := range rec.calls(event.OpUnknown) {
		unknown = unknown || r.NR == 500 && r.Op == 0
		if r.NR == 110 {
			t.Error("getppid is recorded")
		}
	}
	if !unknown {
		t.Error("call 500, which the operation table does not have, is not recorded")
	}
}

func checkObjects(t *testing.T, rec *recording, dir string) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, "b"), &st); err != nil {
		t.Fatal(err)
	}
	for _, r := range rec.calls(event.OpWrite) {
		if r.Ret != 3<<20 {
			continue
		}
		if len(r.Objects) != 1 {
			t.Fatalf("write has %d objects", len(r.Objects))
		}
		o := r.Objects[0]
		dev := uint32(st.Dev>>8&0xfff)<<20 | uint32(st.Dev&0xff|st.Dev>>12&^0xff)
		want := trace.Object{Ino: st.Ino, Size: 3 << 20, Pos: 3 << 20, Dev: dev, Mode: st.Mode,
			Flags: syscall.O_RDWR | 0o100000,
			Nlink: 1, UID: st.Uid, GID: st.Gid, FD: int32(r.Args[0])}
		want.Flags = o.Flags&0o100000 | syscall.O_RDWR
		if o != want {
			t.Errorf("object %+v\nwant   %+v", o, want)
		}
	}
	opened, duplicated := false, false
	for _, r := range rec.calls(event.OpOpenat) {
		for _, o := range r.Objects {
			opened = opened || o.Arg == event.ResultArg && o.Ino == st.Ino && o.FD == int32(r.Ret)
		}
	}
	for _, r := range rec.calls(event.OpFcntl) {
		for _, o := range r.Objects {
			duplicated = duplicated || o.Arg == event.ResultArg && o.Ino == st.Ino && o.FD >= 100 &&
				o.Flags&syscall.O_CLOEXEC != 0
		}
	}
	if !opened || !duplicated {
		t.Errorf("objects of results: openat %v, fcntl %v", opened, duplicated)
	}
}

func TestContentNone(t *testing.T) {
	dir := t.TempDir()
	rec := record(t, &capture.Options{Command: []string{program(t, "content"), dir},
		Content: capture.Everywhere(capture.KeepNone)})
	for _, op := range []event.Op{event.OpWrite, event.OpReadv, event.OpSendfile, event.OpSendto} {
		for _, r := range rec.calls(op) {
			for _, p := range r.Pieces {
				kept := event.Lookup(op).Args[p.Arg].Kind == event.KindStruct
				if !kept && p.Flags&(trace.PieceOmitted|trace.PieceShape) == 0 {
					t.Errorf("%s has content", op)
				}
			}
		}
	}
	if string(content(rec.calls(event.OpFsetxattr)[0], 2)) != "value" {
		t.Error("an attribute's value is not kept")
	}
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	out, err := os.Create(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	started := 0
	// What a program can see of its start, but for the tracer itself.
	script := `pwd; umask; ulimit -n; echo "$V"; ls /proc/self/fd; grep -E 'NoNew|SigIgn|SigBlk|SigCgt|^Groups' ` +
		`/proc/self/status; cut -d' ' -f5,6,7 /proc/self/stat`
	rec := record(t, &capture.Options{
		Command: []string{"sh", "-c", script, "", "last", ""}, Dir: dir, Env: []string{"V=\xff1", "PATH=/bin:/usr/bin"},
		Stdout: out, Started: func(pid int) { started = pid },
	})
	got, err := os.ReadFile(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	plain := exec.Command("sh", "-c", script)
	plain.Dir, plain.Env = dir, []string{"V=\xff1", "PATH=/bin:/usr/bin"}
	want, err := plain.Output()
	if err != nil || string(got) != string(want) {
		t.Errorf("traced:\n%s\nplain:\n%s\n%v", got, want, err)
	}
	starts := rec.ofType(trace.RecStart)
	if len(starts) != 1 || string(starts[0].Pieces[0].Data) != dir || starts[0].PID != uint32(started) {
		t.Errorf("start records %+v, started %d", starts, started)
	}
	files := map[int32]string{}
	for _, r := range rec.ofType(trace.RecFile) {
		files[r.Objects[0].FD] = string(r.Pieces[0].Data)
	}
	if files[0] != os.DevNull || files[1] != dir+"/out" || files[2] == "" {
		t.Errorf("files %v", files)
	}
	entry := rec.ofType(trace.RecEnter)[0]
	if got := string(content(entry, 1)); got != "sh\x00-c\x00"+script+"\x00\x00last\x00" {
		t.Errorf("argument vector %q", got)
	}
	if got := string(content(entry, 0)); !strings.HasSuffix(got, "/sh") {
		t.Errorf("path %q", got)
	}
	task := rec.ofType(trace.RecTask)[0]
	if int(task.PPID) != os.Getpid() || int(task.UID) != os.Getuid() {
		t.Errorf("task %+v", summary(task))
	}
}

func TestForksAndExecs(t *testing.T) {
	rec := record(t, &capture.Options{Command: []string{program(t, "threads"), t.TempDir()}})
	threads := 0
	for _, r := range rec.ofType(trace.RecFork) {
		if r.Share == trace.ShareVM|trace.ShareFS|trace.ShareFiles|trace.ShareThread && r.Child == r.PID {
			threads++
		}
	}
	if threads != 10 {
		t.Errorf("%d threads, want 10", threads)
	}
	calls := rec.calls(event.OpExecve)
	last := calls[len(calls)-1]
	if len(calls) != 2 || last.Ret != 0 || last.TID == last.PID {
		t.Errorf("%d execve calls, the last %+v", len(calls), summary(last))
	}
	interrupted := 0
	for _, r := range rec.calls(event.OpRead) {
		if r.Flags&trace.CallInterrupted != 0 {
			interrupted++
		}
	}
	if interrupted != 2 {
		t.Errorf("%d interrupted reads, want 2", interrupted)
	}
	comm := ""
	for _, r := range rec.ofType(trace.RecTask) {
		comm = string(bytes.TrimRight(r.Comm[:], "\x00"))
	}
	if comm != "sh" {
		t.Errorf("the last task is %q", comm)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		command string
		want    error
	}{{"no-such-command-here", exec.ErrNotFound}, {"/no/such/file", fs.ErrNotExist}, {"/etc/passwd",
		fs.ErrPermission}} {
		sw, err := trace.NewStreamWriter(io.Discard, 1, &trace.Head{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := Backend{}.Run(t.Context(), &capture.Options{Command: []string{c.command}}, sw)
		if !errors.Is(err, c.want) || res != nil {
			t.Errorf("%s: %v, %v", c.command, res, err)
		}
	}
}

// fullDisk takes some bytes and then fails.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	sw, err := trace.NewStreamWriter(&fullDisk{1 << 20}, 1, &trace.Head{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Backend{}.Run(t.Context(), &capture.Options{Command: []string{program(t, "content"), dir}}, sw)
	if err != nil || res.ExitStatus != 9 || res.Lost == 0 || !errors.Is(res.WriteErr, syscall.ENOSPC) {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestCancel(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{})
	if err != nil {
		t.Fatal(err)
	}
	o := &capture.Options{
		Command: []string{"sh", "-c", "echo 1 > one; sleep 1; echo 2 > two; exit 3"}, Dir: dir,
		Started: func(int) { time.AfterFunc(500*time.Millisecond, cancel) },
	}
	res, err := Backend{}.Run(ctx, o, sw)
	if err != nil || res.ExitStatus != 3 {
		t.Fatalf("result %+v, %v", res, err)
	}
	if err := sw.Close(&trace.End{}); err != nil {
		t.Fatal(err)
	}
	var words string
	for _, r := range decode(t, &b).calls(event.OpWrite) {
		words += string(content(r, 1))
	}
	two, _ := os.ReadFile(dir + "/two")
	if words != "1\n" || string(two) != "2\n" {
		t.Errorf("recorded %q, the file has %q", words, two)
	}
}

// TestQuietProgram checks that records are written while the program waits.
func TestQuietProgram(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	wrote := make(chan int64, 1)
	var n written
	sw, err := trace.NewStreamWriter(&n, 1, &trace.Head{})
	if err != nil {
		t.Fatal(err)
	}
	o := &capture.Options{Command: []string{"cat"}, Stdin: r, Started: func(int) {
		time.AfterFunc(time.Second, func() { wrote <- n.Load(); w.Close() })
	}}
	if _, err := (Backend{}).Run(t.Context(), o, sw); err != nil {
		t.Fatal(err)
	}
	if n := <-wrote; n < 2000 {
		t.Errorf("%d bytes written after a second", n)
	}
}

// written counts bytes, for any goroutine.
type written struct{ atomic.Int64 }

func (w *written) Write(b []byte) (int, error) {
	w.Add(int64(len(b)))
	return len(b), nil
}

func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user; the other tests ran as one")
	}
	const nobody = 65534
	dir := t.TempDir()
	for p := dir; p != os.TempDir() && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	stream, err := os.Create(dir + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	cmd := exec.Command("/proc/self/exe", program(t, "content"), dir)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.ExtraFiles = []*os.File{stream, pw}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	if _, err := stream.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	rec := decode(t, stream)
	if err := json.NewDecoder(pr).Decode(&rec.result); err != nil || rec.result.ExitStatus != 9 {
		t.Fatalf("result %+v, %v", rec.result, err)
	}
	validate(t, rec)
	checkContent(t, rec, dir)
	if uid := rec.ofType(trace.RecTask)[0].UID; uid != nobody {
		t.Errorf("recorded as user %d", uid)
	}
}

// TestCountsAsStrace compares the number of calls with strace's.
func TestCountsAsStrace(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		testenv.Lacks(t, "strace is not installed")
	}
	for _, argv := range [][]string{
		{program(t, "content"), t.TempDir()},
		{"sh", "-c", "ls / | sort | wc -l; cat /etc/passwd > /dev/null; for i in 1 2 3; do /bin/true; done"},
	} {
		out := filepath.Join(t.TempDir(), "counts")
		cmd := exec.Command(strace, append([]string{"-f", "-c", "-U", "calls,name", "-o", out}, argv...)...)
		cmd.Run() // its status is the program's
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		for _, line := range strings.Split(string(b), "\n") {
			var n int
			var name string
			if k, _ := fmt.Sscan(line, &n, &name); k == 2 && name != "total" {
				want[name] = n
			}
		}
		rec := record(t, &capture.Options{Command: argv})
		got := map[string]int{}
		for _, r := range rec.ofType(trace.RecCall) {
			got[event.Op(r.Op).String()]++
		}
		compared := 0
		for name, n := range want {
			op := event.ByName(name)
			// Calls without return are not in strace's summary; waits depend on timing;
			// what is let through is not recorded.
			through := slices.ContainsFunc(Untraced(), func(e Exempt) bool { return e.Name == name })
			if op == event.OpUnknown || op == event.OpWait4 || event.Lookup(op).NoReturn || through {
				continue
			}
			compared++
			if got[name] != n {
				t.Errorf("%s: %d calls of %s, strace counts %d", filepath.Base(argv[0]), got[name], name, n)
			}
		}
		if compared < 8 {
			t.Errorf("strace's summary has %d operations:\n%s", compared, b)
		}
	}
}
