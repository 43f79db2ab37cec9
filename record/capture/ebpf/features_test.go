// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// before6_13 and before6_2 are what kernels before these versions lack, as bpf.WithoutName has it.
const (
	before6_13 = "bpf_probe_read_user_dynptr bpf_probe_read_user_str_dynptr bpf_send_signal_task"
	before6_2  = before6_13 + " bpf_rdonly_cast bpf_task_from_pid bpf_iter_num_new bpf_iter_task_new PIDFD_THREAD"
)

// TestOlderKernel records as on kernels before 6.13 and 6.2: on the running one, without what they lack.
func TestOlderKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it records the programs of other tests again")
	}
	for _, kernel := range []struct{ name, without string }{{"before 6.13", before6_13}, {"before 6.2", before6_2}} {
		t.Run(kernel.name, func(t *testing.T) {
			t.Setenv(bpf.WithoutName, kernel.without)
			for _, test := range []struct {
				name string
				run  func(*testing.T)
			}{
				{"accepted", TestAccepted},
				{"content", func(t *testing.T) { testContent(t, 20) }},
				{"shell", TestShell},
				{"arguments", TestLongArguments},
				{"rings", TestTinyRings},
				{"counts", TestCounts},
				{"running", TestAttach}, // threads that are not the first of their process are found
				{"cgroup", TestCgroup},
			} {
				t.Run(test.name, test.run)
			}
		})
	}
}

// TestCgroup: a process that is moved into a control group while that is recorded is recorded
// with all its threads, and held where it should be.
func TestCgroup(t *testing.T) {
	need(t)
	group, dir := testenv.Cgroup(t), t.TempDir()
	prog := start(t, "attached", dir)
	pid := strconv.Itoa(prog.pid)
	enter := func() {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(pid), 0o600); err != nil {
			t.Error(err)
		}
		go func() {
			awaitHeld(t, pid)
			create(t, filepath.Join(dir, "go"))
			prog.ended(t, 7)
			for os.Remove(group) != nil { // while the process is in it; the recording ends with the group
				time.Sleep(time.Millisecond)
			}
		}()
	}
	r, res := attach(t, t.Context(), &capture.Options{Cgroup: group, Mmap: capture.MmapOff}, enter)
	if res.Lost != 0 {
		t.Errorf("%d lost, want none: %+v", res.Lost, r.of(trace.RecLoss))
	}
	got := map[string]bool{}
	for _, op := range []event.Op{event.OpRead, event.OpWrite} {
		for _, c := range r.op(op) {
			got[op.String()+" "+text(c, 1)] = c.PID == uint32(prog.pid)
		}
	}
	// The reads are of threads that are not the first; one was under way when its process came.
	for _, want := range []string{"read through", "read 34567", "write after", "write through", "write end"} {
		if !got[want] {
			t.Errorf("no %s of process %s", want, pid)
		}
	}
	if got["write child 0\n"] {
		t.Error("what a process outside of the group wrote is there")
	}
}

// awaitHeld waits until a process's threads have a tracer, if they will.
func awaitHeld(t *testing.T, pid string) {
	for range 2000 {
		names, _ := filepath.Glob("/proc/" + pid + "/task/*/status")
		held := 0
		for _, name := range names {
			b, _ := os.ReadFile(name)
			if strings.Contains(string(b), "TracerPid:") && !strings.Contains(string(b), "TracerPid:\t0\n") {
				held++
			}
		}
		if held > 0 && held == len(names) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the threads of process %s are not held", pid)
}

// TestLongArguments: argument vectors are whole, whatever the lengths of their strings. Some are
// around the size of the chunks that old kernels have them copied by.
func TestLongArguments(t *testing.T) {
	args := []string{"x"}
	for _, n := range []int{0, 1, 16382, 16383, 16384, 16385, 32766, 32767, 100_000, 131_071} {
		args = append(args, strings.Repeat(string(rune('a'+len(args))), n))
	}
	r, res := record(t, &capture.Options{}, slices.Concat([]string{"sh", "-c", `exec /bin/true "$@"`}, args)...)
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	calls := r.op(event.OpExecve)
	if len(calls) == 0 {
		t.Fatal("no execve")
	}
	want := strings.Join(slices.Concat([]string{"/bin/true"}, args[1:]), "\x00")
	for _, c := range calls {
		if got := text(c, 1); text(c, 0) == "/bin/true" && c.Ret == 0 {
			if got != want || c.gap > 0 {
				t.Errorf("the vector of /bin/true has %d bytes, want %d; the same up to byte %d; %d bytes missing",
					len(got), len(want), common(got, want), c.gap)
			}
			return
		}
	}
	t.Errorf("no execve of /bin/true among %d", len(calls))
}

// common is how many bytes two strings begin with alike.
func common(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
