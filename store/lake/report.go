// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/store"
)

// section sums up a table, piece by piece.
type section interface {
	table() string
	read(ctx context.Context, t *store.Tables, day int32) error
	section() page.Section
}

// Report computes the section of a name (tstat, users, patterns or sessions) over the rows of
// a range. Its numbers are those that the same section of the tapes has. The engine sums up,
// within its limit of memory; what is kept here is a row for each line of the result.
func (l *Lake) Report(ctx context.Context, name string, r *Range, o suite.SessionOptions) (*page.Page, error) {
	s, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	tapes, err := l.tapesOf(ctx, s, r)
	if err != nil {
		return nil, err
	}
	var v section
	switch name {
	case "tstat":
		v = &tstat{ops: map[string]*calls{}, hosts: map[string]*calls{}, systems: map[systemKey]*calls{}}
	case "users":
		v = &users{by: map[userKey]*userRow{}, ends: tapes.ends, seen: map[string]map[userPID]bool{}}
	case "patterns":
		v = &patterns{}
	case "sessions":
		v = newSessions(o)
	default:
		return nil, fmt.Errorf("there is no section %q of a lake", name)
	}
	err = l.pieces(ctx, s, v.table(), r, func(t *store.Tables, day int32) error { return v.read(ctx, t, day) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.where, err)
	}
	return &page.Page{Title: l.where, Lines: []string{tapes.line()}, Sections: []page.Section{v.section()}}, nil
}

// tapesIn are the tapes that begin in a range.
type tapesIn struct {
	tapes, incomplete, lost int64
	hosts                   map[string]bool
	ends                    map[string]int32 // the last days of tapes that are of several, of all ranges
}

func (l *Lake) tapesOf(ctx context.Context, s *state, r *Range) (*tapesIn, error) {
	k := &tapesIn{hosts: map[string]bool{}, ends: map[string]int32{}}
	all := &Range{Hosts: r.Hosts} // a tape may begin before the range
	err := l.pieces(ctx, s, summariesTable, all, func(t *store.Tables, _ int32) error {
		err := t.Each(ctx, `SELECT tape_id, CAST("end" AS DATE) FROM summaries
			WHERE CAST(start AS DATE) <> CAST("end" AS DATE)`, nil, func(v []any) error {
			id, _ := v[0].(string)
			day, _ := v[1].(time.Time)
			k.ends[id] = dayOf(day)
			return nil
		})
		if err != nil {
			return err
		}
		where := "true"
		if w := definitionOf(summariesTable).condition(r); w != "" {
			where = w
		}
		return t.Each(ctx, "SELECT host, count(*), count(*) FILTER (incomplete), coalesce(sum(lost), 0)::BIGINT "+
			"FROM summaries WHERE "+where+" GROUP BY host", nil, func(v []any) error {
			host, _ := v[0].(string)
			k.hosts[host] = true
			k.tapes, k.incomplete = k.tapes+number(v[1]), k.incomplete+number(v[2])
			k.lost += number(v[3])
			return nil
		})
	})
	return k, err
}

func (k *tapesIn) line() string {
	line := fmt.Sprintf("%s of %s begin in the range", report.Plural(uint64(k.tapes), "tape", "tapes"),
		report.Plural(len(k.hosts), "host", "hosts"))
	if k.incomplete > 0 {
		line += fmt.Sprintf("; %d incomplete, %s lost", k.incomplete,
			report.Plural(uint64(k.lost), "record", "records"))
	}
	return line
}

// number is a number of a row; NULL is 0.
func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func words(v any) (list []string) {
	all, _ := v.([]any)
	for _, w := range all {
		s, _ := w.(string)
		list = append(list, s)
	}
	return list
}

// calls are how many calls there were, and how many of them failed.
type calls struct{ calls, failed uint64 }

func (c *calls) add(n, failed int64) { c.calls, c.failed = c.calls+uint64(n), c.failed+uint64(failed) }

// callRow is a line of the tables of tstat.
type callRow struct {
	Op     string  `json:"op,omitempty"`
	Host   string  `json:"host,omitempty"`
	Device string  `json:"device,omitempty"`
	Calls  uint64  `json:"calls"`
	Share  float64 `json:"share"` // of all calls
	Failed uint64  `json:"failed"`
}

type systemKey struct {
	host string
	dev  string // major:minor, or what is none
}

// maxSystems limits what is told apart.
const maxSystems = 1 << 14

// tstat is how often each operation was called and failed, on which host and file system.
type tstat struct {
	ops, hosts map[string]*calls
	systems    map[systemKey]*calls
	all        calls
}

func (*tstat) table() string { return "events" }

func (v *tstat) read(ctx context.Context, t *store.Tables, _ int32) error {
	// A device is a number as Linux has it in st_dev (makedev(3)).
	return t.Each(ctx, `SELECT host, coalesce(op, printf('syscall_0x%x', nr)) AS op,
			CASE WHEN mode IS NULL THEN 'none known' WHEN mode & 61440 IN (0, 4096, 49152) THEN 'sockets, pipes'
			ELSE ((dev >> 8) & 4095) || ':' || ((dev & 255) | ((dev >> 12) & 1048320)) END AS device,
			count(*), count(errno)
		FROM events WHERE kind = 'call' GROUP BY ALL`, nil, func(row []any) error {
		host, _ := row[0].(string)
		op, _ := row[1].(string)
		on, _ := row[2].(string)
		n, failed := number(row[3]), number(row[4])
		v.all.add(n, failed)
		of(v.ops, op).add(n, failed)
		of(v.hosts, host).add(n, failed)
		key := systemKey{host, on}
		if v.systems[key] == nil && len(v.systems) >= maxSystems {
			key = systemKey{"", "others"}
		}
		of(v.systems, key).add(n, failed)
		return nil
	})
}

func of[K comparable](m map[K]*calls, key K) *calls {
	if m[key] == nil {
		m[key] = &calls{}
	}
	return m[key]
}

func (v *tstat) section() page.Section {
	rows := func(list []callRow) []callRow {
		for i := range list {
			list[i].Share = float64(list[i].Calls) / float64(v.all.calls)
		}
		slices.SortFunc(list, func(a, b callRow) int {
			return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Host, b.Host),
				cmp.Compare(a.Device, b.Device))
		})
		return list
	}
	ops, hosts, systems := []callRow{}, []callRow{}, []callRow{}
	for op, c := range v.ops {
		ops = append(ops, callRow{Op: op, Calls: c.calls, Failed: c.failed})
	}
	for host, c := range v.hosts {
		hosts = append(hosts, callRow{Host: host, Calls: c.calls, Failed: c.failed})
	}
	for key, c := range v.systems {
		systems = append(systems, callRow{Host: key.host, Device: key.dev, Calls: c.calls, Failed: c.failed})
	}
	ops, hosts, systems = rows(ops), rows(hosts), rows(systems)
	table := func(title string, head []string, list []callRow, names func(*callRow) []string) *page.Table {
		t := &page.Table{Title: title, Left: len(head),
			Head: append(head, "calls", "of all", "failed", "of its calls")}
		for i := range list {
			r := &list[i]
			t.Add(append(names(r), report.Count(r.Calls), suite.Percent(float64(r.Calls), float64(v.all.calls)),
				suite.Count(r.Failed), suite.Percent(float64(r.Failed), float64(r.Calls)))...)
		}
		return t
	}
	return page.Section{ID: "tstat", Title: "Calls by operation, host and file system",
		Note: "How often each operation was called and how often it failed. A file system is told by the number of " +
			"its device (major:minor). A call that does not show its device, as a lookup by name, is of none known.",
		Data: map[string]any{"calls": v.all.calls, "failed": v.all.failed, "ops": ops, "hosts": hosts,
			"file_systems": systems},
		Blocks: []page.Block{
			table("", []string{"operation"}, ops, func(r *callRow) []string { return []string{r.Op} }),
			table("Hosts", []string{"host"}, hosts, func(r *callRow) []string { return []string{r.Host} }),
			table("File systems", []string{"host", "device"}, systems, func(r *callRow) []string {
				return []string{r.Host, r.Device}
			}),
		}}
}

// users are on whose behalf files were accessed.
type users struct {
	by   map[userKey]*userRow
	ends map[string]int32            // the last days of tapes that are of several
	seen map[string]map[userPID]bool // processes of these tapes, which are counted once
}

type userKey struct {
	host string
	uid  int64
}

type userPID struct {
	user userKey
	pid  int64
}

type userRow struct {
	UID       int64     `json:"uid"`
	Host      string    `json:"host"`
	Calls     uint64    `json:"calls"`
	Share     float64   `json:"share"` // of all calls
	Failed    uint64    `json:"failed"`
	Read      uint64    `json:"read_bytes"`
	Written   uint64    `json:"written_bytes"`
	TookNS    uint64    `json:"took_ns"` // in calls
	Processes uint64    `json:"processes"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Commands  []string  `json:"commands"` // some
}

const (
	maxUsers    = 1 << 16
	maxCommands = 8
	minutes     = "2006-01-02 15:04"
)

func (*users) table() string { return "events" }

func (v *users) read(ctx context.Context, t *store.Tables, day int32) error {
	maps.DeleteFunc(v.seen, func(id string, _ map[userPID]bool) bool { return v.ends[id] < day })
	if err := fillIDs(ctx, t, "of_several_days", maps.Keys(v.ends)); err != nil {
		return err
	}
	err := t.Each(ctx, `SELECT host, uid, count(*), count(errno), sum(bytes_read)::BIGINT, sum(bytes_written)::BIGINT,
			coalesce(sum(duration_ns), 0)::BIGINT,
			count(DISTINCT (tape_id, pid)) FILTER (tape_id NOT IN (FROM of_several_days)),
			min(time), max(time + to_microseconds(coalesce(duration_ns, 0) // 1000)),
			list_sort(list_distinct(list(comm)))[:8]
		FROM events WHERE kind = 'call' GROUP BY host, uid`, nil, func(row []any) error {
		host, _ := row[0].(string)
		u := v.of(userKey{host, number(row[1])})
		u.Calls, u.Failed = u.Calls+uint64(number(row[2])), u.Failed+uint64(number(row[3]))
		u.Read, u.Written = u.Read+uint64(number(row[4])), u.Written+uint64(number(row[5]))
		u.TookNS, u.Processes = u.TookNS+uint64(number(row[6])), u.Processes+uint64(number(row[7]))
		first, _ := row[8].(time.Time)
		last, _ := row[9].(time.Time)
		if u.First.IsZero() || first.Before(u.First) {
			u.First = first.UTC()
		}
		if last.After(u.Last) {
			u.Last = last.UTC()
		}
		for _, comm := range words(row[10]) {
			if comm != "" && len(u.Commands) < maxCommands && !slices.Contains(u.Commands, comm) {
				u.Commands = append(u.Commands, comm)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.Each(ctx, `SELECT DISTINCT tape_id, host, uid, pid FROM events
		WHERE kind = 'call' AND tape_id IN (FROM of_several_days)`, nil, func(row []any) error {
		id, _ := row[0].(string)
		host, _ := row[1].(string)
		p := userPID{userKey{host, number(row[2])}, number(row[3])}
		if v.seen[id] == nil {
			v.seen[id] = map[userPID]bool{}
		}
		if !v.seen[id][p] {
			v.seen[id][p] = true
			v.of(p.user).Processes++
		}
		return nil
	})
}

// of returns the row of a user; beyond maxUsers all are one, -1.
func (v *users) of(key userKey) *userRow {
	if v.by[key] == nil && len(v.by) >= maxUsers {
		key = userKey{"", -1}
	}
	if v.by[key] == nil {
		v.by[key] = &userRow{UID: key.uid, Host: key.host, Commands: []string{}}
	}
	return v.by[key]
}

func (v *users) section() page.Section {
	list, all := []userRow{}, uint64(0)
	for _, u := range v.by {
		list, all = append(list, *u), all+u.Calls
	}
	slices.SortFunc(list, func(a, b userRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Host, b.Host))
	})
	t := &page.Table{Head: []string{"user", "host", "calls", "of all", "failed", "read", "written", "in calls",
		"processes", "first", "last", "commands"}, Left: 2}
	for i := range list {
		u := &list[i]
		u.Share = float64(u.Calls) / float64(all)
		name := fmt.Sprint(u.UID)
		if u.UID < 0 {
			name = "(others)"
		}
		t.Add(name, u.Host, report.Count(u.Calls), suite.Percent(float64(u.Calls), float64(all)), suite.Count(u.Failed),
			suite.Size(u.Read), suite.Size(u.Written), report.Duration(int64(u.TookNS)), suite.Count(u.Processes),
			u.First.Format(minutes), u.Last.Format(minutes), strings.Join(u.Commands, " "))
	}
	return page.Section{ID: "users", Title: "Users",
		Note: "By the user as whom files were accessed (the file-system uid), on each host. A process is a number " +
			"(pid) in a tape. Times are in UTC.",
		Data: map[string]any{"users": list}, Blocks: []page.Block{t}}
}
