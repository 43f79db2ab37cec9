// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// straceProgram makes files, a FIFO, links and processes, one after the other.
const straceProgram = `echo abc >f; ln -s f g; cat g >h; mkfifo p; cat p >got & echo thru >p; wait
umask 027; mkdir -p d/e; cp -a d z; mv z/e z/x; seq 2000 | sort -r | head -1 >top; sed -i s/a/b/ f; rm -r d; ls -l >list`

// straceOptions are what people combine. After "2>" is what goes to the standard error, with what the program prints.
var straceOptions = []string{
	"", "-v", "-C", "-C -w", "-r", "-r -tt", "--relative-timestamps=s", "-ttt -T", "-tt -T", "-t", "-i -n", "-k",
	"-i -k -ttt", "-s 3", "-v -s 0", "-X raw -v", "-X verbose", "-y", "-yy -Y", "--decode-fds=all --decode-pids=comm",
	"-ttt -T -y -yy -s 1000000 -xx -v", "-e read=all -e write=all -s 0", "-a 9", "-z", "-e status=successful,unfinished",
	"-e signal=none --quiet=all", "--seccomp-bpf -e trace=%file,%desc,%process", "-e verbose=none", "-e abbrev=none", "-D",
	"--absolute-timestamps=precision:ms", "--absolute-timestamps=format:unix,precision:ns --syscall-times=ns",
	"2>", "2> -q", "2> -qq -C", "2> -k", "2> -i -n -r", "2> -tt -e write=all", "2> -qqq -y", "-p", "-p -ttt -T",
}

// TestStraceOptions traces a program with sets of options: the calls are those of a trace without options, all lines
// are understood, and a replay agrees.
func TestStraceOptions(t *testing.T) {
	testenv.Short(t, "it traces a program with many sets of options")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "strace")
	iotape := testenv.Iotape(t)
	want := straceWith(t, iotape, "")
	if len(want) < 200 {
		t.Fatalf("%d calls without options, want at least 200", len(want))
	}
	for _, options := range straceOptions {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			got := straceWith(t, iotape, options)
			selected := func(option string) bool { return strings.Contains(options, option) }
			if slices.ContainsFunc([]string{"-p", "-z", "status", "trace="}, selected) {
				return // not of all calls
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d calls of the first process, want %d:\n%q\n%q", len(got), len(want), got, want)
			}
		})
	}
}

// straceWith traces the program, and returns the calls of its first process.
func straceWith(t *testing.T, iotape, options string) (calls []string) {
	t.Helper()
	dir := t.TempDir()
	text, tape, work := filepath.Join(dir, "x.strace"), filepath.Join(dir, "x.tape"), filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o777); err != nil {
		t.Fatal(err)
	}
	script := "cd " + work + "; " + straceProgram
	args := append([]string{"-f"}, strings.Fields(options)...)
	switch {
	case len(args) > 1 && args[1] == "2>":
		args = append(slices.Delete(args, 1, 2), "sh", "-c", script)
	case len(args) > 1 && args[1] == "-p": // $$ is the shell that waits until strace has attached
		args = []string{"-c", `until grep -q 'TracerPid:.[1-9]' /proc/$$/status; do :; done; ` + script + "; exit"}
		program := exec.CommandContext(t.Context(), "sh", args...)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		defer program.Wait()
		args = append(strings.Fields(options)[1:], "-f", "-p", strconv.Itoa(program.Process.Pid), "-o", text)
	default:
		args = append(args, "-o", text, "sh", "-c", script)
	}
	cmd := exec.CommandContext(t.Context(), "strace", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("strace %q: %v\n%s", args, err, out)
	}
	if _, err := os.Stat(text); err != nil {
		if err := os.WriteFile(text, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	converted, _ := exec.CommandContext(t.Context(), iotape, "convert", "--no-index", "--json", text, tape).Output()
	var done format.Done
	if err := json.Unmarshal(converted, &done); err != nil {
		t.Fatalf("convert: %v\n%s", err, converted)
	}
	if n := done.Left["lines that are not understood"]; n > 0 {
		t.Errorf("%d lines are not understood, want none", n)
	}
	if options == "-e verbose=none" { // addresses in place of names of pipes and results of wait
		return firstCalls(t, tape)
	}
	replayed, err := exec.CommandContext(t.Context(), iotape, "replay", tape, "--verify", "--into",
		filepath.Join(dir, "again")).CombinedOutput()
	said := string(replayed)
	agree := err == nil && strings.Contains(said, "all results agree")
	if strings.Contains(options, "-s ") && !strings.Contains(said, " differ\n") { // names of attributes are cut off
		agree = agree || strings.Contains(said, "the results of the other calls agree")
	}
	if !agree {
		t.Errorf("replay: %v, want that all results agree\n%s", err, replayed)
	}
	return firstCalls(t, tape)
}

// firstCalls returns the names of the calls of the first process of a tape.
func firstCalls(t *testing.T, name string) (calls []string) {
	t.Helper()
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	first := uint32(0)
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = ev.PID
		}
		// Memory is asked for as addresses happen to be free; how a shell waits depends on when its children end.
		if ev.PID == first && ev.Kind == event.Call && ev.Spec().Class != event.Memory && ev.Op != event.OpWait4 &&
			!strings.HasPrefix(ev.Spec().Name, "rt_sig") {
			calls = append(calls, ev.Spec().Name)
		}
	}
	return calls
}
