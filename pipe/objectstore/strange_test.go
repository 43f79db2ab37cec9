// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// TestStrange puts links, FIFOs and devices in the place of files and directories of a store: they are not read,
// waited for or followed.
func TestStrange(t *testing.T) {
	testenv.NeedRoot(t)
	for kind, place := range map[string]func(outside, at string) error{
		"link":   os.Symlink,
		"FIFO":   func(_, at string) error { return unix.Mkfifo(at, 0o600) },
		"device": func(_, at string) error { return unix.Mknod(at, unix.S_IFCHR|0o600, int(unix.Mkdev(5, 2))) },
		"socket": func(_, at string) error { return unix.Mknod(at, unix.S_IFSOCK|0o600, 0) },
	} {
		t.Run(kind, func(t *testing.T) {
			ctx, root, outside := context.Background(), t.TempDir(), t.TempDir()
			secret, file := filepath.Join(outside, "secret"), filepath.Join(t.TempDir(), "file")
			err := errors.Join(os.WriteFile(secret, []byte("kept"), 0o600), os.WriteFile(file, []byte("new"), 0o600),
				os.Mkdir(filepath.Join(root, "dir"), 0o700), place(secret, filepath.Join(root, "dir", "x")))
			if err == nil {
				err = place(outside, filepath.Join(root, "other"))
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(ctx, root)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"dir/x", "other/secret"} {
				if in, err := s.Get(ctx, key); err == nil {
					in.Close()
					t.Errorf("%s was opened", key)
				}
			}
			if s.Put(ctx, "other/y", file) == nil || s.Create(ctx, "other/z", nil) == nil {
				t.Error("a file was stored below what is no directory")
			}
			if err := s.Put(ctx, "dir/x", file); err != nil {
				t.Errorf("a file in the place of a %s: %v", kind, err)
			}
			if b, err := os.ReadFile(secret); string(b) != "kept" || err != nil {
				t.Errorf("a file elsewhere has %q, %v", b, err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
				t.Errorf("%v is elsewhere, %v", left, err)
			}
		})
	}
}
