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
const IndexVersion = 2

// tableNames are the tables, each NAME.parquet.
var tableNames = []string{"events", "processes", "files"}

func parquetName(table string) string { return table + ".parquet" }

// Index derives events.parquet, processes.parquet and files.parquet from the tape
// and replaces those that are there. If progress is not nil, it is called now and
// then with events.
func Index(ctx context.Context, t *trace.Tape, progress func(done, total int64)) (err error) {
	// One thread: more of them spend their time on waiting for each other, and the
	// rows stay in order.
	db, err := open(&QueryOptions{Threads: 1})
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
			err = fmt.Errorf("index %s: %w", t.Name(), err)
			for _, name := range tableNames {
				os.Remove(filepath.Join(t.Dir(), parquetName(name)+".tmp"))
			}
		}
	}()
	hosts, sum := hostNames(t), newSummary(t)
	if err := copyEvents(ctx, conn, newEventSource(t, hosts, sum, progress)); err != nil {
		return err
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

func copyEvents(ctx context.Context, conn *sql.Conn, src *eventSource) error {
	decode, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { src.produce(decode) })
	err := copyTable(ctx, conn, src.tape.Dir(), "events", eventColumns(src.hosts), src.next, "seq, make_timestamp_ns(wall_ns) AS time, * EXCLUDE (seq, wall_ns)")
	cancel()
	wg.Wait()
	if err != nil {
		return errors.Join(src.err, err)
	}
	return nil
}

// batch is what the engine takes at once.
type batch[R any] struct{ rows []*R }

// items hands out the elements of a slice.
func items[R any](s []*R) func(b *batch[R], limit int) error {
	return func(b *batch[R], limit int) error {
		n := min(limit, len(s))
		b.rows, s = s[:n], s[n:]
		return nil
	}
}

// eventSource decodes the events of a tape and sums them up, in a goroutine beside
// the engine's thread.
//
//	produce ──full──▶ next ──▶ engine
//	   ▲───────free────┘
type eventSource struct {
	tape     *trace.Tape
	reader   *trace.EventReader
	hosts    []string
	sum      *summary
	progress func(done, total int64)
	free     chan *batch[row]
	full     chan *batch[row]
	current  *batch[row] // with the engine
	err      error       // to be read when full is closed
}

const eventBatches = 3

func newEventSource(t *trace.Tape, hosts []string, sum *summary, progress func(done, total int64)) *eventSource {
	s := &eventSource{
		tape: t, reader: t.NewEventReader(), hosts: hosts, sum: sum, progress: progress,
		free: make(chan *batch[row], eventBatches), full: make(chan *batch[row], eventBatches),
	}
	for range eventBatches {
		b := new(batch[row])
		for range duckdb.GetDataChunkCapacity() {
			b.rows = append(b.rows, &row{Event: new(event.Event)})
		}
		s.free <- b
	}
	return s
}

// produce fills batches until the events or ctx end. The rows keep their own events;
// only the inline content of these does not last, which the summary alone needs.
func (s *eventSource) produce(ctx context.Context) {
	defer close(s.full)
	done, total := int64(0), int64(s.tape.Manifest().Counts.Events)
	for {
		if s.progress != nil {
			s.progress(done, total)
		}
		var b *batch[row]
		select {
		case b = <-s.free:
		case <-ctx.Done():
			s.err = ctx.Err()
			return
		}
		for n, r := range b.rows {
			err := s.reader.Next(r.Event)
			if err != nil {
				if err != io.EOF {
					s.err = err
					return
				}
				b.rows = b.rows[:n]
				if n > 0 {
					s.full <- b
				}
				if s.progress != nil {
					s.progress(done, total)
				}
				return
			}
			done++
			r.set(r.Event)
			r.host = s.hosts[min(int(r.Host), len(s.hosts)-1)]
			r.wall = s.tape.Host(r.Host).Wall(r.Enter)
			s.sum.add(r)
		}
		s.full <- b
	}
}

// next hands out a batch and takes back the one before.
func (s *eventSource) next(b *batch[row], _ int) error {
	if s.current != nil {
		s.free <- s.current
	}
	var ok bool
	if s.current, ok = <-s.full; !ok {
		b.rows = nil
		return s.err
	}
	b.rows = s.current.rows
	return nil
}

// source makes a DuckDB table function of batches.
type source[R any] struct {
	columns []column[R]
	infos   []duckdb.ColumnInfo
	batch   batch[R]
	next    func(b *batch[R], limit int) error
}

func (s *source[R]) ColumnInfos() []duckdb.ColumnInfo     { return s.infos }
func (s *source[R]) Cardinality() *duckdb.CardinalityInfo { return nil }
func (s *source[R]) Init()                                {}

// FillChunk is called until it leaves the chunk empty.
func (s *source[R]) FillChunk(chunk duckdb.DataChunk) error {
	if err := s.next(&s.batch, duckdb.GetDataChunkCapacity()); err != nil {
		return err
	}
	for c := range s.columns {
		fill := s.columns[c].fill
		for n, r := range s.batch.rows {
			if err := fill(chunk, c, n, r); err != nil {
				return fmt.Errorf("column %s: %w", s.columns[c].name, err)
			}
		}
	}
	return chunk.SetSize(len(s.batch.rows))
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
	f := duckdb.ChunkTableFunction{BindArguments: func(map[string]any, ...any) (duckdb.ChunkTableSource, error) { return s, nil }}
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
