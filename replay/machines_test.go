// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// TestMachines replays two machines, each in a tree of its own.
func TestMachines(t *testing.T) {
	tape := tapescript.TwoMachines(t, "a", "b").Close()
	for _, mode := range []order.Mode{order.Recorded, order.Overlap, order.Resource} {
		into := filepath.Join(t.TempDir(), "into")
		rep, err := Run(t.Context(), tape, &Options{
			Into: into, Checks: CheckAll, Order: mode, Shared: []string{"/net"},
		})
		if err != nil || !rep.OK() || rep.Unexplained > 0 {
			t.Fatalf("%v: %v, %+v", mode, err, rep)
		}
		got := map[string]string{}
		for _, name := range []string{"a/work/f", "b/work/f", "net/t"} {
			b, _ := os.ReadFile(filepath.Join(into, name))
			got[name] = string(b)
		}
		if got["a/work/f"] != "" || got["b/work/f"] != "of b alone" || got["net/t"] != "one" {
			t.Errorf("%v: %q", mode, got)
		}
		if link, _ := os.Readlink(filepath.Join(into, "b/work/link")); link != "/net" {
			t.Errorf("%v: the link leads to %q", mode, link)
		}
	}
	if p, err := DryRun(t.Context(), tape, &Options{Shared: []string{"/net"}}); err != nil ||
		p.Events != tape.Manifest().Counts.Events {
		t.Errorf("%+v, %v", p, err)
	}
	into := t.TempDir()
	// a, a/work, a/work/old, b, b/work, b/work/old, net
	if r, err := Restore(t.Context(), tape, into, &RestoreOptions{Shared: []string{"/net"}}); err != nil ||
		len(r.Problems) > 0 || r.Entries != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	// If they share nothing, what b read was there in the beginning.
	into = t.TempDir()
	rep, err := Run(t.Context(), tape, &Options{Into: into, Checks: CheckAll})
	if b, _ := os.ReadFile(filepath.Join(into, "b/net/t")); err != nil || !rep.OK() || string(b) != "one" {
		t.Errorf("nothing is shared: %v, %+v, %q", err, rep, b)
	}
}

// A directory that has a shared one still has it in listings.
func TestSharedIsListed(t *testing.T) {
	s := tapescript.New(t).Host(1, "a", "b")
	s.Store(trace.HostFile(1, trace.SnapshotName), tree.Entry{Path: ".", Type: tree.Dir, Known: tree.KnownListing},
		tree.Entry{Path: "net", Type: tree.Dir}, tree.Entry{Path: "net/f", Type: tree.File},
		tree.Entry{Path: "work", Type: tree.Dir})
	s.Add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	into := t.TempDir()
	if r, err := Restore(t.Context(), s.Close(), into, &RestoreOptions{Shared: []string{"/net"}}); err != nil ||
		len(r.Problems) > 0 {
		t.Fatal(r, err)
	}
	// of what is shared, only a's snapshot would count
	for name, there := range map[string]bool{"b/net": true, "b/net/f": false, "net": false} {
		if _, err := os.Stat(filepath.Join(into, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of one tree that was recorded twice, the first snapshot tells what there was, and of each
// file the last state what is left.
func TestTreesOfOneMachine(t *testing.T) {
	entry := func(path string, size int64) tree.Entry {
		return tree.Entry{Path: path, Type: tree.File, Size: size, Known: tree.KnownSize}
	}
	for _, apart := range []bool{false, true} {
		s := tapescript.New(t).Host(0, "a", "b")
		s.Hosts[0].ClockNS, s.Hosts[1].ClockNS = 1, 25
		if !apart {
			s.Hosts[1].BootID = s.Hosts[0].BootID
		}
		s.Store(trace.HostFile(0, trace.SnapshotName), entry("work/before", 3))
		s.File(8, 7, 0).Open(3, "f", event.OpenCreat|event.OpenExcl|2)
		s.Move(event.OpWrite, 3, 0, "one")
		if apart { // then it has another file of that name
			s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "f")
		}
		s.Store(trace.HostFile(0, trace.FinalName), entry("work/f", 3), entry("work/before", 3))
		s.Host(1).Store(trace.HostFile(1, trace.SnapshotName), entry("work/f", 3), entry("work/late", 5))
		s.Add(event.Event{
			Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}},
		})
		s.File(8, 7, 3).Open(3, "f", 2)
		s.Move(event.OpPwrite64, 3, 3, " and two")
		s.Store(trace.HostFile(1, trace.FinalName), entry("work/f", 11))
		into := t.TempDir()
		rep, err := Run(t.Context(), s.Close(), &Options{Into: into, Checks: CheckAll})
		if err != nil || !rep.OK() || rep.TreePaths != 2 {
			t.Errorf("apart %v: %v, %+v", apart, err, rep)
		}
		want := map[string]bool{"work/f": true, "work/before": true, "work/late": false}
		if apart {
			want = map[string]bool{"a/work/f": false, "a/work/before": true, "b/work/f": true, "b/work/late": true}
		}
		for name, there := range want {
			if _, err := os.Stat(filepath.Join(into, name)); (err == nil) != there {
				t.Errorf("apart %v: %s: %v", apart, name, err)
			}
		}
	}
}

// What machines are called does not lead out of the target.
func TestMachinesWithHostileNames(t *testing.T) {
	for _, names := range [][2]string{{"../..", ""}, {"a/b", "a/b"}, {"..", "../../../../../tmp"}, {"net", "proc"},
		{"/etc", "\x00"}} {
		top := t.TempDir()
		into := filepath.Join(top, "x", "into")
		rep, err := Run(t.Context(), tapescript.TwoMachines(t, names[0], names[1]).Close(), &Options{
			Into: into, Checks: CheckAll, Shared: []string{"/net"},
		})
		if err != nil || !rep.OK() {
			t.Errorf("%q: %v, %+v", names, err, rep)
		}
		var found []string
		for _, dir := range []string{top, filepath.Join(top, "x"), into} {
			list, _ := os.ReadDir(dir)
			for _, e := range list {
				found = append(found, e.Name())
			}
		}
		if len(found) != 5 || found[0] != "x" || found[1] != "into" { // and two machines, and net
			t.Errorf("%q: %q", names, found)
		}
	}
}
