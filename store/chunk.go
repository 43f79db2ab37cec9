// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/iotape/iotape/trace"
)

// chunkFunction is the engine's function that reads content: of tape k, chunk id, from
// a byte on, so many bytes. The view content uses it for its column data.
const chunkFunction = "iotape_chunk"

// chunkReader implements chunkFunction.
type chunkReader struct {
	tapes []*trace.Tape
	in    []duckdb.TypeInfo
	out   duckdb.TypeInfo
}

func registerChunks(conn *sql.Conn, tapes []*trace.Tape) error {
	number, err := duckdb.NewTypeInfo(duckdb.TYPE_UBIGINT)
	if err != nil {
		return err
	}
	blob, err := duckdb.NewTypeInfo(duckdb.TYPE_BLOB)
	if err != nil {
		return err
	}
	return duckdb.RegisterScalarUDF(conn, chunkFunction, &chunkReader{
		tapes: tapes, in: []duckdb.TypeInfo{number, number, number, number}, out: blob,
	})
}

func (c *chunkReader) Config() duckdb.ScalarFuncConfig {
	return duckdb.ScalarFuncConfig{InputTypeInfos: c.in, ResultTypeInfo: c.out}
}

func (c *chunkReader) Executor() duckdb.ScalarFuncExecutor {
	return duckdb.ScalarFuncExecutor{RowExecutor: func(values []driver.Value) (any, error) {
		var n [4]uint64
		for i := range n {
			n[i], _ = values[i].(uint64)
		}
		return c.read(n[0], n[1], n[2], n[3])
	}}
}

// read returns part of a chunk. It is called by several threads of the engine.
func (c *chunkReader) read(tape, id, offset, length uint64) ([]byte, error) {
	if tape >= uint64(len(c.tapes)) {
		return nil, fmt.Errorf("tape %d of %d", tape, len(c.tapes))
	}
	if length > maxPiece {
		return nil, fmt.Errorf("%d bytes of a chunk at once, at most %d", length, maxPiece)
	}
	b, err := c.tapes[tape].Chunk(id)
	if err != nil {
		return nil, err
	}
	if offset > uint64(len(b)) || length > uint64(len(b))-offset {
		return nil, fmt.Errorf("bytes %d to %d of chunk %d, which has %d", offset, offset+length, id, len(b))
	}
	return b[offset : offset+length], nil
}
