// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
)

// Range selects rows. The zero Range selects all.
type Range struct {
	From, To time.Time // of the first instant, and behind the last one; zero: no limit
	Hosts    []string  // empty: all
	// Path selects the rows about one file by its name, or, if it ends with *, about those
	// whose names begin so. It is for the tables with a name: events, opens and files.
	Path string
}

// part is a file of a table, and the partition that it is in.
type part struct {
	path  string
	bytes int64
	rows  int64
	day   int32 // since 1970
	host  string
	// data is all that a manifest says of the file, some 35 KB: it is there only while eachPart visits the file.
	data iceberg.DataFile
}

const secondsOfDay = 24 * 60 * 60

// dayOf returns the day of a time, since 1970.
func dayOf(t time.Time) int32 { return int32(t.Unix() / secondsOfDay) }

// days returns the first and the last day of the range.
func (r *Range) days() (first, last int32) {
	first, last = -1<<31, 1<<31-1
	if !r.From.IsZero() {
		first = dayOf(r.From)
	}
	if !r.To.IsZero() {
		last = dayOf(r.To.Add(-1))
	}
	return first, last
}

// paths returns the bounds of the names that the range selects: the first one, and the first
// one behind them, "" if there is none.
func (r *Range) paths() (first, behind string) {
	prefix, whole := strings.CutSuffix(r.Path, "*")
	if !whole {
		return r.Path, r.Path + "\x00"
	}
	return prefix, after(prefix)
}

// after returns the first text behind all that begin with s, "" if there is none.
func after(s string) string {
	b := []byte(s)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0x7f { // stays UTF-8
			return string(append(b[:i:i], b[i]+1))
		}
	}
	return ""
}

// plan returns the files of a table that can have rows of a range, in the order of days and
// hosts: by the partitions of manifests, then by those of files and the bounds of their
// columns.
func (l *Lake) plan(ctx context.Context, d *definition, m *metadata, r *Range) (parts []*part, err error) {
	return l.planFor(ctx, d, m, r, nil)
}

// planFor is plan without the files that a statement does not need; its pruner may be nil.
func (l *Lake) planFor(ctx context.Context, d *definition, m *metadata, r *Range, q *pruner) (parts []*part,
	err error) {
	err = l.eachPart(ctx, d, m, r, q, func(p *part) {
		p.data = nil
		parts = append(parts, p)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(parts, func(a, b *part) int {
		if a.day != b.day {
			return int(a.day) - int(b.day)
		}
		return strings.Compare(a.host, b.host)
	})
	return parts, nil
}

// eachPart visits the files of planFor, in any order. It holds the files of one manifest at a time.
func (l *Lake) eachPart(ctx context.Context, d *definition, m *metadata, r *Range, q *pruner,
	visit func(*part)) error {
	list, err := l.manifests(ctx, m.current())
	if err == nil && q != nil {
		list, err = q.pruneManifests(ctx, d, list)
	}
	if err != nil {
		return err
	}
	for _, mf := range list {
		if !r.meets(mf.Partitions()) {
			continue
		}
		parts, err := l.partsOf(ctx, d, m, mf, r)
		if err == nil && q != nil {
			parts, err = q.prune(ctx, d, m.schema(), parts)
		}
		if err != nil {
			return err
		}
		for _, p := range parts {
			visit(p)
		}
	}
	return nil
}

// partsOf returns the files of a manifest that can have rows of a range.
func (l *Lake) partsOf(ctx context.Context, d *definition, m *metadata, mf iceberg.ManifestFile,
	r *Range) (parts []*part, err error) {
	entries, err := l.entries(ctx, mf)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		p := partOf(e.DataFile())
		if r.has(p) && d.bounded(m.schema(), p.data, r) {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// partOf returns a file with its partition. What it does not say is in no range's way.
func partOf(d iceberg.DataFile) *part {
	p := &part{path: d.FilePath(), bytes: d.FileSizeBytes(), rows: d.Count(), data: d}
	values := d.Partition()
	switch v := values[firstPartID].(type) {
	case iceberg.Date:
		p.day = int32(v)
	case int32:
		p.day = v
	case int:
		p.day = int32(v)
	case time.Time:
		p.day = dayOf(v)
	}
	p.host, _ = values[firstPartID+1].(string)
	return p
}

func (r *Range) has(p *part) bool {
	first, last := r.days()
	return p.day >= first && p.day <= last && (len(r.Hosts) == 0 || slices.Contains(r.Hosts, p.host))
}

// meets reports whether a manifest can have files of the range.
func (r *Range) meets(parts []iceberg.FieldSummary) bool {
	if len(parts) != 2 {
		return true
	}
	first, last := r.days()
	if low, high, ok := bounds(parts[0]); ok && len(low) == 4 && len(high) == 4 {
		if int32(binary.LittleEndian.Uint32(low)) > last || int32(binary.LittleEndian.Uint32(high)) < first {
			return false
		}
	}
	low, high, ok := bounds(parts[1])
	return !ok || len(r.Hosts) == 0 || slices.ContainsFunc(r.Hosts, func(h string) bool {
		return h >= string(low) && h <= string(high)
	})
}

func bounds(f iceberg.FieldSummary) (low, high []byte, ok bool) {
	if f.LowerBound == nil || f.UpperBound == nil || f.ContainsNull {
		return nil, nil, false
	}
	return *f.LowerBound, *f.UpperBound, true
}

// bounded reports whether the columns of a file leave room for rows of the range.
func (d *definition) bounded(s *iceberg.Schema, file iceberg.DataFile, r *Range) bool {
	column := func(name string) (low, high []byte) {
		f, ok := s.FindFieldByName(name)
		if name == "" || !ok || name == d.time && file.NullValueCounts()[f.ID] > 0 {
			return nil, nil
		}
		return file.LowerBoundValues()[f.ID], file.UpperBoundValues()[f.ID]
	}
	if low, high := column(d.time); len(low) == 8 && len(high) == 8 {
		from, to := int64(binary.LittleEndian.Uint64(low)), int64(binary.LittleEndian.Uint64(high))
		if !r.From.IsZero() && to < r.From.UnixMicro() || !r.To.IsZero() && from >= r.To.UnixMicro() {
			return false
		}
	}
	low, high := column(d.path)
	if r.Path == "" || low == nil || high == nil {
		return true
	}
	first, behind := r.paths()
	return string(high) >= first && (behind == "" || string(low) < behind)
}

// condition returns what rows of the range fulfil, "" if all do.
func (d *definition) condition(r *Range) string {
	var list []string
	stamp := func(t time.Time) string { return "TIMESTAMP " + text(t.UTC().Format("2006-01-02 15:04:05.999999")) }
	day := func(t time.Time) string { return "DATE " + text(t.UTC().Format(time.DateOnly)) }
	if !r.From.IsZero() {
		list = append(list, dayColumn+" >= "+day(r.From))
		if d.time != "" {
			list = append(list, "coalesce("+name(d.time)+" >= "+stamp(r.From)+", true)") // unknown: its day counts
		}
	}
	if !r.To.IsZero() {
		list = append(list, dayColumn+" <= "+day(r.To.Add(-1)))
		if d.time != "" {
			list = append(list, "coalesce("+name(d.time)+" < "+stamp(r.To)+", true)")
		}
	}
	if len(r.Hosts) > 0 {
		var hosts []string
		for _, h := range r.Hosts {
			hosts = append(hosts, text(h))
		}
		list = append(list, hostColumn+" IN ("+strings.Join(hosts, ", ")+")")
	}
	if r.Path != "" && d.path != "" {
		first, behind := r.paths()
		if _, prefix := strings.CutSuffix(r.Path, "*"); prefix {
			list = append(list, name(d.path)+" >= "+text(first))
			if behind != "" {
				list = append(list, name(d.path)+" < "+text(behind))
			}
		} else {
			list = append(list, name(d.path)+" = "+text(first))
		}
	}
	return strings.Join(list, " AND ")
}
