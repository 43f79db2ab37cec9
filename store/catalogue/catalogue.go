// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
)

// Catalogue is a directory.
type Catalogue struct{ dir string }

// The names in a catalogue's directory. What is being made is in work, so that a
// program that reads tapes/**/*.parquet never meets it.
const (
	tapesName = "tapes"
	workName  = "work"
	lockName  = "lock"
	rowsName  = "rows.parquet" // of a month that was compacted
)

// maxLoose is how many files with one row a month may have before Add compacts it.
const maxLoose = 512

// Open returns the catalogue in a directory, which Add makes if it is not there.
func Open(dir string) *Catalogue { return &Catalogue{dir} }

// Dir returns the directory.
func (c *Catalogue) Dir() string { return c.dir }

// ErrNone is of a directory that is no catalogue.
var ErrNone = errors.New("there is no catalogue")

func (c *Catalogue) tapes() string { return filepath.Join(c.dir, tapesName) }

// monthOf and placeOf say where rows lie.
func monthOf(r *Row) string { return "month=" + r.Start.Format("2006-01") }

func placeOf(r *Row) string {
	return filepath.Join(monthOf(r), "day="+r.Start.Format("02"), "host="+PathPart(r.Host), r.ID+".parquet")
}

// PathPart makes one part of a path of any name.
func PathPart(name string) string {
	const most, hex = 100, "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if b.Len() >= most {
			break
		}
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' ||
			c == '_' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// lock keeps others from changing the catalogue, or, if it is shared, from moving what is
// read. A catalogue on a medium that cannot be written has nobody who changes it.
func (c *Catalogue) lock(ctx context.Context, how int) (unlock func(), err error) {
	flags := os.O_RDWR | os.O_CREATE
	if how == syscall.LOCK_SH {
		flags = os.O_RDONLY
	}
	f, err := wholefile.OpenBelow(c.dir, lockName, flags, 0o666)
	if how == syscall.LOCK_SH && err != nil {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, f, how); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// flock waits for a lock, at most until the context ends.
func flock(ctx context.Context, f *os.File, how int) error {
	done := make(chan error, 1)
	go func() {
		for {
			err := syscall.Flock(int(f.Fd()), how)
			if !errors.Is(err, syscall.EINTR) {
				done <- err
				return
			}
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		go func() { <-done; f.Close() }()
		return ctx.Err()
	}
}

// Add puts rows into the catalogue. A row of the same tape, or of another that was at the
// same place, is replaced. It returns how many are new.
func (c *Catalogue) Add(ctx context.Context, rows ...*Row) (added int, err error) {
	if err := wholefile.MkdirBelow(c.dir, tapesName, 0o777); err != nil {
		return 0, err
	}
	unlock, err := c.lock(ctx, syscall.LOCK_EX)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := c.mend(); err != nil {
		return 0, err
	}
	months := map[string]bool{}
	for _, r := range rows {
		old, same, err := c.before(ctx, r)
		if err != nil {
			return added, err
		}
		if same {
			continue
		}
		if len(old) > 0 {
			if _, err := c.remove(ctx, old); err != nil {
				return added, err
			}
		}
		place := filepath.Join(tapesName, placeOf(r))
		if err := wholefile.MkdirBelow(c.dir, filepath.Dir(place), 0o777); err != nil {
			return added, err
		}
		if err := c.write(ctx, place, r); err != nil {
			return added, err
		}
		added++
		months[monthOf(r)] = true
	}
	for m := range months {
		if files, err := filesBelow(filepath.Join(c.tapes(), m)); err != nil || len(files) <= maxLoose {
			continue
		}
		if err := c.rewrite(ctx, m, "", nil); err != nil {
			return added, err
		}
	}
	return added, nil
}

// write makes a file of rows by way of the work directory.
func (c *Catalogue) write(ctx context.Context, place string, rows ...*Row) error {
	if err := wholefile.MkdirBelow(c.dir, workName, 0o777); err != nil {
		return err
	}
	tmp := filepath.Join(workName, fmt.Sprintf("%d-%s", os.Getpid(), filepath.Base(place)))
	if err := WriteRows(ctx, filepath.Join(c.dir, tmp), rows...); err != nil {
		return err
	}
	return wholefile.RenameBelow(c.dir, tmp, place)
}

// WriteRows writes rows to a new Parquet file, which has StoreColumns.
func WriteRows(ctx context.Context, file string, rows ...*Row) error {
	all := func(yield func([]any, error) bool) {
		for _, r := range rows {
			if !yield(r.values(), nil) {
				return
			}
		}
	}
	return store.WriteParquet(ctx, file, StoreColumns(), sortBy, iter.Seq2[[]any, error](all))
}

// sortBy is the order of rows in a file, in which those of a host are together.
const sortBy = `host, "start", id`

// before returns the IDs of rows that r replaces, and whether it is there already.
func (c *Catalogue) before(ctx context.Context, r *Row) (old []string, same bool, err error) {
	files, err := filesBelow(c.tapes())
	if err != nil {
		return nil, false, err
	}
	rows, err := store.QueryParquet(ctx, tapesName, StoreColumns(), files,
		"SELECT id, location FROM tapes WHERE id = ? OR location = ?", r.ID, store.Text(cut(r.Location)))
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		id, _ := rows.Values()[0].(string)
		location, _ := rows.Values()[1].(string)
		if id == r.ID && location == store.Text(cut(r.Location)) {
			return nil, true, nil
		}
		old = append(old, id)
	}
	return old, false, rows.Err()
}

// Remove takes the rows of tapes out, by ID, name or location, and returns how many.
func (c *Catalogue) Remove(ctx context.Context, tapes []string) (removed int, err error) {
	if _, err := os.Stat(c.tapes()); err != nil {
		return 0, fmt.Errorf("%s: %w", c.dir, ErrNone)
	}
	unlock, err := c.lock(ctx, syscall.LOCK_EX)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := c.mend(); err != nil {
		return 0, err
	}
	return c.remove(ctx, tapes)
}

const named = "(id = ANY(?) OR tape = ANY(?) OR location = ANY(?))"

func (c *Catalogue) remove(ctx context.Context, tapes []string) (removed int, err error) {
	files, err := filesBelow(c.tapes())
	if err != nil {
		return 0, err
	}
	rows, err := store.QueryParquet(ctx, tapesName, StoreColumns(), files,
		`SELECT strftime("start", '%Y-%m'), id FROM tapes WHERE `+named, tapes, tapes, tapes)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	months := map[string]bool{}
	for rows.Next() {
		m, _ := rows.Values()[0].(string)
		months["month="+m] = true
		removed++
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for m := range months {
		if err := c.rewrite(ctx, m, "NOT coalesce("+named+", false)", []any{tapes, tapes, tapes}); err != nil {
			return 0, err
		}
	}
	return removed, nil
}

// Compact makes one file of all that a month has, for each month of which there are
// several. It returns how many files went.
func (c *Catalogue) Compact(ctx context.Context) (gone int, err error) {
	months, err := os.ReadDir(c.tapes())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.dir, ErrNone)
	}
	unlock, err := c.lock(ctx, syscall.LOCK_EX)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := c.mend(); err != nil {
		return 0, err
	}
	for _, m := range months {
		files, err := filesBelow(filepath.Join(c.tapes(), m.Name()))
		if err != nil {
			return gone, err
		}
		if len(files) < 2 {
			continue
		}
		if err := c.rewrite(ctx, m.Name(), "", nil); err != nil {
			return gone, err
		}
		gone += len(files) - 1
	}
	return gone, nil
}

// rewrite makes one file of the rows of a month that fit. The new directory and the old
// one change places at once, so there is no moment with rows twice or not at all.
func (c *Catalogue) rewrite(ctx context.Context, month, where string, args []any) error {
	old, work := filepath.Join(c.tapes(), month), filepath.Join(c.dir, workName, month)
	d, err := wholefile.DirBelow(c.dir, filepath.Join(tapesName, month)) // not a link to one
	if err != nil {
		return err
	}
	defer d.Close()
	files, err := filesBelow(old)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := wholefile.MkdirBelow(c.dir, filepath.Join(workName, month), 0o777); err != nil {
		return err
	}
	if err := store.JoinParquet(ctx, filepath.Join(work, rowsName), StoreColumns(), sortBy,
		where, args, files); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, work, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("replace %s: %w", old, err)
	}
	return os.RemoveAll(work)
}

// mend removes what somebody left who was killed: all in work is unfinished, or has been
// replaced.
func (c *Catalogue) mend() error { return os.RemoveAll(filepath.Join(c.dir, workName)) }

// read returns the files with rows, which stay until unlock is called.
func (c *Catalogue) read(ctx context.Context) (files []string, unlock func(), err error) {
	if _, err := os.Stat(c.tapes()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.dir, ErrNone)
	}
	if unlock, err = c.lock(ctx, syscall.LOCK_SH); err != nil {
		return nil, nil, err
	}
	if files, err = filesBelow(c.tapes()); err != nil {
		unlock()
		return nil, nil, err
	}
	return files, unlock, nil
}

// filesBelow returns the files with rows, in the order of their names.
func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".parquet") {
			files = append(files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.Sort(files)
	return files, err
}
