// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

func TestWakeups(t *testing.T) {
	const n = 200
	r, res := record(t, &capture.Options{Wakeups: true}, build(t, "pingpong"), strconv.Itoa(n))
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	main := r.calls[0].PID
	var reads, timers int
	for _, w := range r.of(trace.RecWake) {
		op := event.Op(w.Op)
		switch {
		case op == event.OpRead && w.PID == main && w.ChildTID != 0:
			if w.Child != main || w.ChildTID == w.TID || w.Flags != 0 {
				t.Errorf("%d was woken by %d/%d, flags %d", w.TID, w.Child, w.ChildTID, w.Flags)
			}
			reads++
		case op == event.OpClockNanosleep:
			if w.Flags != trace.WakeInterrupt || w.Child != 0 || w.ChildTID != 0 {
				t.Errorf("the sleeper was woken by %d/%d, flags %d", w.Child, w.ChildTID, w.Flags)
			}
			timers++
		}
		within := false
		for _, c := range r.calls {
			within = within || c.TID == w.TID && c.Enter <= w.Exit && w.Exit <= c.Exit && event.Op(c.Op) == op
		}
		if op != 0 && !within {
			t.Errorf("%d was woken in %s at %d, outside of any such call", w.TID, op, w.Exit)
		}
	}
	// A reader that finds its byte does not sleep; nearly all do.
	if reads < n/2 || timers < 1 {
		t.Errorf("%d wake-ups of readers, %d of the sleeper", reads, timers)
	}

	r, _ = record(t, &capture.Options{}, build(t, "pingpong"), "10")
	if got := r.of(trace.RecWake); len(got) > 0 {
		t.Errorf("%d wake-ups that nobody asked for", len(got))
	}
}

// TestNamespace records a process in a pid namespace of its own.
func TestNamespace(t *testing.T) {
	need(t)
	if err := exec.Command("unshare", "--pid", "--fork", "true").Run(); err != nil {
		t.Skipf("skipped: needs a pid namespace: %v", err)
	}
	r, res := record(t, &capture.Options{}, "unshare", "--pid", "--fork", "sh", "-c", "/bin/true; exit 4")
	if res.ExitStatus != 4 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	inside := map[uint32]uint32{}
	for _, k := range r.of(trace.RecTask) {
		if k.NSPID != k.NSTID || k.NSPID == k.PID {
			t.Errorf("task %d/%d is %d/%d inside", k.PID, k.TID, k.NSPID, k.NSTID)
		}
		inside[k.PID] = k.NSPID
	}
	first := r.calls[0].PID
	var numbers []string
	for pid, n := range inside {
		if pid != first {
			numbers = append(numbers, strconv.Itoa(int(n)))
		}
	}
	if inside[first] != 0 || strings.Join(numbers, " ") != "1 2" && strings.Join(numbers, " ") != "2 1" {
		t.Errorf("%d outside is %d, the others are %v", first, inside[first], numbers)
	}
}

// BenchmarkWakeups times a round trip between two threads.
func BenchmarkWakeups(b *testing.B) {
	need(b)
	argv := []string{build(b, "pingpong"), "100000"}
	report := func(b *testing.B, out []byte) {
		ns, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(ns, "ns/trip")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("capture=off", func(b *testing.B) {
		for range b.N {
			out, err := exec.Command(argv[0], argv[1:]...).Output()
			if err != nil {
				b.Fatal(err)
			}
			report(b, out)
		}
	})
	for _, wakeups := range []bool{false, true} {
		b.Run("wakeups="+strconv.FormatBool(wakeups), func(b *testing.B) {
			for range b.N {
				pr, pw, err := os.Pipe()
				if err != nil {
					b.Fatal(err)
				}
				o := &capture.Options{Command: argv, Stdout: pw, Wakeups: wakeups}
				sw, err := trace.NewStreamWriter(io.Discard, 1, &trace.Head{Shards: Shards(o)})
				if err != nil {
					b.Fatal(err)
				}
				if res, err := (Backend{}).Run(context.Background(), o, sw); err != nil || res.Lost != 0 {
					b.Fatalf("%+v, %v", res, err)
				}
				pw.Close()
				out, _ := io.ReadAll(pr)
				pr.Close()
				report(b, out)
			}
		})
	}
}
