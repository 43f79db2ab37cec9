// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/internal/testenv"
)

// signalEvent is what --json says of a signal, or of a thread that one ended.
type signalEvent struct {
	Kind, Signal, Action string
	Info                 struct {
		Code   string `json:"si_code"`
		PID    uint32 `json:"si_pid"`
		Addr   string `json:"si_addr"`
		Status any    `json:"si_status"`
		Int    int    `json:"si_int"`
	}
}

func signalEvents(t *testing.T, out []byte) (list []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var e signalEvent
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		line := e.Kind + " " + e.Signal
		for _, s := range []string{e.Action, e.Info.Code, e.Info.Addr} {
			if s != "" {
				line += " " + s
			}
		}
		if e.Info.Int != 0 {
			line += " 42"
		}
		list = append(list, line)
	}
	return list
}

func compileSignals(t *testing.T, program string) {
	t.Helper()
	testenv.NeedProgram(t, "gcc")
	if b, err := exec.Command("gcc", "-O1", "-o", program, "testdata/signals.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
}

// TestSignalEvents records the signals that a program gets with each back end, and with losses rather than stops.
func TestSignalEvents(t *testing.T) {
	testenv.Short(t, "it records with every back end")
	t.Parallel()
	program := filepath.Join(t.TempDir(), "signals")
	compileSignals(t, program)
	want := []string{
		"signal SIGTERM handled SI_USER",
		"signal SIGWINCH ignored SI_USER",
		"signal SIGSEGV core SEGV_MAPERR 0xdead000", "exited SIGSEGV", "signal SIGCHLD ignored CLD_KILLED",
		"signal SIGHUP terminates SI_USER", "exited SIGHUP", "signal SIGCHLD ignored CLD_KILLED",
		"signal SIGUSR2 handled SI_QUEUE 42",
	}
	check := func(t *testing.T, flags ...string) {
		dir := t.TempDir()
		tape := filepath.Join(dir, "x.tape")
		iotape := func(args ...string) []byte {
			t.Helper()
			cmd := exec.Command(testenv.Iotape(t), args...)
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil && (args[0] != "convert" || cmd.ProcessState.ExitCode() != 1) { // 1: a part is left out
				t.Fatalf("%v: %v", args, err)
			}
			return out
		}
		iotape(append(append([]string{"record", "-o", tape}, flags...), "--", program)...)
		list := func(tape, filter string) []string {
			t.Helper()
			return signalEvents(t, iotape("print", "--json", tape, "--filter", filter))
		}
		got := list(tape, "op = signal or signal > 0")
		for i, s := range got { // whether a core was dumped is the machine's affair
			got[i] = strings.Replace(s, "CLD_DUMPED", "CLD_KILLED", 1)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("signals (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{want[3-1], want[3]}, list(tape, "signal = SEGV")); d != "" {
			t.Errorf("those of a filter (-want +got):\n%s", d)
		}
		for _, line := range []string{
			"--- SIGUSR2 {si_signo=SIGUSR2, si_code=SI_QUEUE, ",
			"--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0xdead000} ---",
			"+++ killed by SIGHUP +++",
		} {
			if out := string(iotape("print", tape)); !strings.Contains(out, line) {
				t.Errorf("print lacks %s", line)
			}
		}
		sql := "SELECT count(*) AS n FROM events " +
			"WHERE kind = 'signal' AND signal = 'SIGTERM' AND signal_action = 'handled'"
		if out := string(iotape("query", tape, "--json", sql)); strings.TrimSpace(out) != `{"n":1}` {
			t.Errorf("SQL finds %q, want one SIGTERM", out)
		}
		var stat struct{ Signals []map[string]any }
		if err := json.Unmarshal(iotape("stat", "--json", tape), &stat); err != nil {
			t.Fatal(err)
		}
		if len(stat.Signals) != 6 || stat.Signals[0]["signal"] != "SIGCHLD" || stat.Signals[0]["count"] != 2.0 {
			t.Errorf("counts %v, want 6 signals, the first SIGCHLD, twice", stat.Signals)
		}
		all := string(iotape("print", tape, "--time", "none"))
		for _, way := range []string{"script", "convert"} {
			text, again := filepath.Join(dir, way), filepath.Join(dir, way+".tape")
			if way == "script" {
				iotape("script", tape, "-o", text)
				iotape("script", "--compile", text, "-o", again)
			} else {
				iotape("convert", tape, text, "--to", "strace")
				iotape("convert", text, again, "--from", "strace")
			}
			copied := string(iotape("print", again, "--time", "none"))
			for line := range strings.SplitSeq(all, "\n") {
				if strings.Contains(line, "--- SIG") && !strings.Contains(copied, line) {
					t.Errorf("%s: the tape that is made of it lacks %s", way, line)
				}
			}
		}
		iotape("anonymise", tape, filepath.Join(dir, "a.tape"), "--keys", filepath.Join(dir, "keys"))
		if d := cmp.Diff(got[:2], list(filepath.Join(dir, "a.tape"), "signal in {TERM, WINCH}")); d != "" {
			t.Errorf("anonymised (-want +got):\n%s", d)
		}
	}
	forBackends(t, func(t *testing.T, backend string) { check(t, "--backend", backend) })
	t.Run("drop", func(t *testing.T) {
		testenv.NeedBPF(t)
		check(t, "--backend", "ebpf", "--on-overflow", "drop")
	})
}

// TestForwardedUser sends the recorder a signal for its command.
func TestForwardedUser(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "signals")
	compileSignals(t, program)
	forBackends(t, func(t *testing.T, backend string) {
		p := start(t, t.TempDir(), "record", "-o", "x.tape", "--backend", backend, "--", program, "ready")
		p.until(t, "ready")
		_ = syscall.Kill(p.Process.Pid, syscall.SIGUSR1)
		p.ends(t, 0)
	})
}

// TestWhoSentSIGKILL: no thread takes a SIGKILL, but with eBPF the tape says who sent it.
func TestWhoSentSIGKILL(t *testing.T) {
	t.Parallel()
	testenv.NeedBPF(t)
	for _, overflow := range []string{"block", "drop"} {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		stdout, _, _ := e.records(t, []string{"--backend", "ebpf", "--on-overflow", overflow}, "sh", "-c",
			"sleep 1000 & echo $$; kill -9 $!; kill -9 $! 2>/dev/null; wait; exit 0")
		out, _ := e.run(t, e.iotape, "print", "--json", "a.tape", "--filter", "signal = SIGKILL")
		want := []string{"signal SIGKILL terminates SI_USER", "exited SIGKILL"}
		if diff := cmp.Diff(want, signalEvents(t, []byte(out))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", overflow, diff)
		}
		contains(t, out, `"si_pid":`+strings.TrimSpace(stdout))
	}
}

// TestTopSignals counts the signals that processes get, while they run.
func TestTopSignals(t *testing.T) {
	t.Parallel()
	testenv.NeedBPF(t)
	e := runEnv(t)
	out, _ := e.run(t, e.iotape, "top", "--plain", "--by", "signal", "--", "sh", "-c",
		`trap : USR1; kill -USR1 $$; kill -USR1 $$; sh -c 'kill -TERM $$' || exit 0`)
	for name, want := range map[string]string{"SIGUSR1": "2 –", "SIGTERM": "1 1"} {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.Join(strings.Fields(line), " ") == name+" "+want
		}) {
			t.Errorf("no row of %s with %s:\n%s", name, want, out)
		}
	}
}
