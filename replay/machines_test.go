package replay

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// host makes the script go on on a host, of machines with these names.
func (s *script) host(host uint32, names ...string) *script {
	for i, n := range names {
		s.hosts = append(s.hosts, trace.Host{Head: trace.Head{Host: n, BootID: strconv.Itoa(i), Arch: "amd64"}})
	}
	s.from = host
	return s
}

// file goes on with a file that has these numbers.
func (s *script) file(dev, ino uint64, size int64) *script {
	s.dev, s.ino, s.size = dev, ino-1, size
	return s
}

// twoMachines has two processes of one number, on two machines, that use the same numbers
// for everything: descriptors, files, devices. They share /net, which is another device on
// each.
func twoMachines(t *testing.T, a, b string) *script {
	s := newScript(t).host(1, a, b)
	s.add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	for host, text := range []string{"old of a", "old of b"} { // two files, not two names of one
		s.host(uint32(host)).file(8, 5, 8).open(3, "old", 2)
		s.move(event.OpPread64, 3, 0, text)
		s.move(event.OpWrite, 3, 0, "new")
		s.call(event.OpClose, 0, 0, [6]uint64{3})
	}
	s.host(0).file(8, 7, 0).open(3, "f", effect.OCreat|2)
	s.move(event.OpWrite, 3, 0, "of a")
	s.host(1).file(8, 7, 0).open(3, "f", effect.OCreat|effect.OExcl|2)
	s.move(event.OpWrite, 3, 0, "of b alone")
	s.host(0).move(event.OpPread64, 3, 0, "of a")
	s.call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/f")
	s.host(1).symlink("../net", "/work/link")
	s.call(event.OpUnlink, -1, syscall.ENOENT, [6]uint64{}, "g")
	s.host(0).file(40, 9, 0).open(4, "/net/s", effect.OCreat|2)
	s.move(event.OpWrite, 4, 0, "one")
	for fd, name := range map[int64]string{4: "../net/s", 5: "link/s"} { // neither says by its text alone what is shared
		s.host(1).file(41, 9, 3).open(fd, name, 2)
		s.move(event.OpPread64, fd, 0, "one")
	}
	s.call(event.OpRename, 0, 0, [6]uint64{}, "/net/s", "/net/t")
	s.host(0).call(event.OpChdir, 0, 0, [6]uint64{}, "/")
	s.file(40, 9, 3).open(5, "net/t", 2)
	s.move(event.OpPread64, 5, 0, "one")
	return s
}

// TestMachines replays two machines, each in a tree of its own.
func TestMachines(t *testing.T) {
	tape := twoMachines(t, "a", "b").close()
	for _, mode := range []order.Mode{order.Recorded, order.Overlap, order.Resource} {
		into := filepath.Join(t.TempDir(), "into")
		rep, err := Run(t.Context(), tape, &Options{Into: into, Checks: CheckAll, Order: mode, Shared: []string{"/net"}})
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
	if p, err := DryRun(t.Context(), tape, &Options{Shared: []string{"/net"}}); err != nil || p.Events != tape.Manifest().Counts.Events {
		t.Errorf("%+v, %v", p, err)
	}
	into := t.TempDir()
	if n, problems, err := Restore(t.Context(), tape, into, false, []string{"/net"}); err != nil || len(problems) > 0 || n != 7 { // a, a/work, a/work/old, b, b/work, b/work/old, net
		t.Errorf("%d entries, %v, %v", n, problems, err)
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
	s := newScript(t).host(1, "a", "b")
	s.store(trace.HostFile(1, trace.SnapshotName), tree.Entry{Path: ".", Type: tree.Dir, Known: tree.KnownListing}, tree.Entry{Path: "net", Type: tree.Dir}, tree.Entry{Path: "net/f", Type: tree.File}, tree.Entry{Path: "work", Type: tree.Dir})
	s.add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	into := t.TempDir()
	if _, problems, err := Restore(t.Context(), s.close(), into, false, []string{"/net"}); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	for name, there := range map[string]bool{"b/net": true, "b/net/f": false, "net": false} { // of what is shared, only a's snapshot would count
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
		s := newScript(t).host(0, "a", "b")
		s.hosts[0].ClockNS, s.hosts[1].ClockNS = 1, 25
		if !apart {
			s.hosts[1].BootID = s.hosts[0].BootID
		}
		s.store(trace.HostFile(0, trace.SnapshotName), entry("work/before", 3))
		s.file(8, 7, 0).open(3, "f", effect.OCreat|effect.OExcl|2)
		s.move(event.OpWrite, 3, 0, "one")
		if apart { // then it has another file of that name
			s.call(event.OpUnlink, 0, 0, [6]uint64{}, "f")
		}
		s.store(trace.HostFile(0, trace.FinalName), entry("work/f", 3), entry("work/before", 3))
		s.host(1).store(trace.HostFile(1, trace.SnapshotName), entry("work/f", 3), entry("work/late", 5))
		s.add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
		s.file(8, 7, 3).open(3, "f", 2)
		s.move(event.OpPwrite64, 3, 3, " and two")
		s.store(trace.HostFile(1, trace.FinalName), entry("work/f", 11))
		into := t.TempDir()
		rep, err := Run(t.Context(), s.close(), &Options{Into: into, Checks: CheckAll})
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
	for _, names := range [][2]string{{"../..", ""}, {"a/b", "a/b"}, {"..", "../../../../../tmp"}, {"net", "proc"}, {"/etc", "\x00"}} {
		top := t.TempDir()
		into := filepath.Join(top, "x", "into")
		rep, err := Run(t.Context(), twoMachines(t, names[0], names[1]).close(), &Options{Into: into, Checks: CheckAll, Shared: []string{"/net"}})
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

// A member of a team that is called as a host makes the calls of that host's processes.
func TestDivideByHost(t *testing.T) {
	tape := twoMachines(t, "a", "b").close()
	layout, err := eventsource.NewLayout(tape, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for members, want := range map[string]string{"b a": "1 0", "a b": "0 1", "x b": "0 1", "b x": "1 0", "b": "0 0", "x y": "0 1"} {
		d, err := divide(tape, layout, strings.Fields(members))
		if err != nil {
			t.Fatal(err)
		}
		numbers, part := layout.Numbers(), [2]int{}
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			numbers.Event(ev)
			part[ev.Host] = d.member(ev)
		}
		if got := strconv.Itoa(part[0]) + " " + strconv.Itoa(part[1]); got != want {
			t.Errorf("of %s, a and b are done by %s, want %s", members, got, want)
		}
	}
}
