// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; -update rewrites it. Got:\n%s", file, got)
	}
}

// cases reads a file of filters, one a line.
func cases(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

var hosts = &Options{Hosts: []Host{{Name: "alpha", WallNS: 1e18}, {Name: "beta", Arch: event.ARM64, WallNS: 1e18}},
	StartNS: 1e18}

func TestErrors(t *testing.T) {
	var b strings.Builder
	for _, src := range cases(t, "wrong") {
		src = strings.ReplaceAll(src, `⏎`, "\n")
		g, err := New(src, hosts)
		if err == nil {
			t.Errorf("%s is taken: %s", src, g.Simplified())
			continue
		}
		fmt.Fprintf(&b, "%v\n%s\n\n", err, err.(*Error).Shown())
	}
	golden(t, "wrong.golden", b.String())
}

func TestGraphs(t *testing.T) {
	var b strings.Builder
	for _, src := range cases(t, "right") {
		g, err := New(src, hosts)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		fmt.Fprintf(&b, "%s\n%s", src, g)
		if g.Never() || g.Always() {
			fmt.Fprintln(&b, g.Simplified())
		}
		for _, w := range g.Warnings() {
			fmt.Fprintf(&b, "warning at %d: %s\n", w.Pos, w.Message)
		}
		fmt.Fprintln(&b)
	}
	golden(t, "right.golden", b.String())
}

// sockaddr returns the bytes of an internet address.
func sockaddr(addr string) []byte {
	a := netip.MustParseAddrPort(addr)
	b := binary.LittleEndian.AppendUint16(nil, 2)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	if ip := a.Addr(); ip.Is6() {
		b[0] = 10
		return append(append(append(b, 0, 0, 0, 0), ip.AsSlice()...), 0, 0, 0, 0)
	}
	return append(append(b, a.Addr().AsSlice()...), make([]byte, 8)...)
}

func TestMatch(t *testing.T) {
	read := &event.Event{
		Op: event.OpPread64, PID: 10, TID: 11, PPID: 1, UID: 1000, Comm: "rocksdb:low", Enter: 5e9, Exit: 5e9 + 2e6,
		Ret: 4096, Count: 8192, Offset: 1 << 30, NR: 17, Host: 1,
		Files: []event.File{{FD: 7, Open: 3, Known: true, Dev: 8<<8 | 1, Ino: 1<<64 - 2, Mode: 0o100644,
			Flags: 0o200000, Size: 1 << 33, Path: "/db/000012.sst"}},
		Stack: &event.Stack{Frames: []event.Frame{{Module: "/usr/lib/libc.so.6", Function: "pread"},
			{Module: "/bin/db", Function: "table_get"}, {Offset: 4711}}},
	}
	rename := &event.Event{Op: event.OpRename, Offset: -1, Count: -1, Ret: -1, Errno: syscall.EXDEV,
		Paths: []event.Path{{Raw: "a.log", Abs: "/home/a.log"}, {Arg: 1, Raw: "/db/LOG", Abs: "/db/LOG"}}}
	open := &event.Event{Op: event.OpOpenat, Offset: -1, Count: -1, Ret: 3, Args: [event.MaxArgs]uint64{0, 0, 0o101102},
		Files: []event.File{{Arg: event.ResultArg, FD: 3, Known: true, Flags: 0o100002}}}
	bad := &event.Event{Op: event.OpRead, Offset: -1, Count: 4, Ret: -1, Errno: syscall.EBADF,
		Args: [event.MaxArgs]uint64{99}}
	untimed := &event.Event{Kind: event.Call, Op: event.OpRead, Offset: -1, Count: -1, Flags: event.Untimed}
	exit := &event.Event{Kind: event.Exited, PID: 10, TID: 10, Offset: -1, Count: -1}
	for _, c := range []struct {
		ev     *event.Event
		filter string
		want   bool
	}{
		{read, "op = pread64 and class = data and nr = 17 and kind = call", true},
		{read, "op glob p*64", true},
		{read, "op = read", false},
		{read, "stack = pread and stack under /usr/lib and stack glob table_*", true}, {read, "stack = table", false},
		{open, "stack = pread", false}, {open, "not stack = pread", true},
		{read, "uid in {500..1999} and not uid = 1001", true},
		{read, "(uid in (5, 500..1999)) and op = (pread64)", true}, {read, "uid not in (5, 500..1999)", false},
		{read, "uid != root and not user = root and group = root", true},
		{read, `comm startsWith "rocksdb:"`, true},
		{read, "path under /db and ext = sst and name = 000012.sst", true},
		{read, "path under /d", false},
		{read, "path glob /db", true},
		{read, "path glob '/**/*.sst'", true},
		{read, "path glob *.sst", true},
		{read, "path glob /*.sst", false},
		{read, `path matches /^\/db\/\d+\.sst$/`, true},
		{read, "path.endsWith('.sst') && !path.contains('tmp')", true},
		{read, "type = file and size > 1GiB and offset >= 1GiB and count = 8KiB and result < count", false},
		{read, "result = 4096 and result < 5K and bytes >= 4kB", true},
		{read, "latency in {1ms..3ms}", true},
		{read, "latency > 2ms or latency < 2000us", false},
		{untimed, "latency >= 0", false}, {untimed, "latency < 1s", false}, {untimed, "not latency > 1ms and result = 0", true},
		{read, "dev = 8:1 and ino = 18446744073709551614", true},
		{read, "ino > 18446744073709551614", false},
		{read, "ino > 3", true},
		{read, "fd = 7 and fd != 8", true},
		{read, "fd != 7", false},
		{read, "host = beta", true},
		{read, "host != beta", false},
		{read, "host in {0}", false},
		{read, "flags has O_DIRECT", true}, // the bit that it is on arm64
		{read, "flags has O_RDONLY", true},
		{read, "flags has {O_RDWR, O_WRONLY}", false},
		{read, "time in {4s..6s}", true},
		{read, `time >= "2001-09-09T01:46:45Z"`, true},
		{read, `time >= "2001-09-09 01:46:46"`, false},
		{read, "errno = 0 and not failed", true},
		{rename, "path = /home/a.log and path = /db/LOG", true},
		{rename, "path != /db/LOG", false},
		{rename, "path != /db/x", true},
		{rename, "path not under /db", false},
		{rename, "failed and errno = EXDEV and errno != ENOENT", true},
		{rename, "size >= 0", false}, // it has none
		{rename, "size != 0", false},
		{rename, "not size = 0", true},
		{open, "flags has O_CREAT", true},
		{open, "flags has O_CREAT|O_RDWR", true},
		{open, "flags has CREAT|EXCL", false},
		{open, "flags not has O_EXCL", true},
		{bad, "fd = 99", true},
		{exit, "kind = exited", true},
		{exit, "errno = 0 or result = 0 or latency >= 0 or op != read or class != data", false},
		{exit, "pid = 10", true},
		{exit, "op != read", false},
		{exit, "not op = read", true},
	} {
		g, err := New(c.filter, hosts)
		if c.filter == "type = file and size > 1GiB and offset >= 1GiB and count = 8KiB and result < count" {
			if err == nil {
				t.Errorf("a field is compared with a field")
			}
			continue
		}
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := g.NewMatcher().Match(c.ev); got != c.want {
			t.Errorf("%s: %t, want %t, of\n%+v", c.filter, got, c.want, *c.ev)
		}
	}
}

func TestDescendants(t *testing.T) {
	fork := func(parent, child uint32) *event.Event {
		return &event.Event{Kind: event.Forked, PID: parent, TID: parent, Child: child, Ret: int64(child)}
	}
	call := func(pid, ppid uint32) *event.Event {
		return &event.Event{Op: event.OpGetpid, PID: pid, TID: pid, PPID: ppid}
	}
	g, err := New("descendant of 2", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := g.NewMatcher()
	if !g.Follows() {
		t.Error("the filter does not say that it needs all events")
	}
	for i, c := range []struct {
		ev   *event.Event
		want bool
	}{
		{call(1, 0), false}, {fork(1, 2), false}, {call(2, 1), true}, {fork(2, 3), true}, {fork(3, 4), true},
		{call(4, 3), true}, {fork(1, 5), false}, {call(5, 1), false},
		{call(4, 1), true},                       // orphaned
		{fork(1, 4), false}, {call(4, 1), false}, // the number is used again
		{call(8, 2), true},                        // nobody saw it made
		{call(9, 8), true}, {call(10, 77), false}, // likewise
	} {
		if got := m.Match(c.ev); got != c.want {
			t.Errorf("event %d, process %d: %t, want %t", i, c.ev.PID, got, c.want)
		}
	}
}

func TestProgramsAndSockets(t *testing.T) {
	g, err := New("exe endsWith /sh", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := g.NewMatcher()
	call := &event.Event{Op: event.OpGetpid, PID: 5}
	if m.Match(call) || m.Unknown() != 1 {
		t.Errorf("a process whose program is not known: %d of them", m.Unknown())
	}
	m.See(&event.Event{Op: event.OpExecve, PID: 5, Paths: []event.Path{{Raw: "sh", Abs: "/bin/sh"}}})
	if !m.Match(call) {
		t.Error("after execve the program is not known")
	}
	m.See(&event.Event{Kind: event.Forked, PID: 5, TID: 5, Child: 6, Ret: 6})
	if call.PID = 6; !m.Match(call) {
		t.Error("after fork the program is not known")
	}

	described := func(pid uint32, exe string) *event.Event {
		text := (&facts.Process{Exe: exe, UID: &facts.IDs{}}).Append(nil)
		return &event.Event{Kind: event.Described, PID: pid, TID: pid,
			Bufs: []event.Buf{{Arg: facts.PartFacts, Len: int64(len(text)), Inline: text}}}
	}
	for i, c := range []struct { // of a recording that has no execve
		ev   *event.Event
		want bool
	}{
		{described(7, "/bin/cat"), false}, {described(7, "/bin/sh"), true},
		{described(7, ""), true}, // a change of its user
		{described(6, "/bin/cat"), true},
	} {
		m.See(c.ev)
		if got := m.Match(&event.Event{Op: event.OpGetpid, PID: c.ev.PID}); got != c.want {
			t.Errorf("after description %d: %t, want %t", i, got, c.want)
		}
	}

	connect := &event.Event{Op: event.OpConnect, Files: []event.File{{FD: 3, Open: 9}},
		Bufs: []event.Buf{{Arg: 1, Inline: sockaddr("10.1.2.3:443")}}}
	send := &event.Event{Op: event.OpWrite, Files: []event.File{{FD: 3, Open: 9}}}
	for filter, want := range map[string]bool{
		"addr = 10.1.2.3": true, "addr in {10.0.0.0/8}": true, "addr = 10.1.2.4": false, "port = 443": true, "port in {..1023}": true,
		"addr != 10.1.2.3": false, "addr != 10.1.2.4": true, "addr = /run/x": false,
	} {
		g, err := New(filter, nil)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		m := g.NewMatcher()
		if got := m.Match(connect); got != want {
			t.Errorf("connect, %s: %t", filter, got)
		}
		if got := m.Match(send); got != want {
			t.Errorf("write, %s: %t", filter, got)
		}
	}
	named := &event.Event{Op: event.OpRead, Files: []event.File{{FD: 3, Open: 11,
		Path: "TCP:[10.1.2.4:4242->10.1.2.3:5432]"}}}
	local := &event.Event{Op: event.OpRead, Files: []event.File{{FD: 3,
		Path: `UNIX-STREAM:[8->9,peer="/run/x",pid=7,uid=0]`}}}
	for _, c := range []struct {
		ev     *event.Event
		filter string
		want   bool
	}{
		{named, "port = 5432", true}, {named, "port = 4242", true}, {named, "local_port = 4242", true},
		{named, "local_port = 5432", false}, {named, "peer_port = 5432", true}, {named, "peer_port = 4242", false},
		{named, "port = ssh", false}, {named, "port in {ssh, 5000..6000}", true}, {connect, "port = https", true},
		{connect, "peer_port = https", true}, {connect, "port != https", false},
		{named, "addr = 10.1.2.4", true}, {named, "local = 10.1.2.4", true}, {named, "local = 10.1.2.3", false},
		{named, "peer = 10.1.2.3", true}, {named, "peer in {10.1.2.4/32}", false},
		{local, "peer = /run/x", true}, {local, "addr = /run/x", true}, {local, "local = /run/x", false},
		{call, "peer_port = 0", false}, // unknown is no address
	} {
		if g, err := New(c.filter, nil); err != nil || g.NewMatcher().Match(c.ev) != c.want {
			t.Errorf("%v, %s: not %t (%v)", c.ev.Files, c.filter, c.want, err)
		}
	}
	bind := &event.Event{Op: event.OpBind, Files: []event.File{{FD: 3, Open: 9}},
		Bufs: []event.Buf{{Arg: 1, Inline: append([]byte{1, 0}, "/run/x\x00zz"...)}}}
	for filter, want := range map[string]bool{"addr = /run/x": true, "addr = /run/y": false} {
		if g, err := New(filter, nil); err != nil || g.NewMatcher().Match(bind) != want {
			t.Errorf("bind, %s: not %t (%v)", filter, want, err)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	ev := &event.Event{
		Op: event.OpPread64, PID: 10, Comm: "x", Bufs: []event.Buf{{Arg: 1}},
		Files: []event.File{{FD: 7, Open: 3, Known: true, Path: "/db/000012.sst"}},
	}
	g, err := New(`(path matches /sst$/ or addr = 10.0.0.1 or exe = /bin/sh) and (path glob *.sst or ext in {a, b}) `+
		`and not descendant of 3 and not path.contains("xx")`, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := g.NewMatcher()
	if !m.Match(ev) {
		t.Fatal("the filter does not fit")
	}
	if n := testing.AllocsPerRun(100, func() { m.Match(ev) }); n > 0 {
		t.Errorf("an event needs %v allocations", n)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.db", "/tmp/x.db", true},
		{"*.db", "/tmp/x.db-wal", false},
		{"/tmp/*.db", "/tmp/x.db", true},
		{"/tmp/*.db", "/tmp/y/x.db", false},
		{"/tmp/**/*.db", "/tmp/y/z/x.db", true},
		{"/tmp/**/*.db", "/tmp/x.db", true},
		{"/tmp/**/*.db", "/tmp/x.db/y/z", true},
		{"/tmp", "/tmp/y/x.db", true},
		{"/tmp/y", "/tmp/yy", false},
		{"/tmp/y/x.db", "/tmp", false},
		{"**/y/*", "/tmp/y/x", true},
		{"**/y/*", "/y", false},
		{"**/a/**/b", "/a/x/a/y/b", true},
		{"/**/a/b/**/c", "/a/x/a/b/b/d", false},
		{"/a/**", "/a", true},
		{"*/x", "/x", true},
		{"*/x", "/a/x", true},
		{"*/x", "/a/b/x", true},
		{"*/x", "/a/b/x/y", true},
		{"*/x", "/a/b/xx", false},
		{"src/*.c", "/home/u/src/a.c", true},
		{"src/*.c", "/home/u/src/lib/a.c", false},
		{"src/*.c", "/home/u/xsrc/a.c", false},
		{"kworker/*", "kworker/0:1", true},
		{"worker/*", "a/worker/0:1", false},
		{"**/a", "/" + strings.Repeat("x/", 2000), false},
		{strings.Repeat("**/a/", 100) + "b", strings.Repeat("/a", 2000), false},
	} {
		g, err := newGlob(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.fits(c.name); got != c.want {
			t.Errorf("%.40q fits %.40q: %v, want %v", c.name, c.pattern, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"right", "wrong"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		x, err := Parse(src)
		if err != nil {
			e := err.(*Error)
			e.Shown()
			if e.Pos < 0 || e.Pos > len(e.Source) || strings.Contains(e.Error(), "\n") {
				t.Fatalf("%q: error %q at %d", src, e, e.Pos)
			}
			return
		}
		text := x.String()
		again, err := Parse(text)
		if err != nil || again.String() != text {
			t.Fatalf("%q is written as %q, which is read as %v, %v", src, text, again, err)
		}
		g, err := Compile(x, hosts)
		h, err2 := Compile(again, hosts)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v; %q: %v", src, err, text, err2)
		}
		if err != nil {
			return
		}
		if g.Simplified() != h.Simplified() {
			t.Fatalf("%q is %s, %q is %s", src, g.Simplified(), text, h.Simplified())
		}
		g.NewMatcher().Match(&event.Event{Op: event.OpRead})
		_ = g.String()
	})
}

func TestDFSTrace(t *testing.T) {
	b, err := os.ReadFile("testdata/dfstrace")
	if err != nil {
		t.Fatal(err)
	}
	text, err := DFSTrace(string(b))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(text, hosts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "dfstrace.golden", text+"\n"+g.String())
	for _, c := range []struct{ file, problem string }{
		{"opcode open\nopcod close", `line 2, column 1: there is no command "opcod"; did you mean opcode?`},
		{"inodetype ufs", "column 1: inodetype: tapes do not have"},
		{"refcount 1", "column 1: refcount: how many"},
		{"opcode getsymlink", `column 8: tapes have nothing like the opcode "getsymlink"`},
		{"start tomorrow", `column 7: "tomorrow" is no time`},
		{"pid x", `column 5: "x" is no number`},
		{"error EACCESS", "did you mean EACCES?"},
		{"type dirs", "there is no type"},
		{"path", "path needs a list"},
		{"path exclude", "path needs a list"},
	} {
		if _, err := DFSTrace(c.file); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q: %v, want %q", c.file, err, c.problem)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add("trace=%file,!read -P /x -Z --status=failed -p 1,2 -e /^p 'a b'")
	f.Add("start Feb 25 13:00:00 1991\nopcode exclude open read\npath a.b|c\nerror 0 ENOENT\npid 1\ntype dir")
	f.Fuzz(func(t *testing.T, src string) {
		for name, translate := range map[string]func(string) (string, error){"strace": Strace, "dfstrace": DFSTrace} {
			text, err := translate(src)
			if err != nil {
				if e := err.(*Error); e.Pos < 0 || e.Pos > len(e.Source) {
					t.Fatalf("%s %q: error at %d", name, src, e.Pos)
				}
				continue
			}
			if len(text) > MaxSource {
				continue
			}
			if _, err := New(text, hosts); err != nil && !strings.Contains(err.Error(), "regexp") &&
				!strings.Contains(text, "matches") {
				t.Fatalf("%s %q is %q: %v", name, src, text, err)
			}
		}
	})
}

// A filter's text is UTF-8, also of names that are not: a recording has it as JSON.
func TestTextOfNamesWithoutText(t *testing.T) {
	for _, src := range []string{`path = "/x\xff\ny"`, "path = /x\xff", `path = "/\xc3\xa4\xc3"`} {
		x, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		text := x.String()
		if !utf8.ValidString(text) {
			t.Errorf("%q becomes %q, want UTF-8", src, text)
		}
		again, err := Parse(text)
		if err != nil || again.String() != text {
			t.Errorf("%q becomes %q, and that %q (%v)", src, text, again, err)
		}
	}
	if got, want := Quote("/\xc3\xa4\xc3"), "\"/\xc3\xa4\\xc3\""; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
