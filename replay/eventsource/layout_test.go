// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/trace"
)

// tape returns one with these hosts, each "NAME BOOT", and events.
func tape(t *testing.T, hosts []string, events ...event.Event) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	m := &trace.Manifest{Program: "test"}
	for _, h := range hosts {
		name, boot, _ := strings.Cut(h, " ")
		m.Hosts = append(m.Hosts, trace.Host{Head: trace.Head{Host: name, BootID: boot, Arch: "amd64"}})
	}
	if err := w.Close(m); err != nil {
		t.Fatal(err)
	}
	tp, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

// Where a file of each host is: whatever a host is called, in a directory of its machine
// at the top of the target.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		hosts  []string
		shared []string
		want   string // /x/f of each host
	}{
		{[]string{"a 1"}, nil, "/x/f"},
		{[]string{"a 1", "b 1"}, nil, "/x/f /x/f"}, // two recordings of one boot
		{[]string{"a 1", "b 2", "a 1"}, nil, "/a/x/f /b/x/f /a/x/f"},
		{[]string{"a", "a"}, nil, "/a/x/f /a-2/x/f"}, // nothing says that they are one
		{[]string{"web 1", "web 2", "web-2 3"}, nil, "/web/x/f /web-2/x/f /web-2-2/x/f"},
		{[]string{"../.. 1", " 2", "a/b 3", ".. 4", ". 5", "\x00\n 6"}, nil,
			"/.._../x/f /host/x/f /a_b/x/f /host-2/x/f /host-3/x/f /__/x/f"},
		// the kernel's names are left out of a replay
		{[]string{"proc 1", "x 2", "dev 3"}, nil, "/proc-2/x/f /x/x/f /dev-2/x/f"},
		{[]string{"a 1", "b 2"}, []string{"/y"}, "/a/x/f /b/x/f"},
		{[]string{"a 1", "x 2"}, []string{"/x/"}, "/x/f /x/f"},
		{[]string{"a 1", "b 2"}, []string{"/"}, "/x/f /x/f"},
		{[]string{"x 1", "y 2"}, []string{"/x/g"}, "/x-2/x/f /y/x/f"}, // DIR/x has what is shared
		{[]string{"a 1"}, []string{"/x"}, "/x/f"},
	} {
		l, err := NewLayout(tape(t, c.hosts), nil, c.shared)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range l {
			got = append(got, l[i].Renames.Path("/x/f"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q with %v shared: %s, want %s", c.hosts, c.shared, s, c.want)
		}
	}
	long := tape(t, []string{strings.Repeat("a", 4000) + " 1", "b 2"})
	if l, err := NewLayout(long, nil, nil); err != nil || len(l[0].Dir) > 255 {
		t.Errorf("%v, a directory's name of %d bytes", err, len(l[0].Dir))
	}
	if _, err := NewLayout(long, nil, []string{"x"}); err == nil {
		t.Error("x is no absolute name")
	}
	// --map renames what each machine has, and what they share.
	l, err := NewLayout(tape(t, []string{"a 1", "b 2"}), Renames{{"/home/u", "/u"}, {"/net/v", "/v"}},
		[]string{"/net", "/home/u/net"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/home/u/f": "/b/u/f", "/net/f": "/net/f", "/net/v/f": "/v/f",
		"/home/u/net/f": "/u/net/f", "/etc": "/b/etc", "/proc/1/maps": "/proc/1/maps"} {
		if got := l[1].Renames.Path(name); got != want {
			t.Errorf("%s of b is %s, want %s", name, got, want)
		}
	}
}

// Files of two machines are different ones, whatever numbers they have; but what is shared
// has one identity, by whatever device each machine knows it.
func TestDevices(t *testing.T) {
	file := func(host uint32, dev uint64, path string) event.Event {
		return event.Event{Op: event.OpFsync, Host: host, PID: 1, TID: 1, Offset: -1, Count: -1,
			Files: []event.File{{FD: 3, Known: true, Mode: 0o100644, Dev: dev, Ino: 7, Path: path}}}
	}
	tp := tape(t, []string{"a 1", "b 2", "b 2"}, file(0, 40, "/net/f"), file(1, 41, "/net/f"), file(1, 41, "/net/g"),
		file(1, 8, "/net/link/f"), file(0, 50, "/scratch/f"))
	l, err := NewLayout(tp, nil, []string{"/net", "/scratch"})
	if err != nil {
		t.Fatal(err)
	}
	a, b, again := l[0].Device, l[1].Device, l[2].Device
	if a(40) != b(41) || b(41) != again(41) {
		t.Errorf("what is shared is on %#x, %#x and %#x", a(40), b(41), again(41))
	}
	all := map[uint64]string{}
	for name, dev := range map[string]uint64{"a's 8": a(8), "b's 8": b(8), "net": a(40), "scratch": a(50),
		"a's 41": a(41), "b's 40": b(40)} {
		if other := all[dev]; other != "" {
			t.Errorf("%s and %s are both %#x", name, other, dev)
		}
		all[dev] = name
	}
	// Statx has fewer bits for it.
	ev := event.Event{
		Op: event.OpStatx, Host: 1, Bufs: []event.Buf{{Arg: 4, Kind: event.KindStruct, Inline: make([]byte, 256)}},
	}
	for _, dev := range []byte{8, 41} {
		ev.Bufs[0].Inline = make([]byte, 256)
		ev.Bufs[0].Inline[140] = dev // minor number
		l[1].devices(&ev)
		if st, ok := effect.DecodeStat(&ev, event.AMD64); !ok || st.Dev != b(uint64(dev)) {
			t.Errorf("statx tells of device %#x, not %#x", st.Dev, b(uint64(dev)))
		}
	}
}

// A tape of lies is refused, as by what reads it next.
func TestLayoutOfLies(t *testing.T) {
	lie := event.Event{
		Op: event.OpStat, PID: 1, TID: 1, Offset: -1, Count: -1, Paths: []event.Path{{Raw: "/x", Abs: "/x"}},
		Files: []event.File{{Arg: 100, Known: true}},
	}
	if _, err := NewLayout(tape(t, []string{"a 1", "b 2"}, lie), nil, []string{"/x"}); !errors.Is(err,
		trace.ErrCorrupt) {
		t.Error(err)
	}
}

// Two processes with one number on two hosts are two; events of one host keep theirs.
func TestNumbers(t *testing.T) {
	seen := map[string]string{}
	n := Layout{{}, {}}.Numbers()
	for _, host := range []uint32{0, 1, 0} {
		ev := event.Event{Kind: event.Forked, Host: host, PID: 5, TID: 6, Child: 7, Ret: 5}
		n.Event(&ev)
		if ev.PID != uint32(ev.Ret) {
			t.Errorf("process %d made a thread of process %d", ev.PID, ev.Ret)
		}
		numbers := fmt.Sprint(ev.PID, ev.TID, ev.Child)
		if was, ok := seen[fmt.Sprint(host)]; ok && was != numbers {
			t.Errorf("host %d: %s, then %s", host, was, numbers)
		}
		seen[fmt.Sprint(host)] = numbers
		if a, b := strings.Fields(seen["0"]),
			strings.Fields(seen["1"]); slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) }) {
			t.Errorf("hosts have numbers %v and %v", a, b)
		}
	}
	ev := event.Event{PID: 5, TID: 5, Paths: []event.Path{{Raw: "/proc/5/fd/3"}, {Raw: "/proc/6/fd/3"}}}
	n.Event(&ev)
	if ev.Paths[0].Raw != "/proc/self/fd/3" || ev.Paths[1].Raw != "/proc/6/fd/3" {
		t.Errorf("%v", ev.Paths)
	}
	Layout{{}}.Numbers().Event(&ev)
}
