// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/store"
)

// fillIDs makes a table of the identities of tapes.
func fillIDs(ctx context.Context, t *store.Tables, table string, ids iter.Seq[string]) error {
	return t.Fill(ctx, table, []store.Column{{Name: tapeIDColumn, Type: varcharType}},
		func(yield func([]driver.Value) bool) {
			for id := range ids {
				if !yield([]driver.Value{id}) {
					return
				}
			}
		})
}

// patterns are the openings of regular files by use and order, as in the section of tapes.
type patterns struct{ suite.PatternTable }

func (*patterns) table() string { return "opens" }

func (v *patterns) read(ctx context.Context, t *store.Tables, _ int32) error {
	return t.Each(ctx, `WITH o AS (SELECT *, greatest(bytes_read, 0) AS r, greatest(bytes_written, 0) AS w,
			coalesce(max_offset, 0) AS most FROM opens WHERE (mode & 61440) = 32768)
		SELECT CASE WHEN reads = 0 AND writes = 0 THEN 'unused' WHEN located = 0 AND r + w > 0 THEN 'unknown'
			WHEN writes = 0 THEN 'read_only' WHEN reads = 0 THEN 'write_only' ELSE 'read_write' END AS use,
			CASE WHEN located > 1 AND NOT coalesce(sequential, false) THEN 'random'
			WHEN most = r + w AND most = size_closed THEN 'whole' ELSE 'sequential' END AS kind,
			count(*), sum(r)::BIGINT, sum(w)::BIGINT
		FROM o GROUP BY ALL`, nil, func(row []any) error {
		use, _ := row[0].(string)
		order, _ := row[1].(string)
		n := uint64(number(row[2]))
		switch i, j := slices.Index(suite.PatternUses[:], use), slices.Index(suite.PatternOrders[:], order); {
		case use == "unused":
			v.Unused += n
		case i < 0 || j < 0:
			v.Unknown += n
		default:
			v.Cells[i][j].Add(suite.PatternCell{Accesses: n, Read: uint64(number(row[3])),
				Written: uint64(number(row[4]))})
		}
		return nil
	})
}

func (v *patterns) section() page.Section {
	return v.Section("An access is one opening of a regular file; it counts on the day when it began. docs/reports.md "+
		"has the definitions.", "the tapes do not know")
}

// sessions are the stretches of time in which files of a host were used. Intervals are counted from
// the first event of each host.
type sessions struct {
	o     suite.SessionOptions
	hosts map[string]*hostIntervals
}

type hostIntervals struct {
	first time.Time
	calls []uint64 // by interval
}

// Limits of the intervals of a host: with more, the range is too long for their length.
const (
	defaultInterval = 15 * time.Minute
	maxIntervals    = 1 << 20
)

func newSessions(o suite.SessionOptions) *sessions {
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	return &sessions{o, map[string]*hostIntervals{}}
}

func (*sessions) table() string { return "events" }

func (v *sessions) read(ctx context.Context, t *store.Tables, _ int32) error {
	err := t.Each(ctx, "SELECT host, min(time) FROM events GROUP BY host", nil, func(row []any) error {
		host, _ := row[0].(string)
		if first, _ := row[1].(time.Time); v.hosts[host] == nil {
			v.hosts[host] = &hostIntervals{first: first.UTC()}
		}
		return nil
	})
	if err != nil {
		return err
	}
	columns := []store.Column{{Name: hostColumn, Type: varcharType}, {Name: "first", Type: "TIMESTAMP"}}
	err = t.Fill(ctx, "begins", columns,
		func(yield func([]driver.Value) bool) {
			for host, h := range v.hosts {
				if !yield([]driver.Value{host, h.first}) {
					return
				}
			}
		})
	if err != nil {
		return err
	}
	// What is work on files is decided as in the package report.
	return t.Each(ctx, `SELECT e.host, greatest((epoch_us(e.time) - epoch_us(b.first)) // ?, 0)::BIGINT AS n, count(*)
		FROM events e JOIN begins b USING (host) WHERE e.kind = 'call' AND
			(e.class IN ('descriptor', 'meta', 'namespace', 'lock', 'sync')
			OR e.class = 'data' AND coalesce((e.mode & 61440) NOT IN (4096, 49152), true))
		GROUP BY ALL`, []any{max(v.o.Interval.Microseconds(), 1)}, func(row []any) error {
		host, _ := row[0].(string)
		n := number(row[1])
		if n >= maxIntervals {
			return fmt.Errorf("host %s has more than %d intervals of %s: choose a longer --interval, or a shorter "+
				"range", report.Printable(host), maxIntervals, v.o.Interval)
		}
		h := v.hosts[host]
		if missing := int(n) + 1 - len(h.calls); missing > 0 {
			h.calls = append(h.calls, make([]uint64, missing)...)
		}
		h.calls[n] += uint64(number(row[2]))
		return nil
	})
}

// hostSession is a session of a host.
type hostSession struct {
	Host     string    `json:"host"`
	Start    time.Time `json:"start"`
	LengthNS int64     `json:"length_ns"`
	Level    string    `json:"level"` // of the mean active interval
	Calls    uint64    `json:"calls"`
	Active   int       `json:"active"` // intervals
	Low      int       `json:"low"`    // of them
	Medium   int       `json:"medium"`
	High     int       `json:"high"`
}

func (v *sessions) section() page.Section {
	list, passing := []hostSession{}, 0
	for _, host := range slices.Sorted(maps.Keys(v.hosts)) {
		h := v.hosts[host]
		found, short := suite.FindSessions(v.o, h.calls)
		passing += short
		for _, s := range found {
			list = append(list, hostSession{host, h.first.Add(time.Duration(s.StartNS)), s.LengthNS, s.Level, s.Calls,
				s.Active, s.Low, s.Medium, s.High})
		}
	}
	slices.SortStableFunc(list, func(a, b hostSession) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Host, b.Host))
	})
	t := &page.Table{Left: 2,
		Head: []string{"host", "start", "length", "level", "calls", "active", "low", "medium", "high"}}
	for i := range list {
		s := &list[i]
		t.Add(s.Host, s.Start.Format(time.DateTime), report.Duration(s.LengthNS), s.Level, suite.Count(s.Calls),
			suite.Count(uint64(s.Active)), suite.Count(uint64(s.Low)), suite.Count(uint64(s.Medium)),
			suite.Count(uint64(s.High)))
	}
	return page.Section{ID: "sessions", Title: "Sessions",
		Note: "Time is divided into intervals, from the first event of each host in the range; one with enough calls " +
			"of files is active. A session is a stretch of active intervals with short gaps. Times are in UTC.",
		Data: map[string]any{"interval_ns": int64(v.o.Interval), "passing": passing, "sessions": list},
		Blocks: []page.Block{page.Line(fmt.Sprintf("intervals of %s; %s passing", report.Duration(int64(v.o.Interval)),
			suite.Count(uint64(passing)))), t}}
}
