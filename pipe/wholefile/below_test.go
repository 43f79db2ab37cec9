// SPDX-License-Identifier: Apache-2.0

package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenBelow checks that what somebody else put in the place of a file, or of a directory on the way to it, is
// neither followed nor waited for nor written to.
func TestOpenBelow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		place func(root, outside string) error
		open  string
		want  string // part of the error; "" is none
	}{
		{"nothing", func(root, outside string) error { return nil }, "d/f", ""},
		{"a link to a file", func(root, outside string) error {
			return os.Symlink(outside, filepath.Join(root, "d/f"))
		}, "d/f", "is a symbolic link"},
		{"a link to nothing", func(root, outside string) error {
			return os.Symlink(outside+".new", filepath.Join(root, "d/f"))
		}, "d/f", "is a symbolic link"},
		{"a link to a file beside", func(root, outside string) error {
			return os.Symlink("g", filepath.Join(root, "d/f"))
		}, "d/f", "is a symbolic link"},
		{"a link to a directory", func(root, outside string) error {
			return os.Symlink(filepath.Dir(outside), filepath.Join(root, "e"))
		}, "e/outside", "is a symbolic link"},
		{"a hard link", func(root, outside string) error {
			return os.Link(outside, filepath.Join(root, "d/f"))
		}, "d/f", "has 2 names (hard links)"},
		{"a FIFO", func(root, outside string) error {
			return unix.Mkfifo(filepath.Join(root, "d/f"), 0o600)
		}, "d/f", "is a FIFO"},
		{"a directory", func(root, outside string) error {
			return os.Mkdir(filepath.Join(root, "d/f"), 0o700)
		}, "d/f", "directory"},
		{"a name that leads out", func(root, outside string) error { return nil }, "../outside", "cross-device"},
		{"a name with ..", func(root, outside string) error { return nil }, "d/../../outside", "cross-device"},
		{"an absolute name", func(root, outside string) error { return nil }, "/etc/passwd", "cross-device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
			err := errors.Join(os.MkdirAll(filepath.Join(root, "d"), 0o700),
				os.WriteFile(outside, []byte("kept"), 0o600), tt.place(root, outside))
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range []int{os.O_RDWR | os.O_CREATE | os.O_TRUNC, os.O_WRONLY | os.O_CREATE} {
				f, err := OpenBelow(root, tt.open, flag, 0o600)
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("got %v, want none", err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if err == nil {
					f.Close()
				}
			}
			if b, err := os.ReadFile(outside); err != nil || string(b) != "kept" {
				t.Errorf("the file outside has %q, %v", b, err)
			}
			if _, err := os.Lstat(outside + ".new"); err == nil {
				t.Error("a file was made outside")
			}
		})
	}
}

// TestBelowWalks checks the way without openat2, as of old kernels.
func TestBelowWalks(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.Symlink("a", filepath.Join(dir, "l")),
		os.Symlink("f", filepath.Join(dir, "a/b/lf")))
	if err != nil {
		t.Fatal(err)
	}
	top, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(top)
	const flag = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for name, want := range map[string]error{"a/b/f": nil, "l/b/f": unix.ENOTDIR, "a/b/lf": unix.ELOOP} {
		fd, err := walk(top, name, flag, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

// TestBelowSwapped exchanges a directory with a link while files are made, moved and read in it: none is
// made, moved or read elsewhere.
func TestBelowSwapped(t *testing.T) {
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "d"), 0o700), os.Mkdir(outside, 0o700),
		os.WriteFile(filepath.Join(outside, "theirs"), []byte("kept"), 0o600),
		os.Symlink(outside, filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "d"), unix.AT_FDCWD, filepath.Join(root, "link"),
				unix.RENAME_EXCHANGE)
		}
	}()
	made := 0
	for range 5000 {
		if f, err := OpenBelow(root, "d/f", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
			made++
			f.Close()
		}
		_ = RenameBelow(root, "d/f", "g")
		_ = MkdirBelow(root, "d/e", 0o700)
		if b, err := ReadBelow(root, "d/theirs", 100); err == nil {
			t.Fatalf("read %q of outside", b)
		}
		_ = RenameBelow(root, "d/theirs", "theirs")
	}
	stop.Store(true)
	<-done
	if made == 0 {
		t.Error("no file was ever made: the test does not test that")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v; want what was there", entries, err)
	}
}

func TestReadBelow(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "f"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadBelow(root, "f", 5); err != nil || string(b) != "12345" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := ReadBelow(root, "f", 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("got %v, want an error about its size", err)
	}
	if _, err := ReadBelow(root, "none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}
