// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
)

// printed returns the calls of a text as iotape prints them, and what was left out.
func printed(t *testing.T, text string) ([]string, map[string]uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tape, done := imported(t, path)
	p := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, MaxBytes: 32})
	var lines []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call {
			line, _, _ := strings.Cut(string(p.Append(nil, ev)), " <0.")
			lines = append(lines, line)
		}
	}
	return lines, done.Left
}

// madeUp is a descriptor with the name of a file that was open before the trace.
var madeUp = regexp.MustCompile(`(\d)<[^>]*>`)

// TestOldNames reads calls under the names that programs of 32 bits, other architectures and
// old versions of strace have for them.
func TestOldNames(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`fstat64(3, {st_mode=S_IFREG|0644, st_size=3519, ...}) = 0`, `fstat(3`},
		{`_llseek(3, -24, [3495], SEEK_CUR) = 0`, `lseek(3, -24, SEEK_CUR) = 3495`},
		{`fcntl64(4, F_GETFD) = 0`, `fcntl(4, F_GETFD`},
		{`pwrite(5, "\0", 1, 1) = 1`, `pwrite64(5, "\0", 1, 1) = 1`},
		{`mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 5, 0) = 0xb7000000`, `mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 5`},
		{`send(6, "abc", 3, 0) = 3`, `sendto(6, "abc", 3, 0, NULL, 0) = 3`},
		{`recv(6, "abc", 10, 0) = 3`, `recvfrom(6, "abc", 10, 0, NULL, NULL) = 3`},
		{`waitpid(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0) = 12`, `wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 12`},
		{`_exit(0) = ?`, `exit(0)`},
		{`statfs64("/", 84, {f_type=EXT2_SUPER_MAGIC}) = 0`, `statfs("/", {f_type=`},
		{`ftruncate64(3, 4096) = 0`, `ftruncate(3, 4096) = 0`},
		{`sync_file_range2(3, 0, 1, 2) = 0`, `sync_file_range(3, 1, 2, 0) = 0`},
		{`chown32("/a", 1, 2) = 0`, `chown("/a", 1, 2) = 0`},
		{`umount("/mnt") = 0`, `umount2("/mnt", 0) = 0`},
	} {
		lines, left := printed(t, c.text+"\n")
		plain := ""
		if len(lines) == 1 {
			_, plain, _ = strings.Cut(madeUp.ReplaceAllString(lines[0], "$1"), " ")
		}
		if !strings.HasPrefix(plain, c.want) {
			t.Errorf("%s is read as %q, left out %v; want %q", c.text, lines, left, c.want)
		}
	}
}

// TestAttachedInTheMiddle reads a call that strace interrupted to say that it has attached a
// process, and then ended on the next line.
func TestAttachedInTheMiddle(t *testing.T) {
	for version, text := range map[string]string{
		"4": "clone(Process 21 attached\n" +
			"child_stack=0, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7fbc) = 21\n",
		"6.1": "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 21 attached\n" +
			", child_tidptr=0x7fbc) = 21\n",
		"two at once": "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 21 attached\n" +
			"strace: Process 22 attached\n, child_tidptr=0x7fbc) = 21\n",
	} {
		lines, left := printed(t, "getpid() = 20\n"+text+"[pid 21] getppid() = 20\n")
		if len(lines) != 3 || len(left) > 0 || !strings.Contains(lines[1], "clone(") ||
			!strings.Contains(lines[1], "= 21") {
			t.Errorf("strace %s is read as %q, left out %v; want clone(…) = 21 and nothing left out", version, lines,
				left)
		}
	}
}

// TestMarksFirst recognises a text that begins with many lines about what was open.
func TestMarksFirst(t *testing.T) {
	marks := strings.Repeat("36 1481211698.334166750 --- inherited 0<pipe:[22656]> ---\n", 100)
	if !match([]byte(marks + "36 1481211698.334166760 getpid() = 36 <0.000001>\n")) {
		t.Error("not recognised")
	}
	if match([]byte(marks)) {
		t.Error("marks alone are taken for a trace")
	}
}
