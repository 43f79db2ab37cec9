// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// programs are what is recorded: between them they fork, exec, share, rename, and
// move about.
var programs = []string{"failures", "git-basics", "git-gc", "make-gcc", "pipeline", "rsync-a", "sqlite-wal", "threads8"}

// inShort are those that run under -short too.
var inShort = []string{"failures", "pipeline", "threads8"}

// A dump sealed has the same events, resolved to the same names, as the end of the
// whole recording: whatever was cut off. And it can be replayed.
func TestDumpIsTheEndOfTheWhole(t *testing.T) {
	testenv.Short(t, "it records for a while")
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if !slices.Contains(programs, p.Name) {
			continue
		}
		for _, backend := range []string{"ebpf", "ptrace"} {
			t.Run(p.Name+"/"+backend, func(t *testing.T) {
				if !slices.Contains(inShort, p.Name) || backend == "ebpf" && p.Name != "pipeline" {
					testenv.Short(t, "records a program, and replays five dumps of it")
				}
				testenv.NeedProgram(t, p.Needs...)
				if backend == "ebpf" {
					testenv.NeedBPF(t)
				}
				dir := t.TempDir()
				work := filepath.Join(dir, "work")
				if err := os.Mkdir(work, 0o755); err != nil {
					t.Fatal(err)
				}
				run(t, p.Command(install, work, workload.Prep)...)
				tape := filepath.Join(dir, "x.tape")
				run(t, append([]string{iotape, "record", "-o", tape, "--keep-stream", "--no-index", "--mmap",
					"off", "--backend", backend, "--"},
					p.Command(install, work, workload.Run)...)...)
				stream, err := os.ReadFile(filepath.Join(dir, "x.stream"))
				if err != nil {
					t.Fatal(err)
				}
				whole := sealed(t, stream)
				for _, percent := range []int64{95, 70, 40, 15, 3} {
					t.Run(fmt.Sprint(percent), func(t *testing.T) {
						if percent == 95 || percent == 40 {
							testenv.Short(t, "replays another dump")
						}
						dump := dumped(t, stream, percent)
						compare(t, whole, sealed(t, dump))
						replayed(t, iotape, dump)
					})
				}
			})
		}
	}
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// replayed replays a dump, whose first events find what earlier ones left.
func replayed(t *testing.T, iotape string, dump []byte) {
	t.Helper()
	dir := t.TempDir()
	stream, tape := filepath.Join(dir, "x.stream"), filepath.Join(dir, "x.tape")
	if err := os.WriteFile(stream, dump, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, iotape, "seal", "--no-index", stream)
	cmd := exec.Command(iotape, "replay", tape, "--into", filepath.Join(dir, "again"), "--verify")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("replay: %v\n%s", err, out)
	}
}

// dumped passes a stream, in small frames, through a Recorder that keeps a part of
// it.
func dumped(t *testing.T, stream []byte, percent int64) []byte {
	t.Helper()
	r, err := start(&Options{Bytes: max(int64(len(stream))*percent/100, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fr := trace.NewFrameReader(bytes.NewReader(stream))
	for {
		f, payload, err := fr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteFrame(&f, payload); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	var out bytes.Buffer
	d, err := r.Dump(&out, 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	if !d.Ended || d.Bytes != int64(out.Len()) {
		t.Errorf("dump %+v of %d bytes", d, out.Len())
	}
	return out.Bytes()
}

// settle waits until there is no more in memory than is to be kept.
func (r *Recorder) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.err == nil && r.over() && r.next < len(r.ring.frames) {
		r.mu.Unlock()
		r.mu.Lock()
	}
}

// sealed returns the events of a stream.
func sealed(t *testing.T, stream []byte) []*event.Event {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	st, err := seal.Seal(context.Background(), bytes.NewReader(stream), tw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if st.Damage != nil || st.Lost > 0 || st.End == nil {
		t.Errorf("sealed with damage %v, %d lost, end %v", st.Damage, st.Lost, st.End)
	}
	if err := tw.Close(st.Manifest("test")); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var all []*event.Event
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ev.Clone())
	}
	return all
}

// compare holds a dump against the end of the whole.
func compare(t *testing.T, whole, part []*event.Event) {
	t.Helper()
	// The state comes first: it has the time of none of the others. Where nothing was cut off
	// it is the state that the recording began with, with its time.
	n := 0
	if len(part) > 0 && part[0].Enter != whole[0].Enter {
		for n < len(part) && part[n].Kind != event.Call && part[n].Enter == part[0].Enter {
			n++
		}
	}
	state, rest := part[:n], part[n:]
	if len(rest) > len(whole) {
		t.Fatalf("%d events of %d", len(rest), len(whole))
	}
	t.Logf("%d of %d events, %d of state", len(rest), len(whole), len(state))
	cut := whole[len(whole)-len(rest):]
	moved := renames(whole)
	opens, back := map[event.OpenID]event.OpenID{}, map[event.OpenID]event.OpenID{}
	bad := 0
	for i, want := range cut {
		if err := same(want, rest[i], opens, back, moved); err != nil {
			t.Errorf("event %d, %s by %d: %v\n%+v\n%+v", i, want.Op, want.TID, err, want, rest[i])
			if bad++; bad == 5 {
				return
			}
		}
	}
}

// renames returns the names that were given to something else.
func renames(events []*event.Event) map[string]bool {
	m := map[string]bool{}
	for _, ev := range events {
		switch ev.Op {
		case event.OpRename, event.OpRenameat, event.OpRenameat2, event.OpUnlink, event.OpUnlinkat, event.OpRmdir:
			for _, p := range ev.Paths {
				m[p.Abs] = true
			}
		}
	}
	return m
}

func same(a, b *event.Event, opens, back map[event.OpenID]event.OpenID, moved map[string]bool) error {
	x, y := *a, *b
	x.Seq, y.Seq = 0, 0
	x.Files, x.Paths, x.Bufs, y.Files, y.Paths, y.Bufs = nil, nil, nil, nil, nil, nil
	if fmt.Sprintf("%+v", x) != fmt.Sprintf("%+v", y) {
		return errors.New("differs")
	}
	if len(a.Files) != len(b.Files) || !slices.Equal(a.Paths, b.Paths) || len(a.Bufs) != len(b.Bufs) {
		return errors.New("other files, paths or buffers")
	}
	for i := range a.Files {
		f, g := a.Files[i], b.Files[i]
		if o, ok := opens[f.Open]; ok && o != g.Open {
			return fmt.Errorf("open file %d was %d and is %d", f.Open, o, g.Open)
		}
		if o, ok := back[g.Open]; ok && o != f.Open {
			return fmt.Errorf("open file %d was %d and is %d", g.Open, o, f.Open)
		}
		opens[f.Open], back[g.Open] = g.Open, f.Open
		f.Open, g.Open = 0, 0
		if f.Path != g.Path &&
			(moved[f.Path] || slices.ContainsFunc(parents(f.Path), func(p string) bool { return moved[p] })) {
			f.Path, g.Path = "", "" // a dump has the present name
		}
		if f != g {
			return fmt.Errorf("file %+v is %+v", f, g)
		}
	}
	for i := range a.Bufs {
		p, q := &a.Bufs[i], &b.Bufs[i]
		if p.Arg != q.Arg || p.Len != q.Len || p.Missing != q.Missing || p.Omitted != q.Omitted ||
			!bytes.Equal(p.Inline, q.Inline) || p.Kept() != q.Kept() {
			return fmt.Errorf("buffer %+v is %+v", p, q)
		}
	}
	return nil
}

func parents(path string) (all []string) {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		all = append(all, path[:i])
	}
	return all
}
