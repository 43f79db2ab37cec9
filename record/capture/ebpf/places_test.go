// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// TestPlaces: a filter of control groups is decided by the programs, also where a process moves to another group while
// it is recorded.
func TestPlaces(t *testing.T) {
	need(t)
	first := testenv.Cgroup(t)
	root, err := bpf.CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	if id, err := bpf.CgroupID(root); err != nil || id != 1 {
		t.Skipf("skipped: this is a cgroup namespace: the root has the number %d (%v)", id, err)
	}
	second := first + ".service"
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(second) })
	unit := filepath.Base(second)
	// A line is written in each group; between them the shell goes to the other group.
	const script = `echo $$ >"$1/cgroup.procs"; echo one | cat; echo $$ >"$2/cgroup.procs"; echo two | cat; ` +
		`echo $$ >"$3/cgroup.procs"`
	for filter, want := range map[string]string{
		"unit = " + unit:     "two",
		"not unit = " + unit: "one",
		"cgroup = /" + filepath.Base(first) + " or unit = " + unit: "one two",
		"container = 0123456789ab":                                 "",
	} {
		t.Run(filter, func(t *testing.T) {
			o := &capture.Options{Mmap: capture.MmapOff, Prefilter: prefilterOf(t, filter)}
			r, res := record(t, o, "/bin/sh", "-c", script, "sh", first, second, root)
			if res.ExitStatus != 0 || res.Lost > 0 {
				t.Fatalf("%+v", res)
			}
			var got []string
			for _, c := range r.op(event.OpWrite) {
				line := strings.TrimSpace(text(c, 1))
				if (line == "one" || line == "two") && !slices.Contains(got, line) {
					got = append(got, line)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("the lines written are %q, want %q", got, want)
			}
		})
	}
}
