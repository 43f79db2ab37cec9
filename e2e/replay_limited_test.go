// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// limits are targets that lack what a tape needs.
var limits = []struct {
	row
	fs  string // of the target
	mib int
	// problems and kinds are what the report is to say, once each: what the initial tree
	// could not have, and which calls differed how ("N call what: expected, got").
	problems, kinds []string
	first           string // of these, where --on-mismatch abort stops; "" before the first event
}{
	{
		row: row{name: "no extended attributes", needs: []string{"setfattr", "getfattr"},
			prep: `for i in {1..20}; do touch f$i; setfattr -n user.a -v 1 f$i; done`,
			run:  `getfattr -d f* >/dev/null; for i in {1..30}; do touch n$i; setfattr -n user.b -v 2 n$i; done`},
		fs:       "ramfs",
		problems: []string{`^xattr user: operation not supported \(".*/work/f1" and 19 more\)$`},
		kinds:    []string{"30 setxattr errno: 0, ENOTSUP", `\d+ getxattr errno: 0, ENOTSUP`},
	},
	{
		row: row{name: "no O_DIRECT", needs: []string{"dd"},
			run: `for i in 1 2 3; do dd if=/dev/zero of=f$i bs=4k count=5 oflag=direct status=none; done`},
		fs:    "ramfs",
		kinds: []string{"3 openat errno: 0, EINVAL"},
		first: "openat",
	},
	{
		row: row{name: "no space",
			run: `for i in {1..12}; do head -c 500000 /dev/urandom >f$i; done`},
		fs: "tmpfs", mib: 2,
		kinds: []string{`\d+ write errno: 0, ENOSPC`},
		first: "write",
	},
	{
		row: row{name: "no space for the initial tree",
			prep: `for i in {1..12}; do head -c 500000 /dev/urandom >f$i; done`,
			run:  `cat f* >/dev/null`},
		fs: "tmpfs", mib: 2,
		problems: []string{`^space: no space left on device \(".*/work/f\d+" and \d+ more\)$`},
		kinds:    []string{`\d+ read `},
	},
}

// TestReplayLimited replays into file systems that lack what the tape needs: each lack is
// said once, with how often it came up, and the replay goes on or stops as asked.
func TestReplayLimited(t *testing.T) {
	testenv.Short(t, "records programs, and mounts file systems")
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	for _, l := range limits {
		t.Run(l.name, func(t *testing.T) {
			testenv.NeedProgram(t, l.needs...)
			e := newEnv(t, iotape, "", nil)
			tape := filepath.Join(e.dir, "x.tape")
			l.record(t, e, tape)

			target := testenv.MountImage(t, l.fs, l.mib)
			v, stderr := e.replay(t, tape, "--into", filepath.Join(target, "on"), "--verify")
			if v == nil {
				t.Fatal(stderr)
			}
			if v.OK || v.Aborted || v.Events != events(t, e, tape) {
				t.Errorf("ok %v, aborted %v, %d events", v.OK, v.Aborted, v.Events)
			}
			once(t, "problems", v.Problems, l.problems)
			var kinds []string
			for _, k := range v.Kinds {
				kinds = append(kinds, fmt.Sprintf("%d %s %s: %s, %s", k.Count, k.Op, k.Field, k.Expected, k.Got))
			}
			once(t, "kinds", kinds, l.kinds)
			if n := sum(v); n+v.Following != v.Different {
				t.Errorf("the kinds are of %d results, and %d follow; %d differ", n, v.Following, v.Different)
			}

			// Without room for a second one.
			if err := os.RemoveAll(filepath.Join(target, "on")); err != nil {
				t.Fatal(err)
			}
			v, stderr = e.replay(t, tape, "--into", filepath.Join(target, "abort"), "--verify", "--on-mismatch",
				"abort")
			switch {
			case v == nil:
				t.Fatal(stderr)
			case !v.Aborted || v.OK || len(v.Tree) > 0:
				t.Errorf("aborted %v, ok %v, %d paths compared", v.Aborted, v.OK, len(v.Tree))
			case l.first == "" && (v.Events > 0 || len(v.Problems) == 0):
				t.Errorf("%d events, problems %q", v.Events, v.Problems)
			case l.first != "" && (len(v.Mismatches) == 0 || v.Mismatches[0].Op != l.first):
				t.Errorf("stopped at %+v, want %s", v.Mismatches, l.first)
			}
		})
	}
}

// once holds that each pattern is that of exactly one line.
func once(t *testing.T, what string, lines, patterns []string) {
	t.Helper()
	for _, p := range patterns {
		n := 0
		for _, l := range lines {
			if regexp.MustCompile(p).MatchString(l) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d lines match %q:\n%s", what, n, p, strings.Join(lines, "\n"))
		}
	}
	if len(patterns) == 0 && len(lines) > 0 {
		t.Errorf("%s: %q", what, lines)
	}
}

func sum(v *verdict) (n uint64) {
	for _, k := range v.Kinds {
		n += k.Count
	}
	return n
}

func events(t *testing.T, e *env, tape string) uint64 {
	t.Helper()
	tp, err := trace.Open(tape)
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	return tp.Manifest().Counts.Events
}

// TestReplayLongNames replays a tape, made by hand, of a file system that has longer
// names than this one.
func TestReplayLongNames(t *testing.T) {
	t.Parallel()
	iotape := testenv.Iotape(t)
	e := newEnv(t, iotape, "", nil)
	tape := filepath.Join(e.dir, "x.tape")
	w, err := trace.CreateTape(tape)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 300)
	at := int64(event.AtFDCWD)
	call := func(op event.Op, path string, errno syscall.Errno, args ...uint64) {
		ev := event.Event{Op: op, PID: 1, TID: 1, Offset: -1, Count: -1, Errno: errno,
			Paths: []event.Path{{Arg: 1, Raw: path}}}
		copy(ev.Args[:], append([]uint64{uint64(at), 0x1000}, args...))
		if errno != 0 {
			ev.Ret = -1
		}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		call(event.OpUnlinkat, fmt.Sprintf("/there/%s%d", long, i), 0) // was there before
		call(event.OpMkdirat, fmt.Sprintf("/made%d%s", i, long), 0, 0o755)
	}
	if err := w.Close(&trace.Manifest{Program: "test",
		Hosts: []trace.Host{{Head: trace.Head{Host: "h", Arch: "amd64"}}}}); err != nil {
		t.Fatal(err)
	}
	v, stderr := e.replay(t, tape, "--into", filepath.Join(e.dir, "again"), "--verify")
	if v == nil {
		t.Fatal(stderr)
	}
	once(t, "problems", v.Problems, []string{`^name of this length: file name too long \("there/n+"… and 2 more\)$`})
	if len(v.Kinds) != 2 || v.Kinds[0].Count != 3 || v.Kinds[1].Count != 3 || v.Kinds[1].Got != "ENAMETOOLONG" || v.OK {
		t.Errorf("%+v", v)
	}
}
