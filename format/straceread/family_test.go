// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoinWithoutTimes joins files whose lines have no times: a process begins behind the call that made it, and a
// wait for it returns when it has ended. Files that wait for each other are written all the same.
func TestJoinWithoutTimes(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"one after the other", map[string]string{
			"x.10": "getpid() = 10\nvfork() = 12\nwait4(12, NULL, 0, NULL) = 12\nvfork() = 11\nwait4(-1, NULL, 0, NULL) = 11\n",
			"x.11": "getuid() = 11\ngetgid() = 11\n",
			"x.12": "getuid() = 12\ngetgid() = 12\ngeteuid() = 12\n",
		}, `10 getpid() = 10
10 vfork() = 12
12 getuid() = 12
12 getgid() = 12
12 geteuid() = 12
10 wait4(12, NULL, 0, NULL) = 12
10 vfork() = 11
11 getuid() = 11
11 getgid() = 11
10 wait4(-1, NULL, 0, NULL) = 11
`},
		{"a cycle", map[string]string{
			"x.10": "vfork() = 11\n", "x.11": "vfork() = 10\n",
		}, "10 vfork() = 11\n11 vfork() = 10\n"},
		{"exact times", map[string]string{
			"x.10": "1700000000.000001 wait4(-1, NULL, 0, NULL) = 11\n", "x.11": "1700000000.000002 getuid() = 11\n",
		}, "10 1700000000.000001 wait4(-1, NULL, 0, NULL) = 11\n11 1700000000.000002 getuid() = 11\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for name, text := range tt.files {
				path := filepath.Join(dir, name)
				paths = append(paths, path)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got strings.Builder
			if err := Join(t.Context(), &got, paths); err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), tt.want)
			}
		})
	}
}
