// SPDX-License-Identifier: Apache-2.0

package store

/*
// The functions that the engine calls; duckdb.h has their types.
void iotapeBind(void *info);
void iotapeInit(void *info);
void iotapeFill(void *info, void *chunk);
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// writer is an engine that writes Parquet files of rows in Go's memory. It uses the
// engine's C interface: that of database/sql takes rows value by value.
type writer struct {
	db   mapping.Database
	pins runtime.Pinner
	used []cgo.Handle
}

// openWriter starts an engine, which may write what it has no memory for into the directory
// spill. Each table is written by the thread that asks for it:
// more of them would wait for each other, and the rows stay in order.
func openWriter(spill string) (*writer, error) {
	w := new(writer)
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return nil, errors.New("open engine: no memory")
	}
	defer mapping.DestroyConfig(&config)
	for _, o := range [][2]string{
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"memory_limit", fmt.Sprintf("%dKiB", defaultMemoryBytes/2/1024)},
		{"temp_directory", spill}, // for row groups of very long names
		{"threads", "1"},
		// Needed for a limit on the bytes of a row group; one thread keeps the order.
		{"preserve_insertion_order", "false"},
	} {
		if mapping.SetConfig(config, o[0], o[1]) == mapping.StateError {
			return nil, fmt.Errorf("open engine: option %s", o[0])
		}
	}
	var msg string
	if mapping.OpenExt("", &w.db, config, &msg) == mapping.StateError {
		return nil, fmt.Errorf("open engine: %s", msg)
	}
	return w, nil
}

func (w *writer) close() {
	mapping.Close(&w.db)
	for _, h := range w.used {
		h.Delete()
	}
	w.pins.Unpin()
}

// rowsFunc is a table function's rows: a filled chunk, empty at the end.
type rowsFunc struct {
	names []string
	types []mapping.LogicalType
	fill  func(mapping.DataChunk) (rows int, err error)
	err   error // of fill
}

func (r *rowsFunc) close() {
	for i := range r.types {
		mapping.DestroyLogicalType(&r.types[i])
	}
}

// function makes the table function of a name.
func (w *writer) function(conn mapping.Connection, name string, r *rowsFunc) error {
	h := new(cgo.Handle)
	*h = cgo.NewHandle(r)
	w.pins.Pin(h)
	w.used = append(w.used, *h)
	f := mapping.CreateTableFunction()
	defer mapping.DestroyTableFunction(&f)
	mapping.TableFunctionSetName(f, name)
	mapping.TableFunctionSetExtraInfo(f, unsafe.Pointer(h), nil)
	mapping.TableFunctionSetBind(f, C.iotapeBind)
	mapping.TableFunctionSetInit(f, C.iotapeInit)
	mapping.TableFunctionSetFunction(f, C.iotapeFill)
	if mapping.RegisterTableFunction(conn, f) == mapping.StateError {
		return fmt.Errorf("the engine refuses the table %s", name)
	}
	return nil
}

// copy runs a statement that writes the rows.
func (w *writer) copy(ctx context.Context, name, statement string, r *rowsFunc) error {
	var conn mapping.Connection
	if mapping.Connect(w.db, &conn) == mapping.StateError {
		return errors.New("the engine takes no connection")
	}
	defer mapping.Disconnect(&conn)
	if err := w.function(conn, name, r); err != nil {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		mapping.Interrupt(conn)
		close(interrupted)
	})
	var res mapping.Result
	state := mapping.Query(conn, statement, &res)
	defer mapping.DestroyResult(&res)
	if !stop() {
		<-interrupted // before the connection ends
		return ctx.Err()
	}
	if r.err != nil {
		return r.err
	}
	if state == mapping.StateError {
		return errors.New(mapping.ResultError(&res))
	}
	return nil
}

//export iotapeBind
func iotapeBind(info unsafe.Pointer) {
	b := mapping.BindInfo{Ptr: info}
	r := (*cgo.Handle)(mapping.BindGetExtraInfo(b)).Value().(*rowsFunc)
	for i, name := range r.names {
		mapping.BindAddResultColumn(b, name, r.types[i])
	}
}

//export iotapeInit
func iotapeInit(info unsafe.Pointer) { mapping.InitSetMaxThreads(mapping.InitInfo{Ptr: info}, 1) }

//export iotapeFill
func iotapeFill(info, chunk unsafe.Pointer) {
	f, c := mapping.FunctionInfo{Ptr: info}, mapping.DataChunk{Ptr: chunk}
	r := (*cgo.Handle)(mapping.FunctionGetExtraInfo(f)).Value().(*rowsFunc)
	n, err := r.fill(c)
	if err != nil {
		r.err = err
		mapping.FunctionSetError(f, err.Error())
		n = 0
	}
	mapping.DataChunkSetSize(c, mapping.IdxT(n))
}
