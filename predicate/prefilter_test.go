// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// some are the operations that events of drawEvent have.
func some(op event.Op) bool {
	return op == event.OpRead || op == event.OpWrite || op == event.OpOpenat ||
		op == event.OpClose || op == event.OpStat
}

// prefiltered returns what a capture knows of a call.
func prefiltered(ev *event.Event) *PrefilterCall {
	c := &PrefilterCall{PID: ev.PID, TID: ev.TID, PPID: ev.PPID, UID: ev.UID, Latency: ev.Exit - ev.Enter,
		Raw: ev.Ret, Args: ev.Args}
	if ev.Errno != 0 {
		c.Raw = -int64(ev.Errno)
	}
	copy(c.Comm[:], ev.Comm)
	return c
}

// returned makes of any event a call that has returned and whose fields agree.
func returned(ev *event.Event) *event.Event {
	ev.Kind, ev.Flags = event.Call, 0
	if ev.Op == event.OpUnknown {
		ev.Op = event.OpWrite
	}
	ev.Ret = max(ev.Ret, 0)
	if ev.Errno != 0 {
		ev.Ret = -1
	}
	ev.Offset = -1
	if ev.Op == event.OpRead || ev.Op == event.OpWrite {
		ev.Count = max(ev.Count, 0)
		ev.Args[2] = uint64(ev.Count)
	} else {
		ev.Count = -1
	}
	return ev
}

func TestPrefilterRefusesNothingThatIsWanted(t *testing.T) {
	let := 0
	rapid.Check(t, func(t *rapid.T) {
		src := drawFilter(t, 3)
		g, err := New(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := g.Prefilter(some)
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Yes >= 0 && int(st.Yes) <= i || st.No >= 0 && int(st.No) <= i {
				t.Fatalf("%s: step %d goes back: %+v", src, i, s.Steps)
			}
		}
		m := g.NewMatcher()
		for range 20 {
			ev := returned(drawEvent(t))
			want, refused := m.Match(ev), s.Drops(ev.Op, prefiltered(ev))
			if want && refused {
				t.Fatalf("%s: the prefilter refuses %+v\n%+v", src, ev, s.Steps)
			}
			if !refused {
				let++
			}
		}
	})
	if let == 0 {
		t.Error("nothing was let through")
	}
}

func TestPrefilterDecides(t *testing.T) {
	for _, src := range []string{
		"uid = 3", "uid != 3 and pid in {1, 3, 7}", "latency > 1ms or failed", "errno in {ENOENT, EIO}", "comm in {make, cc1}", "op = read and count >= 7",
		"result > 100 and not (comm = make or uid < 3)", "class = data and tid = 4", "op != read", "op = read or op = write and uid = 2", "op = write and result = -1 and latency < 2ms",
	} {
		g, err := New(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := g.Prefilter(some)
		m := g.NewMatcher()
		rapid.Check(t, func(t *rapid.T) {
			ev := returned(drawEvent(t))
			if ev.Comm == "" {
				ev.Comm = "x"
			}
			if want, refused := m.Match(ev), s.Drops(ev.Op, prefiltered(ev)); want == refused {
				t.Fatalf("%s: %t, and the prefilter refuses: %t, of %+v\n%+v", src, want, refused, ev, s.Steps)
			}
		})
	}
}

// TestPrefilterOfPlaces: tests of where a process runs are made if a capture knows that, and are no part of
// a prefilter that decides all.
func TestPrefilterOfPlaces(t *testing.T) {
	const docker = "/system.slice/docker-0123456789ab0123456789ab0123456789ab0123456789ab0123456789abcdef.scope"
	for _, c := range []struct {
		src     string
		in, out string // a group that it holds in, and one where it does not
	}{
		{"cgroup startsWith /system.slice", docker, "/user.slice"}, {"container = 0123456789ab", docker, "/system.slice/ssh.service"},
		{"unit = ssh", "/system.slice/ssh.service", docker}, {"not unit = ssh", docker, "/system.slice/ssh.service"},
		{"container != 0123456789ab", "/docker/" + strings.Repeat("f", 64), docker},
		{"op = read and cgroup glob *.scope and not unit in {ssh, cron}", docker, "/system.slice/cron.service"},
	} {
		g, err := New(c.src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := g.Prefilter(some)
		call := func(cgroup string) *PrefilterCall {
			call := &PrefilterCall{Placed: true}
			for i := range s.Places {
				if s.Places[i].Hold(cgroup) {
					call.Held |= 1 << i
				}
			}
			return call
		}
		if s.Drops(event.OpRead, call(c.in)) || !s.Drops(event.OpRead, call(c.out)) {
			t.Errorf("%s: refuses a call in %s: %t, in %s: %t; want only the latter\n%+v", c.src, c.in,
				s.Drops(event.OpRead, call(c.in)), c.out, s.Drops(event.OpRead, call(c.out)), s)
		}
		if s.Drops(event.OpRead, &PrefilterCall{}) {
			t.Errorf("%s: refuses a call of a process of which it is not known where it runs", c.src)
		}
		if s, undecided := g.Exact(); len(undecided) == 0 {
			t.Errorf("%s: it is decided by a capture alone: %+v", c.src, s)
		}
	}
}

func TestPrefilterOfNames(t *testing.T) {
	for _, c := range []struct {
		src      string
		suffixes int
	}{
		{"ext = sst", 1}, {"ext in {sst, log} and op = pread64", 2}, {"path glob *.sst or name endsWith -wal", 2}, {"path endsWith /x", 0}, {"path glob *.s?t", 0},
		{"not ext = sst", 0}, {"path = /a.sst", 0}, {"path endsWith averyveryverylongend", 0}, {"ext != sst and path endsWith z", 1},
	} {
		g, err := New(c.src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := g.Prefilter(func(op event.Op) bool { return op == event.OpPread64 || op == event.OpStat })
		if len(s.Suffixes) != c.suffixes {
			t.Errorf("%s: suffixes %q, want %d", c.src, s.Suffixes, c.suffixes)
		}
		if c.suffixes == 0 {
			continue
		}
		if s.Drops(event.OpPread64, &PrefilterCall{}) {
			t.Errorf("%s: refuses a call whose file is not known", c.src)
		}
		if !s.Drops(event.OpPread64, &PrefilterCall{Named: true}) ||
			s.Drops(event.OpPread64, &PrefilterCall{Named: true, Ends: 1}) {
			t.Errorf("%s: %+v", c.src, s)
		}
		if _, ok := s.Entries[event.OpStat]; ok && s.Entries[event.OpStat] >= 0 {
			t.Errorf("%s: asks a call with a name", c.src)
		}
	}
}

func TestPrefilterHasRoom(t *testing.T) {
	g, err := New(manyTests(2000, " and ", true)+" and uid = 7", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := g.Prefilter(some)
	if len(s.Steps) > MaxPrefilterSteps {
		t.Errorf("%d steps", len(s.Steps))
	}
	src := "uid = 1"
	for i := range 300 {
		src += fmt.Sprintf(" or uid = %d and pid = %d", 2*i+3, i)
	}
	if g, err = New(src, nil); err != nil {
		t.Fatal(err)
	}
	s = g.Prefilter(some)
	if len(s.Steps) > MaxPrefilterSteps || s.Drops(event.OpRead, &PrefilterCall{UID: 601, PID: 299}) {
		t.Errorf("%d steps, or it refuses what is wanted", len(s.Steps))
	}
}

func TestPrefilterLeavesOthersAlone(t *testing.T) {
	g, err := New("uid = 5", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := g.Prefilter(func(op event.Op) bool { return op == event.OpRead })
	if s.Drops(event.OpOpenat, &PrefilterCall{UID: 6}) || !s.Drops(event.OpRead, &PrefilterCall{UID: 6}) ||
		s.Drops(event.OpRead, &PrefilterCall{UID: 5}) {
		t.Errorf("%+v", s)
	}
}

// TestExactDecidesAll holds prefilters that are said to be exact against the filter.
func TestExactDecidesAll(t *testing.T) {
	decided, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		src := drawFilter(t, 3)
		g, err := New(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, undecided := g.Exact()
		m := g.NewMatcher()
		for range 20 {
			ev := returned(drawEvent(t))
			if len(s.Suffixes) > 0 || slices.Contains(undecided, ev.Op) {
				continue
			}
			decided++
			want := m.Match(ev)
			if !want {
				refused++
			}
			if got := !s.Drops(ev.Op, prefiltered(ev)); got != want {
				t.Fatalf("%s: the filter says %v, the prefilter %v of %+v\n%+v", src, want, got, ev, s.Steps)
			}
		}
	})
	if decided == 0 || refused == 0 {
		t.Errorf("%d events were decided, %d refused", decided, refused)
	}
}

func TestExactSaysWhatItCannot(t *testing.T) {
	for src, want := range map[string][]event.Op{
		"uid = 3 and latency > 1ms":                               nil,
		"op in {read, exit_group} and not failed":                 nil,
		"op in {read, openat} and path under /x":                  {event.OpRead, event.OpOpenat},
		"op = read and ext = sst or op = openat and ext = sst":    {event.OpOpenat},
		"op in {read, write} and not ext = sst":                   nil,
		"op = read and (path under /x or uid = 1) or op = unlink": {event.OpRead},
	} {
		g, err := New(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, undecided := g.Exact()
		if !slices.Equal(undecided, want) {
			t.Errorf("%s: undecided %v, want %v", src, undecided, want)
		}
		if want == nil && s.Entries[event.OpUnknown] == PrefilterPass && !strings.HasPrefix(src, "uid") {
			t.Errorf("%s: calls that are not in the operation table are let through", src)
		}
	}
	g, _ := New("op = exit_group and latency < 1s", nil)
	if s, undecided := g.Exact(); len(undecided) > 0 || s.Entries[event.OpExitGroup] != PrefilterDrop {
		t.Error("what does not return has a latency")
	}
}
