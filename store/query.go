// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// ErrNotAllowed is wrapped by Query for statements that do more than select.
var ErrNotAllowed = errors.New("only a single SELECT is allowed")

const defaultMemoryBytes = 1 << 30

// QueryOptions are options of Query; nil and zero mean the defaults.
type QueryOptions struct {
	// MemoryBytes limits the engine's memory; 0 is 1 GiB. What does not fit is
	// spilled to a directory in os.TempDir that goes with the query.
	MemoryBytes int64
	Threads     int // 0 is one per core
}

// open starts an engine without a database of its own.
func open(o *QueryOptions) (*sql.DB, error) {
	if o == nil {
		o = new(QueryOptions)
	}
	memory := o.MemoryBytes
	if memory == 0 {
		memory = defaultMemoryBytes
	}
	init := []string{
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET enable_progress_bar = false",
		fmt.Sprintf("SET memory_limit = '%dKiB'", max(memory/1024, 1)),
		"SET TimeZone = 'UTC'",
	}
	if o.Threads > 0 {
		init = append(init, fmt.Sprintf("SET threads = %d", o.Threads))
	}
	c, err := duckdb.NewConnector("", func(conn driver.ExecerContext) error {
		for _, s := range init {
			if _, err := conn.ExecContext(context.Background(), s, nil); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	return db, nil
}

// session is an engine that has the tables of some tapes as views, and may open
// nothing else.
type session struct {
	db    *sql.DB
	conn  *sql.Conn
	spill *wholefile.NewDir
}

// begin starts a session, in which the file out can be written, unless that is "".
func begin(ctx context.Context, tapes []*trace.Tape, out string, o *QueryOptions) (_ *session, err error) {
	if len(tapes) == 0 {
		return nil, errors.New("query without a tape")
	}
	for _, t := range tapes {
		if err := Indexed(t); err != nil {
			return nil, fmt.Errorf("query %s: %w", t.Name(), err)
		}
	}
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := registerChunks(s.conn, tapes); err != nil {
		return nil, fmt.Errorf("prepare query: %w", err)
	}
	for _, st := range setup(tapes, s.spill.Temp, out) {
		if err := s.exec(ctx, st); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newSession starts an engine that has nothing yet.
func newSession(ctx context.Context, o *QueryOptions) (*session, error) {
	db, err := open(o)
	if err != nil {
		return nil, err
	}
	s := &session{db: db}
	if s.spill, err = wholefile.TempDir("iotape-query"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if s.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open engine: %w", err), s.close())
	}
	return s, nil
}

// exec runs a statement that prepares others.
func (s *session) exec(ctx context.Context, statement string) error {
	if _, err := s.conn.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("prepare query: %w", err)
	}
	return nil
}

func (s *session) close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(append(errs, s.db.Close(), s.spill.Close())...)
}

// Rows is a running query's result. It must be closed.
type Rows struct {
	session *session
	rows    *sql.Rows
	columns []string
	values  []any
	scan    []any
	err     error
}

// Query runs one SELECT over the views events, processes, files, opens and content of
// the tapes, which must be indexed and stay open. Each view has the column tape, the
// base name of what was opened, or the whole name if two have the same. The statement can read
// nothing else: no files, no network. Rows are handed out as they are read; the engine holds the result within
// its memory limit.
func Query(ctx context.Context, tapes []*trace.Tape, query string, o *QueryOptions) (*Rows, error) {
	s, err := begin(ctx, tapes, "", o)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, query)
}

// query runs one SELECT. The rows own the session; after an error it is closed.
func (s *session) query(ctx context.Context, query string, args ...any) (_ *Rows, err error) {
	r := &Rows{session: s}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := selects(ctx, s.conn, query); err != nil {
		return nil, err
	}
	if r.rows, err = s.conn.QueryContext(ctx, query, args...); err != nil {
		return nil, fromEngine(err)
	}
	if r.columns, err = r.rows.Columns(); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	r.values, r.scan = make([]any, len(r.columns)), make([]any, len(r.columns))
	for i := range r.values {
		r.scan[i] = &r.values[i]
	}
	return r, nil
}

// Export is Query with the result in a Parquet file, which is replaced if it is there
// and left as it is after an error. It returns the number of rows.
func Export(ctx context.Context, tapes []*trace.Tape, query, file string, o *QueryOptions) (rows int64, err error) {
	if st, err := os.Stat(file); err == nil && !st.Mode().IsRegular() {
		return 0, fmt.Errorf("export: %s is no regular file", file)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	wholefile.RemoveLeft(path)
	work, err := wholefile.CreateDir(path, 0o700)
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	defer work.Close()
	tmp := filepath.Join(work.Temp, "result")
	s, err := begin(ctx, tapes, tmp, o)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := selects(ctx, s.conn, query); err != nil {
		return 0, err
	}
	// The engine's function query takes one SELECT as a string: whatever is in it, it
	// does not end this statement.
	done, err := s.conn.ExecContext(ctx,
		fmt.Sprintf("COPY (SELECT * FROM query(%s)) TO %s (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)",
			quote(query), quote(tmp)))
	if err != nil {
		return 0, fmt.Errorf("query: %w", err)
	}
	if rows, err = done.RowsAffected(); err != nil {
		return 0, fmt.Errorf("query: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	return rows, nil
}

// setup returns the statements that make the views and then lock the engine.
func setup(tapes []*trace.Tape, spill, out string) []string {
	var s, allowed []string
	names := tapeNames(tapes)
	for _, name := range tableNames {
		var parts []string
		for i, t := range tapes {
			path := filepath.Join(t.DerivedDir(), parquetName(name))
			allowed = append(allowed, quote(path), quote(glob(path)))
			columns := "*"
			if name == "content" {
				columns = fmt.Sprintf(
					"* EXCLUDE (bytes), coalesce(bytes, %s(%d::UBIGINT, chunk::UBIGINT, chunk_offset::UBIGINT, "+
						"length::UBIGINT)) AS data", chunkFunction, i)
			}
			parts = append(parts, fmt.Sprintf("SELECT %s AS tape, %s FROM read_parquet(%s)", quote(names[i]),
				columns, quote(glob(path))))
		}
		s = append(s, fmt.Sprintf("CREATE VIEW %s AS %s", name, strings.Join(parts, " UNION ALL BY NAME ")))
	}
	if out != "" {
		allowed = append(allowed, quote(out))
	}
	return append(s,
		"SET temp_directory = "+quote(spill),
		"SET allowed_paths = ["+strings.Join(allowed, ", ")+"]",
		"SET enable_external_access = false",
		"SET lock_configuration = true")
}

// tapeNames returns what the column tape calls each tape: its base name, or the name
// that it was opened by where those are not distinct.
func tapeNames(tapes []*trace.Tape) (names []string) {
	times := map[string]int{}
	for _, t := range tapes {
		times[filepath.Base(t.Name())]++
	}
	for _, t := range tapes {
		name := filepath.Base(t.Name())
		if times[name] > 1 {
			name = t.Name()
		}
		names = append(names, text(name))
	}
	return names
}

// glob escapes what read_parquet takes for a pattern.
func glob(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// engineError is an error of the engine without its excerpt of the statement, whose arrow points nowhere on one line.
type engineError struct{ error }

// Error returns the message up to the excerpt.
func (e engineError) Error() string {
	text, _, _ := strings.Cut(e.error.Error(), "\n\nLINE ")
	if e.noTable() {
		text, _, _ = strings.Cut(text, "\n") // tables of the engine's own are proposed
	}
	return text
}

// noTable reports whether a statement names a table that there is not.
func (e engineError) noTable() bool {
	return strings.HasPrefix(e.error.Error(), "Catalog Error: Table with name ")
}

// fromEngine returns the error of a query.
func fromEngine(err error) error {
	e := engineError{err}
	err = fmt.Errorf("query: %w", e)
	if e.noTable() {
		return hint.With(err, "iotape query --help names the tables")
	}
	return err
}

// Unwrap returns the engine's own error.
func (e engineError) Unwrap() error { return e.error }

// selects checks that query is one SELECT: nothing else could be kept from writing
// to the files that the views read.
func selects(ctx context.Context, conn *sql.Conn, query string) error {
	return conn.Raw(func(c any) error {
		st, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		if err != nil {
			return fromEngine(err)
		}
		defer st.Close()
		s, ok := st.(*duckdb.Stmt)
		if !ok {
			return fmt.Errorf("query: statement of type %T", st)
		}
		typ, err := s.StatementType()
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		if typ != duckdb.STATEMENT_TYPE_SELECT {
			return fmt.Errorf("query: %w", ErrNotAllowed)
		}
		return nil
	})
}

// Columns returns the names of the result's columns.
func (r *Rows) Columns() []string { return r.columns }

// Next advances to the next row; false at the end or after an error, see Err.
func (r *Rows) Next() bool {
	if r.err != nil || !r.rows.Next() {
		return false
	}
	r.err = r.rows.Scan(r.scan...)
	return r.err == nil
}

// Values returns the current row, valid until Next. NULL is nil.
func (r *Rows) Values() []any { return r.values }

// Err returns the error that ended the rows, if any.
func (r *Rows) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.rows.Err()
}

// Close ends the query.
func (r *Rows) Close() error {
	var err error
	if r.rows != nil {
		err = r.rows.Close()
	}
	return errors.Join(err, r.session.close())
}
