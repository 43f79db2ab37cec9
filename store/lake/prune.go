// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/store"
)

// pruner finds by a statement's own conditions which files it can need. The conditions are
// those that the engine's parser sees. Each is made weaker until it asks only for what is
// known of a file (its day and host, and the least and largest values of its columns), and the
// engine decides which files fit. So types and functions mean the same as in the statement. What
// is not understood excludes no file.
type pruner struct {
	tables   *store.Tables
	reads    *reads
	pure     map[string]bool // functions of their arguments alone
	template string          // the syntax of a SELECT with a condition, which is replaced
	off      bool            // no file is excluded
}

// The table of files that the engine is asked.
const (
	filesTable   = "files_to_prune"
	numberColumn = "number_of_file"
	leastSuffix  = " least" // no column of a lake has a space in its name
	mostSuffix   = " most"
)

// newPruner returns the pruner of a statement, which must be closed. Whether the statement is
// right is for the engine to say when it runs.
func newPruner(ctx context.Context, query string, o *store.QueryOptions) (*pruner, error) {
	tables, err := store.OpenTables(ctx, nil, "", o)
	if err != nil {
		return nil, err
	}
	p := &pruner{tables: tables}
	if err := p.learn(ctx, query); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pruner) learn(ctx context.Context, query string) error {
	syntax, err := p.tables.Syntax(ctx, query)
	if err != nil {
		return err
	}
	if p.reads, err = readsOf(syntax); err != nil {
		return err
	}
	if p.reads.all { // it may be no statement at all
		if _, err := store.TablesOf(ctx, query); err != nil {
			return err
		}
	}
	if p.pure, err = p.tables.PureFunctions(ctx); err != nil {
		return err
	}
	p.template, err = p.tables.Syntax(ctx, "SELECT "+numberColumn+" FROM "+filesTable+" WHERE true")
	return err
}

func (p *pruner) close() error { return p.tables.Close() }

// fileBounds is what is known of a file, or of all files of a manifest.
type fileBounds struct {
	day, host   any // nil if the files have several, or if they are not known
	least, most map[string]any
}

// fits returns the numbers of those files that can have rows which the statement needs of a
// table. exact is set if each is of one day and host.
func (p *pruner) fits(ctx context.Context, d *definition, exact bool, n int,
	of func(i int, columns []store.Column) fileBounds) (fit []bool, err error) {
	fit = slices.Repeat([]bool{true}, n)
	var conditions []node
	w := &weaker{p: p, d: d, exact: exact, columns: map[string]store.Column{}}
	for _, u := range p.reads.of(d.name) {
		w.use = &u
		conditions = append(conditions, w.condition(u.where))
	}
	where := join(conjunctionOr, conditions)
	if where == nil || n == 0 || p.off {
		return fit, nil
	}
	query, err := p.question(ctx, where)
	if err != nil {
		return nil, err
	}
	columns := slices.SortedFunc(maps.Values(w.columns), func(a, b store.Column) int {
		return strings.Compare(a.Name, b.Name)
	})
	table := []store.Column{{Name: numberColumn, Type: "BIGINT"}, {Name: dayColumn, Type: "DATE"},
		{Name: hostColumn, Type: varcharType}}
	for _, c := range columns {
		table = append(table, store.Column{Name: c.Name + leastSuffix, Type: c.Type},
			store.Column{Name: c.Name + mostSuffix, Type: c.Type})
	}
	if err := p.tables.Fill(ctx, filesTable, table, fileRows(n, columns, of)); err != nil {
		return nil, err
	}
	found := make([]bool, n)
	err = p.tables.Each(ctx, query, nil, func(values []any) error {
		if i, ok := values[0].(int64); ok {
			found[i] = true
		}
		return nil
	})
	if err != nil && ctx.Err() == nil { // a condition that fails on some values excludes nothing
		return fit, nil
	}
	return found, err
}

func fileRows(n int, columns []store.Column, of func(int, []store.Column) fileBounds) iter.Seq[[]driver.Value] {
	return func(yield func([]driver.Value) bool) {
		for i := range n {
			b := of(i, columns)
			row := []driver.Value{int64(i), b.day, b.host}
			for _, c := range columns {
				row = append(row, b.least[c.Name], b.most[c.Name])
			}
			if !yield(row) {
				return
			}
		}
	}
}

// question returns the SELECT of the files that fulfil a condition.
func (p *pruner) question(ctx context.Context, where node) (string, error) {
	var n struct {
		Error      bool   `json:"error"`
		Statements []node `json:"statements"`
	}
	d := json.NewDecoder(strings.NewReader(p.template))
	d.UseNumber()
	if err := d.Decode(&n); err != nil || len(n.Statements) != 1 {
		return "", errors.Join(err, errors.New("the engine's syntax of statements is not the expected one"))
	}
	child(n.Statements[0], "node")["where_clause"] = where
	syntax, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	return p.tables.Statement(ctx, string(syntax))
}

// prune returns those files of a table that the statement can need.
func (p *pruner) prune(ctx context.Context, d *definition, s *iceberg.Schema, parts []*part) ([]*part, error) {
	fit, err := p.fits(ctx, d, true, len(parts), func(i int, columns []store.Column) fileBounds {
		return boundsOf(d, s, parts[i], columns)
	})
	if err != nil {
		return nil, err
	}
	return chosen(parts, fit), nil
}

// pruneManifests returns those manifests of a table that have files which the statement can need.
func (p *pruner) pruneManifests(ctx context.Context, d *definition,
	list []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	fit, err := p.fits(ctx, d, false, len(list), func(i int, _ []store.Column) fileBounds {
		b := fileBounds{least: map[string]any{}, most: map[string]any{}}
		parts := list[i].Partitions()
		if len(parts) != 2 {
			return b
		}
		if low, high, ok := bounds(parts[0]); ok && len(low) == 4 && len(high) == 4 {
			b.days(d, int32(binary.LittleEndian.Uint32(low)), int32(binary.LittleEndian.Uint32(high)))
		}
		if low, high, ok := bounds(parts[1]); ok {
			b.least[hostColumn], b.most[hostColumn] = validText(low), validText(high)
		}
		return b
	})
	if err != nil {
		return nil, err
	}
	return chosen(list, fit), nil
}

func chosen[T any](list []T, fit []bool) (left []T) {
	for i, v := range list {
		if fit[i] {
			left = append(left, v)
		}
	}
	return left
}

// days gives bounds the first and the last day, which are those of the rows' times, too.
func (b *fileBounds) days(d *definition, first, last int32) {
	from, to := (&partition{day: first}).time(), (&partition{day: last}).time()
	b.least[dayColumn], b.most[dayColumn] = from, to
	if d.time != "" {
		b.least[d.time], b.most[d.time] = from, to.AddDate(0, 0, 1)
	}
}

// boundsOf returns what a file's manifest says of it.
func boundsOf(d *definition, s *iceberg.Schema, p *part, columns []store.Column) fileBounds {
	b := fileBounds{least: map[string]any{}, most: map[string]any{}}
	b.days(d, p.day, p.day)
	b.day, b.host = b.least[dayColumn], p.host
	b.least[hostColumn], b.most[hostColumn] = p.host, p.host
	for _, c := range columns {
		f, ok := s.FindFieldByName(c.Name)
		if c.Name == dayColumn || c.Name == hostColumn || !ok {
			continue
		}
		low, ok1 := readBound(c.Type, p.data.LowerBoundValues()[f.ID])
		high, ok2 := readBound(c.Type, p.data.UpperBoundValues()[f.ID])
		if ok1 && ok2 {
			b.least[c.Name], b.most[c.Name] = low, high
		}
	}
	return b
}

// readBound reads a bound as manifests have it.
func readBound(typ string, b []byte) (any, bool) {
	switch {
	case b == nil:
	case typ == varcharType:
		return string(b), utf8.Valid(b)
	case typ == "INTEGER" && len(b) == 4:
		return int32(binary.LittleEndian.Uint32(b)), true
	case typ == "DATE" && len(b) == 4:
		return (&partition{day: int32(binary.LittleEndian.Uint32(b))}).time(), true
	case typ == "BIGINT" && len(b) == 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	case typ == "TIMESTAMP" && len(b) == 8:
		return time.UnixMicro(int64(binary.LittleEndian.Uint64(b))).UTC(), true
	}
	return nil, false
}

// validText returns a text, or nil if the engine would not take it.
func validText(b []byte) any {
	if !utf8.Valid(b) {
		return nil
	}
	return string(b)
}
