// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// imported seals what readFile makes of a file.
func imported(t testing.TB, path string) (*trace.Tape, *format.Done) {
	t.Helper()
	return formattest.One(t, &Format, path)
}

func importedText(t testing.TB, text string) *trace.Tape {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tape, _ := imported(t, path)
	return tape
}

// told are the calls of testdata/p.c itself, which do not depend on addresses.
var told = []string{"mkdir", "openat", "write", "writev", "lseek", "read", "rename", "pipe2", "poll", "socket",
	"sendto", "socketpair", "sendmsg", "recvfrom", "unlink", "wait4",
	"pwrite64", "ftruncate", "close", "exit", "exit_group"}

// describe returns what a tape says of these calls: results, paths, and the first bytes
// of content, by who made them.
func describe(t *testing.T, tape *trace.Tape, limit int) []string {
	t.Helper()
	var lines []string
	first := uint32(0)
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = ev.PID
		}
		who := "1 main"
		if ev.TID != ev.PID {
			who = "2 thread"
		} else if ev.PID != first {
			who = "3 child"
		}
		if ev.Kind == event.Exited {
			lines = append(lines, fmt.Sprintf("%s exited: %#x", who, ev.Ret))
		}
		if ev.Kind != event.Call || !slices.Contains(told, ev.Spec().Name) {
			continue
		}
		ret := fmt.Sprint(ev.Ret)
		if ev.Errno != 0 {
			ret = event.ErrnoName(ev.Errno)
		} else if ev.Op == event.OpWait4 {
			ret = "child"
		}
		line := fmt.Sprintf("%s %s = %s", who, ev.Spec().Name, ret)
		for i := range ev.Paths {
			line += fmt.Sprintf(" path %q", ev.Paths[i].Raw)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			data, _, err := tape.ContentZero(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ev.Spec().IsContent(int(b.Arg)) {
				data = data[:min(len(data), limit)]
			}
			if ev.Op == event.OpSendmsg && b.Arg == 1 {
				data = data[48:] // pointers are 1
			}
			if ev.Op == event.OpSendto && b.Arg == 4 {
				data = data[:8]
			}
			line += fmt.Sprintf(" %d:%d%v%q", b.Arg, b.Len, b.Parts, data)
		}
		for i := range ev.Files {
			if f := &ev.Files[i]; f.Arg == event.MemoryArg {
				line += fmt.Sprintf(" fd %d", f.FD)
			}
		}
		lines = append(lines, line)
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	return lines
}

// TestVariants imports what strace 6.1 wrote of one program with many options: all say
// the same.
func TestVariants(t *testing.T) {
	names, err := filepath.Glob("testdata/*.strace")
	if err != nil || len(names) < 7 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tape, done := imported(t, name)
			limit := 1 << 20
			if strings.Contains(name, "seconds") { // -s 5
				limit = 5
			}
			got := strings.Join(describe(t, tape, limit), "\n") + "\n"
			golden := "testdata/all.golden"
			if limit == 5 {
				golden = "testdata/short.golden"
			}
			compareGolden(t, golden, got)
			for what, n := range done.Left {
				if what != stops && what != inventedDirectory && !strings.HasPrefix(what, "of ") {
					t.Errorf("left out: %d %s", n, what)
				}
			}
		})
	}
}

func compareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOneFileOfMany: strace -ff writes a file for each process, whose number is in the
// name.
func TestOneFileOfMany(t *testing.T) {
	names, _ := filepath.Glob("testdata/alone.*")
	if len(names) != 1 {
		t.Fatal(names)
	}
	tape, _ := imported(t, names[0])
	pid := strings.TrimPrefix(filepath.Ext(names[0]), ".")
	calls := 0
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call && fmt.Sprint(ev.PID) != pid {
			t.Errorf("%s: process %d", ev.Spec().Name, ev.PID)
		}
		calls++
	}
	if calls < 40 {
		t.Errorf("%d events", calls)
	}
}

// TestOld imports what versions before 5 write otherwise.
func TestOld(t *testing.T) {
	defer func(was *time.Location) { time.Local = was }(time.Local)
	time.Local = time.UTC
	tape, done := imported(t, "testdata/old/4.5.strace")
	var text bytes.Buffer
	if _, err := writeFile(context.Background(), &text, tape, &format.Options{}); err != nil {
		t.Fatal(err)
	}
	for what, n := range done.Left {
		fmt.Fprintf(&text, "left out: %d %s\n", n, what)
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	at := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "left out") })
	slices.Sort(lines[at:])
	compareGolden(t, "testdata/old/4.5.golden", strings.Join(lines, "\n")+"\n")
}

// TestTimes: what stands in front of lines orders the calls.
func TestTimes(t *testing.T) {
	for _, tc := range []struct {
		name, text   string
		enter, exit0 []int64 // ns since the first line
		untimed      []bool  // how long the call took is not known; nil: of none
	}{
		{"none", "getpid() = 1\ngetuid() = 2\n", []int64{0, 1000}, []int64{0, 1000}, []bool{true, true}},
		{"-ttt -T", "1700000000.000001 getpid() = 1 <0.000002>\n1700000000.000009 getuid() = 2 <0.000001>\n", []int64{0, 8000}, []int64{2000, 9000}, nil},
		{"-ttt in ns", "1700000000.000000001 getpid() = 1 <0.000000002>\n1700000000.000000009 getuid() = 2\n", []int64{0, 8}, []int64{2, 8}, []bool{false, true}},
		{"-tt over midnight", "23:59:59.999999 getpid() = 1\n00:00:00.000001 getuid() = 2\n", []int64{0, 2000}, []int64{0, 2000}, []bool{true, true}},
		{"-t", "10:00:00 getpid() = 1\n10:00:00 getuid() = 2\n10:00:02 getuid() = 2\n", []int64{0, 1000, 2e9}, []int64{0, 1000, 2e9}, []bool{true, true, true}},
		{"-r", "     0.000000 getpid() = 1\n     0.000030 getuid() = 2\n     0.000010 getuid() = 2\n", []int64{0, 30000, 40000}, []int64{0, 30000, 40000}, []bool{true, true, true}},
		{"-r in whole seconds", "12         0 getpid() = 1\n12         0 getuid() = 2\n12         2 getuid() = 2\n",
			[]int64{0, 1000, 1000 + 2e9}, []int64{0, 1000, 1000 + 2e9}, []bool{true, true, true}},
		{"-r in whole seconds, one process", "      0 getpid() = 1\n      1 getuid() = 2\n",
			[]int64{0, 1e9}, []int64{0, 1e9}, []bool{true, true}},
		{"in ms", "1 10:00:00.001 getpid() = 1 <0.000500>\n2 10:00:00.001 getuid() = 2 <0.000001>\n1 10:00:00.002 getuid() = 2\n",
			[]int64{0, 501000, 1e6}, []int64{500000, 502000, 1e6}, []bool{false, false, true}},
		{"-r -t", "10:00:00 (+     0.000000) getpid() = 1\n10:00:01 (+     0.000030) getuid() = 2\n", []int64{0, 1e9}, []int64{0, 1e9}, []bool{true, true}},
		{"-t -T", "1 10:00:00 getpid() = 1 <0.000500>\n2 10:00:00 getuid() = 2 <0.000001>\n", []int64{0, 501000}, []int64{500000, 502000}, nil},
		{"unfinished without times", "1 read(0,  <unfinished ...>\n1 <... read resumed>\"\", 5) = 0\n", []int64{0}, []int64{1000},
			[]bool{true}},
		{"killed", "1700000000.000001 read(0,  <unfinished ...>) = ?\n", []int64{0}, []int64{0}, nil},
		{"-T of 0", "getpid() = 1 <0.000000>\n", []int64{0}, []int64{0}, nil},
		{"unfinished", "1 1700000000.000001 read(0,  <unfinished ...>\n1 1700000000.000005 <... read resumed>\"\", 5) = 0\n", []int64{0}, []int64{4000}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tape := importedText(t, tc.text)
			first, n := int64(0), 0
			for ev, err := range tape.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Kind != event.Call { // what was open before
					continue
				}
				if n == 0 {
					first = ev.Enter
				}
				if n >= len(tc.enter) || ev.Enter-first != tc.enter[n] || ev.Exit-first != tc.exit0[n] {
					t.Errorf("call %d: from %d to %d, want %v %v", n, ev.Enter-first, ev.Exit-first, tc.enter, tc.exit0)
				}
				if got, want := ev.Flags&event.Untimed != 0, n < len(tc.untimed) && tc.untimed[n]; got != want {
					t.Errorf("call %d: untimed is %v, want %v", n, got, want)
				}
				n++
			}
			if n != len(tc.enter) {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"12 execve(\"/bin/sh\", [\"sh\"], 0x1 /* 3 vars */) = 0\n", true},
		{"12 1700000000.000001 openat(AT_FDCWD, \"a\", O_RDONLY <unfinished ...>\n13 +++ exited with 0 +++\n", true},
		{"[pid 12] 10:00:00 read(3, \"\", 1) = 0\n", true},
		{"1 12:00:00.5 read(3, \"" + strings.Repeat("x", 1000), true}, // only the beginning of a line
		{"", false},
		{"read(2) is a system call\nwrite(2) is another\n", false},
		{"int main(void) { return open(\"x\", 0); }\n", false},
		{"\x00\x01read(3) = 0\n", false},
		{"one\ntwo\nthree\nread(3, \"\", 1) = 0\n", false},
	} {
		if got := match([]byte(tc.text)); got != tc.want {
			t.Errorf("match(%.60q) = %v", tc.text, got)
		}
	}
}

// TestLongLine: a line of any length is skipped and counted.
func TestLongLine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer w.Close()
		fmt.Fprint(w, "1 getpid() = 1\n1 write(1, \"")
		part := bytes.Repeat([]byte("x"), 1<<20)
		for range maxLine>>20 + 2 {
			w.Write(part)
		}
		fmt.Fprint(w, "\", 5) = 5\n1 getuid() = 0\n")
	}()
	im := format.NewImport(t.TempDir(), "test")
	host, err := im.Host("")
	if err != nil {
		t.Fatal(err)
	}
	if err := Import(r, 0, host, &im.Done); err != nil {
		t.Fatal(err)
	}
	if im.Records != 2 || im.Left[tooLong] != 1 {
		t.Errorf("%+v", im.Done)
	}
}

// TestSignals imports signals, and says of each what a trace says.
func TestSignals(t *testing.T) {
	lines := []string{
		`--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=17, si_uid=1000} ---`,
		`--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0xdead000} ---`,
		`--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=18, si_uid=0, si_status=3, si_utime=1, si_stime=2} ---`,
		`--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=18, si_uid=0, si_status=SIGKILL, si_utime=0, si_stime=0} ---`,
		`--- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---`,
		`--- SIGRT_2 {si_signo=SIGRT_2, si_code=SI_QUEUE, si_pid=17, si_uid=1000, si_int=7, si_ptr=0x7} ---`,
		`--- SIGHUP (Hangup) ---`,
	}
	want := slices.Clone(lines)
	want[len(want)-1] = "--- SIGHUP ---"
	text := "17 1.0 getpid() = 17\n"
	for _, l := range lines {
		text += "17 1.1 " + l + "\n"
	}
	name := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, _ := imported(t, name)
	p := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock})
	var got []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Signalled {
			got = append(got, strings.TrimSpace(strings.TrimPrefix(string(p.Append(nil, ev)), "17 ")))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
}

// TestAttached reads what strace -p -f writes to the standard error: messages of strace in the middle of calls, calls
// that were in progress when it began and when it ended, and threads of which no call says who made them.
func TestAttached(t *testing.T) {
	const text = `strace: Process 100 attached with 2 threads
[pid   101] 1780434841.000001 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
[pid   100] 1780434841.000002 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>
[pid   100] 1780434841.000003 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLDstrace: Process 102 attached
, child_tidptr=0x7f) = 102 <0.00010>
[pid   102] 1780434841.000500 read(3,  <unfinished ...>
[pid   100] 1780434841.000600 wait4(-1, strace: Process 103 attached
 <unfinished ...>
[pid   102] 1780434841.000700 <... read resumed>"abc", 100) = 3 <0.0002>
[pid   102] 1780434841.000900 +++ exited with 0 +++
[pid   100] 1780434841.001000 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 102 <0.0004>
[pid   101] 1780434841.001300 <... futex resumed>) = 0
[pid   101] 1780434841.001400 close(3) = 0
[pid   100] 1780434841.002200 pread64(4, strace: Process 100 detached
 <detached ...>
[pid   101] 1780434841.001400 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL <detached ...>
strace: Process 101 detached
`
	if !Format.Match([]byte(text)) {
		t.Error("not recognised")
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tape, done := imported(t, path)
	var got []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call {
			end := fmt.Sprint(ev.Ret)
			if ev.Flags&event.Interrupted != 0 {
				end = "?"
			}
			got = append(got, fmt.Sprintf("%d/%d %s = %s", ev.PID, ev.TID, ev.Spec().Name, end))
		}
	}
	want := []string{"100/100 openat = 3", "100/100 clone = 102", "102/102 read = 3", "100/100 wait4 = 102",
		"100/101 futex = 0", "100/101 close = 0", "100/101 futex = ?", "100/100 pread64 = ?"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if done.Left[notUnderstood] != 0 {
		t.Errorf("left out: %v", done.Left)
	}
}
