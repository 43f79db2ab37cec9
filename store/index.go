package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"

	"iotape/event"
	"iotape/trace"
)

// IndexVersion is the version of the derived tables. An index of another version
// is made anew.
const IndexVersion = 1

// tableNames are the tables, each NAME.parquet.
var tableNames = []string{"events", "processes", "files"}

func parquetName(table string) string { return table + ".parquet" }

// Index derives events.parquet, processes.parquet and files.parquet from the tape
// and replaces those that are there. If progress is not nil, it is called now and
// then with events.
func Index(ctx context.Context, t *trace.Tape, progress func(done, total int64)) (err error) {
	db, err := open(nil)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open engine: %w", err)
	}
	defer conn.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("index %s: %w", t.Dir(), err)
			for _, name := range tableNames {
				os.Remove(filepath.Join(t.Dir(), parquetName(name)+".tmp"))
			}
		}
	}()
	hosts, sum := hostNames(t), newSummary(t)
	src := &eventSource{ctx: ctx, tape: t, reader: t.NewEventReader(), hosts: hosts, sum: sum, progress: progress}
	if err := copyTable(ctx, conn, t.Dir(), "events", eventColumns(hosts), src.next, "seq, make_timestamp_ns(wall_ns) AS time, * EXCLUDE (seq, wall_ns)"); err != nil {
		return errors.Join(src.err, err)
	}
	if err := copyTable(ctx, conn, t.Dir(), "processes", processColumns(hosts), items(sum.processes),
		"make_timestamp_ns(start_wall_ns) AS start_time, make_timestamp_ns(end_wall_ns) AS end_time, * EXCLUDE (start_wall_ns, end_wall_ns)"); err != nil {
		return err
	}
	if err := copyTable(ctx, conn, t.Dir(), "files", fileColumns(hosts), items(sum.files),
		"make_timestamp_ns(first_wall_ns) AS first_time, make_timestamp_ns(last_wall_ns) AS last_time, * EXCLUDE (first_wall_ns, last_wall_ns)"); err != nil {
		return err
	}
	var files []string
	for _, name := range tableNames {
		path := filepath.Join(t.Dir(), parquetName(name))
		if err := os.Rename(path+".tmp", path); err != nil {
			return err
		}
		files = append(files, parquetName(name))
	}
	return t.SetDerived(ctx, IndexVersion, files)
}

// batch is what one thread of the engine works on.
type batch[R any] struct {
	rows []*R
	kept []*R // to be used again
}

// items hands out the elements of a slice.
func items[R any](s []*R) func(b *batch[R], limit int) error {
	return func(b *batch[R], limit int) error {
		n := min(limit, len(s))
		b.rows, s = s[:n], s[n:]
		return nil
	}
}

// eventSource hands out the events of a tape and sums them up on the way.
type eventSource struct {
	ctx      context.Context
	tape     *trace.Tape
	reader   *trace.EventReader
	hosts    []string
	sum      *summary
	progress func(done, total int64)
	done     int64
	ended    bool
	err      error
}

// next fills a batch. Its rows keep their own events; only the inline content of
// these is gone afterwards, which the summary alone needs.
func (s *eventSource) next(b *batch[row], limit int) error {
	if s.progress != nil {
		s.progress(s.done, int64(s.tape.Manifest().Counts.Events))
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return s.err
	}
	for len(b.kept) < limit {
		b.kept = append(b.kept, &row{Event: new(event.Event)})
	}
	b.rows = b.kept[:limit]
	for n, r := range b.rows {
		if s.ended {
			b.rows = b.rows[:n]
			return nil
		}
		err := s.reader.Next(r.Event)
		if err == io.EOF {
			s.ended = true
			b.rows = b.rows[:n]
			return nil
		}
		if err != nil {
			s.err = err
			return err
		}
		s.done++
		r.set(r.Event)
		r.host = s.hosts[min(int(r.Host), len(s.hosts)-1)]
		r.wall = s.tape.Host(r.Host).Wall(r.Enter)
		s.sum.add(r)
	}
	return nil
}

// source makes a DuckDB table function of batches. Its threads take turns to get
// one and fill their chunks from it side by side.
type source[R any] struct {
	columns []column[R]
	infos   []duckdb.ColumnInfo
	mu      sync.Mutex
	next    func(b *batch[R], limit int) error
}

func (s *source[R]) ColumnInfos() []duckdb.ColumnInfo     { return s.infos }
func (s *source[R]) Cardinality() *duckdb.CardinalityInfo { return nil }
func (s *source[R]) Init() duckdb.ParallelTableSourceInfo { return duckdb.ParallelTableSourceInfo{} }
func (s *source[R]) NewLocalState() any                   { return new(batch[R]) }

// FillChunk is called until it leaves the chunk empty.
func (s *source[R]) FillChunk(local any, chunk duckdb.DataChunk) error {
	b := local.(*batch[R])
	s.mu.Lock()
	err := s.next(b, duckdb.GetDataChunkCapacity())
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for c := range s.columns {
		fill := s.columns[c].fill
		for n, r := range b.rows {
			if err := fill(chunk, c, n, r); err != nil {
				return fmt.Errorf("column %s: %w", s.columns[c].name, err)
			}
		}
	}
	return chunk.SetSize(len(b.rows))
}

// copyTable writes the rows to NAME.parquet.tmp.
func copyTable[R any](ctx context.Context, conn *sql.Conn, dir, name string, columns []column[R], next func(*batch[R], int) error, project string) error {
	s := &source[R]{columns: columns, next: next}
	for i := range columns {
		info, err := columns[i].info()
		if err != nil {
			return fmt.Errorf("column %s: %w", columns[i].name, err)
		}
		s.infos = append(s.infos, info)
	}
	f := duckdb.ParallelChunkTableFunction{BindArguments: func(map[string]any, ...any) (duckdb.ParallelChunkTableSource, error) { return s, nil }}
	if err := duckdb.RegisterTableUDF(conn, "iotape_"+name, f); err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	path := filepath.Join(dir, parquetName(name)+".tmp")
	_, err := conn.ExecContext(ctx, fmt.Sprintf("COPY (SELECT %s FROM iotape_%s()) TO %s (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 131072)", project, name, quote(path)))
	if err != nil {
		return fmt.Errorf("write %s: %w", parquetName(name), err)
	}
	return nil
}

// quote makes a string literal of SQL.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Indexed reports whether the tape has a sound index of this program's version.
// The error says what is wrong with it. Sizes are compared, hashes are not:
// Tape.Check does that.
func Indexed(t *trace.Tape) error {
	d, err := t.Derived()
	if err != nil {
		return err
	}
	if d.Version != IndexVersion {
		return fmt.Errorf("index of version %d, wants %d", d.Version, IndexVersion)
	}
	for _, name := range tableNames {
		sum, ok := d.Files[parquetName(name)]
		if !ok {
			return fmt.Errorf("index without %s: %w", parquetName(name), trace.ErrCorrupt)
		}
		st, err := os.Stat(filepath.Join(t.Dir(), parquetName(name)))
		if err != nil {
			return err
		}
		if st.Size() != sum.Bytes {
			return fmt.Errorf("%s has %d bytes, wants %d: %w", parquetName(name), st.Size(), sum.Bytes, trace.ErrCorrupt)
		}
	}
	return nil
}
