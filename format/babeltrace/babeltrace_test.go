// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/internal/testenv"
)

// variants are ways to print the sample, with the time of its first event.
var variants = []struct {
	name  string
	args  []string
	first int64
}{
	{"default", []string{"--clock-gmt"}, (22*3600+13*60+20)*1e9 + 2000},
	{"seconds", []string{"--clock-seconds"}, 1_700_000_000_000_002_000},
	{"date", []string{"--clock-date", "--clock-gmt"}, 1_700_000_000_000_002_000},
	{"cycles", []string{"--clock-cycles", "--no-delta"}, 2000},
	{"all", []string{"--names=all", "--fields=all", "--clock-date", "--clock-gmt"}, 1_700_000_000_000_002_000},
	{"scopes", []string{"--names=scope,payload,context", "--clock-seconds"}, 1_700_000_000_000_002_000},
}

// TestRealBabeltrace prints a trace with the real program: the samples are what it
// prints.
func TestRealBabeltrace(t *testing.T) {
	testenv.NeedProgram(t, "babeltrace2")
	dir := t.TempDir()
	writeCTF(t, dir, true, sample)
	for _, v := range variants {
		out, err := exec.Command("babeltrace2", append(v.args, dir)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		compare(t, v.name+".txt", out)
	}
	writeCTF(t, dir, false, scheduled())
	out, err := exec.Command("babeltrace2", "--clock-seconds", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "switch.txt", out)
}

// scheduled is the sample without contexts, but with who runs.
func scheduled() (list []ctfEvent) {
	running := 0
	for _, e := range sample {
		if e.tid != running {
			list = append(list, ctfEvent{time: e.time, name: "sched_switch",
				values: []any{"x", running, e.comm, e.tid}})
			running = e.tid
		}
		list = append(list, e)
	}
	return list
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s: %s", name, d)
	}
}

// leftOut is what cannot be expressed of the sample: a call without a number.
var leftOut = map[string]uint64{"unknown": 1}

func TestImport(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			path := filepath.Join("testdata", v.name+".txt")
			head, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !Format.Match(head) {
				t.Error("it is not recognised")
			}
			tape, done := formattest.One(t, &Format, path)
			if d := cmp.Diff(leftOut, done.Left); d != "" {
				t.Error(d)
			}
			compare(t, "calls.golden", []byte(strings.Join(formattest.Describe(t, tape), "\n")+"\n"))
			for ev, err := range tape.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Spec().Name == "pipe2" && ev.Enter != v.first {
					t.Errorf("the first call is at %d, want %d", ev.Enter, v.first)
				}
			}
		})
	}
}

// TestWhoRuns: without contexts, the scheduler's events say who made a call.
func TestWhoRuns(t *testing.T) {
	tape, done := formattest.One(t, &Format, "testdata/switch.txt")
	if d := cmp.Diff(leftOut, done.Left); d != "" {
		t.Error(d)
	}
	want, err := os.ReadFile("testdata/calls.golden")
	if err != nil {
		t.Fatal(err)
	}
	// Other threads of the process, which is not said, may move positions.
	got := strings.Join(formattest.Describe(t, tape), "\n") + "\n"
	if d := cmp.Diff(strings.ReplaceAll(string(want), " @0 ", " "), got); d != "" {
		t.Error(d)
	}
}

func TestBadLines(t *testing.T) {
	good := `[10:00:00.000000001] (+0.1) h syscall_entry_close: { cpu_id = 0 }, { vpid = 1, vtid = 1 }, { fd = 3 }` +
		"\n"
	for _, c := range []struct{ name, text, left string }{
		{"nothing", "", ""},
		{"no fields", "[10:00:00.1] h x\n", "lines that are not understood"},
		{"open string", `[10:00:00.1] h x: { a = "` + "\n", "lines that are not understood"},
		{"deep", "[10:00:00.1] h x: " + strings.Repeat("{ a = ", 100) + "\n", "lines that are not understood"},
		{"long", "[10:00:00.1] h x: { a = \"" + strings.Repeat("x", maxLine) + "\" }\n", "lines longer than 1048576 bytes"},
		{"other event", "[10:00:00.1] h irq: { cpu_id = 0 }, { a = 1 }\n", "irq events"},
		{"return alone", "[10:00:00.1] h syscall_exit_read: { cpu_id = 0 }, { vtid = 9 }, { ret = 1 }\n", "returns without their calls"},
		{"no names", "[10:00:00.1] h syscall_entry_read: { 7 }, { 1, 1, \"x\" }, { 1 }\n",
			"events whose fields have no names; babeltrace2 prints them unless --names=none is given"},
		{"nobody", "[10:00:00.1] h syscall_entry_read: { cpu_id = 7 }, { fd = 1 }\n", "threads of calls; LTTng's contexts tid, pid and procname say who made them"},
	} {
		im := format.NewImport(t.TempDir(), "test")
		if err := Import(t.Context(), strings.NewReader(good+c.text+good), im); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := im.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.left != "" && im.Left[c.left] != 1 || c.left == "" && len(im.Left) > 0 {
			t.Errorf("%s: left out %v, want %q", c.name, im.Left, c.left)
		}
	}
	err := Import(t.Context(), strings.NewReader("\n[x] nothing\n"), format.NewImport(t.TempDir(), "test"))
	if err == nil || err.Error() != "line 2: no fields" {
		t.Errorf("error is %v", err)
	}
}

func TestMidnight(t *testing.T) {
	text := `[23:59:59.999999999] (+?.?????????) h syscall_entry_close: { cpu_id = 0 }, { vpid = 1, vtid = 1 }, { fd = 3 }
[00:00:00.000000001] (+0.000000002) h syscall_exit_close: { cpu_id = 0 }, { vpid = 1, vtid = 1 }, { ret = 0 }
`
	tape, _ := formattest.Tape(t, func(im *format.Import) error {
		return Import(context.Background(),
			strings.NewReader(text), im)
	})
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if d := ev.Exit - ev.Enter; d != 2 {
			t.Errorf("the call took %d ns, want 2", d)
		}
	}
}

// TestHosts: each host has a stream of its own, and its own threads.
func TestHosts(t *testing.T) {
	const line = "[10:00:00.00000000%d] (+0.1) %s syscall_%s_close: { cpu_id = 0 }, { vpid = 1, vtid = 1 }, { %s }\n"
	text := fmt.Sprintf(line, 1, "a", "entry", "fd = 3") + fmt.Sprintf(line, 2, "b", "entry", "fd = 4") +
		fmt.Sprintf(line, 3, "a", "exit", "ret = 0") + fmt.Sprintf(line, 4, "b", "exit", "ret = 0")
	im := format.NewImport(t.TempDir(), "test")
	if err := Import(t.Context(), strings.NewReader(text), im); err != nil {
		t.Fatal(err)
	}
	streams, err := im.Close()
	if err != nil || len(streams) != 2 || len(im.Left) > 0 {
		t.Errorf("%d streams, left out %v, %v", len(streams), im.Left, err)
	}
}

func FuzzImport(f *testing.F) {
	for _, v := range variants {
		text, err := os.ReadFile(filepath.Join("testdata", v.name+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		im := format.NewImport(t.TempDir(), "test")
		err := Import(context.Background(), bytes.NewReader(text), im)
		if _, closeErr := im.Close(); err == nil && closeErr != nil {
			t.Error(closeErr)
		}
	})
}

// TestOldNames reads the events of LTTng before 2.6, whose returns do not say of which call they are.
func TestOldNames(t *testing.T) {
	const text = `[10:15:01.100000000] (+?.?????????) h sys_open: { cpu_id = 1 }, ` +
		`{ tid = 7, pid = 7, procname = "cat" }, ` +
		`{ filename = "/etc/hosts", flags = 0, mode = 438 }
[10:15:01.100000010] (+0.000000010) h exit_syscall: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { ret = 3 }
[10:15:01.100000020] (+0.000000010) h sys_unknown: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { id = 999 }
[10:15:01.100000030] (+0.000000010) h exit_syscall: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { ret = -38 }
[10:15:01.100000040] (+0.000000010) h sys_read: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { fd = 3, count = 9 }
[10:15:01.100000050] (+0.000000010) h exit_syscall: { cpu_id = 2 }, { tid = 8, pid = 8, procname = "cat" }, { ret = 0 }
[10:15:01.100000060] (+0.000000010) h exit_syscall: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { ret = 5 }
[10:15:01.100000070] (+0.000000010) h exit_syscall: { cpu_id = 1 }, { tid = 7, pid = 7, procname = "cat" }, { ret = 5 }
`
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, done := formattest.One(t, &Format, path)
	const want = "7/7 cat open -1:fd3=/etc/hosts 0:\"/etc/hosts\"=/etc/hosts = 3\n" +
		"7/7 cat read 0:fd3=/etc/hosts 1:5 @0 = 5"
	if got := strings.Join(formattest.Describe(t, tape), "\n"); got != want {
		t.Errorf("read as\n%s\nwant\n%s", got, want)
	}
	if done.Left["unknown"] != 1 || done.Left["returns without their calls"] != 1 || len(done.Left) != 2 {
		t.Errorf("left out %v, want an unknown call and a return without its call", done.Left)
	}
}
