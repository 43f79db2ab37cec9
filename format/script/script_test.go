// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// head is what each file of a script begins with.
const (
	replayHead = "iotape-script 1\n"
	treeHead   = "iotape-tree 1 initial\n"
)

// compile makes a tape of the files of a script.
func compile(t testing.TB, files map[string]string) (*trace.Tape, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return compileDir(t, dir)
}

func compileDir(t testing.TB, dir string) (*trace.Tape, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := script.Compile(context.Background(), dir, tw, "test")
	if err != nil {
		return nil, err
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape, nil
}

// rows are the events of a tape with all that a tape knows of them, as JSON.
func rows(t *testing.T, tape *trace.Tape) []string {
	t.Helper()
	p := stracetext.New(&stracetext.Options{Verbose: true, MaxBytes: -1, Hosts: tape.Manifest().Hosts,
		Content: func(b *event.Buf, n int) []byte {
			data, _, err := tape.ContentZero(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			return data[:min(n, len(data))]
		}})
	var list []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		// A script has the names that were given. What they lead to is found again, by the
		// links that the calls of the script tell.
		for i := range ev.Paths {
			ev.Paths[i].Real = ""
		}
		for i := range ev.Files {
			ev.Files[i].Real = ""
		}
		list = append(list, string(p.AppendJSON(nil, ev)))
	}
	return list
}

// A tape that is written as a script and compiled has the same events.
func TestRoundTrip(t *testing.T) {
	tape, err := trace.Open("../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	dir := filepath.Join(t.TempDir(), "script")
	done, err := script.Write(context.Background(), tape, script.Tree{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if done.Events != tape.Manifest().Counts.Events {
		t.Errorf("%d events written of %d", done.Events, tape.Manifest().Counts.Events)
	}
	again, err := compileDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	want, got := rows(t, tape), rows(t, again)
	if len(want) != len(got) {
		t.Errorf("%d events became %d", len(want), len(got))
	}
	differ := 0
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			if differ++; differ <= 3 {
				t.Errorf("event %d\n  was %.600s\n  is  %.600s", i, want[i], got[i])
			}
		}
	}
	if differ > 3 {
		t.Errorf("%d events differ", differ)
	}
}

// writtenAgain returns the tape of the script of a tape.
func writtenAgain(t *testing.T, tape *trace.Tape) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "script")
	if _, err := script.Write(context.Background(), tape, script.Tree{}, dir); err != nil {
		t.Fatal(err)
	}
	again, err := compileDir(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, lineOf(t, dir, err))
	}
	return again
}

// lineOf returns the line that an error is about.
func lineOf(t *testing.T, dir string, err error) string {
	e := (*script.Error)(nil)
	if !errors.As(err, &e) {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dir, e.File))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")[e.Line-1]
}

// Working and root directories, and mounts, of the start are the same in a tape of the script of a tape.
func TestStart(t *testing.T) {
	tape, err := compile(t, map[string]string{"skeleton": treeHead, "replay": replayHead +
		`1 start "/home/u" umask 027` + "\n" +
		`2 start "/jail/a b" umask 022 root "/jail"` + "\n" +
		`3 start "" umask 022 root "/j\"il"  # only the root is known` + "\n" +
		`4 start ""` + "\n" +
		`5 start "/d" umask 022 root "" mounts "1 2 0 0 0\n2 0 false false \"\"\n" "" "/d" "" "" "" "" "" "" "" "at" "/at" "/d"` + "\n" +
		`1 close(1) = -1 EBADF` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	again := writtenAgain(t, tape)
	want := `1 [/home/u] 027
2 [/jail/a b /jail] 022
3 [ /j"il] 022
4 [] 022
5 [/d   /at] 022 /at to /d
`
	for name, tape := range map[string]*trace.Tape{"compiled": tape, "compiled again": again} {
		got := ""
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind != event.Started {
				continue
			}
			dirs := []string{}
			for i := range ev.Paths {
				dirs = append(dirs, ev.Paths[i].Abs)
			}
			got += fmt.Sprintf("%d %v 0%o", ev.TID, dirs, ev.Args[0])
			if s := ev.Mounts(); s != nil && s.Cwd == 2 {
				for _, m := range s.Mounts {
					got += fmt.Sprintf(" %s to %s", m.At, m.To)
				}
			}
			got += "\n"
		}
		if got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
}

// A script that is written by hand needs no more than the calls.
func TestDefaults(t *testing.T) {
	tape, err := compile(t, map[string]string{
		"skeleton": treeHead + "mkdir \"a\"\n" + `file "a/b" content="hello"` + "\n" + `link "a/c" to="a/b"` + "\n" + `symlink "l" target="a"` + "\n" +
			`mknod "f" type=fifo mode=0600` + "\n" + `xattr "a/b" "user.k" "v"` + "\n",
		"replay": replayHead + "# a comment\n" + `openat(AT_FDCWD, "/a/b", O_RDWR) = 3` + "\n" + `read(3, "hello", 100) = 5  # and another` + "\n" +
			`write(3, "more", 4)` + "\n" + `7 pwrite64(3, @2+3, 3, 10)` + "\n" + `pread64(3, _, 3, 10)` + "\n" + `7 unlink("/nothing") = -1 ENOENT` + "\n",
		"content": "01234567",
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	p := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock})
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		text.Write(p.Append(nil, ev))
	}
	want := `1 openat(AT_FDCWD, "/a/b", O_RDWR) = 3</a/b> <0.000000>
1 read(3</a/b>, "hello", 100) = 5 <0.000000>
1 write(3</a/b>, "more", 4) = 4 <0.000000>
7 pwrite64(3, "234", 3, 10) = 3 <0.000000>
7 pread64(3, 0x1 /* 3 bytes, not wanted */, 3, 10) = 3 <0.000000>
7 unlink("/nothing") = -1 ENOENT (No such file or directory) <0.000000>
`
	if text.String() != want {
		t.Errorf("got\n%s", text.String())
	}
	r, err := tape.OpenFile(trace.SnapshotName)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	b, c := m.Lookup("a/b"), m.Lookup("a/c")
	if b == nil || c == nil || b.Size != 5 || c.Link != "a/b" || string(b.Xattrs["user.k"]) != "v" ||
		len(b.Chunks) != 1 {
		t.Fatalf("%+v\n%+v", b, c)
	}
	if data, err := tape.Chunk(b.Chunks[0].ID); err != nil || string(data) != "hello" {
		t.Errorf("%q %v", data, err)
	}
}

// A line whose path was edited opens another file: what the kernel had said of the first
// one does not count, neither there nor where the descriptor is used.
func TestEditedPath(t *testing.T) {
	const facts = " flags=0x8000 mode=0100644 dev=8:1 ino=12 links=1 owner=0:0 size=9"
	tape, err := compile(t, map[string]string{"replay": replayHead +
		`open("/b", O_RDONLY) = 3</a #1@0` + facts + ">\n" + `read(3</a #1@4>, "abcd", 4) = 4` + "\n" +
		`open("/a", O_RDONLY) = 4</a #2@0` + facts + ">\n" + `read(4</a #2@4>, "abcd", 4) = 4` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		f := ev.Subject()
		got = append(got, f.Path)
		if known := f.Ino == 12; known != (f.Path == "/a") {
			t.Errorf("%s of %s: inode %d", ev.Op, f.Path, f.Ino)
		}
	}
	if strings.Join(got, " ") != "/b /b /a /a" {
		t.Errorf("%q", got)
	}
}

// TestCommentBehindTime: what no stream can say is a comment, also behind the time and the thread.
func TestCommentBehindTime(t *testing.T) {
	tape, err := compile(t, map[string]string{"replay": replayHead + "0.000000000 7 # mapped: </home>\nclose(3) = 0\n"})
	if err != nil {
		t.Fatal(err)
	}
	if n := tape.Manifest().Counts.Calls; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestErrors(t *testing.T) {
	for _, x := range []struct{ file, text, want string }{
		{"replay", "iotape\n", "replay:1:1: this is no such file of a script; its first line is: iotape-script 1"},
		{"replay", "iotape-script 2\n", "replay:1:15: version 2 is newer than this program's, which is 1"},
		{"replay", replayHead + "\nopnat(AT_FDCWD, \"a\", O_RDONLY) = 3\n", "replay:3:1: opnat: no such operation; did you mean openat?"},
		{"replay", replayHead + `openat(AT_FDCWD, "a", O_RDNLY) = 3`, "replay:2:23: flags: O_RDNLY is no value of it; did you mean O_RDONLY?"},
		{"replay", replayHead + `openat(AT_FDCWD, "a", O_RDONLY)`, "replay:2:31: openat returns a descriptor, which is not said; add = NUMBER"},
		{"replay", replayHead + `openat(AT_FDCWD, "a", O_RDONLY) = -1 ENONET2`, "replay:2:38: ENONET2: no such error; did you mean ENONET?"},
		{"replay", replayHead + `unlink("a") = -1`, "replay:2:17: which error is it?; write -1 ENOENT, or 0"},
		{"replay", replayHead + `close(3, 4) = 0`, "replay:2:10: close has 1 arguments; remove what is too much"},
		{"replay", replayHead + `write(3, "abc", 5) = 5`, "replay:2:10: buf has 3 bytes, the call moves 5; write = 3, or more content"},
		{"replay", replayHead + `write(3, @0+10, 10) = 10`, "replay:2:10: the file content has 0 bytes, not 10"},
		{"replay", replayHead + `write(3, "abc`, "replay:2:11: the string does not end"},
		{"replay", replayHead + "2.0 0.0 1 close(3) = 0\n1.0 0.0 1 close(4) = 0\n", "replay:3:1: it returns 1.000000000 s before the line above does; lines are in the order of returns: correct the time, leave out all times of the line, or write behind before the call"},
		{"replay", replayHead + "fstat(3, {st_size=4}) = 0", "replay:2:10: statbuf: the fields st_dev, st_ino, st_mode, st_nlink, st_uid, st_gid, st_rdev, st_blksize, st_blocks, st_atime, st_mtime, st_ctime are missing; write all of them, or _ for an argument that is not compared"},
		{"replay", replayHead + "exit", "replay:2:5: a value was expected"},
		{"replay", replayHead + `start "/" umask 022 rot "/a"`, "replay:2:21: root was expected"},
		{"replay", replayHead + "close 3", "replay:2:1: close: no such event; a call has arguments in parentheses"},
		{"replay", replayHead + "close(3) = 0 wth request=\"\"", `replay:2:14: "wth request=\"\"": nothing more was expected; more than the result stands behind: with`},
		{"skeleton", treeHead + `mkdr "a"`, `skeleton:2:1: "mkdr \"a\"": no such command; did you mean mkdir?`},
		{"skeleton", treeHead + `mkdir "a/../../b"` + "\n" + `mkdir "b"`, `skeleton:3:7: "b" is made in line 2 already; remove one of the lines`},
		{"skeleton", treeHead + `file "a" size=3 content="abcd"`, "skeleton:2:1: the content ends at 4, the size is 3; leave the size out, or correct it"},
		{"skeleton", treeHead + `file "a" mode=0999`, `skeleton:2:15: mode: "0999" is not understood; it is octal with a leading 0: 0644`},
		{"skeleton", treeHead + `file "a" mde=1`, "skeleton:2:10: mde: no such attribute; did you mean mode?"},
		{"skeleton", treeHead + `link "b" to="a"`, `skeleton:2:16: "a", which the link is to, is not made above; write to="PATH" of a file that stands above`},
		{"replay", replayHead + "read(3, hashes(3, sketch:00), 3) = 3", "replay:2:9: 0 hashes of 3 bytes; it is hashes(BYTES, 64 hexadecimal digits for each 64 KiB, …, sketch:HEX)"},
		{"replay", replayHead + "read(3, hashes(3, 0000000000000000000000000000000000000000000000000000000000000000, sketch:0), 3) = 3", "replay:2:9: the sketch is not understood; it is hashes(BYTES, 64 hexadecimal digits for each 64 KiB, …, sketch:HEX)"},
	} {
		files := map[string]string{"replay": replayHead + "close(1) = -1 EBADF\n", "skeleton": treeHead}
		files[x.file] = x.text
		_, err := compile(t, files)
		if e := (*script.Error)(nil); !errors.As(err, &e) || e.Error() != x.want {
			t.Errorf("%q\n  got  %v\n  want %s", x.text, err, x.want)
		}
	}
}

// FuzzCompile: a text is either compiled or refused, and its tape is sound.
func FuzzCompile(f *testing.F) {
	f.Add(`openat(AT_FDCWD, "a", O_RDONLY) = 3</a #1@0 flags=0x8000 mode=0100644 dev=8:1 ino=12>`,
		`file "a" content="x"`)
	f.Add("0.000001000 0.000002000 0.1 7 thread pid=7 comm=\"x\"\n7 pwritev(3, {data=[@0+2, missing(3)], "+
		"lens=[2, 3]}, 2, 0) = 5", `mknod "x" type=char rdev=1:3`)
	f.Add("1 fork 2 process 2 share 0x100\n2 start \"/\" umask 022\n2 inherit 3</x #9@0> own\nlost 3 reason "+
		"1\nwoken 3 process 4 in read\nnote \"n\"\n2 exit 0", `symlink "a" target="b"`)
	f.Add("fstat(3, {st_mode=S_IFREG|0644}) = 0\nuring_read(3, \"ab\", 2, 0, 0) = 2 with request=\"\\1\", "+
		"fds=[3<#1@0>], before1=\"x\"", `xattr "a" "b" "c"`)
	f.Add("read(3, hashes(3, 0000000000000000000000000000000000000000000000000000000000000000, sketch:0102), 3) = 3",
		`dir "a"`)
	f.Add("read(3, hashes(3, 0000000000000000000000000000000000000000000000000000000000000000), 3) = 3",
		`file "a" content=[{off=4096, data="x"}] partial`)
	f.Fuzz(func(t *testing.T, replay, skeleton string) {
		if strings.Count(replay, "\n") > 100 || len(replay) > 1<<16 {
			return
		}
		tape, err := compile(t, map[string]string{"replay": replayHead + replay, "skeleton": treeHead + skeleton,
			"content": "0123456789"})
		if err != nil {
			return
		}
		rep, err := tape.Check(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !rep.OK() {
			t.Fatalf("damage: %v", rep.Damage)
		}
		// What was compiled can be written, and compiled again to the same text.
		var texts [2][]byte
		for i := range texts {
			dir := filepath.Join(t.TempDir(), "s")
			if _, err := script.Write(context.Background(), tape, script.Tree{}, dir); err != nil {
				t.Fatal(err)
			}
			if texts[i], err = os.ReadFile(filepath.Join(dir, "replay")); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if tape, err = compileDir(t, dir); err != nil {
					t.Fatalf("%v\n%s", err, texts[i])
				}
			}
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("first\n%s\nthen\n%s", texts[0], texts[1])
		}
	})
}

// TestDelays: how long threads waited for a processor stands behind their CPU time.
func TestDelays(t *testing.T) {
	const lines = `0.000001000 0.000002000 0.000000500 1 getpid() = 1
0.000004000 0.000002000 0.000000500 4.294967295 0.000000007 1 getpid() = 1
0.000007000 0.000002000 0.000000500 0.000000000 0.000000000 1 getpid() = 1
0.000010000 0.000002000? 0.000000500 1 getpid() = 1
`
	tape, err := compile(t, map[string]string{"replay": replayHead + lines})
	if err != nil {
		t.Fatal(err)
	}
	again := writtenAgain(t, tape)
	for _, tape := range []*trace.Tape{tape, again} {
		var got []string
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == event.Call {
				got = append(got, fmt.Sprint(ev.CPU, ev.Flags, ev.DelayBefore, ev.DelayWithin))
			}
		}
		want := []string{"500 0 0 0", fmt.Sprint(500, event.Delays, 1<<32-1, 7), fmt.Sprint(500, event.Delays, 0, 0),
			fmt.Sprint(500, event.Untimed, 0, 0)}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, line := range []string{"0.1 0.1 0.1 0.1 1 getpid() = 1", "0.1 0.1 0.1 4.3 0.1 1 getpid() = 1",
		"0.1 0.1 0.1 0.1 -0.1 1 getpid() = 1", "0.1 0.1 0.1 0.1 0.1 0.1 1 getpid() = 1", "0.1? 0.1 1 getpid() = 1",
		"0.1 ? 1 getpid() = 1", "0.1 0.1 0.1? 1 getpid() = 1"} {
		if _, err := compile(t, map[string]string{"replay": replayHead + line + "\n"}); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

// TestUnknownArguments: what a trace does not say of a call stays unknown in a script.
func TestUnknownArguments(t *testing.T) {
	const line = "0.000001000 0.000002000 1 openat(AT_FDCWD, \"/a\", ?O_RDWR|O_CREAT, ?0) = -1 ENOENT\n"
	tape, err := compile(t, map[string]string{"replay": replayHead + line})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "script")
	if _, err := script.Write(t.Context(), tape, script.Tree{}, dir); err != nil {
		t.Fatal(err)
	}
	again, err := compileDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tape := range []*trace.Tape{tape, again} {
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			want := event.UnknownArg<<2 | event.UnknownArg<<3
			if ev.Kind == event.Call && (ev.Flags != want || ev.Args[2] != 0o102) {
				t.Errorf("flags %#x and %#x for a replay, want %#x and 0x42", ev.Flags, ev.Args[2], want)
			}
		}
	}
	if _, err := compile(t, map[string]string{"replay": replayHead + "0.1 0.1 1 fsync(?x) = 0\n"}); err == nil {
		t.Error("an unknown argument of a value that is none is accepted")
	}
}
