// SPDX-License-Identifier: Apache-2.0

package tapes

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// A foreign file of several hosts becomes one tape: in the order of the wall clock,
// with each host's own processes and open files.
func TestSealHosts(t *testing.T) {
	dir := t.TempDir()
	im := format.NewImport(dir, "test")
	type at struct {
		host string
		ns   uint64
	}
	calls := []at{{"a", 10}, {"a", 20}, {"a", 50}, {"b", 15}, {"b", 30}, {"b", 60}}
	for _, c := range calls {
		w, err := im.Host(c.host)
		if err != nil {
			t.Fatal(err)
		}
		open := format.Call{Op: event.OpOpen, PID: 7, TID: 7, Enter: c.ns - 1, Exit: c.ns, Ret: 3}
		open.Text(0, "/"+c.host, false)
		if err := w.Call(&open); err != nil {
			t.Fatal(err)
		}
	}
	streams, err := im.Close()
	if err != nil || len(streams) != 2 {
		t.Fatalf("streams %q, error %v", streams, err)
	}
	tape := filepath.Join(dir, "x.tape")
	tw, err := trace.CreateTape(tape)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := Hosts(context.Background(), streams, tw, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "host-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
	tp, err := trace.Open(tape)
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	var got []at
	opens := map[event.OpenID]bool{}
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call {
			continue
		}
		h := tp.Host(ev.Host)
		got = append(got, at{h.Host, uint64(h.Wall(ev.Exit))})
		if want := "/" + h.Host; ev.Paths[0].Abs != want || ev.Files[0].Path != want {
			t.Errorf("event %d of %s: path %q, file %q", ev.Seq, h.Host, ev.Paths[0].Abs, ev.Files[0].Path)
		}
		if opens[ev.Files[0].Open] {
			t.Errorf("open file %d twice", ev.Files[0].Open)
		}
		opens[ev.Files[0].Open] = true
	}
	slices.SortStableFunc(calls, func(a, b at) int { return int(a.ns) - int(b.ns) })
	if !slices.Equal(got, calls) {
		t.Errorf("events %v, want %v", got, calls)
	}
}
