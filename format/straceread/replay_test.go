// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/replay"
)

func TestMain(m *testing.M) {
	replay.Helper()
	os.Exit(m.Run())
}

// started is how every complete trace of a program begins.
const started = `execve("/bin/x", ["x"], 0x7ffd00000000 /* 20 vars */) = 0
brk(NULL) = 0x55d000000000
mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000
arch_prctl(ARCH_SET_FS, 0x7f0000001000) = 0
openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3
close(3) = 0
`

// throughLink uses /t/lib before a call says that it is a link to /t/usr/lib; foundLink uses both after it.
const (
	throughLink = started + `openat(AT_FDCWD, "/t/lib/x/a", O_RDONLY) = 3
openat(AT_FDCWD, "/t/usr/lib/b", O_RDONLY) = 4
openat(AT_FDCWD, "/t/usr/lib/x/c", O_RDONLY) = 5
`
	foundLink = `openat(AT_FDCWD, "/t/lib/x/a", O_RDONLY) = 6
openat(AT_FDCWD, "/t/usr/lib/x/a", O_RDONLY) = 7
stat("/t/lib/b", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0
`
)

// TestCallsByNumber imports calls that strace did not know. That they are not made is said: they may have changed
// the tree.
func TestCallsByNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.strace")
	text := started + "openat(AT_FDCWD, \"/t/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\n" +
		"syscall_0x1c4(0x3, 0x5634209c01d6, 0x1a0, 0x1000, 0x64, 0) = 0\n" // fchmodat2
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, _ := formattest.One(t, &Format, path)
	rep, err := replay.Run(t.Context(), tape, &replay.Options{
		Into: filepath.Join(t.TempDir(), "into"), Checks: replay.CheckAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Omitted) != 1 || rep.Omitted[0].Op != "fchmodat2" {
		t.Errorf("not made are %+v, want fchmodat2", rep.Omitted)
	}
}

// TestReplayed replays traces of several selections of calls. What a trace leaves out is no
// difference; what it contradicts is one.
func TestReplayed(t *testing.T) {
	tests := []struct {
		name, text           string
		different, dependent uint64
		leftOut              string // one of the kinds that the report names
	}{
		{"complete, and true", started + `openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3
write(3, "abc", 3) = 3
close(3) = 0
newfstatat(AT_FDCWD, "/t/f", {st_mode=S_IFREG|0644, st_size=3, ...}, 0) = 0
`, 0, 0, ""},
		{"complete, and contradicts itself", started + `openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3
close(3) = 0
newfstatat(AT_FDCWD, "/t/f", {st_mode=S_IFREG|0644, st_size=3, ...}, 0) = 0
`, 1, 0, ""},
		{"without writes", `openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3
newfstatat(AT_FDCWD, "/t/f", {st_mode=S_IFREG|0644, st_size=3, ...}, 0) = 0
`, 0, 1, "write"},
		{"without mkdir", `openat(AT_FDCWD, "/t/d", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD, "/t/d/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3
`, 0, 1, "mkdir"},
		{"without seeks", `openat(AT_FDCWD, "/t/f", O_RDONLY) = 3
read(3, "abcdef", 6) = 6
read(3, "", 10) = 0
read(3, "cdef", 10) = 4
`, 0, 2, "lseek"},
		{"getcwd without its answer", started + "getcwd(0x7ffd00000010, 0x1000) = 0x12\n", 0, 0, ""},
		{"getcwd behind a change", started + `chdir("g") = 0
getcwd("/tmp/work/g", 4096) = 12
`, 0, 0, ""},
		{"the target of a link, cut off", started +
			`stat("/t/l", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0
readlink("/t/l", "f1.t"..., 4096) = 6
`, 0, 0, ""},
		{"an attribute's name, cut off", started + `openat(AT_FDCWD, "/t/f", O_RDWR) = 3
fgetxattr(3, "system.p"..., 0x7ffd00000010, 132) = -1 ENODATA (No data available)
fsetxattr(3, "system.p"..., "\2\0\0\0"..., 28, 0) = 0
`, 0, 0, ""},
		{"writes, cut off", started + `openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT|O_EXCL, 0644) = 3
pwrite64(3, "SQLite f"..., 4096, 0) = 4096
pread64(3, "\0\0\0\1", 4, 24) = 4
`, 0, 0, ""},
		{"a copy in the kernel", started + `openat(AT_FDCWD, "/t/a", O_RDONLY) = 3
openat(AT_FDCWD, "/t/b", O_RDWR|O_CREAT|O_EXCL, 0644) = 4
copy_file_range(3, NULL, 4, NULL, 4096, 0) = 5
pread64(4, "hello", 5, 0) = 5
`, 0, 0, ""},
		{"copies in the kernel, at offsets", started + `openat(AT_FDCWD, "/t/a", O_RDONLY) = 3
openat(AT_FDCWD, "/t/b", O_RDWR|O_CREAT|O_EXCL, 0644) = 4
pipe2([5, 6], 0) = 0
sendfile(4, 3, [10] => [110], 100) = 100
copy_file_range(3, [200], 4, [300], 50, 0) = 50
splice(3, [300], 6, NULL, 7, 0) = 7
fstat(4, {st_mode=S_IFREG|0644, st_size=350, ...}) = 0
`, 0, 0, ""},
		{"an open that found its file, by the size", started +
			`openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT, 0666) = 3
fstat(3, {st_mode=S_IFREG|0644, st_size=12, ...}) = 0
`, 0, 0, ""},
		{"an open that found its file, by the end", started +
			`openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666) = 3
lseek(3, 0, SEEK_END) = 12
lseek(3, 0, SEEK_CUR) = 12
write(3, "more\n", 5) = 5
close(3) = 0
stat("/t/f", {st_mode=S_IFREG|0644, st_size=17, ...}) = 0
`, 0, 0, ""},
		{"an open that found its file, by the end behind what it appended", started +
			`openat(AT_FDCWD, "/t/f", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3
write(3, "more\n", 5) = 5
fstat(3, {st_mode=S_IFREG|0644, st_size=17, ...}) = 0
`, 0, 0, ""},
		{"an open that found its file, by content", started +
			`openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT, 0666) = 3
read(3, "abc", 4096) = 3
`, 0, 0, ""},
		{"an open that found its file, by permissions", started +
			`openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3
fstat(3, {st_mode=S_IFREG|0640, st_size=0, ...}) = 0
`, 0, 0, ""},
		{"a link that was used before, by its length", throughLink +
			"lstat(\"/t/lib\", {st_mode=S_IFLNK|0777, st_size=7, ...}) = 0\n" + foundLink, 0, 0, ""},
		{"a link that was used before, by its target", throughLink +
			"readlink(\"/t/lib\", \"usr/lib\", 4096) = 7\n" + foundLink, 0, 0, ""},
		{"a link that was used before, by a listing", throughLink + `openat(AT_FDCWD, "/t", O_RDONLY|O_DIRECTORY) = 6
getdents64(6, [{d_ino=1, d_off=1, d_reclen=24, d_type=DT_DIR, d_name="."}, ` +
			`{d_ino=2, d_off=2, d_reclen=24, d_type=DT_DIR, d_name=".."}, ` +
			`{d_ino=3, d_off=3, d_reclen=24, d_type=DT_LNK, d_name="lib"}, ` +
			`{d_ino=4, d_off=4, d_reclen=24, d_type=DT_DIR, d_name="usr"}], 32768) = 96
getdents64(6, [], 32768) = 0
close(6) = 0
lstat("/t/lib", {st_mode=S_IFLNK|0777, st_size=7, ...}) = 0
` + foundLink, 0, 0, ""},
		{"a script that may be executed, and is read", `access("/t/s", X_OK) = 0
openat(AT_FDCWD, "/t/s", O_RDONLY) = 3
read(3, "#!/bin/sh\n", 80) = 10
`, 0, 0, ""},
		{"an open that made its file, and what it appended", started +
			`openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT|O_APPEND, 0666) = 3
lseek(3, 0, SEEK_END) = 0
fstat(3, {st_mode=S_IFREG|0644, st_size=0, ...}) = 0
write(3, "abc", 3) = 3
lseek(3, 0, SEEK_CUR) = 3
lseek(3, 0, SEEK_SET) = 0
read(3, "abc", 4096) = 3
`, 0, 0, ""},
		{"what was appended to a file of a known size", started + `openat(AT_FDCWD, "/t/f", O_RDWR|O_APPEND) = 3
fstat(3, {st_mode=S_IFREG|0644, st_size=2, ...}) = 0
write(3, "cd", 2) = 2
pread64(3, "abcd", 4096, 0) = 4
fstat(3, {st_mode=S_IFREG|0644, st_size=4, ...}) = 0
`, 0, 0, ""},
		{"what was appended to a file, and read", started + `openat(AT_FDCWD, "/t/f", O_RDWR|O_APPEND) = 3
write(3, "cd", 2) = 2
pread64(3, "abcd", 4096, 0) = 4
fstat(3, {st_mode=S_IFREG|0644, st_size=4, ...}) = 0
`, 0, 0, ""},
		{"a directory that was not empty, of which entries are named later", started +
			`rmdir("/t/d") = -1 ENOTEMPTY (Directory not empty)
openat(AT_FDCWD, "/t/d", O_RDONLY|O_DIRECTORY) = 3
getdents64(3, 0x371e4eb0 /* 3 entries */, 32768) = 72
unlink("/t/d/f") = 0
rmdir("/t/d") = 0
`, 0, 0, ""},
		{"an open that made its file", started +
			`openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT, 0666) = 3
write(3, "abc", 3) = 3
pread64(3, "abc", 4096, 0) = 3
fstat(3, {st_mode=S_IFREG|0644, st_size=3, ...}) = 0
`, 0, 0, ""},
		{"a file that was written in part, and renamed", started +
			`openat(AT_FDCWD, "/t/new", O_RDWR|O_CREAT|O_EXCL, 0600) = 4
write(4, "x\n2"..., 20) = 20
rename("/t/new", "/t/n") = 0
openat(AT_FDCWD, "/t/n", O_RDONLY) = 5
read(5, "x\n2\n3\n4\n5\n6\n7\n8\n9\nx", 4096) = 20
`, 0, 0, ""},
		{"permissions by an attribute of which the name is cut off", started +
			`openat(AT_FDCWD, "/t/new", O_RDWR|O_CREAT|O_EXCL, 0600) = 4
fsetxattr(4, "system.p"..., "\2\0\0\0"..., 28, 0) = 0
fstat(4, {st_mode=S_IFREG|0644, st_size=0, ...}) = 0
`, 0, 1, "extended attributes"},
		{"descriptors that the trace does not say", started + `pipe2(0x7ffd00000010, 0) = 0
dup2(4, 1) = 1
fstat(1, 0x7ffd00000020) = 0
newfstatat(1, "", 0x7ffd00000020, AT_EMPTY_PATH) = 0
`, 0, 0, ""},
		{"the directory, after a child changed its own", `1 openat(AT_FDCWD, "f", O_WRONLY|O_CREAT, 0644) = 3
1 vfork() = 2
2 mkdir("i", 0755) = 0
2 chdir("i") = 0
2 exit_group(0) = ?
1 vfork( <unfinished ...>
3 execve("/bin/x", ["x"], 0x7ffd00000000 /* 20 vars */) = 0
1 <... vfork resumed>) = 3
3 getcwd("/home/u/d", 4096) = 10
`, 0, 0, ""},
		{"a FIFO that the trace made", started + `mknodat(AT_FDCWD, "/t/p", S_IFIFO|0666) = 0
vfork() = 77
openat(AT_FDCWD, "/t/p", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3
write(3, "x\n", 2) = 2
fcntl(1, F_DUPFD, 10) = 10
dup2(10, 3) = 3
77 openat(AT_FDCWD, "/t/p", O_RDONLY) = 4
77 read(4, "x\n", 4096) = 2
77 read(4, "", 4096) = 0
`, 0, 0, ""},
		{"a FIFO that was there, by what stat says behind the open", started + `openat(AT_FDCWD, "/t/p", O_RDONLY) = 4
fstat(4, {st_mode=S_IFIFO|0644, st_size=0, ...}) = 0
read(4, "x\n", 4096) = 2
read(4, "", 4096) = 0
`, 0, 0, ""},
		{"a child that the trace does not have", started +
			`stat("/t/m", 0x7ffd00000010) = -1 ENOENT (No such file or directory)
vfork() = 77
wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 77
stat("/t/m", {st_mode=S_IFREG|0755, st_size=300, ...}) = 0
`, 0, 1, "not in the trace"},
		{"a copy of what is not a file", started + `memfd_create("m", 0) = 3
write(3, "0123456789", 10) = 10
lseek(3, 0, SEEK_SET) = 0
openat(AT_FDCWD, "/t/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 4
sendfile(4, 3, NULL, 100) = 10
pread64(4, "0123456789", 100, 0) = 10
`, 0, 0, ""},
		{"opened by handles", started + `mkdir("/t/d", 0700) = 0
openat(AT_FDCWD, "/t/d/a", O_RDWR|O_CREAT|O_EXCL, 0600) = 3
write(3, "x", 1) = 1
close(3) = 0
name_to_handle_at(AT_FDCWD, "/t/d/a", {handle_bytes=128 => 4, handle_type=1, f_handle="\1\2\3\4"}, [26], 0) = 0
name_to_handle_at(AT_FDCWD, "/t/d", {handle_bytes=128 => 3, handle_type=1, f_handle=0x010203}, [26], 0) = 0
rename("/t/d/a", "/t/b") = 0
open_by_handle_at(AT_FDCWD, {handle_bytes=4, handle_type=1, f_handle="\1\2\3\4"}, O_RDWR|O_APPEND) = 3
write(3, "y", 1) = 1
unlink("/t/b") = 0
open_by_handle_at(AT_FDCWD, {handle_bytes=4, handle_type=1, f_handle="\1\2\3\4"}, O_RDONLY) = 4
read(4, "xy", 10) = 2
open_by_handle_at(AT_FDCWD, {handle_bytes=3, handle_type=1, f_handle=0x010203}, O_RDONLY) = 5
openat(5, "c", O_RDWR|O_CREAT|O_EXCL, 0600) = 6
stat("/t/d/c", {st_mode=S_IFREG|0600, st_size=0, ...}) = 0
`, 0, 0, ""},
		{"a call that strace knew by its number", started + `mkdir("/t/d", 0700) = 0
openat(AT_FDCWD, "/t/d", O_RDONLY) = 3
syscall_0x1b5(0x3, 0x5634209c01d6, 0x7ffd00000000, 0x18, 0x64, 0) = -1 (errno 40)
`, 0, 0, ""},
		{"-X verbose -y", started +
			`statx(-100 /* AT_FDCWD */</t>, "d", 0 /* AT_STATX_SYNC_AS_STAT */|0x100 /* AT_SYMLINK_NOFOLLOW */, ` +
			`0x3 /* STATX_TYPE|STATX_MODE */, {stx_mask=0x7ff /* STATX_BASIC_STATS */, stx_attributes=0, ` +
			`stx_mode=0120777 /* S_IFLNK|0777 */, stx_size=4, ...}) = 0
openat(-100 /* AT_FDCWD */</t>, "e", 0x10000 /* O_RDONLY|O_DIRECTORY */) = 3</t/e>
`, 0, 0, ""},
		{"the program's output in between", started +
			"write(2, \"a: no, (b) = 3\\n\", 15a: no, (b) = 3\n)       = 15\n" +
			"write(1, \"42\", 242)  = 2\nwrite(1, \"4 4 4 4\"..., 314 4 4 4 and more than is shown)  = 31\n" +
			"writev(2, [{iov_base=\"x\", iov_len=1}, {iov_base=\"y\\n\", iov_len=2}], 2xy\n) = 3\n", 0, 0, ""},
		{"-k", "execve(\"/bin/x\", [\"x\"], 0x7ffd00000000 /* 20 vars */) = 0\n" +
			strings.Repeat(" > /usr/lib/x86_64-linux-gnu/libc.so.6(brk+0xb) [0x10c1ab]\n", 40) +
			"close(3) = 0\n", 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.strace")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if !Format.Match([]byte(tt.text)) {
				t.Error("not recognised as strace's")
			}
			tape, _ := formattest.One(t, &Format, path)
			rep, err := replay.Run(t.Context(), tape, &replay.Options{
				Into: filepath.Join(t.TempDir(), "into"), Checks: replay.CheckAll,
			})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Different != tt.different || rep.Dependent != tt.dependent {
				t.Errorf("%d results differ and %d depend on what is left out (%v), want %d and %d; kinds %+v",
					rep.Different, rep.Dependent, rep.LeftOut, tt.different, tt.dependent, rep.Kinds)
			}
			if all := strings.Join(rep.LeftOut, " "); !strings.Contains(all, tt.leftOut) {
				t.Errorf("left out are said to be %q, want %q among them", all, tt.leftOut)
			}
		})
	}
}
