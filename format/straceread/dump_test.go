// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
)

// TestLinesBetween reads what some options, and the output of programs, put between the lines of calls.
func TestLinesBetween(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"-e write", `1 write(1, "hello"..., 18) = 18
 | 00000  68 65 6c 6c 6f 2c 20 77  6f 72 6c 64 20 61 67 61  hello, world aga |
 | 00010  69 6e                                             in               |
1 getuid() = 0
`, `1 write(1, "hello, world again", 18) = 18
1 getuid() = 0
`},
		{"-e read, at the end, of a call in two halves", `1 read(3,  <unfinished ...>
2 getuid() = 0
1 <... read resumed>"ab"..., 64) = 3
 | 00000  61 62 63                                          abc              |
`, `2 getuid() = 0
1 read(3, "abc", 64) = 3
`},
		{"-e write of a vector", `1 writev(1, [{iov_base="he"..., iov_len=3}, {iov_base="yo"..., iov_len=4}], 2) = 7
 * 3 bytes in buffer 0
 | 00000  68 65 79                                          hey              |
 * 4 bytes in buffer 1
 | 00000  79 6f 75 0a                                       you.             |
`, `1 writev(1, [{iov_base="hey", iov_len=3}, {iov_base="you\n", iov_len=4}], 2) = 7
`},
		{"halves without a process (-z)", `1 getpid() = 1
2 munmap(0x7f48d35e6000, 16384 <unfinished ...>
) = 0
1 wait4(-1,  <unfinished ...>
[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 2
`, `1 getpid() = 1
2 munmap(0x7f48d35e6000, 16384) = 0
1 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 2
`},
		{"another process's output in a call", `[pid 1] rt_sigprocmask(SIG_BLOCK, [CHLD], one, two
 <unfinished ...>
[pid 2] lseek(0, 7three
, SEEK_SET)    = -1 ESPIPE (Illegal seek)
[pid 2] getuid(four
)    = 0
[pid 1] <... rt_sigprocmask resumed>[], 8) = 0
[pid 2] readlink("/a"five
, "b", 100) = 1
`, `2 lseek(0, 7, SEEK_SET) = -1 ESPIPE (Illegal seek)
2 getuid() = 0
1 rt_sigprocmask(SIG_BLOCK, [CHLD], [], 8) = 0
2 readlink("/a", "b", 100) = 1
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.strace")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			tape, done := formattest.One(t, &Format, path)
			if n := done.Left[notUnderstood]; n > 0 {
				t.Errorf("%d lines are not understood, want none", n)
			}
			var got strings.Builder
			for line := range strings.Lines(formattest.Text(t, tape)) {
				if !strings.Contains(line, " ---") {
					got.WriteString(line)
				}
			}
			if got.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), tt.want)
			}
		})
	}
}
