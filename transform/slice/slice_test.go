// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// programs are what is recorded: between them they fork, exec, share, map, rename, and
// move about.
var programs = []string{"failures", "git-basics", "make-gcc", "mapped", "passfds", "pipeline", "rsync-a",
	"sqlite-wal", "threads8", "uring"}

// inShort are those that run under -short too.
var inShort = []string{"pipeline", "sqlite-wal", "threads8"}

// recordings are the tapes of the programs, each recorded once, by the first test that needs it.
var recordings struct {
	sync.Mutex
	dir   string
	tapes map[string]string
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(recordings.dir)
	os.Exit(code)
}

// recording returns the tape of a program.
func recording(t *testing.T, iotape string, p *workload.Program) *trace.Tape {
	t.Helper()
	recordings.Lock()
	defer recordings.Unlock()
	if tape := recordings.tapes[p.Name]; tape != "" {
		return open(t, tape)
	}
	if recordings.dir == "" {
		dir, err := os.MkdirTemp("", "slice-")
		if err != nil {
			t.Fatal(err)
		}
		recordings.dir, recordings.tapes = dir, map[string]string{}
	}
	install, work := filepath.Join(recordings.dir, "workload"), filepath.Join(recordings.dir, p.Name)
	if err := errors.Join(workload.Install(install), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	run(t, p.Command(install, work, workload.Prep)...)
	tape := work + ".tape"
	backend := "ptrace"
	if p.Name == "mapped" || p.Name == "uring" {
		testenv.NeedBPF(t)
		backend = "ebpf"
	}
	run(t, append([]string{iotape, "record", "-o", tape, "--no-index", "--backend", backend, "--"},
		p.Command(install, work, workload.Run)...)...)
	recordings.tapes[p.Name] = tape
	return open(t, tape)
}

// recorded calls f with the recording of each program.
func recorded(t *testing.T, f func(t *testing.T, iotape string, tp *trace.Tape)) {
	iotape := testenv.Iotape(t)
	for _, p := range workload.Programs() {
		if !slices.Contains(programs, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if !slices.Contains(inShort, p.Name) {
				testenv.Short(t, "records a program, and replays slices of it")
			}
			testenv.NeedProgram(t, p.Needs...)
			f(t, iotape, recording(t, iotape, &p))
		})
	}
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

func open(t *testing.T, path string) *trace.Tape {
	t.Helper()
	tp, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

// sliced makes a slice, and checks it.
func sliced(t *testing.T, tp *trace.Tape, o *Options) (*trace.Tape, *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "slice.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	res, err := Tape(context.Background(), tw, tp, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(res.Manifest); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	rep, err := s.Check(context.Background(), nil)
	if err != nil || !rep.OK() {
		t.Fatalf("check: %+v %v", rep, err)
	}
	return s, res
}

func filter(t *testing.T, src string) *predicate.Graph {
	t.Helper()
	g, err := predicate.New(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// replays repeats a slice and compares every result.
func replays(t *testing.T, iotape string, s *trace.Tape) {
	t.Helper()
	cmd := exec.Command(iotape, "replay", s.Dir(), "--into", filepath.Join(t.TempDir(), "again"), "--verify")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("replay: %v\n%s", err, out)
	}
}

// events are the events of a tape as an analysis sees them: with the names and open files
// that a model gives them that has seen the tape alone.
func events(t *testing.T, tp *trace.Tape) (all []*event.Event) {
	t.Helper()
	for m, err := range history.Events(tp) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Event.Clone())
	}
	return all
}

// A slice by time has the same events as that part of the whole, and they mean the same;
// and it can be replayed: wherever it is cut.
func TestTimes(t *testing.T) {
	testenv.Short(t, "it slices a recording many times")
	recorded(t, func(t *testing.T, iotape string, tp *trace.Tape) {
		whole := events(t, tp)
		n := uint64(len(whole))
		for _, cut := range [][2]uint64{{0, n / 3}, {n / 50, n}, {n / 5, n / 2}, {n / 3, n}, {n / 2, n/2 + 1},
			{n * 4 / 5, n}, {n - 10, n}} {
			t.Run(fmt.Sprintf("%d-%d", cut[0], cut[1]), func(t *testing.T) {
				if cut[1] == n && cut[0] != n/3 || cut[0] == 0 {
					testenv.Short(t, "replays another slice")
				}
				s, res := sliced(t, tp, &Options{From: cut[0], To: cut[1]})
				part := events(t, s)
				if res.Picked != cut[1]-cut[0] || uint64(len(part)) != res.State+res.Picked {
					t.Fatalf("%d events, %d of state; the slice has %d", res.Picked, res.State, len(part))
				}
				compare(t, tp, s, whole[cut[0]:cut[1]], part[res.State:])
				replays(t, iotape, s)
			})
		}
	})
}

// A slice of a process and its descendants has all their events, which mean the same,
// and can be replayed by itself.
func TestProcesses(t *testing.T) {
	recorded(t, func(t *testing.T, iotape string, tp *trace.Tape) {
		whole := events(t, tp)
		counts := map[uint32]int{}
		for _, ev := range whole {
			if ev.Kind == event.Call {
				counts[ev.PID]++
			}
		}
		root := whole[len(whole)/2].PID // some process
		for pid, n := range counts {
			if pid != whole[0].PID && n > counts[root] {
				root = pid
			}
		}
		s, res := sliced(t, tp, &Options{Filter: filter(t, fmt.Sprint("descendant of ", root))})
		family := map[uint32]bool{root: true}
		var want []*event.Event
		for _, ev := range whole {
			if ev.Kind == event.Forked && family[ev.PID] {
				family[uint32(ev.Ret)] = true
			}
			if family[ev.PID] && ev.Kind == event.Call {
				want = append(want, ev)
			}
		}
		part := slices.DeleteFunc(events(t, s), func(ev *event.Event) bool {
			return !family[ev.PID] || ev.Kind != event.Call
		})
		t.Logf("%d calls of %d by %d processes, and %d events more", len(want), len(whole), len(family), res.Context)
		compare(t, tp, s, want, part)
		replays(t, iotape, s)
	})
}

// A slice by path has all calls on it, and what they stand on.
func TestPaths(t *testing.T) {
	testenv.Short(t, "it slices a recording many times")
	recorded(t, func(t *testing.T, iotape string, tp *trace.Tape) {
		whole := events(t, tp)
		name := ""
		for _, ev := range whole[len(whole)/2:] {
			if f := ev.Subject(); name == "" && f != nil && f.Known && f.Mode&0o170000 == 0o100000 &&
				ev.Kind == event.Call && ev.Traffic().Written > 0 {
				name = f.Path
			}
		}
		if name == "" {
			t.Skip("writes no file in its second half")
		}
		for _, from := range []uint64{0, uint64(len(whole) / 2)} {
			s, res := sliced(t, tp, &Options{From: from, Filter: filter(t, "path under "+predicate.Quote(name))})
			under := func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") }
			concerns := func(ev *event.Event) bool {
				return ev.Kind == event.Call &&
					(slices.ContainsFunc(ev.Files, func(f event.File) bool { return under(f.Path) }) ||
						slices.ContainsFunc(ev.Paths, func(p event.Path) bool { return under(p.Abs) }))
			}
			var want []*event.Event
			for _, ev := range whole[from:] {
				if concerns(ev) {
					want = append(want, ev)
				}
			}
			part := slices.DeleteFunc(events(t, s), func(ev *event.Event) bool { return !concerns(ev) })
			t.Logf("%s: %d of %d events, %d with them, %d of state", name, len(want),
				len(whole), res.Context, res.State)
			if uint64(len(want)) != res.Picked {
				t.Errorf("picked %d", res.Picked)
			}
			compare(t, tp, s, want, part)
			replays(t, iotape, s)
		}
	})
}

// Times of the wall clock and numbers of events say the same.
func TestBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	for i := range int64(10) {
		if err := tw.Write(&event.Event{Op: event.OpGetpid, PID: 1, TID: 1, Enter: 100 + 10*i, Exit: 105 + 10*i,
			Offset: -1, Count: -1}); err != nil {
			t.Fatal(err)
		}
	}
	m := &trace.Manifest{Hosts: []trace.Host{{Head: trace.Head{Arch: "amd64", ClockNS: 100, WallNS: 1000}}},
		Incomplete: true, Reason: "torn"}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tp := open(t, dir)
	for _, c := range []struct {
		o           Options
		first, last int64 // return
		torn        bool
	}{
		{Options{}, 105, 195, true},
		{Options{From: 3}, 135, 195, true},
		{Options{To: 3}, 105, 125, false},
		{Options{FromNS: 1025}, 125, 195, true},
		{Options{FromNS: 1026, ToNS: 1045}, 135, 145, false},
		{Options{From: 2, ToNS: 1044}, 125, 135, false},
	} {
		s, _ := sliced(t, tp, &c.o)
		var exits []int64
		for _, ev := range events(t, s) {
			if ev.Kind == event.Call {
				exits = append(exits, ev.Exit)
			}
		}
		if exits[0] != c.first || exits[len(exits)-1] != c.last || s.Manifest().Incomplete != c.torn {
			t.Errorf("%+v: returns %v, incomplete %v", c.o, exits, s.Manifest().Incomplete)
		}
	}
	tw, err = trace.CreateTape(filepath.Join(t.TempDir(), "none.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	if _, err := Tape(context.Background(), tw, tp, &Options{From: 10}); !errors.Is(err, ErrEmpty) {
		t.Errorf("a slice of nothing: %v", err)
	}
}

// compare holds events of a slice against those of the whole.
func compare(t *testing.T, whole, part *trace.Tape, want, got []*event.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	moved := renames(t, whole)
	for i, bad := 0, 0; i < len(want) && bad < 5; i++ {
		if err := same(whole, part, want[i], got[i], moved); err != nil {
			t.Errorf("event %d, %s by %d: %v\n%+v\n%+v", want[i].Seq, want[i].Op, want[i].TID, err, want[i], got[i])
			bad++
		}
	}
}

// renames returns the names that were given to something else: a slice has the present
// name of what was open before it.
func renames(t *testing.T, tp *trace.Tape) map[string]bool {
	m := map[string]bool{}
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Op {
		case event.OpRename, event.OpRenameat, event.OpRenameat2, event.OpUnlink, event.OpUnlinkat, event.OpRmdir:
			for _, p := range ev.Paths {
				m[p.Abs] = true
			}
		}
	}
	return m
}

func same(whole, part *trace.Tape, a, b *event.Event, moved map[string]bool) error {
	x, y := *a, *b
	x.Seq, y.Seq = 0, 0
	x.Files, x.Paths, x.Bufs, y.Files, y.Paths, y.Bufs = nil, nil, nil, nil, nil, nil
	if y.DelayBefore < x.DelayBefore {
		return errors.New("less delay than before")
	}
	x.DelayBefore, y.DelayBefore = 0, 0 // that of calls that were left out comes to it
	if fmt.Sprintf("%+v", x) != fmt.Sprintf("%+v", y) {
		return errors.New("differs")
	}
	if len(a.Files) != len(b.Files) || !slices.Equal(a.Paths, b.Paths) || len(a.Bufs) != len(b.Bufs) {
		return errors.New("other files, paths or buffers")
	}
	for i := range a.Files {
		f, g := a.Files[i], b.Files[i]
		if f.Path != g.Path && slices.ContainsFunc(above(f.Path), func(p string) bool { return moved[p] }) {
			f.Path, g.Path = "", ""
		}
		if f != g {
			return fmt.Errorf("file %+v is %+v", f, g)
		}
	}
	for i := range a.Bufs {
		data, missing, err := whole.ContentZero(&a.Bufs[i], nil)
		if err != nil {
			return err
		}
		copied, missed, err := part.ContentZero(&b.Bufs[i], nil)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, copied) || missing != missed {
			return fmt.Errorf("buffer %+v is %+v", a.Bufs[i], b.Bufs[i])
		}
	}
	return nil
}

// above returns a path and those of the directories that it is in.
func above(path string) []string {
	all := []string{path}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		all = append(all, path[:i])
	}
	return all
}
