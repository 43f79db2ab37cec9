// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// script makes a tape of lines, each a call of a thread:
//
//	TID exec ARGV…      TID fork CHILD      TID exit STATUS
//	TID open PATH       TID temp PATH       TID missing PATH
//	TID read PATH BYTES DATA                TID pipe BYTES
//	TID op NUMBER
func script(t *testing.T, base uint32, lines string) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	now := int64(base) * 1000
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var tid, n uint32
		fmt.Sscan(words[0], &tid)
		arg := func(i int) string {
			if i < len(words) {
				return words[i]
			}
			return ""
		}
		fmt.Sscan(arg(2), &n)
		now += 10
		ev := event.Event{PID: tid + base, TID: tid + base, Enter: now, Exit: now + int64(base%7),
			Offset: -1, Count: -1}
		file := func(at int8, p string, mode uint32) {
			ev.Files = append(ev.Files, event.File{Arg: at, FD: int32(base%5) + 3, Open: 1, Known: true,
				Mode: mode, Ino: uint64(base), Path: p})
		}
		path := func(at int8, p string) { ev.Paths = append(ev.Paths, event.Path{Arg: at, Raw: p, Abs: p}) }
		switch words[1] {
		case "exec":
			ev.Op, ev.Args = event.OpExecve, [6]uint64{uint64(base), uint64(base)}
			path(0, "/bin/"+arg(2))
			argv := strings.Join(words[2:], "\x00")
			ev.Bufs = []event.Buf{{Arg: 1, Kind: event.KindStrings, Len: int64(len(argv)), Inline: []byte(argv)}}
		case "fork":
			ev.Kind, ev.Child, ev.Ret = event.Forked, n+base, int64(n+base)
		case "exit":
			ev.Kind, ev.Ret = event.Exited, int64(n)<<8
		case "open", "temp", "missing":
			ev.Op, ev.Args = event.OpOpenat, [6]uint64{1<<64 - 100, uint64(base)}
			path(1, arg(2))
			switch words[1] {
			case "missing":
				ev.Ret, ev.Errno = -1, syscall.ENOENT
			case "temp":
				ev.Args[2] = 0o302
				fallthrough
			default:
				file(event.ResultArg, arg(2), 0o100644)
			}
		case "read":
			fmt.Sscan(arg(3), &n)
			ev.Op, ev.Args, ev.Ret = event.OpRead, [6]uint64{uint64(base%5) + 3, uint64(base), 4096}, int64(n)
			file(0, arg(2), 0o100644)
			ev.Bufs = []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: int64(n),
				Inline: []byte(arg(4)), Omitted: true}}
		case "pipe":
			ev.Op, ev.Args, ev.Ret = event.OpRead, [6]uint64{uint64(base%5) + 3, uint64(base), 4096}, int64(n)
			file(0, fmt.Sprintf("pipe:[%d]", base), 0o010600)
		}
		if words[1] == "op" {
			ev.Op = event.Op(n)
		}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Hosts: []trace.Host{{Head: trace.Head{Arch: "amd64",
		Dir: fmt.Sprintf("/home/%d", base)}}}}); err != nil {
		t.Fatal(err)
	}
	tp, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

// compared writes what differs: threads, and the lines of their hunks.
func compared(t *testing.T, a, b *trace.Tape, o *Options) (*Report, string) {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	o.Render = func(_ *trace.Tape, ev *event.Event) string {
		if ev.Kind == event.Exited {
			return fmt.Sprintf("exit %d", ev.Ret>>8)
		}
		return strings.TrimSpace(ev.Op.String() + " " + ev.Name())
	}
	r, err := Tapes(context.Background(), a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, th := range r.Threads {
		if th.Removed+th.Added == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s -%d +%d", th.Command, th.Removed, th.Added))
		for _, h := range th.Hunks {
			lines = append(lines, fmt.Sprintf("@@ -%d,%d +%d,%d", h.StartA, h.CallsA, h.StartB, h.CallsB))
			for _, l := range h.Lines {
				lines = append(lines, l.What+l.Text)
			}
		}
	}
	return r, strings.Join(lines, "\n")
}

const program = `
1 exec make all
1 open /etc/conf
1 fork 2
2 exec cc a.c
2 temp /tmp/%s
2 read /tmp/%s 10
2 exit 0
1 fork 3
3 exec cc b.c
3 pipe %s
3 exit 0
1 open /home/%d/out
1 exit 0
`

// Two runs of a program are the same, whatever the numbers of their processes, the names
// of their temporary files and the pieces that a pipe's bytes came in.
func TestRuns(t *testing.T) {
	a := script(t, 100, fmt.Sprintf(program, "ccAb12Xy.o", "ccAb12Xy.o", "100", 100))
	b := script(t, 2000, fmt.Sprintf(program, "ccQr9stU.o", "ccQr9stU.o", "60\n3 pipe 40", 2000))
	r, diff := compared(t, a, b, nil)
	if !r.Same() || r.First != nil || diff != "" || len(r.OnlyA)+len(r.OnlyB) > 0 {
		t.Errorf("%+v\n%s", r, diff)
	}
	if len(r.Threads) != 3 {
		t.Errorf("%d threads matched", len(r.Threads))
	}
}

// What differs is found in the thread where it is, also if processes came or went.
func TestChanges(t *testing.T) {
	a := script(t, 100, `
1 exec make all
1 fork 2
2 exec cc a.c
2 read /src 10
2 read /src 20
2 read /src 30
2 read /src 40
2 exit 0
1 fork 3
3 exec cc b.c
3 exit 0
1 exit 0`)
	b := script(t, 300, `
1 exec make all
1 fork 9
9 exec cc new.c
9 missing /nowhere
9 exit 1
1 fork 2
2 exec cc a.c
2 read /src 10
2 read /src 20
2 read /src 31
2 open /new
2 read /src 40
2 exit 0
1 fork 3
3 exec cc b.c
3 exit 0
1 exit 0`)
	r, diff := compared(t, a, b, &Options{Context: 1})
	want := `cc new.c -0 +3
@@ -1,0 +1,3
+execve /bin/cc
+openat /nowhere
+exit 1
cc a.c -1 +2
@@ -3,3 +3,4
 read /src
-read /src
+read /src
+openat /new
 read /src`
	if diff != want {
		t.Errorf("got\n%s\nwant\n%s", diff, want)
	}
	if len(r.OnlyA) != 0 || len(r.OnlyB) != 1 || r.OnlyB[0] != "/new" {
		t.Errorf("files only in A %q, in B %q", r.OnlyA, r.OnlyB)
	}
	if p := r.First; p == nil || p.Command != "cc a.c" || *p.SeqA != 5 || *p.SeqB != 9 {
		t.Errorf("first: %+v", p)
	}
	for _, o := range r.Ops {
		if o.Op == "openat" && (o.A.Count != 0 || o.B.Count != 2 || o.B.Errors != 1) {
			t.Errorf("%+v", o)
		}
	}
	if r, diff := compared(t, a, b, &Options{MaxCalls: 3}); r.Hidden != 3 || strings.Contains(diff, "/src") {
		t.Errorf("hidden %d:\n%s", r.Hidden, diff)
	}
	if r, diff := compared(t, a, a, nil); !r.Same() {
		t.Error("a tape differs from itself:", diff)
	}
}

// The bytes count if they are asked for.
func TestContent(t *testing.T) {
	a, b := script(t, 100, "1 read /f 4 same"), script(t, 100, "1 read /f 4 else")
	if r, _ := compared(t, a, b, nil); !r.Same() {
		t.Error("bytes count")
	}
	if r, _ := compared(t, a, b, &Options{Content: true}); r.Same() {
		t.Error("bytes do not count")
	}
	if r, _ := compared(t, a, b, &Options{Content: true, Classes: []event.Class{event.Sync}}); !r.Same() {
		t.Error("a class that is not compared counts")
	}
}

func TestWithoutRandom(t *testing.T) {
	for name, want := range map[string]string{
		"ccAb12Xy.o": "ccXXXXXX.o", "tmp.AqBqzELCo9": "tmp.XXXXXX", "tmp_obj_Ab3dEf": "tmp_obj_XXXXXX",
		"index.lock": "index.lock", "Makefile": "Makefile", "configure": "configure", "a.out": "a.out", "x": "x", "": "",
	} {
		if got := withoutRandom(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestRequests compares tapes with requests to io_uring, whose operations have numbers of their own, and with an
// operation that is in no table.
func TestRequests(t *testing.T) {
	calls := fmt.Sprintf("1 op %d\n1 op 65535\n", event.OpUringWrite)
	a, b := script(t, 0, calls), script(t, 100, calls+calls)
	r, err := Tapes(t.Context(), a, b, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]uint64{}
	for _, op := range r.Ops {
		got[op.Op] = [2]uint64{op.A.Count, op.B.Count}
	}
	want := map[string][2]uint64{"uring_write": {1, 2}, event.OpUnknown.String(): {1, 2}}
	if !maps.Equal(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
}
