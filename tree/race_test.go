// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// While a tree is taken, somebody swaps a directory in it for a symlink to a place
// outside, and a file for a fifo, over and over. Nothing from outside may get into the
// snapshot, and nothing may block or fail.
func TestTakeRacingRenames(t *testing.T) {
	base := t.TempDir()
	p := func(name string) string { return filepath.Join(base, name) }
	must(t, os.MkdirAll(p("root/a/b"), 0o755))
	must(t, os.Mkdir(p("victim"), 0o755))
	must(t, os.Mkdir(p("victim/b"), 0o755))
	write(t, p("victim/b/x"), "OUTSIDE")
	write(t, p("root/a/b/x"), "inside")
	write(t, p("root/file"), "inside")
	must(t, os.Symlink(p("victim"), p("root/trap")))
	must(t, unix.Mkfifo(p("root/fifo"), 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			unix.Renameat2(unix.AT_FDCWD, p("root/a"), unix.AT_FDCWD, p("root/trap"), unix.RENAME_EXCHANGE)
			unix.Renameat2(unix.AT_FDCWD, p("root/file"), unix.AT_FDCWD, p("root/fifo"), unix.RENAME_EXCHANGE)
		}
	}()
	opt := &TakeOptions{Sink: func(data []byte, _ int64) (uint64, error) {
		if bytes.Contains(data, []byte("OUTSIDE")) {
			return 0, errors.New("got out of the root")
		}
		return 0, nil
	}}
	for ctx.Err() == nil {
		take(t, p("root"), opt)
		m, err := TakePaths(t.Context(), p("root"), []string{"a/b/x", "trap/b/x", "file", "fifo"}, nil, opt)
		must(t, err)
		must(t, m.Validate())
	}
	<-done
}

func TestChmodPinned(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(t, os.Symlink("fifo", filepath.Join(dir, "link")))
	fd, err := openRoot(dir)
	must(t, err)
	defer unix.Close(fd)
	must(t, chmodPinned(fd, "fifo", 0o4751))
	if err := chmodPinned(fd, "link", 0o777); err != unix.ELOOP {
		t.Errorf("chmod of a symlink: %v", err)
	}
	var st unix.Stat_t
	must(t, lstatAt(fd, "fifo", &st))
	if st.Mode&modeMask != 0o4751 {
		t.Errorf("mode %o", st.Mode)
	}
}

func BenchmarkTake(b *testing.B) {
	many, one := b.TempDir(), b.TempDir()
	for i := range 1000 {
		write(b, filepath.Join(many, fmt.Sprint(i)), "small")
	}
	must(b, os.WriteFile(filepath.Join(one, "big"), make([]byte, 64<<20), 0o644))
	sink := func([]byte, int64) (uint64, error) { return 0, nil }
	for _, bench := range []struct {
		name  string
		root  string
		opt   *TakeOptions
		bytes int64
	}{
		{"files=1000/content=none", many, &TakeOptions{NoHash: true}, 0},
		{"files=1000/content=hash", many, nil, 0},
		{"files=1/content=64MiB", one, &TakeOptions{Sink: sink}, 64 << 20},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(bench.bytes)
			for b.Loop() {
				take(b, bench.root, bench.opt)
			}
		})
	}
}
