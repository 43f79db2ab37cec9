// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// tableNames are the tables, each NAME.parquet.
var tableNames = []string{"events", "processes", "files", "opens", "content"}

func parquetName(table string) string { return table + ".parquet" }

// Index derives the Parquet files of the tables from the tape and replaces those that
// are there. If progress is not nil, it is called now and then with events.
func Index(ctx context.Context, t *trace.Tape, progress func(done, total int64)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("index %s: %w", t.Name(), err)
		}
	}()
	path := filepath.Join(t.DerivedDir(), trace.IndexName)
	wholefile.RemoveLeft(path)
	work, err := wholefile.CreateDir(path, 0o700)
	if err != nil {
		return err
	}
	defer work.Close()
	dir := work.Temp
	w, err := openWriter(filepath.Join(dir, "spill"))
	if err != nil {
		return err
	}
	defer w.close()
	hosts, sum := hostNames(t), newSummary(t)
	if err := writeEvents(ctx, w, t, hosts, sum, dir, progress); err != nil {
		return err
	}
	if err := writeTable(ctx, w, "processes", dir, processColumns(hosts), items(sum.processes)); err != nil {
		return err
	}
	if err := writeTable(ctx, w, "files", dir, fileColumns(hosts), items(sum.files)); err != nil {
		return err
	}
	// The description of the old tables must not be there beside new ones after a kill.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var files []string
	for _, name := range tableNames {
		if err := os.Rename(filepath.Join(dir, parquetName(name)),
			filepath.Join(t.DerivedDir(), parquetName(name))); err != nil {
			return err
		}
		files = append(files, parquetName(name))
	}
	return t.SetDerived(ctx, trace.IndexVersion, files)
}

// source reads the events of a tape once and makes the rows of all tables of them: a
// goroutine decodes, and each of the tables that grow with the events is written by
// another.
type source struct {
	tape    *trace.Tape
	hosts   []string
	history *history.History
	sum     *summary
	hashes  *trace.HashReader
	recent  [1 << 14]struct {
		chunk uint64
		hash  string
	}
	events  *pipe[row]
	opens   *pipe[openRow]
	content *pipe[piece]
}

// writeEvents writes the tables that grow with the events into dir, and sums those up.
func writeEvents(ctx context.Context, w *writer, t *trace.Tape, hosts []string, sum *summary, dir string,
	progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &source{
		tape: t, hosts: hosts, history: history.New(t), sum: sum, hashes: t.NewHashReader(),
		events:  newPipe(ctx, func() *row { return &row{Event: new(event.Event)} }),
		opens:   newPipe(ctx, func() *openRow { return new(openRow) }),
		content: newPipe(ctx, func() *piece { return new(piece) }),
	}
	var all sync.WaitGroup
	run := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	run(func() error {
		err := s.run(progress)
		if err != nil {
			cancel(err)
		}
		s.events.end(err)
		s.opens.end(err)
		s.content.end(err)
		return err
	})
	run(func() error {
		return writeTable(ctx, w, "events", dir, eventColumns(hosts), s.events.next)
	})
	run(func() error {
		return writeTable(ctx, w, "opens", dir, openColumns(hosts), s.opens.next)
	})
	run(func() error {
		return writeTable(ctx, w, "content", dir, contentColumns(), s.content.next)
	})
	all.Wait()
	return context.Cause(ctx)
}

// run makes the rows until the events end. Rows keep their own events; only the inline
// content of these does not last.
func (s *source) run(progress func(done, total int64)) error {
	reader, done, total := s.tape.NewEventReader(), int64(0), int64(s.tape.Manifest().Counts.Events)
	for {
		if progress != nil && done%int64(chunkRows) == 0 {
			progress(done, total)
		}
		r, err := s.events.begin()
		if err != nil {
			return err
		}
		if err := reader.Next(r.Event); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		done++
		m := s.history.Step(r.Event)
		r.set(r.Event)
		r.host = s.hostOf(r.Host)
		r.wall = s.tape.Host(r.Host).Wall(r.Enter)
		s.sum.add(r)
		for _, o := range m.Ended {
			if err := s.ended(o); err != nil {
				return err
			}
		}
		if err := s.pieces(r.Event); err != nil {
			return err
		}
		s.events.commit()
	}
	if progress != nil {
		progress(done, total)
	}
	for o := range s.history.Opens() {
		if err := s.ended(o); err != nil {
			return err
		}
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
	if d.Version != trace.IndexVersion {
		return fmt.Errorf("index of version %d, wants %d", d.Version, trace.IndexVersion)
	}
	for _, name := range tableNames {
		sum, ok := d.Files[parquetName(name)]
		if !ok {
			return fmt.Errorf("index without %s: %w", parquetName(name), trace.ErrCorrupt)
		}
		size, err := derivedSize(t, parquetName(name))
		if err != nil {
			return err
		}
		if size != sum.Bytes {
			return fmt.Errorf("%s has %d bytes, wants %d: %w", parquetName(name), size, sum.Bytes, trace.ErrCorrupt)
		}
	}
	return nil
}

// derivedSize returns the size of a derived file, in bytes.
func derivedSize(t *trace.Tape, name string) (int64, error) {
	f, err := t.OpenDerived(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
