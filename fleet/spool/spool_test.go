// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/iotape/iotape/internal/testenv"
)

func open(t *testing.T, dir string, max int64) *Spool {
	t.Helper()
	s, err := Open(dir, max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func get(t *testing.T, s *Spool, n uint64) string {
	t.Helper()
	b, ok, err := s.Get(n, nil)
	if err != nil || !ok {
		t.Fatalf("item %d: %v, %v", n, ok, err)
	}
	return string(b)
}

// TestQueue compares a spool with a list, over all that may happen to it.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		s, err := Open(dir, MinBytes)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { s.Close() }()
		list, first := []string(nil), uint64(1)
		r.Repeat(map[string]func(*rapid.T){
			"put": func(r *rapid.T) {
				b := bytes.Repeat([]byte(fmt.Sprint(len(list))), rapid.IntRange(1, 200_000).Draw(r, "length"))
				used, _ := s.Bytes()
				err := s.Put(b, nil)
				switch full := used+int64(len(b))+itemHead > MinBytes; {
				case full && !errors.Is(err, ErrFull):
					r.Fatalf("put into a full spool: %v", err)
				case !full && err != nil:
					r.Fatal(err)
				case !full:
					list = append(list, string(b))
				}
			},
			"free": func(r *rapid.T) {
				n := uint64(rapid.IntRange(0, len(list)).Draw(r, "items"))
				if err := s.Free(first + n - 1); err != nil {
					r.Fatal(err)
				}
				list, first = list[n:], first+n
			},
			"open again": func(r *rapid.T) {
				s.Close()
				if s, err = Open(dir, MinBytes); err != nil {
					r.Fatal(err)
				}
				// What was given back may return: as much as is in a segment with others.
				from, next := s.Bounds()
				if from > first || next != first+uint64(len(list)) || s.Torn() {
					r.Fatalf("bounds %d and %d, want %d and %d", from, next, first, first+uint64(len(list)))
				}
				if err := s.Free(first - 1); err != nil {
					r.Fatal(err)
				}
			},
			"": func(r *rapid.T) {
				for i, want := range list {
					if b, ok, err := s.Get(first+uint64(i), nil); !ok || err != nil || string(b) != want {
						r.Fatalf("item %d is wrong: %v, %v", first+uint64(i), ok, err)
					}
				}
				if _, ok, _ := s.Get(first+uint64(len(list)), nil); ok {
					r.Fatal("there is an item that nobody put in")
				}
				if used, _ := s.Bytes(); len(list) == 0 && used != 0 {
					r.Fatalf("an empty spool has %d bytes", used)
				}
			},
		})
	})
}

// TestTorn: a torn end costs the last item.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, MinBytes)
	for _, v := range []string{"one", "two", "three"} {
		if err := s.Put([]byte(v), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, MinBytes); !errors.Is(err, ErrLocked) {
		t.Errorf("a second agent: %v", err)
	}
	s.Close()
	name := filepath.Join(dir, fmt.Sprintf("%016x%s", 1, suffix))
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, fi.Size()-1); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, MinBytes)
	if _, next := s.Bounds(); next != 3 || !s.Torn() || get(t, s, 2) != "two" {
		t.Errorf("the next item is %d, torn %v", next, s.Torn())
	}
	if err := s.Put([]byte("new"), nil); err != nil || get(t, s, 3) != "new" {
		t.Errorf("after a torn end: %v", err)
	}
}

// TestNote: what is noted of an item is noted before anybody can see that it is there.
func TestNote(t *testing.T) {
	s := open(t, t.TempDir(), MinBytes)
	const items = 1000
	var noted atomic.Uint64
	done := make(chan bool)
	go func() {
		defer close(done)
		for next := uint64(1); next <= items; {
			if _, next = s.Bounds(); noted.Load() < next-1 {
				t.Errorf("item %d is there, and %d are noted", next-1, noted.Load())
				return
			}
			if err := s.Free(next - 1); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range items {
		if err := s.Put([]byte("item"), func() { noted.Add(1) }); err != nil {
			t.Error(err)
		}
	}
	<-done
}

// TestHole: a kill between an item's bytes and its head leaves no item.
func TestHole(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, MinBytes)
	if err := s.Put([]byte("one"), nil); err != nil {
		t.Fatal(err)
	}
	seg := s.segments[0]
	if _, err := seg.f.WriteAt([]byte("killed"), seg.size+itemHead); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir, MinBytes)
	if _, next := s.Bounds(); next != 2 || get(t, s, 1) != "one" {
		t.Errorf("the next item is %d", next)
	}
	if err := s.Put(nil, nil); err == nil {
		t.Error("an item of no bytes was put in")
	}
}

// TestDiskFull: the item that has no room is refused as a whole, and others follow
// when there is room again.
func TestDiskFull(t *testing.T) {
	dir := testenv.MountImage(t, "tmpfs", 9)
	s := open(t, filepath.Join(dir, "spool"), 1<<30)
	block, n := make([]byte, 256<<10), uint64(0)
	var err error
	for ; err == nil && n < 1000; n++ {
		err = s.Put(block, nil)
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("a full disk after %d items: %v", n, err)
	}
	first, next := s.Bounds()
	if next != n || first != 1 {
		t.Errorf("items %d to %d after %d puts, of which one failed", first, next, n)
	}
	if err := s.Free(next - 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(block, nil); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestDirectories opens spools in directories that others can change, or in which nothing can be made: the message
// names the directory, and nothing is made.
func TestDirectories(t *testing.T) {
	testenv.NeedRoot(t)
	change := map[string]func(dir string) error{
		"others may write to %s: chmod 700 it": func(dir string) error { return os.Chmod(dir, 0o777) },
		"%s is of the user 65534, who can":     func(dir string) error { return os.Chown(dir, 65534, 65534) },
		"%s: not a directory": func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		},
		"%s/lock is a symbolic link: ": func(dir string) error { return os.Symlink("/dev/null", dir+"/lock") },
		"%s/lock: read-only file system": func(dir string) error {
			err := unix.Mount("none", dir, "tmpfs", unix.MS_RDONLY, "mode=700")
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			return err
		},
	}
	for want, f := range change {
		dir := filepath.Join(t.TempDir(), "spool")
		if err := errors.Join(os.Mkdir(dir, 0o700), f(dir)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, MinBytes)
		if want = fmt.Sprintf(want, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
		if err == nil {
			s.Close()
		}
		changed := strings.Contains(want, "chmod") || strings.Contains(want, "of the user")
		if err := Check(dir); changed && err == nil {
			t.Errorf("Check finds nothing; want %q", want)
		}
	}
	if err := Check(filepath.Join(t.TempDir(), "new")); err != nil {
		t.Errorf("Check of a directory that does not exist: %v", err)
	}
}

// TestReplaced replaces the directory of a spool that is in use: all that was put, before and after, is there and can
// be given back.
func TestReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "spool")
	s := open(t, name, 1<<30)
	block, n := make([]byte, 1<<19), uint64(0)
	for ; n < 20; n++ {
		if n == 10 {
			if err := errors.Join(os.Rename(name, name+".old"), os.Mkdir(name, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Put(append(block, byte(n)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if b := get(t, s, i+1); b[len(b)-1] != byte(i) {
			t.Errorf("item %d is another", i+1)
		}
	}
	if err := s.Free(n); err != nil {
		t.Error(err)
	}
}

func TestLedger(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s := l.State(); !s.Ended || s.Stream != "" {
		t.Errorf("a new ledger says %+v", s)
	}
	l.Started(42)
	l.Begin("stream-7")
	l.Take(10)
	l.Drop(3)
	l.Spooled(2, 5, 3)
	// Not closed: as after a kill.
	again, err := OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	want := State{Stream: "stream-7", StartedNS: 42, Handed: 10, Taken: 10, Dropped: 3,
		Batches: 2, Events: 5, DeclaredLost: 3}
	if s := again.State(); s != want {
		t.Errorf("the ledger says %+v, want %+v", s, want)
	}
	again.End()
	if !l.State().Ended {
		t.Error("the stream is not ended")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestDamagedLedger puts what is no ledger in its place: nothing is made of it, and the check before says the same.
func TestDamagedLedger(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, name string) error
		ok   bool
	}{
		{"none", func(_ *testing.T, name string) error { return os.Remove(name) }, true},
		{"one that was not written yet", func(_ *testing.T, name string) error { return os.Truncate(name, 0) }, true},
		{"zeros", func(_ *testing.T, name string) error {
			return os.WriteFile(name, make([]byte, ledgerBytes), 0o600)
		}, true},
		{"something else", func(_ *testing.T, name string) error {
			return os.WriteFile(name, bytes.Repeat([]byte("x"), ledgerBytes), 0o600)
		}, false},
		{"its beginning", func(_ *testing.T, name string) error { return os.Truncate(name, 100) }, false},
		{"a few bytes", func(_ *testing.T, name string) error { return os.Truncate(name, 3) }, false},
		{"more", func(_ *testing.T, name string) error { return os.Truncate(name, 1<<40) }, false},
		{"a link", func(t *testing.T, name string) error {
			other := filepath.Join(t.TempDir(), "other")
			return errors.Join(os.Rename(name, other), os.Symlink(other, name))
		}, false},
		{"a FIFO", func(_ *testing.T, name string) error {
			return errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := OpenLedger(dir)
			if err != nil {
				t.Fatal(err)
			}
			l.Begin("stream-7")
			l.Take(10)
			name := filepath.Join(dir, "ledger")
			if err := errors.Join(l.Close(), tt.make(t, name)); err != nil {
				t.Fatal(err)
			}
			checked := CheckLedger(dir)
			l, err = OpenLedger(dir)
			if (checked == nil) != tt.ok || (err == nil) != tt.ok {
				t.Errorf("the check says %v, and opening %v", checked, err)
			}
			if err == nil {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
