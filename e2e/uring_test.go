// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "rewrite the expected text in testdata")

// needUring skips where requests to io_uring cannot be recorded, and fails where the
// administrator has switched io_uring off: a machine that tests iotape has it.
func needUring(t *testing.T) {
	t.Helper()
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc")
	if b, err := os.ReadFile("/proc/sys/kernel/io_uring_disabled"); err == nil && strings.TrimSpace(string(b)) != "0" {
		t.Fatalf("io_uring is switched off here: sysctl kernel.io_uring_disabled is %s, and has to be 0",
			bytes.TrimSpace(b))
	}
}

// recordSource builds one of the workload's sources and records it.
func (e *env) recordSource(t *testing.T, name, backend string) *trace.Tape {
	t.Helper()
	install, work, path := filepath.Join(e.dir, "workload"), filepath.Join(e.dir, "work"), filepath.Join(e.dir,
		"x.tape")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(e.dir, name)
	e.run(t, "gcc", "-O1", "-w", "-pthread", "-o", prog, workload.Source(install, name))
	e.run(t, "sh", "-c", `cd work && exec "$@"`, "sh", e.iotape, "record", "--backend", backend, "-o", path, "--", prog)
	tape, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// requests returns the tape's requests, in the order of their completions.
func requests(t *testing.T, tape *trace.Tape) []*event.Event {
	t.Helper()
	var all []*event.Event
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Op.IsUring() || ev.Op.IsAIO() {
			all = append(all, ev.Clone())
		}
	}
	return all
}

// head returns the head of a request.
func head(t *testing.T, ev *event.Event) event.Request {
	t.Helper()
	r, ok := ev.Request()
	if !ok {
		t.Fatalf("%v %v has no head", ev.Op, ev.Args)
	}
	return r
}

// content returns the bytes that a request moved.
func content(t *testing.T, tape *trace.Tape, ev *event.Event) []byte {
	t.Helper()
	var data []byte
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindBuf && b.Kind != event.KindVec {
			continue
		}
		if b.Missing > 0 || b.Len != ev.Ret {
			t.Errorf("%v = %d: %d bytes of content, %d missing", ev.Op, ev.Ret, b.Len, b.Missing)
		}
		got, err := tape.Content(b, nil)
		if err != nil {
			t.Errorf("%v = %d: %v", ev.Op, ev.Ret, err)
		}
		data = append(data, got...)
	}
	return data
}

// lostRequests returns how often the tape says that requests are lost.
func (e *env) lostRequests(t *testing.T) (lost int64) {
	t.Helper()
	e.events(t, "x.tape", func(ev *event.Event) {
		reason := uint32(ev.Args[0])
		if ev.Kind == event.LossMark && (reason == trace.LossUnseen || reason == trace.LossRequests) {
			lost += ev.Ret
		}
	})
	return lost
}

// consumed reports whether memory that a request filled is missing, since the program may have stored over it before
// the recorder saw the completion.
func consumed(ev *event.Event) bool {
	return slices.ContainsFunc(ev.Bufs, func(b event.Buf) bool { return b.Missing > 0 })
}

// pattern is what the programs write at an offset (fill in bench/workload/src).
func pattern(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		o := at + i
		b[i] = byte(o*131 + o>>9*17)
	}
	return b
}

// TestUring records requests to io_uring and looks at each: those that come one after
// the other as text, and those whose order the kernel chooses by what the program
// recognises them by.
func TestUring(t *testing.T) {
	t.Parallel()
	needUring(t)
	e := newEnv(t, testenv.Iotape(t), "", nil)
	tape := e.recordSource(t, "uring", "ebpf")
	e.perfect(t, filepath.Join(e.dir, "x.tape"))
	all := requests(t, tape)

	const ordered, polled = 70, 2000 // the first of those that are not
	seen := map[uint64][]*event.Event{}
	for _, ev := range all {
		r := head(t, ev)
		seen[r.UserData] = append(seen[r.UserData], ev)
		if ev.TID != all[0].PID || ev.PID != all[0].PID {
			t.Errorf("request %d is one of thread %d of process %d, not of the program's one thread", r.UserData,
				ev.TID, ev.PID)
		}
		if r.Queue < 3 || ev.Enter >= ev.Exit {
			t.Errorf("request %d: ring %d, from %d to %d", r.UserData, r.Queue, ev.Enter, ev.Exit)
		}
	}
	one := func(id uint64) *event.Event {
		if len(seen[id]) != 1 {
			t.Fatalf("%d requests %d", len(seen[id]), id)
		}
		return seen[id][0]
	}
	for id, want := range map[uint64]syscall.Errno{
		70: syscall.ETIME, 71: syscall.ECANCELED, 72: syscall.ECANCELED, 73: 0, 74: 0, 75: 0,
	} {
		if ev := one(id); ev.Errno != want {
			t.Errorf("%v, request %d, ended with %v, want %v", ev.Op, id, ev.Errno, want)
		}
	}
	if ev := one(99); ev.Flags&event.Interrupted == 0 {
		t.Errorf("%v, which never ended, = %d, %v", ev.Op, ev.Ret, ev.Errno)
	}
	// Done by other threads of the kernel.
	for i := range 8 {
		if len(seen[80+uint64(i)]) != 2 { // with two rings
			t.Fatalf("%d requests %d", len(seen[80+uint64(i)]), 80+i)
		}
		for _, ev := range seen[80+uint64(i)] {
			if !bytes.Equal(content(t, tape, ev), pattern(i, 50000)) || ev.Offset != int64(50000*i) {
				t.Errorf("request %d, by a worker: offset %d, or its content", 80+i, ev.Offset)
			}
		}
	}
	// With a queue of completions that was full, so that the kernel kept them.
	for i := range 64 {
		if ev := one(1000 + uint64(i)); ev.Offset != int64(512*i) ||
			!bytes.Equal(content(t, tape, ev), pattern(512*i, 512)) {
			t.Errorf("request %d, kept by the kernel: offset %d, or its content", 1000+i, ev.Offset)
		}
	}
	// By a thread of the kernel, without a call.
	for i := range 40 {
		if ev := one(polled + uint64(i)); !bytes.Equal(content(t, tape, ev), pattern(i, 100000)) {
			t.Errorf("request %d, by the ring's thread: its content", polled+i)
		}
	}

	golden(t, "uring.golden", e.printed(t, func(id uint64) bool { return id < ordered }))
}

// TestUringWithoutRights records the same program without eBPF: all requests but those of the ring that the kernel
// polls, which are said to be missing. What the program may have stored over before the recorder saw the completion
// is missing, not made up.
func TestUringWithoutRights(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "stops at each call")
	needUring(t)
	want, err := os.ReadFile(filepath.Join("testdata", "uring.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range inTurn(t, backendsWithoutRights()) {
		t.Run(backend, func(t *testing.T) {
			e := newEnv(t, testenv.Iotape(t), "", nil)
			tape := e.recordSource(t, "uring", backend)
			seen := map[uint64]int{}
			for _, ev := range requests(t, tape) {
				id := head(t, ev).UserData
				seen[id]++
				switch {
				case consumed(ev):
				case id >= 80 && id < 88:
					n := int(id) - 80
					if !bytes.Equal(content(t, tape, ev), pattern(n, 50000)) || ev.Offset != int64(50000*n) {
						t.Errorf("request %d, by a worker: offset %d, or its content", id, ev.Offset)
					}
				case id >= 1000 && id < 1064:
					n := 512 * (int(id) - 1000)
					if !bytes.Equal(content(t, tape, ev), pattern(n, 512)) || ev.Offset != int64(n) {
						t.Errorf("request %d, kept by the kernel: offset %d, or its content", id, ev.Offset)
					}
				}
			}
			for id := range uint64(8) {
				if seen[80+id] != 2 {
					t.Errorf("%d requests %d, want one of each of two rings", seen[80+id], 80+id)
				}
			}
			for id := range uint64(64) {
				if seen[1000+id] != 1 {
					t.Errorf("%d requests %d, want 1", seen[1000+id], 1000+id)
				}
			}
			const ordered = 70
			got := strings.Split(e.printed(t, func(id uint64) bool { return id < ordered }), "\n")
			for i, line := range strings.Split(string(want), "\n") {
				if i >= len(got) {
					t.Fatalf("%d requests in order, want more: %s", len(got), line)
				}
				// Consumed: all but the memory agrees.
				if before, after, missing := strings.Cut(got[i], " /* "); missing {
					_, after, _ = strings.Cut(after, "not recorded */")
					before = before[:strings.LastIndexByte(before, ' ')]
					if strings.HasPrefix(line, before) && strings.HasSuffix(line, after) {
						continue
					}
				}
				if got[i] != line {
					t.Errorf("request %d is\n%s\nwant\n%s", i, got[i], line)
				}
			}
			if n := e.lostRequests(t); n != 1 {
				t.Errorf("lost %d, want 1: the requests of the ring that the kernel polls", n)
			}
		})
	}
}

// TestUringPolled records a program that sees completions without a call and uses its buffer again at once. What it
// read may be missing from the tape; what it wrote is not, and nothing is wrong.
func TestUringPolled(t *testing.T) {
	t.Parallel()
	needUring(t)
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		t.Run(backend, func(t *testing.T) {
			e := newEnv(t, testenv.Iotape(t), "", nil)
			tape := e.recordSource(t, "uringpoll", backend)
			all := requests(t, tape)
			if n := e.lostRequests(t); n != 0 {
				t.Errorf("lost %d, want 0", n)
			}
			if len(all) != 1001 {
				t.Errorf("%d requests, want 1001", len(all))
			}
			for _, ev := range all {
				if head(t, ev).UserData == 9 { // which never ended
					if ev.Flags&event.Interrupted == 0 {
						t.Errorf("%v of the pipe = %d, %v", ev.Op, ev.Ret, ev.Errno)
					}
					continue
				}
				if ev.Ret != 4096 {
					t.Errorf("%v = %d, %v", ev.Op, ev.Ret, ev.Errno)
				}
				if missing := consumed(ev); missing && (backend == "ebpf" || ev.Op != event.OpUringRead) {
					t.Errorf("%v at %d: its content is missing", ev.Op, ev.Offset)
				} else if missing {
					continue
				}
				want := bytes.Repeat([]byte{'a' + byte(ev.Offset/4096%26)}, 4096)
				if got := content(t, tape, ev); !bytes.Equal(got, want) {
					t.Errorf("%v at %d, request %d: %.8q, want %.8q", ev.Op, ev.Offset, head(t, ev).UserData, got, want)
				}
			}
		})
	}
}

// TestUringSockets does the same with sockets and pipes, and several completions of
// one request.
func TestUringSockets(t *testing.T) {
	t.Parallel()
	needUring(t)
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		t.Run(backend, func(t *testing.T) { uringSockets(t, backend) })
	}
}

func uringSockets(t *testing.T, backend string) {
	e := newEnv(t, testenv.Iotape(t), "", nil)
	tape := e.recordSource(t, "uringnet", backend)
	seen := map[uint64][]*event.Event{}
	for _, ev := range requests(t, tape) {
		id := head(t, ev).UserData
		seen[id] = append(seen[id], ev)
	}
	accepted := map[event.OpenID]bool{}
	for i, ev := range seen[4] { // multishot: two clients, then it is cancelled
		f := ev.FileArg(event.ResultArg)
		if last := i == len(seen[4])-1; last != (ev.Errno == syscall.ECANCELED) ||
			!last && (f == nil || !f.Known || accepted[f.Open]) {
			t.Errorf("accept %d: %d, %v, %+v", i, ev.Ret, ev.Errno, f)
		} else if !last {
			accepted[f.Open] = true
		}
	}
	var texts []string
	for _, ev := range seen[7] { // into buffers of the kernel's choice
		if f := ev.FileArg(0); f == nil || !accepted[f.Open] {
			t.Errorf("received from %+v", f)
		}
		if backend != "ebpf" && consumed(ev) {
			texts = append(texts, fmt.Sprint("answer ", len(texts)))
			continue
		}
		texts = append(texts, string(content(t, tape, ev)))
	}
	if got := strings.Join(texts, "|"); got != "answer 0|answer 1|answer 2|" {
		t.Errorf("received %q", got)
	}
	for id, n := range map[uint64]int{1: 1, 2: 1, 3: 1, 4: 3, 5: 2, 6: 1, 7: 4, 8: 3, 9: 1, 10: 1, 11: 1, 12: 3, 13: 1,
		14: 1, 15: 1, 20: 1, 21: 1, 24: 1, 30: 1, 34: 1, 35: 1} {
		if len(seen[id]) != n {
			t.Errorf("%d completions of request %d, want %d", len(seen[id]), id, n)
		}
	}
	for i, ev := range seen[8] {
		if got, want := string(content(t, tape, ev)), fmt.Sprint("answer ", i); got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	for _, id := range []uint64{10, 11} {
		b := seen[id][0].BufArg(event.PartData.Of(1))
		if backend != "ebpf" && consumed(seen[id][0]) {
			continue
		}
		if b == nil || string(b.Inline) != "one two three" {
			t.Errorf("message %d: %+v", id, b)
		}
	}
	for _, ev := range seen[12][:2] {
		if ev.Ret&1 == 0 || head(t, ev).CQEFlags&event.CQEMore == 0 {
			t.Errorf("poll = %#x", ev.Ret)
		}
	}
	for id, ends := range map[uint64][2]uint32{20: {syscall.S_IFIFO, syscall.S_IFIFO},
		21: {syscall.S_IFIFO, syscall.S_IFIFO}, 24: {syscall.S_IFREG, syscall.S_IFIFO}} {
		ev := seen[id][0]
		for i, f := range ev.Files {
			if f.Mode&syscall.S_IFMT != ends[i] {
				t.Errorf("%v: its descriptor %d is of mode %o", ev.Op, f.FD, f.Mode)
			}
		}
	}
	if seen[30][0].OK() {
		for id, want := range map[uint64]string{30: "value", 31: "second", 32: "value", 33: "second"} {
			if b := seen[id][0].BufArg(2); backend != "ebpf" && consumed(seen[id][0]) {
				continue
			} else if b == nil || string(b.Inline) != want {
				t.Errorf("%v: value %+v, want %q", seen[id][0].Op, b, want)
			}
		}
	}
}

// TestAIO looks at requests of Linux AIO as both back ends record them.
func TestAIO(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "gcc")
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		t.Run(backend, func(t *testing.T) {
			if backend == "ebpf" {
				testenv.NeedBPF(t)
			}
			e := newEnv(t, testenv.Iotape(t), "", nil)
			tape := e.recordSource(t, "aio", backend)
			e.perfect(t, filepath.Join(e.dir, "x.tape"))
			seen := map[uint64][]*event.Event{}
			for _, ev := range requests(t, tape) {
				id := head(t, ev).UserData
				seen[id] = append(seen[id], ev)
			}
			for id, want := range map[uint64]struct {
				op     event.Op
				ret    int64
				offset int64
			}{
				1: {event.OpAIOPwrite, 1 << 20, 0}, 2: {event.OpAIOPread, 70000, 5}, 3: {event.OpAIOPread, 10, 1<<20 - 10},
				4: {event.OpAIOFsync, 0, -1}, 5: {event.OpAIOFdsync, 0, -1}, 6: {event.OpAIOPwritev, 50100, 300000},
				7: {event.OpAIOPreadv, 50100, 1000}, 8: {event.OpAIOPread, 10, 0}, 400: {event.OpAIOPwrite, 4096, 0},
				401: {event.OpAIOPwrite, 4096, 4096}, // which nobody asked after
			} {
				if len(seen[id]) != 1 {
					t.Fatalf("%d requests %d", len(seen[id]), id)
				}
				ev := seen[id][0]
				if ev.Op != want.op || ev.Ret != want.ret || ev.Offset != want.offset || !ev.OK() {
					t.Errorf("request %d: %v = %d at %d, %v, want %+v", id, ev.Op, ev.Ret, ev.Offset, ev.Errno, want)
				}
				if want.ret > 0 {
					content(t, tape, ev)
				}
			}
			if len(seen[9]) != 0 {
				t.Error("a request that the kernel refused is recorded")
			}
			for i := range 256 { // submitted by one thread, reaped by another
				for _, ev := range seen[100+uint64(i)][:2] {
					data := content(t, tape, ev)
					if ev.TID != ev.PID || ev.Offset != int64(4096*(i*37%256)) ||
						!bytes.Equal(data, pattern(97*i, 4096)) {
						t.Fatalf("request %d: thread %d of %d, at %d, or its content", 100+i, ev.TID, ev.PID, ev.Offset)
					}
				}
			}
		})
	}
}

// TestFio records fio with its asynchronous engines, in rings that are far smaller than
// what is under way, and replays that.
func TestFio(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays fio")
	needUring(t)
	testenv.NeedProgram(t, "fio")
	// With SQPOLL the thread that makes the requests is held, and the rings have room for those under way.
	inProcess := backendsWithoutRights()[len(backendsWithoutRights())-1]
	uring := []string{"--ioengine=io_uring", "--direct=0", "--bs=16k", "--iodepth=16", "--size=4M"}
	for name, run := range map[string]struct{ record, fio []string }{
		"ptrace":      {[]string{"--backend", "ptrace"}, uring},
		"in process":  {[]string{"--backend", inProcess}, append(uring, "--fixedbufs=1", "--registerfiles=1", "--thread")},
		"libaio":      {nil, []string{"--ioengine=libaio", "--direct=1", "--bs=16k", "--iodepth=64"}},
		"small rings": {[]string{"--ring", "1M"}, []string{"--ioengine=io_uring", "--direct=0", "--bs=64k", "--iodepth=64"}},
		"sqpoll":      {[]string{"--ring", "8M"}, []string{"--ioengine=io_uring", "--direct=1", "--bs=64k", "--iodepth=32", "--sqthread_poll=1", "--fixedbufs=1", "--registerfiles=1"}},
		"two jobs":    {nil, []string{"--ioengine=io_uring", "--direct=0", "--bs=4k", "--iodepth=16", "--numjobs=2", "--hipri=0", "--nonvectored=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, testenv.Iotape(t), "", nil)
			work, tape := filepath.Join(e.dir, "work"), filepath.Join(e.dir, "x.tape")
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			// The last back end counts.
			args := append([]string{e.iotape, "record", "--backend", "ebpf", "-o", tape}, run.record...)
			args = append(append(args, "--", "fio", "--name=a", "--directory="+work, "--rw=randrw", "--size=16M",
				"--output=/dev/null"), run.fio...)
			e.run(t, args...)
			e.perfect(t, tape)
			stdout, stderr, err := e.try(t, e.iotape, "replay", tape, "--into", filepath.Join(e.dir, "again"),
				"--verify")
			if err != nil {
				t.Errorf("replay: %v\n%s%s", err, stdout, stderr)
			}
		})
	}
}

// printed returns the lines of iotape print for chosen requests to io_uring, without
// what differs from run to run.
func (e *env) printed(t *testing.T, want func(id uint64) bool) string {
	t.Helper()
	stdout, _ := e.run(t, e.iotape, "print", "x.tape")
	var out strings.Builder
	id := regexp.MustCompile(`\{ring=[0-9]+, user_data=(0x[0-9a-f]+)`)
	volatile := regexp.MustCompile(`^[0-9]+ [0-9.]+ | <[0-9.]+>$|` + regexp.QuoteMeta(e.dir))
	address := regexp.MustCompile(`0x[0-9a-f]{8,}`)
	statx := regexp.MustCompile(`stx_mask=.*?stx_mode`) // of the file system
	for line := range strings.Lines(stdout) {
		m := id.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if n, err := strconv.ParseUint(m[1], 0, 64); err != nil || !want(n) {
			continue
		}
		line = statx.ReplaceAllString(line, "stx_mode")
		line = volatile.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
		out.WriteString(address.ReplaceAllString(line, "ADDRESS") + "\n")
	}
	return out.String()
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("%s:%d: (go test -update writes it anew)\nwant %q\n got %q", file, i+1, at(w, i), at(g, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "end"
}
