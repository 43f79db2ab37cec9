// SPDX-License-Identifier: Apache-2.0

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
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

func TestMain(m *testing.M) {
	execute.Stub()
	storeFrom = 0 // tests use what is derived; those of e2e record short tapes, of which nothing is
	os.Exit(m.Run())
}

func TestReplayRepeatsAndVerifies(t *testing.T) {
	s := tapescript.New(t)
	s.Call(event.OpMkdirat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, 0o755}, "d")
	s.Open(3, "d/f", event.OpenCreat|2)
	s.Move(event.OpWrite, 3, 0, "hello")
	s.Move(event.OpPread64, 3, 1, "ell")
	s.Call(event.OpClose, 0, 0, [6]uint64{3})
	s.Call(event.OpRename, 0, 0, [6]uint64{}, "d/f", "g")
	s.Call(event.OpUnlink, -1, syscall.ENOENT, [6]uint64{}, "d/f")
	into := filepath.Join(t.TempDir(), "into")
	rep, err := Run(t.Context(), s.Close(), &Options{Into: into, Checks: CheckAll})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if b, err := os.ReadFile(filepath.Join(into, "work/g")); string(b) != "hello" {
		t.Errorf("work/g holds %q, %v", b, err)
	}
}

// Whoever makes the calls of all goes to where each of them is.
func TestWorkingDirectoriesInTurn(t *testing.T) {
	s := tapescript.New(t)
	for pid, dir := range []string{"", "a", "b"} {
		if pid == 0 {
			s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "a")
			s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "b")
			continue
		}
		s.Add(event.Event{Kind: event.Forked, Child: uint32(pid + 1), Ret: int64(pid + 1)})
		s.Add(event.Event{
			Op: event.OpChdir, PID: uint32(pid + 1), TID: uint32(pid + 1), Args: [6]uint64{0x1000},
			Paths: []event.Path{{Raw: dir}},
		})
	}
	for pid := range uint32(2) {
		s.Add(event.Event{
			Op: event.OpMkdir, PID: pid + 2, TID: pid + 2, Args: [6]uint64{0x1000, 0o755},
			Paths: []event.Path{{Raw: "d"}},
		})
	}
	into := t.TempDir()
	rep, err := Run(t.Context(), s.Close(), &Options{Into: into, Checks: CheckAll})
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
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	s.Move(event.OpWrite, 3, 0, "hello")
	s.Move(event.OpPread64, 3, 0, "help!")
	s.Call(event.OpUnlink, -1, syscall.EISDIR, [6]uint64{}, "/work/f")
	rep, err := Run(t.Context(), s.Close(), &Options{Into: t.TempDir(), Checks: CheckAll})
	if err != nil {
		t.Fatal(err)
	}
	if rep.OK() || len(rep.Mismatches) != 2 {
		t.Fatalf("want two differences: %+v", rep)
	}
	if m := rep.Mismatches[0]; m.Seq != 3 || m.Op != "pread64" || m.Field != "content" ||
		!strings.Contains(m.Got, "lo") {
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
	s := tapescript.New(t)
	up := strings.Repeat("../", 30)
	link := func(target, path string) {
		s.Add(event.Event{Op: event.OpSymlink, Args: [6]uint64{0x1000, 0x1000},
			Paths: []event.Path{{Arg: 1, Raw: path}},
			Bufs:  []event.Buf{{Arg: 0, Kind: event.KindText, Len: int64(len(target)), Inline: []byte(target)}}})
	}
	link(outside, "/work/absolute")
	link(up+outside[1:], "/work/relative")
	link("/", "/work/root")
	for i, p := range []string{victim, up + victim[1:], "/work/absolute/victim", "/work/relative/victim",
		"/work/root" + victim, "/proc/self/root" + victim, "/proc/1/cwd" + victim} {
		s.Open(int64(10+i), p, event.OpenCreat|event.OpenTrunc|1)
		s.Move(event.OpWrite, int64(10+i), 0, "owned")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, p)
		s.Call(event.OpTruncate, 0, 0, [6]uint64{0, 0}, p)
		s.Call(event.OpRename, 0, 0, [6]uint64{}, p, p+"2")
	}
	s.Call(event.OpChroot, 0, 0, [6]uint64{}, "/work")
	s.Call(event.OpChdir, 0, 0, [6]uint64{}, up)
	s.Call(event.OpUnlink, 0, 0, [6]uint64{}, victim[1:])
	s.Call(event.OpMount, 0, 0, [6]uint64{}, outside)
	if _, err := Run(t.Context(), s.Close(), &Options{Into: t.TempDir(), Checks: CheckAll}); err != nil {
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
	s := tapescript.New(t)
	tape := s.Close()
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
func TestInitialTree(t *testing.T) {
	s := tapescript.New(t)
	statbuf := make([]byte, 144)
	binary.LittleEndian.PutUint64(statbuf[8:], 77)
	binary.LittleEndian.PutUint32(statbuf[24:], syscall.S_IFREG|0o640)
	binary.LittleEndian.PutUint64(statbuf[48:], 5000)
	s.Add(event.Event{Op: event.OpStat, Args: [6]uint64{0x1000, 0x1000},
		Paths: []event.Path{{Arg: 0, Raw: "/etc/conf"}},
		Bufs:  []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: 144, Inline: statbuf}}})
	s.Call(event.OpChmod, 0, 0, [6]uint64{0, 0o777}, "/etc/conf")
	s.Call(event.OpAccess, -1, syscall.ENOENT, [6]uint64{}, "/nowhere/at/all")
	s.Call(event.OpMkdir, -1, syscall.EEXIST, [6]uint64{}, "/var/lib")
	s.Call(event.OpMkdir, 0, 0, [6]uint64{}, "/made")
	s.Open(3, "/made/new", event.OpenCreat|1)
	s.Size = 6
	s.Open(4, "data", 2)
	s.Move(event.OpPwrite64, 4, 2, "XX")
	s.Move(event.OpPread64, 4, 0, "abXXef")
	s.Call(event.OpRename, 0, 0, [6]uint64{}, "/old/dir", "/new/dir")
	s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/new/dir/inner")
	s.Call(event.OpChdir, 0, 0, [6]uint64{}, "/home/user")
	s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "rel")
	// A rename that failed found the old name, if that was not what it failed for.
	s.Call(event.OpRename, -1, syscall.EINVAL, [6]uint64{}, "/into", "/into/it/self")
	s.Call(event.OpRename, -1, syscall.EISDIR, [6]uint64{}, "/over/file", "/over/dir")
	s.Call(event.OpRenameat2, -1, syscall.EINVAL, [6]uint64{0, 0, 0, 0, 99}, "/flags/bad", "/flags/to")
	tape := s.Close()
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
	want := "d etc|f etc/conf|d home|d home/user|f home/user/rel|" +
		"d into|d into/it|d new|d old|d old/dir|f old/dir/inner|d over|d over/dir|f over/file|" +
		"d var|d var/lib|d work|f work/data"
	if g := strings.Join(got, "|"); g != want {
		t.Errorf("initial tree\n got %s\nwant %s", g, want)
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
