package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// chunkRows is how many rows the engine takes at once.
var chunkRows = int(mapping.VectorSize())

// pipe hands rows from the goroutine that makes them to the engine's thread, a chunk at
// a time, and back to be used again.
//
//	begin, commit ──full──▶ next ──▶ engine
//	      ▲─────────free─────┘
type pipe[R any] struct {
	ctx     context.Context
	free    chan []*R
	full    chan []*R
	filling []*R // with the maker, n of them filled
	n       int
	taken   []*R // with the engine
	err     error
}

// pipeChunks is how many chunks there are.
const pipeChunks = 3

func newPipe[R any](ctx context.Context, empty func() *R) *pipe[R] {
	p := &pipe[R]{ctx: ctx, free: make(chan []*R, pipeChunks), full: make(chan []*R, pipeChunks)}
	for range pipeChunks {
		rows := make([]*R, chunkRows)
		for i := range rows {
			rows[i] = empty()
		}
		p.free <- rows
	}
	return p
}

// begin returns the row to be filled next; commit says that it is.
func (p *pipe[R]) begin() (*R, error) {
	if p.filling == nil {
		select {
		case p.filling = <-p.free:
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		}
	}
	return p.filling[p.n], nil
}

func (p *pipe[R]) commit() {
	if p.n++; p.n == len(p.filling) {
		p.full <- p.filling // it has room for all
		p.filling, p.n = nil, 0
	}
}

// end is called once by the maker of the rows, with what stopped it if they are not
// complete.
func (p *pipe[R]) end(err error) {
	if p.err = err; err == nil && p.n > 0 {
		p.full <- p.filling[:p.n]
	}
	close(p.full)
}

// next returns some rows, none at the end. They are valid until it is called again.
func (p *pipe[R]) next() ([]*R, error) {
	if cap(p.taken) > 0 {
		p.free <- p.taken[:cap(p.taken)]
		p.taken = nil
	}
	var ok bool
	if p.taken, ok = <-p.full; !ok {
		return nil, p.err
	}
	return p.taken, nil
}

// items hands out the elements of a slice.
func items[R any](s []*R) func() ([]*R, error) {
	return func() ([]*R, error) {
		n := min(chunkRows, len(s))
		rows := s[:n]
		s = s[n:]
		return rows, nil
	}
}

// tableOf makes the engine's rows of a table.
func tableOf[R any](columns []column[R], next func() ([]*R, error)) *rowsFunc {
	t := &rowsFunc{}
	recent := make([]recentTexts, len(columns))
	for i := range columns {
		t.names = append(t.names, columns[i].name)
		t.types = append(t.types, columns[i].typ())
	}
	t.fill = func(chunk mapping.DataChunk) (int, error) {
		rows, err := next()
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		for i := range columns {
			v := vector{vec: mapping.DataChunkGetVector(chunk, mapping.IdxT(i)), recent: &recent[i]}
			v.data = mapping.VectorGetData(v.vec)
			clear(recent[i][:])
			columns[i].fill(&v, rows)
		}
		return len(rows), nil
	}
	return t
}

// writeTable writes rows to a Parquet file.
func writeTable[R any](ctx context.Context, w *writer, name, path string, columns []column[R], next func() ([]*R, error)) error {
	t := tableOf(columns, next)
	defer t.close()
	err := w.copy(ctx, "iotape_"+name, fmt.Sprintf("COPY (SELECT * FROM iotape_%s()) TO %s (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 262144, ROW_GROUP_SIZE_BYTES 134217728)", name, quote(path)), t)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("write %s: %w", parquetName(name), err)
	}
	return err
}
