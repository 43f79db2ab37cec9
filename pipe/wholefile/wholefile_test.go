// SPDX-License-Identifier: Apache-2.0

package wholefile_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	put := func(text string, fail error) error {
		return wholefile.Write(name, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		})
	}
	want := func(text string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("the file has %q, %v; want %q", got, err, text)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("the directory has %v, want one file", files)
		}
	}
	if err := put("one", nil); err != nil {
		t.Fatal(err)
	}
	want("one")
	if err := put("two", nil); err != nil {
		t.Fatal(err)
	}
	want("two")
	broken := errors.New("broken")
	if err := put("thr", broken); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	want("two")
}

// TestOpenTakesRegularFilesOnly checks that neither a link nor a FIFO in the place of a file
// is opened or waited for.
func TestOpenTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	for _, err := range []error{
		os.WriteFile(other, []byte("secret"), 0o666),
		os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o666),
		os.Symlink(other, filepath.Join(dir, "link")),
		os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.Mkdir(filepath.Join(dir, "directory"), 0o777),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666),
		unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o666, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := wholefile.Open(dir, "file")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "text" || err != nil {
		t.Errorf("the file has %q, %v; want text", b, err)
	}
	f.Close()
	for name, what := range map[string]string{
		"link": "symbolic link", "dangling": "symbolic link", "directory": "directory", "fifo": "FIFO", "socket": "socket",
	} {
		_, err := wholefile.Open(dir, name)
		if !errors.Is(err, wholefile.ErrNotRegular) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v; want an error that says it is a %s", name, err, what)
		}
	}
	if _, err := wholefile.Open(dir, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v; want fs.ErrNotExist", err)
	}
}

// TestOpenGiven waits for the writer of a FIFO, which comes, or until the context ends.
func TestOpenGiven(t *testing.T) {
	// The open that is given up goes on waiting for a writer: the second FIFO's is not for it.
	dir := t.TempDir()
	never, name := filepath.Join(dir, "never"), filepath.Join(dir, "fifo")
	if err := errors.Join(unix.Mkfifo(never, 0o600), unix.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := wholefile.OpenGiven(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: %v", err)
	}
	go func() { _ = os.WriteFile(name, []byte("x"), 0) }()
	f, err := wholefile.OpenGiven(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestLinksAreReplaced checks that a link under the name of a file is replaced and not
// written through.
func TestLinksAreReplaced(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	name := filepath.Join(dir, "x")
	if err := errors.Join(os.WriteFile(victim, []byte("important"), 0o666), os.Symlink(victim, name)); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.WriteBytes(name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "important" {
		t.Errorf("the file behind the link has %q; want it as it was", b)
	}
	if b, _ := os.ReadFile(name); string(b) != "new" {
		t.Errorf("the file has %q; want new", b)
	}
}

// TestCommitNew checks that it replaces nothing.
func TestCommitNew(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	for i, want := range []error{nil, fs.ErrExist} {
		f, err := wholefile.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, strconv.Itoa(i))
		if err := f.CommitNew(); !errors.Is(err, want) {
			t.Errorf("commit %d: %v; want %v", i, err, want)
		}
		f.Close()
	}
	for i, want := range []error{nil, fs.ErrExist} {
		d, err := wholefile.CreateDir(filepath.Join(dir, "d"), 0o777)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.CommitNew(); !errors.Is(err, want) {
			t.Errorf("commit %d of a directory: %v; want %v", i, err, want)
		}
		d.Close()
	}
	if b, _ := os.ReadFile(name); string(b) != "0" {
		t.Errorf("the file has %q; want what was there first", b)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"d", "x"}) {
		t.Errorf("the directory has %v; want no temporary file", got)
	}
}

// TestRemoveLeft checks that what a killed process left goes, and what is being written and
// what others have made stays.
func TestRemoveLeft(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	busy, err := wholefile.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	busyDir, err := wholefile.CreateDir(name, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	defer busyDir.Close()
	kept := []string{
		filepath.Base(busy.Name()), filepath.Base(busyDir.Temp), "x", "x.0123.tmp", "x.0123456789zz.tmp", "y.0123456789ab.tmp",
		"x.000000000003.tmp",
	}
	for _, n := range kept[2:6] {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(name+".000000000001.tmp", nil, 0o666),
		os.MkdirAll(name+".000000000002.tmp/deep", 0o777),
		unix.Mkfifo(name+".000000000003.tmp", 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wholefile.RemoveLeft(name)
	slices.Sort(kept)
	if got := names(t, dir); !slices.Equal(got, kept) {
		t.Errorf("left in the directory: %v\nwant: %v", got, kept)
	}
}

// TestConcurrentWriters checks that writers of one file, which remove what others left,
// do not take each other's.
func TestConcurrentWriters(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for range 50 {
				text := strings.Repeat(strconv.Itoa(w), 1000)
				if err := wholefile.WriteBytes(name, []byte(text)); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				b, err := os.ReadFile(name)
				if err != nil || len(b) != 1000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("the file has %.20q (%d bytes), %v; want the whole text of one writer", b, len(b), err)
				}
			}
		})
	}
	all.Wait()
	if got := names(t, filepath.Dir(name)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("the directory has %v; want the file alone", got)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
