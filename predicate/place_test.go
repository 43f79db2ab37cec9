// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// TestPlaces: filters find calls by where their process runs, and by where its parent did if it executed nothing.
func TestPlaces(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	say := func(pid uint32, p *facts.Process) *event.Event {
		ev := &event.Event{PID: pid, TID: pid}
		facts.Describe(ev, p, nil, nil)
		return ev
	}
	past := []*event.Event{
		say(5, &facts.Process{Cgroup: "/system.slice/ssh.service", Exe: "/usr/sbin/sshd"}),
		say(6, &facts.Process{Cgroup: "/system.slice/docker-" + id + ".scope"}),
		say(7, &facts.Process{}),
		{Kind: event.Forked, PID: 5, TID: 5, Child: 15, Ret: 15},
	}
	for _, c := range []struct {
		filter  string
		pid     uint32
		want    bool
		unknown int
	}{
		{"cgroup = /system.slice/ssh.service", 5, true, 0},
		{"cgroup under /system.slice", 15, true, 0},
		{"cgroup under /user.slice", 5, false, 0},
		{"cgroup under /", 7, false, 1},
		{"unit = ssh.service", 15, true, 0}, {"unit = ssh", 5, true, 0}, {"service glob ss*", 5, true, 0},
		{"unit = ssh", 6, false, 0},
		{"unit != ssh", 6, true, 0},
		{"unit != ssh", 8, false, 1},
		{"not unit = ssh", 8, true, 1},
		{"container = " + id, 6, true, 0}, {"container = 0123456789ab", 6, true, 0},
		{"container startsWith 0123", 6, true, 0},
		{"container = 0123", 6, false, 0},
		{"container contains 0", 5, false, 0},
		{"pod contains -", 6, false, 0},
		{"exe = /usr/sbin/sshd", 15, true, 0},
	} {
		g, err := New(c.filter, nil)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		if !g.Follows() {
			t.Errorf("%s: it does not ask for earlier events", c.filter)
		}
		m := g.NewMatcher()
		for _, ev := range past {
			m.See(ev)
		}
		if got := m.Match(&event.Event{Op: event.OpRead, PID: c.pid, TID: c.pid}); got != c.want {
			t.Errorf("%s, process %d: %t; want %t", c.filter, c.pid, got, c.want)
		}
		if got := m.Unknown(); got != c.unknown {
			t.Errorf("%s, process %d: %d processes are unknown; want %d", c.filter, c.pid, got, c.unknown)
		}
	}
}
