// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStrange puts links, FIFOs and devices in the place of what is in a catalogue, and uses it: nothing waits, and
// nothing is written elsewhere.
func TestStrange(t *testing.T) {
	month := filepath.Join(tapesName, monthOf(row("a", "h", 0, 1, nil)))
	for _, at := range []string{lockName, tapesName, workName, month, filepath.Join(month, "day=01")} {
		for kind, place := range map[string]func(outside, at string) error{
			"link":   os.Symlink,
			"FIFO":   func(_, at string) error { return unix.Mkfifo(at, 0o600) },
			"file":   func(_, at string) error { return os.WriteFile(at, nil, 0o600) },
			"socket": func(_, at string) error { return unix.Mknod(at, unix.S_IFSOCK|0o600, 0) },
		} {
			t.Run(at+" "+kind, func(t *testing.T) {
				c, outside := Open(t.TempDir()), t.TempDir()
				add(t, c, 2, row("a", "h", 0, 1, nil), row("b", "h", 1, 1, nil))
				name := filepath.Join(c.dir, at)
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
				if err := place(outside, name); err != nil {
					t.Fatal(err)
				}
				_, err := c.Add(t.Context(), row("c", "h", 2, 1, nil))
				if regular := at == lockName && kind == "file"; err == nil && at != workName && !regular {
					t.Error("a row was added")
				}
				_, _ = c.Compact(t.Context())
				_, _ = c.Remove(t.Context(), []string{"a"})
				_, unlock, err := c.read(t.Context())
				if err == nil {
					unlock()
				}
				if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
					t.Errorf("%v was made elsewhere, %v", left, err)
				}
			})
		}
	}
}
