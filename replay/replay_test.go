package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
)

func TestMain(m *testing.M) {
	Stub()
	os.Exit(m.Run())
}

// at is AT_FDCWD as an argument.
func at() uint64 { d := int64(event.AtFDCWD); return uint64(d) }

// script makes a tape by hand: each call takes 10 ns, one after the other.
type script struct {
	t     *testing.T
	w     *trace.TapeWriter
	dir   string
	clock int64
	ino   uint64
	size  int64 // of the file that is opened next
	dev   uint64
	from  uint32 // host of the events that come next
	hosts []trace.Host
}

func newScript(t *testing.T) *script {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, w: w, dir: dir, ino: 1000}
	s.add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	return s
}

func (s *script) add(ev event.Event) {
	s.t.Helper()
	if ev.Exit == 0 {
		ev.Enter, ev.Exit = s.clock+10, s.clock+20
	}
	s.clock = max(s.clock, ev.Exit)
	if ev.PID == 0 {
		ev.PID, ev.TID = 1, 1
	}
	ev.Host, ev.UID, ev.GID = s.from, uint32(os.Geteuid()), uint32(os.Getegid())
	if ev.Offset == 0 && ev.Kind == event.Call {
		ev.Offset, ev.Count = -1, -1
	}
	if err := s.w.Write(&ev); err != nil {
		s.t.Fatal(err)
	}
}

// call adds a call with paths in the order of its path arguments.
func (s *script) call(op event.Op, ret int64, errno syscall.Errno, args [6]uint64, paths ...string) {
	s.t.Helper()
	ev := event.Event{Op: op, Ret: ret, Errno: errno, Args: args}
	i := 0
	for a := range ev.Spec().Args {
		if ev.Spec().Args[a].Kind == event.KindPath && i < len(paths) {
			ev.Args[a] = 0x1000 // not NULL
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(a), Raw: paths[i]})
			i++
		}
	}
	s.add(ev)
}

// open opens a regular file as descriptor fd.
func (s *script) open(fd int64, path string, flags uint64) {
	s.t.Helper()
	s.ino++
	s.add(event.Event{Op: event.OpOpenat, Ret: fd, Args: [6]uint64{at(), 0x1000, flags, 0o644},
		Paths: []event.Path{{Arg: 1, Raw: path}},
		Files: []event.File{{Arg: event.ResultArg, FD: int32(fd), Open: event.OpenID(100*uint64(s.from) + uint64(fd)), Known: true, Mode: syscall.S_IFREG | 0o644, Dev: s.dev, Ino: s.ino, Nlink: 1,
			Size: s.size, Flags: uint32(flags &^ (effect.OCreat | effect.OTrunc)), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}})
}

// move adds a read or write of text at an offset.
func (s *script) move(op event.Op, fd, off int64, text string) {
	s.t.Helper()
	a := event.Lookup(op).Args[1]
	s.add(event.Event{Op: op, Ret: int64(len(text)), Offset: off, Count: int64(len(text)), Args: [6]uint64{uint64(fd), 0x1000, uint64(len(text)), uint64(off)},
		Files: []event.File{{Arg: 0, FD: int32(fd), Open: event.OpenID(100*uint64(s.from) + uint64(fd)), Known: true, Mode: syscall.S_IFREG | 0o644, Dev: s.dev, Ino: s.ino, Pos: off + int64(len(text))}},
		Bufs:  []event.Buf{{Arg: 1, Dir: a.Dir, Kind: event.KindBuf, Len: int64(len(text)), Inline: []byte(text)}}})
}

func (s *script) close() *trace.Tape {
	s.t.Helper()
	m := &trace.Manifest{Program: "test", Hosts: s.hosts}
	if len(m.Hosts) == 0 {
		m.Hosts = []trace.Host{{Head: trace.Head{Host: "h", Arch: "amd64"}}}
	}
	if err := s.w.Close(m); err != nil {
		s.t.Fatal(err)
	}
	t, err := trace.OpenTape(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { t.Close() })
	return t
}

func TestReplayRepeatsAndVerifies(t *testing.T) {
	s := newScript(t)
	s.call(event.OpMkdirat, 0, 0, [6]uint64{at(), 0, 0o755}, "d")
	s.open(3, "d/f", effect.OCreat|2)
	s.move(event.OpWrite, 3, 0, "hello")
	s.move(event.OpPread64, 3, 1, "ell")
	s.call(event.OpClose, 0, 0, [6]uint64{3})
	s.call(event.OpRename, 0, 0, [6]uint64{}, "d/f", "g")
	s.call(event.OpUnlink, -1, syscall.ENOENT, [6]uint64{}, "d/f")
	into := filepath.Join(t.TempDir(), "into")
	rep, err := Run(t.Context(), s.close(), &Options{Into: into, Checks: CheckAll})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if b, err := os.ReadFile(filepath.Join(into, "work/g")); string(b) != "hello" {
		t.Errorf("work/g holds %q, %v", b, err)
	}
}

// Whoever makes the calls of all goes to where each of them is.
func TestWorkingDirectoriesInTurn(t *testing.T) {
	s := newScript(t)
	for pid, dir := range []string{"", "a", "b"} {
		if pid == 0 {
			s.call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "a")
			s.call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "b")
			continue
		}
		s.add(event.Event{Kind: event.Forked, Child: uint32(pid + 1), Ret: int64(pid + 1)})
		s.add(event.Event{Op: event.OpChdir, PID: uint32(pid + 1), TID: uint32(pid + 1), Args: [6]uint64{0x1000}, Paths: []event.Path{{Raw: dir}}})
	}
	for pid := range uint32(2) {
		s.add(event.Event{Op: event.OpMkdir, PID: pid + 2, TID: pid + 2, Args: [6]uint64{0x1000, 0o755}, Paths: []event.Path{{Raw: "d"}}})
	}
	into := t.TempDir()
	rep, err := Run(t.Context(), s.close(), &Options{Into: into, Checks: CheckAll})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	for _, dir := range []string{"work/a/d", "work/b/d"} {
		if _, err := os.Stat(filepath.Join(into, dir)); err != nil {
			t.Error(err)
		}
	}
}

func TestReplayReportsTheFirstDifference(t *testing.T) {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	s.move(event.OpWrite, 3, 0, "hello")
	s.move(event.OpPread64, 3, 0, "help!")
	s.call(event.OpUnlink, -1, syscall.EISDIR, [6]uint64{}, "/work/f")
	rep, err := Run(t.Context(), s.close(), &Options{Into: t.TempDir(), Checks: CheckAll})
	if err != nil {
		t.Fatal(err)
	}
	if rep.OK() || len(rep.Mismatches) != 2 {
		t.Fatalf("want two differences: %+v", rep)
	}
	if m := rep.Mismatches[0]; m.Seq != 3 || m.Op != "pread64" || m.Field != "content" || !strings.Contains(m.Got, "lo") {
		t.Errorf("first difference: %+v", m)
	}
}

// Whatever a tape says, only the target changes.
func TestHostileTapeStaysInItsTarget(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newScript(t)
	up := strings.Repeat("../", 30)
	link := func(target, path string) {
		s.add(event.Event{Op: event.OpSymlink, Args: [6]uint64{0x1000, 0x1000}, Paths: []event.Path{{Arg: 1, Raw: path}},
			Bufs: []event.Buf{{Arg: 0, Kind: event.KindText, Len: int64(len(target)), Inline: []byte(target)}}})
	}
	link(outside, "/work/absolute")
	link(up+outside[1:], "/work/relative")
	link("/", "/work/root")
	for i, p := range []string{victim, up + victim[1:], "/work/absolute/victim", "/work/relative/victim", "/work/root" + victim, "/proc/self/root" + victim, "/proc/1/cwd" + victim} {
		s.open(int64(10+i), p, effect.OCreat|effect.OTrunc|1)
		s.move(event.OpWrite, int64(10+i), 0, "owned")
		s.call(event.OpUnlink, 0, 0, [6]uint64{}, p)
		s.call(event.OpTruncate, 0, 0, [6]uint64{0, 0}, p)
		s.call(event.OpRename, 0, 0, [6]uint64{}, p, p+"2")
	}
	s.call(event.OpChroot, 0, 0, [6]uint64{}, "/work")
	s.call(event.OpChdir, 0, 0, [6]uint64{}, up)
	s.call(event.OpUnlink, 0, 0, [6]uint64{}, victim[1:])
	s.call(event.OpMount, 0, 0, [6]uint64{}, outside)
	if _, err := Run(t.Context(), s.close(), &Options{Into: t.TempDir(), Checks: CheckAll}); err != nil {
		t.Logf("replay: %v", err) // differences and errors are fine
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("entries outside: %v, %v", entries, err)
	}
	if b, err := os.ReadFile(victim); string(b) != "untouched" {
		t.Errorf("victim holds %q, %v", b, err)
	}
}

func TestTargets(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := newScript(t)
	tape := s.close()
	if _, err := Run(t.Context(), tape, &Options{Into: full}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a full directory: %v, want ErrNotEmpty", err)
	}
	if _, err := Run(t.Context(), tape, &Options{Into: full, Force: true}); err != nil {
		t.Errorf("a full directory with Force: %v", err)
	}
	if _, err := Run(t.Context(), tape, &Options{Into: "/", Force: true}); err == nil {
		t.Error("the root directory was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, tape, &Options{Into: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What existed before is inferred from what calls found.
func TestSkeleton(t *testing.T) {
	s := newScript(t)
	statbuf := make([]byte, 144)
	binary.LittleEndian.PutUint64(statbuf[8:], 77)
	binary.LittleEndian.PutUint32(statbuf[24:], syscall.S_IFREG|0o640)
	binary.LittleEndian.PutUint64(statbuf[48:], 5000)
	s.add(event.Event{Op: event.OpStat, Args: [6]uint64{0x1000, 0x1000}, Paths: []event.Path{{Arg: 0, Raw: "/etc/conf"}},
		Bufs: []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: 144, Inline: statbuf}}})
	s.call(event.OpChmod, 0, 0, [6]uint64{0, 0o777}, "/etc/conf")
	s.call(event.OpAccess, -1, syscall.ENOENT, [6]uint64{}, "/nowhere/at/all")
	s.call(event.OpMkdir, -1, syscall.EEXIST, [6]uint64{}, "/var/lib")
	s.call(event.OpMkdir, 0, 0, [6]uint64{}, "/made")
	s.open(3, "/made/new", effect.OCreat|1)
	s.size = 6
	s.open(4, "data", 2)
	s.move(event.OpPwrite64, 4, 2, "XX")
	s.move(event.OpPread64, 4, 0, "abXXef")
	s.call(event.OpRename, 0, 0, [6]uint64{}, "/old/dir", "/new/dir")
	s.call(event.OpUnlink, 0, 0, [6]uint64{}, "/new/dir/inner")
	s.call(event.OpChdir, 0, 0, [6]uint64{}, "/home/user")
	s.call(event.OpUnlink, 0, 0, [6]uint64{}, "rel")
	// A rename that failed found the old name, if that was not what it failed for.
	s.call(event.OpRename, -1, syscall.EINVAL, [6]uint64{}, "/into", "/into/it/self")
	s.call(event.OpRename, -1, syscall.EISDIR, [6]uint64{}, "/over/file", "/over/dir")
	s.call(event.OpRenameat2, -1, syscall.EINVAL, [6]uint64{0, 0, 0, 0, 99}, "/flags/bad", "/flags/to")
	tape := s.close()
	sk, err := initialtree.Infer(t.Context(), tape, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	m := sk.Manifest()
	for i := range m.Entries {
		e := &m.Entries[i]
		got = append(got, string(rune(e.Type))+" "+e.Path)
	}
	want := "d etc|f etc/conf|d home|d home/user|f home/user/rel|d into|d into/it|d new|d old|d old/dir|f old/dir/inner|d over|d over/dir|f over/file|d var|d var/lib|d work|f work/data"
	if g := strings.Join(got, "|"); g != want {
		t.Errorf("skeleton\n got %s\nwant %s", g, want)
	}
	if e := m.Lookup("etc/conf"); e == nil || e.Mode != 0o640 || e.Size != 5000 {
		t.Errorf("etc/conf: %+v", e)
	}
	data := m.Lookup("work/data")
	content := make([]byte, data.Size)
	for _, c := range data.Chunks {
		b, err := sk.Content(c.ID)
		if err != nil {
			t.Fatal(err)
		}
		copy(content[c.Off:], b)
	}
	if string(content) != "ab\x00\x00ef" {
		t.Errorf("initial content %q, want what was read and not written", content)
	}
}
