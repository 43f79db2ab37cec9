// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// users are on whose behalf files were accessed.
type users struct {
	by    map[userKey]*userRow
	list  []*userRow
	calls uint64
}

type userKey struct{ host, uid uint32 }

type userRow struct {
	UID       uint32   `json:"uid"`
	Host      string   `json:"host,omitempty"` // if the tape has several
	Calls     uint64   `json:"calls"`
	Share     float64  `json:"share"` // of all calls
	Failed    uint64   `json:"failed"`
	Read      uint64   `json:"read_bytes"`
	Written   uint64   `json:"written_bytes"`
	TookNS    int64    `json:"took_ns"` // in calls
	FirstNS   int64    `json:"first_ns"`
	LastNS    int64    `json:"last_ns"`
	Processes int      `json:"processes"`
	Commands  []string `json:"commands"` // the first few

	host   uint32
	others bool
	procs  map[int]bool
}

// Limits of what is told apart.
const (
	maxUsers    = 1 << 14
	maxCommands = 8
)

func newUsers(*collector) view { return &users{by: map[userKey]*userRow{}} }

func (v *users) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	u := v.of(s)
	v.calls++
	u.Calls++
	if s.Errno != 0 {
		u.Failed++
	}
	u.Read += uint64(s.io.Read)
	u.Written += uint64(s.io.Written)
	u.TookNS += s.took
	u.LastNS = max(u.LastNS, s.Exit)
	if !u.procs[s.proc.id] && len(u.procs) <= maxProcesses {
		u.procs[s.proc.id] = true
	}
	if comm := s.Comm; comm != "" && len(u.Commands) < maxCommands && !slices.Contains(u.Commands, comm) {
		u.Commands = append(u.Commands, comm)
	}
}

func (v *users) of(s *seen) *userRow {
	key := userKey{s.Host, s.UID}
	u := v.by[key]
	if u != nil {
		return u
	}
	if len(v.list) > maxUsers {
		return v.list[maxUsers]
	}
	u = &userRow{UID: s.UID, host: s.Host, FirstNS: s.Enter, procs: map[int]bool{}, Commands: []string{}}
	v.list = append(v.list, u)
	if len(v.list) > maxUsers {
		u.others = true
		return u
	}
	v.by[key] = u
	return u
}

func (v *users) section(c *collector) page.Section {
	hosts := len(c.tape.Manifest().Hosts)
	list := []userRow{}
	for _, u := range v.list {
		u.Processes, u.Share = len(u.procs), share(float64(u.Calls), float64(v.calls))
		u.FirstNS, u.LastNS = u.FirstNS-c.first, u.LastNS-c.first
		if hosts > 1 && !u.others {
			u.Host = c.tape.Host(u.host).Head.Host
		}
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b userRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Host, b.Host))
	})
	return page.Section{ID: "users", Title: "Users",
		Note: "By the user as whom files were accessed (the file-system uid). First and last are counted from the " +
			"first event.",
		Data: map[string]any{"users": list},
		Blocks: []page.Block{tableOf("", []string{"user", "calls", "of all", "failed", "read", "written", "in calls",
			"processes", "first", "last", "commands"}, 1, list, 5*c.o.Top, func(u *userRow) []string {
			name := fmt.Sprint(u.UID)
			if u.others {
				name = "(others)"
			}
			if u.Host != "" {
				name += " of " + u.Host
			}
			return []string{name, Count(u.Calls), Percent(u.Share, 1), Count(u.Failed), Size(u.Read), Size(u.Written),
				span(u.TookNS), Count(uint64(u.Processes)), span(u.FirstNS), span(u.LastNS), strings.Join(u.Commands, " ")}
		})}}
}
