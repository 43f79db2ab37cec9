// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
)

// TestContend records four threads that race for the same names and files, and makes
// their calls again one after the other, on a real file system: in the tape's order, and
// in the linear one, in which all results are to agree.
//
// Some calls take effect in steps that the model does not follow (see the package's page). No
// order explains what others see between them: such recordings are made again.
func TestContend(t *testing.T) {
	testenv.Short(t, "records and replays a program")
	testenv.NeedProgram(t, "gcc")
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	for range 6 {
		if recordContend(t, iotape, t.TempDir()) == 0 && recordContend(t, iotape, shm(t)) == 0 {
			return
		}
	}
	t.Log("no recording without unexplained results") // of a machine where threads often stop within calls
}

// recordContend returns how many calls have an unexplained result.
func recordContend(t *testing.T, iotape, dir string) (unexplained int) {
	t.Helper()
	work, tape := filepath.Join(dir, "work"), filepath.Join(dir, "x.tape")
	run(t, "mkdir", work)
	install := filepath.Join(dir, "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	p := workload.Program{Name: "contend"}
	run(t, p.Command(install, work, workload.Prep)...)
	run(t, append([]string{iotape, "record", "--backend", "ebpf", "-o", tape, "--"},
		p.Command(install, work, workload.Run)...)...)
	return compareOrders(t, readTape(t, tape), work)
}

func compareOrders(t *testing.T, tape *trace.Tape, work string) (unexplained int) {
	t.Helper()
	before := newKernel(t, tape, work, t.TempDir())
	var ev event.Event
	for r := tape.NewEventReader(); next(t, r.Next, &ev); {
		before.do(&ev, false)
	}
	after := newKernel(t, tape, work, t.TempDir())
	last, lastSeq := int64(0), uint64(0)
	s := linearize.New(tape.NewEventReader().Next, &linearize.Options{Content: tape.Content})
	for next(t, s.Next, &ev) {
		if ev.Exit < last && ev.Seq < lastSeq { // else the tape has it so
			t.Errorf("event %d stands behind one that was made after its return", ev.Seq)
		}
		if ev.Enter > last {
			last, lastSeq = ev.Enter, ev.Seq
		}
		if s.Unexplained() != 0 {
			unexplained++
		}
		after.do(&ev, s.Unexplained() != 0)
	}
	t.Logf("%d calls; %d differ in the tape's order, %d in the linear order, where %d are unexplained", after.made,
		len(before.differ), len(after.differ), unexplained)
	if after.made < 3000 {
		t.Errorf("%d calls made", after.made)
	}
	if unexplained > after.made/100 || unexplained == 0 && len(after.differ) > after.made/1000 {
		for _, d := range after.differ {
			t.Error(d)
		}
		t.Errorf("%d unexplained, %d of %d calls differ", unexplained, len(after.differ), after.made)
	}
	return unexplained
}

func next(t *testing.T, f func(*event.Event) error, ev *event.Event) bool {
	t.Helper()
	err := f(ev)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return err == nil
}

// shm is a directory on tmpfs.
func shm(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "linearize")
	if err != nil {
		t.Skipf("skipped: no /dev/shm: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}
