// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func host(arch string) []trace.Host {
	return []trace.Host{{Head: trace.Head{Host: "alpha", Arch: arch, ClockNS: 1_000_000_000,
		WallNS: 1_700_000_000_000_000_000}}}
}

// call returns a successful call of a process, 12 µs long.
func call(op event.Op, ret int64, args ...uint64) event.Event {
	e := event.Event{Op: op, PID: 100, TID: 101, PPID: 1, PGID: 100, SID: 100, UID: 1000, GID: 1000, Comm: "prog",
		Enter: 2_000_123_456, Exit: 2_000_135_456, CPU: 77, Ret: ret, Offset: -1, Count: -1}
	e.NR = uint32(max(event.Number(event.AMD64, op), 0))
	copy(e.Args[:], args)
	return e
}

func failed(e event.Event, errno syscall.Errno) event.Event {
	e.Ret, e.Errno = -1, errno
	return e
}

func withPath(e event.Event, arg int, raw, abs string) event.Event {
	e.Paths = append(e.Paths, event.Path{Arg: int8(arg), Raw: raw, Abs: abs})
	return e
}

func withFile(e event.Event, arg int, fd int32, path string) event.Event {
	e.Files = append(e.Files, event.File{Arg: int8(arg), FD: fd, Open: event.OpenID(fd + 10), Known: true, Dev: 0x801,
		Ino:  42,
		Mode: 0o100644, Flags: 0o100002, Nlink: 1, UID: 1000, GID: 1000, Size: 4096, Pos: 12, Path: path})
	return e
}

func withBuf(e event.Event, arg int, data string) event.Event {
	a := &e.Spec().Args[arg]
	e.Bufs = append(e.Bufs, event.Buf{Arg: int8(arg), Dir: a.Dir, Kind: a.Kind, Len: int64(len(data)),
		Inline: []byte(data)})
	return e
}

func words(v ...uint64) string {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

// structStat is a struct stat of amd64 or arm64 with known numbers.
func structStat(a event.Arch) string {
	b := make([]byte, event.LayoutStat.Bytes(a))
	le := binary.LittleEndian
	le.PutUint64(b, 0x801)
	le.PutUint64(b[8:], 42)
	le.PutUint64(b[48:], 5)
	le.PutUint64(b[64:], 8)
	if a == event.ARM64 {
		le.PutUint32(b[16:], 0o100640)
		le.PutUint32(b[20:], 2)
		le.PutUint32(b[24:], 1000)
		le.PutUint32(b[28:], 1001)
		le.PutUint32(b[56:], 4096)
	} else {
		le.PutUint64(b[16:], 2)
		le.PutUint32(b[24:], 0o100640)
		le.PutUint32(b[28:], 1000)
		le.PutUint32(b[32:], 1001)
		le.PutUint64(b[56:], 4096)
	}
	for i, at := range []int{72, 88, 104} {
		le.PutUint64(b[at:], uint64(1_700_000_000+i))
		le.PutUint64(b[at+8:], uint64(500+i))
	}
	return string(b)
}

func structStatx() string {
	b := make([]byte, 256)
	le := binary.LittleEndian
	le.PutUint32(b, 0x7ff)
	le.PutUint32(b[4:], 4096)
	le.PutUint32(b[16:], 1)
	le.PutUint16(b[28:], 0o40755)
	le.PutUint64(b[32:], 42)
	le.PutUint64(b[40:], 60)
	le.PutUint64(b[112:], 1_700_000_000)
	le.PutUint32(b[120:], 9)
	le.PutUint32(b[136:], 259)
	le.PutUint32(b[140:], 70000)
	return string(b)
}

func structStatfs() string {
	return words(0xef53, 4096, 1000, 500, 400, 100, 50, 0x1234, 255, 4096, 0x20, 0, 0, 0, 0)
}

func direntsOf(names ...string) string {
	var b []byte
	for i, n := range names {
		size := (19 + len(n) + 1 + 7) &^ 7
		d := make([]byte, size)
		binary.LittleEndian.PutUint64(d, uint64(i+2))
		binary.LittleEndian.PutUint64(d[8:], uint64(i+1))
		binary.LittleEndian.PutUint16(d[16:], uint16(size))
		d[18] = 8
		copy(d[19:], n)
		b = append(b, d...)
	}
	return string(b)
}

const cwd = ^uint64(99) // AT_FDCWD

// samples is one event of each form that the printer knows.
func samples() []event.Event {
	vec := withBuf(withFile(call(event.OpWritev, 7, 4, 0x7000, 3), 0, 4, "/d/out"), 1, "abcdefg")
	vec.Bufs[0].Parts = []int64{3, 0, 9}
	big := withBuf(withFile(call(event.OpRead, 4096, 3, 0x7000, 4096), 0, 3, "/d/a"), 1, strings.Repeat("x", 40))
	big.Bufs[0].Len, big.Bufs[0].Inline = 4096, nil
	big.Bufs[0].Refs = []event.Ref{{Chunk: 1, Len: 4096}}
	big.Offset, big.Count = 8192, 4096
	omitted := call(event.OpWrite, 100, 4, 0x7000, 100)
	omitted.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 100, Omitted: true}}
	lost := call(event.OpWrite, 8, 4, 0x7000, 8)
	lost.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 8, Missing: 8}}
	lost.Flags = event.Incomplete
	gone := call(event.OpRead, 0, 0, 0x7000, 1)
	gone.Flags = event.Interrupted
	raw := call(event.OpUnknown, 5, 1, 2, 3, 4, 5, 6)
	raw.NR = 0x1c7
	mark := func(k event.EventKind, ret int64, arg uint64) event.Event {
		e := call(event.OpUnknown, ret, arg)
		e.Kind = k
		return e
	}
	forked := mark(event.Forked, 102, 0)
	forked.Child = 102
	thread := mark(event.Forked, 100, event.ShareThread)
	thread.Child = 103
	note := mark(event.NoteMark, 0, 0)
	note.Bufs = []event.Buf{{Kind: event.KindText, Len: 6, Inline: []byte("half\n!")}}
	started := mark(event.Started, 0, 0o22)
	started.Paths = []event.Path{{Raw: "/d", Abs: "/d"}}
	lossy := mark(event.LossMark, 17, uint64(trace.LossRing))

	return []event.Event{
		started,
		withFile(mark(event.Inherited, 0, 0), 0, 1, "/dev/pts/0"),
		withBuf(withPath(call(event.OpExecve, 0, 0x10, 0x20, 0x30), 0, "/bin/true", "/bin/true"), 1, "true\x00-x\x00\xff\x00"),
		withFile(withPath(call(event.OpOpenat, 3, cwd, 0x10, 0x8_0000, 0o666), 1, "a \"b\"\n\xe9", "/d/a \"b\"\n\xe9"), event.ResultArg, 3, "/d/a \"b\"\n\xe9"),
		withFile(withPath(call(event.OpOpenat, 3, cwd, 0x10, 0o2001101, 0o644), 1, "new", "/d/new"), event.ResultArg, 3, "/d/new"),
		failed(withPath(call(event.OpOpen, 0, 0x10, 0o4010002), 0, "gone", "/d/gone"), syscall.ENOENT),
		withFile(withPath(withBuf(call(event.OpOpenat2, 3, 5, 0x10, 0x20, 24), 2, words(0o2000000, 0, 8)), 1, "x", "/e/x"), 0, 5, "/e"),
		withBuf(withFile(call(event.OpRead, 12, 3, 0x7000, 4096), 0, 3, "/d/a"), 1, "hi\t\"\\\x00001\x01\x7f\xff\n"),
		big, vec, omitted, lost, gone,
		failed(call(event.OpRead, 0, 9, 0x7000, 4096), syscall.EBADF),
		failed(call(event.OpRead, 0, 0, 0x7000, 4096), 512),
		failed(call(event.OpWrite, 0, 1, 0, 3), 4000),
		withBuf(withPath(call(event.OpStat, 0, 0x10, 0x20), 0, "f", "/d/f"), 1, structStat(event.AMD64)),
		withBuf(withPath(call(event.OpStatx, 0, cwd, 0x10, 0x100, 0x7ff, 0x20), 1, "d", "/d/d"), 4, structStatx()),
		withBuf(withPath(call(event.OpStatfs, 0, 0x10, 0x20), 0, "/", "/"), 1, structStatfs()),
		withBuf(withPath(call(event.OpUtimensat, 0, cwd, 0x10, 0x20, 0), 1, "f", "/d/f"), 2, words(1, utimeOmit, 1_700_000_000, 5)),
		withPath(call(event.OpUtimensat, 0, cwd, 0x10, 0, 0x100), 1, "f", "/d/f"),
		withBuf(withPath(call(event.OpUtimes, 0, 0x10, 0x20), 0, "f", "/d/f"), 1, words(1, 2, 3, 4)),
		withBuf(withFile(call(event.OpFcntl, 0, 3, 6, 0x20), 0, 3, "/d/a"), 2, words(1, 100, 10, 0)),
		withFile(call(event.OpFcntl, 1, 3, 1, 0), 0, 3, "/d/a"),
		withFile(call(event.OpFcntl, 0, 3, 2, 1), 0, 3, "/d/a"),
		withFile(call(event.OpFcntl, 0o102001, 3, 3, 0), 0, 3, "/d/a"),
		withFile(withFile(call(event.OpFcntl, 10, 3, 1030, 10), 0, 3, "/d/a"), event.ResultArg, 10, "/d/a"),
		withFile(withFile(call(event.OpDup3, 7, 3, 7, 0o2000000), 0, 3, "/d/a"), event.ResultArg, 7, "/d/a"),
		withBuf(call(event.OpPipe2, 0, 0x10, 0o2000000), 0, words(4|5<<32)),
		withFile(call(event.OpLseek, 100, 3, ^uint64(4), 2), 0, 3, "/d/a"),
		call(event.OpClose, 0, 3),
		call(event.OpCloseRange, 0, 3, 0xffffffff, 4),
		withPath(withPath(call(event.OpRenameat2, 0, cwd, 0x10, cwd, 0x20, 1), 1, "a", "/d/a"), 3, "b", "/d/b"),
		withBuf(withPath(call(event.OpSymlink, 0, 0x10, 0x20), 1, "l", "/d/l"), 0, "../t\x00"),
		withBuf(withPath(call(event.OpReadlink, 4, 0x10, 0x20, 4096), 0, "l", "/d/l"), 1, "../t"),
		withBuf(call(event.OpGetcwd, 3, 0x10, 4096), 0, "/d\x00"),
		withPath(call(event.OpMknod, 0, 0x10, 0o20600, 0x103), 0, "dev", "/d/dev"),
		withPath(call(event.OpFchownat, 0, cwd, 0x10, 1000, 0xffffffff, 0x100), 1, "f", "/d/f"),
		withPath(call(event.OpFaccessat2, 0, cwd, 0x10, 5, 0x200), 1, "f", "/d/f"),
		withPath(call(event.OpAccess, 0, 0x10, 0), 0, "f", "/d/f"),
		withBuf(withFile(call(event.OpGetdents64, 136, 3, 0x10, 32768), 0, 3, "/d"), 1, direntsOf(".", "..", "a", "b", "c")),
		call(event.OpUmask, 0o22, 0o77),
		withFile(call(event.OpMmap, 0x7f0000001000, 0, 8192, 3, 0x12, 3, 4096), 0, 3, "/d/a"),
		call(event.OpMmap, 0x7f0000002000, 0, 8192, 0, 0x22, 0xffffffff, 0),
		call(event.OpClone, 102, 0x4111, 0, 0, 0, 0),
		call(event.OpClone, 102, 17, 0, 0, 0, 0),
		withBuf(call(event.OpConnect, 0, 4, 0x10, 16), 1, "\x02\x00\x00\x50\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"),
		withBuf(call(event.OpConnect, 0, 4, 0x10, 28), 1, "\x0a\x00\x1f\x90\x00\x00\x00\x00"+strings.Repeat("\x00", 15)+"\x01\x00\x00\x00\x00"),
		withBuf(call(event.OpBind, 0, 4, 0x10, 10), 1, "\x01\x00/run/s\x00\x00"),
		withBuf(call(event.OpBind, 0, 4, 0x10, 5), 1, "\x01\x00\x00ab"),
		withBuf(withFile(withFile(call(event.OpSendfile, 10, 5, 3, 0x10, 10), 0, 5, "/d/o"), 1, 3, "/d/a"), 2, words(10)),
		withBuf(withPath(withBuf(call(event.OpSetxattr, 0, 0x10, 0x20, 0x30, 2, 0), 1, "user.k\x00"), 0, "f", "/d/f"), 2, "v\x00"),
		call(event.OpKill, 0, 102, 15),
		raw,
		call(event.OpExitGroup, 0, 3),
		forked, thread, note, lossy,
		mark(event.Exited, 3<<8, 0),
		mark(event.Exited, 11|0x80, 0),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func testPrinter(o Options) *Printer {
	o.StartNS = 2_000_000_000
	o.Location = time.UTC
	o.Content = func(b *event.Buf, n int) []byte { return bytes.Repeat([]byte("x"), n) }
	return New(&o)
}

func TestText(t *testing.T) {
	tests := []struct {
		name string
		o    Options
	}{
		{"amd64.txt", Options{Hosts: host("amd64")}},
		{"amd64-verbose.txt", Options{Hosts: host("amd64"), Verbose: true, Clock: Wall, MaxBytes: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testPrinter(tt.o)
			var got []byte
			for _, e := range samples() {
				got = p.Append(got, &e)
			}
			golden(t, tt.name, got)
		})
	}
}

// TestARM64 prints what lies differently in memory there.
func TestARM64(t *testing.T) {
	p := testPrinter(Options{Hosts: host("arm64"), Verbose: true, Clock: NoClock})
	events := []event.Event{
		withBuf(withPath(call(event.OpNewfstatat, 0, cwd, 0x10, 0x20, 0), 1, "f", "/d/f"), 2, structStat(event.ARM64)),
		withPath(call(event.OpOpenat, 3, cwd, 0x10, 0o2440000), 1, "d", "/d/d"), // O_DIRECTORY|O_LARGEFILE|O_CLOEXEC
		withPath(call(event.OpOpenat, 3, cwd, 0x10, 0o300000), 1, "d", "/d/d"),  // O_DIRECT|O_NOFOLLOW
	}
	var got []byte
	for i := range events {
		got = p.Append(got, &events[i])
	}
	golden(t, "arm64.txt", got)
}

func TestJSON(t *testing.T) {
	p := testPrinter(Options{Hosts: host("amd64")})
	var got []byte
	for i, e := range samples() {
		e.Seq = uint64(i)
		got = p.AppendJSON(got, &e)
	}
	for line := range bytes.Lines(got) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
	}
	golden(t, "amd64.json", got)
}

func TestCSV(t *testing.T) {
	p := testPrinter(Options{Hosts: host("amd64")})
	got := []byte(CSVHeader)
	for i, e := range samples() {
		e.Seq = uint64(i)
		got = p.AppendCSV(got, &e)
	}
	rows, err := csv.NewReader(bytes.NewReader(got)).ReadAll() // checks the number of columns
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(samples())+1 {
		t.Errorf("%d rows, want %d", len(rows), len(samples())+1)
	}
	golden(t, "amd64.csv", got)
}

// TestEveryOperation prints each row of the operation table with arguments of all ones,
// which fit nothing.
func TestEveryOperation(t *testing.T) {
	p := testPrinter(Options{})
	for _, s := range event.Specs() {
		e := call(s.Op, 0, ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0))
		if line := p.Append(nil, &e); bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%v: not one line: %q", e.Op, line)
		}
		var v map[string]any
		if err := json.Unmarshal(p.AppendJSON(nil, &e), &v); err != nil {
			t.Errorf("%v: %v", e.Op, err)
		}
	}
}

// TestSocketEnds has sockets whose names say their ends: as strace -yy has them, and in fields.
func TestSocketEnds(t *testing.T) {
	p := testPrinter(Options{})
	for name, want := range map[string]map[string]any{
		"TCP:[10.0.0.1:4242->10.0.0.2:80]": {"local": "10.0.0.1", "local_port": 4242., "peer": "10.0.0.2", "peer_port": 80.},
		"TCP:[0.0.0.0:80]":                 {"local": "0.0.0.0", "local_port": 80.},
		"TCP:[77]":                         {},
		"socket:[77]":                      {},
		"/tmp/a->b:[c]":                    {},
		`UNIX-STREAM:[7->8,peer="/run/x",pid=9,uid=0]`: {"peer": "/run/x", "peer_ino": 8., "peer_pid": 9.,
			"peer_uid": 0.},
		"VSOCK-STREAM:[2:1024->3:99]": {"local_cid": 2., "local_port": 1024., "peer_cid": 3., "peer_port": 99.},
	} {
		e := call(event.OpClose, 0, 3)
		e.Files = []event.File{{FD: 3, Path: name}}
		shown := strings.ReplaceAll(name, "/tmp/a->b", `/tmp/a-\x3eb`)
		if line := string(p.Append(nil, &e)); !strings.Contains(line, "close(3<"+shown+">)") {
			t.Errorf("got %s, want it to show %s", line, shown)
		}
		var got struct{ Files []map[string]any }
		if err := json.Unmarshal(p.AppendJSON(nil, &e), &got); err != nil || len(got.Files) != 1 {
			t.Fatalf("%s: %v: %v", name, got, err)
		}
		f := got.Files[0]
		for _, key := range []string{"arg", "fd", "path"} {
			delete(f, key)
		}
		if !maps.Equal(f, want) {
			t.Errorf("%s: got %v, want %v", name, f, want)
		}
	}
}

func TestClocks(t *testing.T) {
	e := call(event.OpClose, 0, 3)
	for clock, want := range map[Clock]string{
		Elapsed: "101 0.123456 close", Wall: "101 22:13:21.000123 close", Unix: "101 1700000001.000123 close", NoClock: "101 close",
	} {
		p := New(&Options{Clock: clock, Location: time.UTC, StartNS: e.Enter - 123_456_000, Hosts: host("amd64")})
		if got := string(p.Append(nil, &e)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", clock, got, want)
		}
	}
}

// FuzzBuffers prints hostile content as every kind of memory: one line, no panic,
// valid JSON.
func FuzzBuffers(f *testing.F) {
	for i, e := range samples() {
		for j := range e.Bufs {
			f.Add(uint16(e.Op), e.Args[1], e.Bufs[j].Inline, int64(i))
		}
	}
	f.Fuzz(func(t *testing.T, op uint16, arg uint64, data []byte, n int64) {
		e := call(event.Specs()[int(op)%len(event.Specs())].Op, n, arg, arg, arg, arg, arg, arg)
		for i := range e.Spec().Args {
			if e.Spec().Args[i].Kind == event.KindPath {
				e = withPath(e, i, string(data), string(data))
			} else {
				e = withBuf(e, i, string(data))
				e.Bufs[len(e.Bufs)-1].Parts = []int64{n, -n, 3}
				for part := event.PartBefore; part <= event.PartTarget; part++ {
					e.Bufs = append(e.Bufs,
						event.Buf{Arg: int8(part.Of(i)), Kind: event.KindVec, Len: int64(len(data)), Inline: data,
							Parts: []int64{n, -n, 3}})
				}
			}
		}
		for _, a := range []string{"amd64", "arm64"} {
			p := testPrinter(Options{Hosts: host(a), Verbose: true})
			if line := p.Append(nil, &e); bytes.Count(line, []byte("\n")) != 1 {
				t.Errorf("not one line: %q", line)
			}
			if line := p.AppendJSON(nil, &e); !json.Valid(line) {
				t.Errorf("not JSON: %q", line)
			}
			if _, err := csv.NewReader(bytes.NewReader(p.AppendCSV(nil, &e))).Read(); err != nil {
				t.Errorf("not CSV: %v", err)
			}
		}
	})
}

// TestDelays: how long a thread waited for a processor is there where it is known, and is
// no flag.
func TestDelays(t *testing.T) {
	p := testPrinter(Options{Hosts: host("amd64")})
	e := call(event.OpGetpid, 100)
	plain := string(p.AppendJSON(nil, &e))
	e.Flags, e.DelayBefore, e.DelayWithin = event.Delays, 1<<32-1, 0
	const want = `,"delay_before_ns":4294967295,"delay_within_ns":0`
	got := string(p.AppendJSON(nil, &e))
	if !strings.Contains(got, want) || strings.Replace(got, want, "", 1) != plain {
		t.Errorf("got %s\nof %s", got, plain)
	}
	if got := string(p.AppendCSV(nil, &e)); !strings.HasSuffix(got, ",\n") {
		t.Errorf("got %s", got)
	}
}
