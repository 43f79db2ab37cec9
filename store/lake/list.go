// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"time"
)

// Table is what List says of a table.
type Table struct {
	Name      string
	Rows      int64
	Files     int
	Bytes     int64
	Hosts     int
	First     time.Time // day; zero if there are no rows
	Last      time.Time
	Snapshots int
	Location  string // of the table
	Metadata  string // of its current metadata file
}

// List returns the tables of the lake.
func (l *Lake) List(ctx context.Context) (list []Table, err error) {
	s, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range definitions() {
		m := s.tables[d.name]
		parts, err := l.plan(ctx, d, m, &Range{})
		if err != nil {
			return nil, err
		}
		t := Table{Name: d.name, Files: len(parts), Snapshots: len(m.Snapshots), Location: m.Location,
			Metadata: l.tables.address(s, d.name)}
		hosts := map[string]bool{}
		for _, p := range parts {
			t.Rows += p.rows
			t.Bytes += p.bytes
			hosts[p.host] = true
		}
		if t.Hosts = len(hosts); len(parts) > 0 { // in the order of days
			t.First = (&partition{day: parts[0].day}).time()
			t.Last = (&partition{day: parts[len(parts)-1].day}).time()
		}
		list = append(list, t)
	}
	return list, nil
}
