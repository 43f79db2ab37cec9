// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// TestShortProcesses records many processes, made in all ways.
func TestShortProcesses(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	rec := record(t, &capture.Options{Command: []string{program(t, "spawn"), strconv.Itoa(n)}}).succeeded(t)
	if got := counts(t, rec.output)["made"]; got != n {
		t.Fatalf("output %q", rec.output)
	}
	if got := len(rec.ofType(trace.RecFork)); got != n {
		t.Errorf("%d processes recorded, want %d", got, n)
	}
	if got := len(rec.ofType(trace.RecExit)); got != n+1 {
		t.Errorf("%d ends recorded, want %d", got, n+1)
	}
	got := map[string]int{}
	for _, r := range on(rec.calls(event.OpWrite), 10, true) {
		got[string(content(r, 1))]++
	}
	for _, how := range strings.Split("vscf", "") {
		if got[how] != n/4 {
			t.Errorf("%d writes of processes made by %q recorded, want %d", got[how], how, n/4)
		}
	}
}

// TestBirths records processes from their first call on: signals come before it, and there are more of them than an
// arena has slots.
func TestBirths(t *testing.T) {
	for how, n := range map[string]int{"signals": 100, "many": arenaSlots + 20} {
		t.Run(how, func(t *testing.T) { births(t, how, n) })
	}
}

// births records the program of that name, and compares its writes with the file.
func births(t *testing.T, how string, n int) *recording {
	t.Helper()
	file := filepath.Join(t.TempDir(), "written")
	command := []string{program(t, "births"), how, strconv.Itoa(n), file}
	rec := record(t, &capture.Options{Command: command}).succeeded(t)
	if rec.output != "bad 0\n" {
		t.Errorf("the program says %q, want %q", rec.output, "bad 0\n")
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := joined(on(rec.calls(event.OpWrite), 10, true))
	for _, c := range []string{"s", "w"} {
		if a, b := bytes.Count(got, []byte(c)), bytes.Count(want, []byte(c)); a != b {
			t.Errorf("%d writes of %q recorded, want %d", a, c, b)
		}
	}
	t.Logf("%d bytes, of them %d of the handler", len(want), bytes.Count(want, []byte("s")))
	return rec
}

// TestDispatchRefused records where a filter of the surroundings refuses what makes calls stop: always, to programs,
// or to what they make. It runs itself under that filter.
func TestDispatchRefused(t *testing.T) {
	const variable = "IOTAPE_TEST_REFUSED"
	if how := os.Getenv(variable); how == "probe" {
		want := &capture.UnsupportedError{
			Backend: name, Feature: "Syscall User Dispatch (Linux 5.11)", Reason: unix.EPERM,
		}
		if _, err := (Backend{}).Run(t.Context(), &capture.Options{Command: []string{"true"}}, nil); err == nil ||
			err.Error() != want.Error() {
			t.Errorf("error %v, want %v", err, want)
		}
		return
	} else if how != "" {
		for _, program := range []string{"many", "threads"} {
			rec := births(t, program, 20)
			if !strings.Contains(strings.Join(rec.notes, "\n"), errRefused.Error()) {
				t.Errorf("%s: notes %q, want one with %q", program, rec.notes, errRefused)
			}
		}
		return
	}
	for _, how := range []string{"probe", "programs", "births"} {
		t.Run(how, func(t *testing.T) {
			again := exec.Command(program(t, "refuse"), how, os.Args[0], "-test.run", "^TestDispatchRefused$",
				"-test.v")
			again.Env = append(os.Environ(), variable+"="+how)
			if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("under the filter: %v\n%s", err, out)
			}
		})
	}
}

// TestHostile records programs that work against it: it ends, and what it lacks is said.
func TestHostile(t *testing.T) {
	testenv.Short(t, "it records programs that run out of memory")
	for _, how := range []string{"none", "unmap", "overwrite", "slots", "limits"} {
		t.Run(how, func(t *testing.T) {
			rec := record(t, &capture.Options{Command: []string{program(t, "hostile"), how}})
			losses := len(rec.ofType(trace.RecLoss))
			writes := on(rec.calls(event.OpWrite), 1, true)
			t.Logf("status %#x, %d losses, %d writes, notes %q", rec.result.ExitStatus, losses, len(writes), rec.notes)
			ended := strings.HasSuffix(rec.output, "end")
			if !ended || rec.result.ExitStatus != 7 {
				t.Errorf("the program did not reach its end: status %#x", rec.result.ExitStatus)
			}
			if losses == 0 && ended && len(writes) != 1001 {
				t.Errorf("%d writes recorded, want 1001, and no loss is said", len(writes))
			}
			if (how == "overwrite" || how == "slots") && losses == 0 {
				t.Error("no loss is said")
			}
		})
	}
}

// written returns what a recording says that was written to standard output.
func written(rec *recording) string { return string(joined(on(rec.calls(event.OpWrite), 1, true))) }

// TestSpecial records programs that use what the recorder uses, and those of other kinds.
func TestSpecial(t *testing.T) {
	ordinary := strings.Repeat("a", 100) + strings.Repeat("c", 100)
	all := strings.Repeat("a", 100) + strings.Repeat("b", 100) + strings.Repeat("c", 100)
	for _, c := range []struct {
		how  string
		want string
	}{{"none", ordinary}, {"gs", all}, {"dispatch", all}, {"int80", all}, {"probe", all}, {"filter", all}} {
		for _, link := range [][]string{nil, {"-static"}, {"-static-pie"}} {
			t.Run(c.how+strings.Join(link, ""), func(t *testing.T) {
				command := []string{program(t, "special", link...), c.how}
				var ended *exec.ExitError
				alone := exec.Command(command[0], command[1]).Run()
				if c.how == "int80" && errors.As(alone, &ended) &&
					ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV {
					t.Skip("this kernel has no 32-bit calls: the program ends with SIGSEGV without a recording too")
				}
				rec := record(t, &capture.Options{Command: command}).succeeded(t)
				if rec.output != c.want {
					t.Errorf("the program wrote %q, want %q", rec.output, c.want)
				}
				if got := written(rec); got != rec.output {
					t.Errorf("recorded %q, want %q; notes %q", got, rec.output, rec.notes)
				}
				// To ask what the kernel has is no reason to record by stops.
				if fast := c.how == "none" || c.how == "probe"; fast && len(rec.notes) > 0 {
					t.Errorf("notes %q, want none", rec.notes)
				}
			})
		}
	}
}

// TestGoProgram records programs of the Go compiler, also with C in them: their calls are made at patched places.
func TestGoProgram(t *testing.T) {
	testenv.Short(t, "it builds and records programs")
	source, err := os.ReadFile("testdata/hello.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]string{
		"go": "", "cgo": "// static int one(void) { return 1; }\nimport \"C\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := strings.Replace(string(source), "import (", with+"import (", 1)
			if err := os.WriteFile(dir+"/hello.go", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-o", dir+"/hello", dir+"/hello.go")
			build.Env = append(os.Environ(), "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[with != ""])
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			rec := record(t, &capture.Options{Command: []string{dir + "/hello"}}).succeeded(t)
			const bytes = 800
			if want := strings.Repeat("g", bytes); rec.output != want || written(rec) != want {
				t.Errorf("%d bytes written, %d recorded, want %d", len(rec.output), len(written(rec)), bytes)
			}
			if calls := rec.calls(event.OpWrite); rec.result.Stops > uint64(len(calls)) {
				t.Errorf("%d stops, want less than one for each of %d writes", rec.result.Stops, len(calls))
			}
		})
	}
}

// TestStart compares what a program sees of its start with what it sees without a recorder.
func TestStart(t *testing.T) {
	for _, link := range [][]string{nil, {"-static"}} {
		command := []string{program(t, "start", link...), "argument"}
		env := []string{"PATH=/bin:/usr/bin", "V=\xff1"}
		plain := exec.Command(command[0], command[1:]...)
		plain.Env = env
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		out, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		plain.Stdin, plain.Stdout, plain.Stderr = null, out, out
		if err := plain.Run(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(string(text), "\n")
		rec := record(t, &capture.Options{Command: command, Env: env}).succeeded(t)
		got := strings.Split(rec.output, "\n")
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				rest, others := got[min(i, len(got)):], want[min(i, len(want)):]
				t.Errorf("%q: line %d of what it sees differs:\n%q\nwant\n%q", link, i, rest, others)
				break
			}
		}
	}
}

// TestUnmapped records programs that unmap what is not theirs, our code with it: they go on, and all is recorded.
func TestUnmapped(t *testing.T) {
	const alone = "-fno-builtin -fno-stack-protector" // without the libraries
	want := strings.Repeat("a", 50) + strings.Repeat("b", 50)
	for _, how := range []string{"all", "executable"} {
		for _, link := range []string{"", "-static", "-static-pie"} {
			if how == "all" && link == "" {
				continue // the kernel kills it: it uses memory that the C library has registered (rseq)
			}
			t.Run(how+link, func(t *testing.T) {
				bin := program(t, "unmapped", strings.Fields(alone+" "+link)...)
				rec := record(t, &capture.Options{Command: []string{bin, how}}).succeeded(t)
				if rec.output != want {
					t.Errorf("the program wrote %q, want %q", rec.output, want)
				}
				if got := written(rec); got != want {
					t.Errorf("recorded %q, want %q; notes %q", got, want, rec.notes)
				}
			})
		}
	}
}

// TestRemapped records a program that makes code where it unmapped a file, whose calls were patched.
func TestRemapped(t *testing.T) {
	rec := record(t, &capture.Options{Command: []string{program(t, "remapped")}}).succeeded(t)
	want := strings.Repeat(strings.Repeat("f", 24)+strings.Repeat("m", 24), 2) + "f"
	if rec.output != want || written(rec) != want {
		t.Errorf("the program wrote %q, recorded %q, want %q", rec.output, written(rec), want)
	}
}
