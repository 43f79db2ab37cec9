// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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
	empty   func() *R
	made    int // chunks
	free    chan []*R
	full    chan []*R
	filling []*R // with the maker, n of them filled
	n       int
	taken   []*R // with the engine
	err     error
}

// rowGroup is how many rows the engine holds until it compresses and writes them, during
// which it takes no others. pipeChunks is how many chunks there are at most: so many that
// the maker of the rows does not stop meanwhile.
const (
	rowGroup   = 1 << 17
	pipeChunks = 48
)

func newPipe[R any](ctx context.Context, empty func() *R) *pipe[R] {
	return &pipe[R]{ctx: ctx, empty: empty, free: make(chan []*R, pipeChunks), full: make(chan []*R, pipeChunks)}
}

// begin returns the row to be filled next; commit says that it is.
func (p *pipe[R]) begin() (*R, error) {
	if p.filling == nil {
		if err := p.take(); err != nil {
			return nil, err
		}
	}
	return p.filling[p.n], nil
}

// take gets a chunk to fill: one that is free, a new one, or the next to become free.
func (p *pipe[R]) take() error {
	select {
	case p.filling = <-p.free:
		return p.ctx.Err()
	default:
	}
	if p.made < pipeChunks {
		p.made++
		p.filling = make([]*R, chunkRows)
		for i := range p.filling {
			p.filling[i] = p.empty()
		}
		return nil
	}
	select {
	case p.filling = <-p.free:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
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

// writeTable writes rows to the Parquet file of a table in dir.
func writeTable[R any](ctx context.Context, w *writer, name, dir string, columns []column[R],
	next func() ([]*R, error)) error {
	t := tableOf(columns, next)
	defer t.close()
	err := w.copy(ctx, "iotape_"+name,
		fmt.Sprintf("COPY (SELECT * FROM iotape_%s()) TO %s (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, "+
			"ROW_GROUP_SIZE %d, ROW_GROUP_SIZE_BYTES 134217728)", name,
			quote(filepath.Join(dir, parquetName(name))), rowGroup), t)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("write %s: %w", parquetName(name), err)
	}
	return err
}
