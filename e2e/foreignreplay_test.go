// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// foreignTraces are small traces of others, which leave out much of what a recording has. A
// replay makes up what they prove, and agrees with what they say.
var foreignTraces = []struct {
	name, file, text string
	prints           []string // parts of what print writes
	made             string   // what replay says of calls
}{
	{
		"a directory is opened", "x.strace",
		"openat(AT_FDCWD, \"/d\", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY) = 3\nclose(3) = 0\n",
		nil, "1 calls made",
	},
	{
		"stat without most fields", "x.strace",
		"openat(AT_FDCWD, \"/etc/hostname\", O_RDONLY) = 3\nfstat(3, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0\n" +
			"read(3, \"abcd\\n\", 4096) = 5\nclose(3) = 0\n",
		[]string{"st_size=5, ...}"}, "3 calls made",
	},
	{
		"statx without most fields", "x.strace",
		"statx(AT_FDCWD, \"/a\", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_attributes=0, " +
			"stx_mode=S_IFREG|0600, stx_size=7, ...}) = 0\n",
		nil, "1 calls made",
	},
	{
		"stat of a name, three times", "x.strace",
		"stat(\"/a\", {st_mode=S_IFREG|0640, st_size=5, ...}) = 0\n" +
			"stat(\"/b\", {st_mode=S_IFREG|0640, st_size=6, ...}) = 0\n" +
			"lstat(\"/c\", {st_mode=S_IFLNK|0777, st_size=6, ...}) = 0\n",
		nil, "3 calls made",
	},
	{
		"a socket that was open before", "x.strace",
		"sendto(6, \"abc\", 3, 0, NULL, 0) = 3\nclose(6) = 0\n",
		[]string{"sendto(6, \"abc\""}, "0 calls made",
	},
	{
		"a relative name", "x.strace",
		"execve(\"/bin/cat\", [\"cat\", \"f.txt\"], 0x7ffd /* 3 vars */) = 0\n" +
			"openat(AT_FDCWD, \"f.txt\", O_RDONLY) = 3\n" +
			"read(3, \"abcd\\n\", 4096) = 5\nclose(3) = 0\n",
		[]string{"3</unknown/cwd/f.txt>"}, "3 calls made",
	},
	{
		"a relative name and getcwd", "x.strace",
		"openat(AT_FDCWD, \"f.txt\", O_RDONLY) = 3\ngetcwd(\"/home/u\", 4096) = 8\nclose(3) = 0\n",
		[]string{"3</home/u/f.txt>"}, "3 calls made",
	},
	{
		"a relative name and all of it behind the result", "x.strace",
		"openat(AT_FDCWD, \"d/f.txt\", O_RDONLY) = 3</home/u/d/f.txt>\nread(3</home/u/d/f.txt>, \"ab\", 9) = 2\n" +
			"close(3</home/u/d/f.txt>) = 0\nopenat(AT_FDCWD, \"../g\", O_RDONLY) = 3</home/g>\n",
		[]string{"started in \"/home/u\"", "3</home/u/d/f.txt>", "3</home/g>"}, "4 calls made",
	},
	{
		"raw arguments without a name for a zero", "x.strace",
		"statx(-100, \"/a\", , 0xfff, {stx_mask=0x1fff, stx_mode=0100644, stx_size=5, ...}) = 0\n" +
			"statx(-100, \"/a\", |0x100, 0xfff, {stx_mask=0x1fff, stx_mode=0100644, stx_size=5, ...}) = 0\n",
		[]string{"AT_STATX_SYNC_AS_STAT, STATX_ALL, {", "AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW, STATX_ALL, {"},
		"2 calls made",
	},
	{
		"a relative name of a child", "x.strace",
		"10 clone(child_stack=NULL, flags=SIGCHLD) = 11\n11 openat(AT_FDCWD, \"f\", O_WRONLY|O_CREAT, 0644) = 3\n" +
			"11 write(3, \"x\", 1) = 1\n11 exit_group(0) = ?\n" +
			"10 stat(\"f\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
		[]string{"11 0.000001 openat(AT_FDCWD, \"f\", O_WRONLY|O_CREAT, 0644) = 3</unknown/cwd/f>"}, "4 calls made",
	},
	{
		"output that was open before", "x.strace",
		"execve(\"/bin/echo\", [\"echo\", \"hi\"], 0x7ffd /* 3 vars */) = 0\n" +
			"write(1, \"hi\\n\", 3) = 3\nclose(1) = 0\n" +
			"exit_group(0) = ?\n",
		[]string{"--- inherited 1 ---"}, "0 calls made",
	},
	{
		"output to a file that was open before", "x.strace",
		"newfstatat(1, \"\", {st_mode=S_IFREG|0644, st_size=522, ...}, AT_EMPTY_PATH) = 0\nwrite(1, \"hi\\n\", 3) = 3\n" +
			"newfstatat(1, \"\", {st_mode=S_IFREG|0644, st_size=525, ...}, AT_EMPTY_PATH) = 0\n",
		[]string{"inherited 1</unknown/fd-1-of-1>"}, "4 calls made",
	},
	{
		"a terminal that was open before", "x.strace",
		"fstat(1, {st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0x1), ...}) = 0\nwrite(1, \"hi\\n\", 3) = 3\n",
		[]string{"--- inherited 1 ---"}, "0 calls made",
	},
	{
		"a file that was open before", "x.strace",
		"pread64(5, \"abc\", 3, 4096) = 3\npwrite64(5, \"xyz\", 3, 0) = 3\nfsync(5) = 0\nclose(5) = 0\n",
		[]string{"5</unknown/fd-5-of-1>"}, "4 calls made",
	},
	{
		"a directory that was open before", "x.strace",
		"openat(7, \"sub/f\", O_RDONLY) = 8\nread(8, \"q\", 10) = 1\n",
		[]string{"8</unknown/fd-7-of-1/sub/f>"}, "3 calls made",
	},
	{
		"a directory that was open before, with its name", "x.strace",
		"openat(7</t/d>, \"f\", O_WRONLY|O_CREAT|O_EXCL, 0604) = 4</t/d/f>\nwrite(4</t/d/f>, \"abc\", 3) = 3\n",
		[]string{"--- inherited 7</t/d> ---"}, "3 calls made",
	},
	{
		"a listing of which nothing is said", "x.strace",
		"openat(AT_FDCWD, \"/d\", O_RDONLY|O_DIRECTORY) = 3\ngetdents64(3, 0x55d0 /* 5 entries */, 32768) = 144\n" +
			"getdents64(3, 0x55d0 /* 0 entries */, 32768) = 0\nopen(\"/d/x\", O_RDONLY) = 4\n",
		nil, "4 calls made",
	},
	{
		"content of which the beginning is said", "x.strace",
		"open(\"/a\", O_RDONLY) = 3\nread(3, \"abc\"..., 4096) = 4096\n" +
			"read(3, \"z\", 4096) = 1\nread(3, \"\", 4096) = 0\n",
		nil, "4 calls made",
	},
	{
		"a link that is followed before it is read", "x.strace",
		"faccessat2(AT_FDCWD, \"/b/p\", X_OK, AT_EACCESS) = 0\nreadlink(\"/b/p\", \"p3\", 4096) = 2\n" +
			"readlink(\"/b/p3\", 0x7ffd, 4096) = -1 EINVAL (Invalid argument)\n",
		nil, "3 calls made",
	},
	{
		"a file that is passed to another process", "x.strace",
		"10 socketpair(AF_UNIX, SOCK_DGRAM, 0, [3, 4]) = 0\n10 open(\"/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 5\n" +
			"10 write(5, \"0123456789\", 10) = 10\n10 fork() = 11\n" +
			"10 sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"h\", iov_len=1}], msg_iovlen=1, " +
			passedFile + "[5]}], msg_controllen=24, msg_flags=0}, 0) = 1\n" +
			"11 recvmsg(4, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"h\", iov_len=4}], msg_iovlen=1, " +
			passedFile + "[6]}], msg_controllen=24, msg_flags=0}, 0) = 1\n" +
			"11 lseek(6, 0, SEEK_SET) = 0\n11 write(6, \"child\", 5) = 5\n11 exit_group(0) = ?\n" +
			"10 wait4(-1, NULL, 0, NULL) = 11\n10 write(5, \"me\", 2) = 2\n10 pread64(5, \"childme789\", 10, 0) = 10\n",
		[]string{"write(6</f>, \"child\""}, "6 calls made",
	},
	{
		"a store through a mapping, which no call says", "x.strace",
		"open(\"/m\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\nftruncate(3, 10000) = 0\n" +
			"mmap(NULL, 10000, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f0000000000\n" +
			"msync(0x7f0000000000, 10000, MS_SYNC) = 0\npread64(3, \"hello\", 5, 5000) = 5\n",
		nil, "3 calls made",
	},
	{
		"names of a 32-bit program, and of capabilities", "x.strace",
		"open(\"/a\", O_RDWR|O_CREAT, 0600) = 3\n" +
			"fcntl64(3, F_SETLK64, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=10}) = 0\n" +
			"prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0) = 0\n",
		[]string{"F_SETLK, {l_type=F_WRLCK", "prctl(PR_CAP_AMBIENT"}, "1 calls made",
	},
	{
		"numbers with C's suffixes", "x.strace",
		"open(\"/a\", O_WRONLY|O_CREAT, 0644) = 3\nwrite(3, \"u\", 1u) = 1\nwrite(3, \"abcd\", 4UL) = 4\n",
		[]string{`"u", 1) = 1`, `"abcd", 4) = 4`}, "3 calls made",
	},
	{
		"DFTracer: a read of a file that is not in the trace", "x.pfw",
		dftracer("open", 1000, `"fname":"/d/a","ret":3,"flags":0`) +
			dftracer("read", 1010, `"fname":"/d/a","fd":3,"count":4096,"ret":4096`),
		[]string{"= 4096"}, "2 calls made",
	},
	{
		"DFTracer: calls without descriptors", "x.pfw",
		dftracer("open", 1000, `"fname":"/d/a","ret":3`) +
			dftracer("read", 1010, `"fname":"/d/a","ret":100`) +
			dftracer("close", 1020, `"fname":"/d/a","ret":0`) +
			dftracer("open", 1030, `"fname":"/d/a","ret":3`) +
			dftracer("read", 1040, `"fname":"/d/a","ret":100`),
		[]string{"read(3</d/a>", "close(3</d/a>)"}, "4 calls made",
	},
	{
		"DFTracer: numbers for kinds, and long thread ids", "x.pfw",
		`{"name":"FH","cat":"dftracer","pid":100,"tid":100,"ph":4,"args":{"name":"/d/a.bin","value":"1f00aa2d"}}` + "\n" +
			numbered("open", 1785089433770100, `"fhash":"1f00aa2d","flags":0,"ret":3`) +
			numbered("read", 1785089433770200, `"fhash":"1f00aa2d","size":4096,"ret":4096`),
		[]string{"read(3</d/a.bin>"}, "2 calls made",
	},
	{
		"LTTng: calls of which only the processor is known", "x.txt",
		lttng("20000", "syscall_entry_open", `filename = "/usr/x.pyc", flags = 524288, mode = 438`) +
			lttng("20793", "syscall_exit_open", `ret = 3`) +
			lttng("20799", "syscall_entry_close", `fd = 3`) +
			lttng("21474", "syscall_exit_close", `ret = 0`),
		[]string{`open("/usr/x.pyc", O_RDONLY|O_CLOEXEC) = 3</usr/x.pyc>`}, "1 calls made",
	},
}

// passedFile is the head of a message that passes a file.
const passedFile = "msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data="

// lttng returns a line of babeltrace2; time is the number of ns.
func lttng(time, event, fields string) string {
	return "[18:38:35.0000" + time + "] (+0.000000001) test " + event + ": { cpu_id = 0 }, { " + fields + " }\n"
}

// dftracer returns a line of DFTracer.
func dftracer(name string, ts int, args string) string {
	return fmt.Sprintf(`{"name":%q,"cat":"POSIX","pid":100,"tid":100,"ts":%d,"dur":5,"ph":"X","args":{%s}}`+"\n",
		name, ts, args)
}

// numbered returns a line of DFTracer 2, with the number of a thread that has more than 32 bits.
func numbered(name string, ts int, args string) string {
	return fmt.Sprintf(`{"name":%q,"cat":"POSIX","pid":100,"tid":%d,"ts":%d,"dur":5,"ph":1,"args":{%s}}`+"\n",
		name, 139872345678901, ts, args)
}

// TestForeignReplay replays traces of others with --verify: what they do not say is not compared.
func TestForeignReplay(t *testing.T) {
	testenv.Short(t, "it replays many traces")
	testenv.NeedRoot(t)
	iotape := testenv.Iotape(t)
	for _, c := range foreignTraces {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, tape := filepath.Join(dir, c.file), filepath.Join(dir, "x.tape")
			if err := os.WriteFile(file, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			// It says 1 if something was left out.
			_ = exec.CommandContext(t.Context(), iotape, "convert", "--no-index", file, tape).Run()
			printed, err := exec.CommandContext(t.Context(), iotape, "print", tape).CombinedOutput()
			if err != nil {
				t.Fatalf("print: %v\n%s", err, printed)
			}
			for _, want := range c.prints {
				if !strings.Contains(string(printed), want) {
					t.Errorf("want %s in\n%s", want, printed)
				}
			}
			out, err := exec.CommandContext(t.Context(), iotape, "replay", tape, "--verify", "--into",
				filepath.Join(dir, "again")).CombinedOutput()
			text := string(out)
			if err != nil || !strings.Contains(text, "all results agree") || !strings.Contains(text, c.made) {
				t.Errorf("replay: %v, want %s, and that all results agree\n%s\nof\n%s", err, c.made, out, printed)
			}
		})
	}
}

// TestForeignReplayOmits replays traces that say too little of a call to make it: that is counted, and the verdict is
// not that all agrees.
func TestForeignReplayOmits(t *testing.T) {
	testenv.NeedRoot(t)
	iotape := testenv.Iotape(t)
	tests := []struct{ name, file, text, want string }{
		{"no names", "x.strace", "mkdir(0x7ffd1000, 0x1ff) = 0\nrename(0x7ffd1000, 0x7ffd2000) = 0\n",
			"2 calls are not made"},
		{"no size", "x.json", `{"system_call_name":"truncate","call_timestamp":1700000000000000000,` +
			`"return_timestamp":1700000000000000001,"pid":7,"tid":7,"return_value":0,"fdata":{"file_path":"/a"},"args":{}}` +
			"\n", "1 calls are not made"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, tt.file)
			if err := os.WriteFile(file, []byte(tt.text), 0o666); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), iotape, "replay", file, "--verify", "--into",
				filepath.Join(dir, "again")).CombinedOutput()
			text := string(out)
			if err == nil || !strings.Contains(text, tt.want) || strings.Contains(text, "all results") {
				t.Errorf("%v, want an error and %q, and not that all results agree\n%s", err, tt.want, out)
			}
		})
	}
}
