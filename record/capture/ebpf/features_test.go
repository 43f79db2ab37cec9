// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// TestOlderKernel records as on kernels before 6.13: on the running one, without what they lack.
func TestOlderKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it records the programs of other tests again")
	}
	t.Setenv(bpf.WithoutName, "bpf_probe_read_user_dynptr bpf_probe_read_user_str_dynptr bpf_send_signal_task")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"accepted", TestAccepted},
		{"content", TestContent},
		{"shell", TestShell},
		{"arguments", TestLongArguments},
		{"rings", TestTinyRings},
		{"counts", TestCounts},
	} {
		t.Run(test.name, test.run)
	}
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
