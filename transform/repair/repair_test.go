// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

const calls = 20000

// sound makes a tape of some blocks of events, each with content of its own.
func sound(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	random := rand.New(rand.NewSource(1))
	for i := range int64(calls) {
		ev := event.Event{Op: event.OpWrite, PID: 1, TID: 1, Enter: i * 10, Exit: i*10 + 5,
			Ret: 500, Offset: i * 500, Count: 500}
		if i%4 == 0 {
			data := make([]byte, 500)
			random.Read(data)
			id, err := tw.AddChunk(data)
			if err != nil {
				t.Fatal(err)
			}
			ev.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 500, Refs: []event.Ref{{Chunk: id, Len: 500}}}}
		}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	host := trace.Host{Head: trace.Head{Host: "h", Arch: "amd64", Command: []string{"true"}}}
	if err := trace.WriteHeads(tw, []trace.Host{host}); err != nil {
		t.Fatal(err)
	}
	if err := seal.WriteTree(tw, trace.SnapshotName,
		&tree.Manifest{Root: "/", Entries: []tree.Entry{{Path: "d", Type: tree.Dir}}}); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(&trace.Manifest{Hosts: []trace.Host{host}, ExitStatus: 3}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// repaired repairs a tape, and checks what came of it.
func repaired(t *testing.T, dir string) (*Result, *trace.Tape) {
	t.Helper()
	old, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	out := filepath.Join(t.TempDir(), "repaired.tape")
	tw, err := trace.CreateTape(out)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	res, err := Tape(context.Background(), tw, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(res.Manifest); err != nil {
		t.Fatal(err)
	}
	tp, err := trace.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	rep, err := tp.Check(context.Background(), nil)
	if err != nil || !rep.OK() {
		t.Fatalf("check: %+v %v", rep, err)
	}
	kept, marked, missing := uint64(0), uint64(0), int64(0)
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.LossMark {
			marked += uint64(ev.Ret)
			continue
		}
		kept++
		if n := ev.Exit / 10; len(ev.Bufs) > 0 {
			missing += ev.Bufs[0].Missing
		} else if n%4 == 0 {
			t.Fatalf("call %d lost its buffer", n)
		}
	}
	if kept != res.Events || marked != res.Lost || missing != res.Bytes || rep.Missing != missing {
		t.Errorf("%d events, %d marked, %d bytes missing: %+v", kept, marked, missing, res)
	}
	if tp.Manifest().Incomplete == res.OK() {
		t.Errorf("incomplete %v, %q", tp.Manifest().Incomplete, tp.Manifest().Reason)
	}
	return res, tp
}

// change changes a file of a tape.
func change(t *testing.T, dir, name string, f func(b []byte) []byte) {
	t.Helper()
	name = filepath.Join(dir, name)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, f(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

func half(b []byte) []byte { return b[:len(b)/2] }

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 0x10
	return b
}

// Whatever is damaged, the rest is kept, and what is lost is said.
func TestDamages(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		check  func(r *Result) bool
	}{
		{"nothing", func(*testing.T, string) {}, func(r *Result) bool { return r.OK() && r.Events == calls }},
		{"no manifest", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, trace.ManifestName)) },
			func(r *Result) bool {
				return r.NoManifest && !r.Unknown && !r.Tail && r.Lost == 0 && r.Bytes == 0 && r.Events == calls
			}},
		{"manifest", func(t *testing.T, dir string) { change(t, dir, trace.ManifestName, flip) }, func(r *Result) bool { return r.Events == calls && r.NoManifest && !r.Unknown }},
		{"events cut", func(t *testing.T, dir string) { change(t, dir, trace.EventsName, half) },
			func(r *Result) bool { return r.Lost > 0 && r.Events+r.Lost == calls && r.Events > 0 }},
		{"events flipped", func(t *testing.T, dir string) { change(t, dir, trace.EventsName, flip) },
			func(r *Result) bool { return r.Lost > 0 && r.Lost <= 4096 && r.Events+r.Lost == calls }},
		{"events cut, no manifest", func(t *testing.T, dir string) {
			change(t, dir, trace.EventsName, half)
			os.Remove(filepath.Join(dir, trace.ManifestName))
		}, func(r *Result) bool { return r.Tail && r.Events > 0 && !r.Unknown }},
		{"content cut", func(t *testing.T, dir string) { change(t, dir, trace.ContentName, half) },
			func(r *Result) bool {
				return r.Bytes > 0 && r.Bytes < calls/4*500 && r.Events == calls && len(r.Trees) == 0
			}},
		{"content flipped", func(t *testing.T, dir string) { change(t, dir, trace.ContentName, flip) }, func(r *Result) bool { return r.Bytes > 0 && r.Bytes < calls/4*500 && r.Lost == 0 }},
		{"no content", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, trace.ContentName)) },
			func(r *Result) bool { return r.Bytes == calls/4*500 && r.Events == calls }},
		{"content empty", func(t *testing.T, dir string) { change(t, dir, trace.ContentName, func([]byte) []byte { return nil }) },
			func(r *Result) bool { return r.Bytes == calls/4*500 }},
		{"tree", func(t *testing.T, dir string) { change(t, dir, trace.SnapshotName, half) },
			func(r *Result) bool { return len(r.Trees) == 1 && r.Events == calls && r.Bytes == 0 }},
		{"nothing but events", func(t *testing.T, dir string) {
			for _, name := range []string{trace.ManifestName, trace.ContentName, trace.HeadName, trace.SnapshotName} {
				os.Remove(filepath.Join(dir, name))
			}
		}, func(r *Result) bool { return r.Unknown && r.Events == calls }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := sound(t)
			c.damage(t, dir)
			res, tp := repaired(t, dir)
			if !c.check(res) {
				t.Errorf("%+v", res)
			}
			if h := tp.Host(0); !res.Unknown && (h.Host != "h" || len(h.Command) != 1) {
				t.Errorf("host %+v", h)
			}
			if _, ok := tp.Manifest().Files[trace.SnapshotName]; ok == (len(res.Trees) > 0 ||
				strings.HasPrefix(c.name, "nothing but")) {
				t.Errorf("snapshot: %v", ok)
			}
		})
	}
}

// Wherever a byte is changed, repair gives a sound tape.
func TestFlips(t *testing.T) {
	dir := sound(t)
	random := rand.New(rand.NewSource(2))
	for _, name := range []string{trace.EventsName, trace.ContentName, trace.ManifestName, trace.HeadName} {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			at := 16 + random.Intn(len(whole)-16) // behind the head: without that it is no file of a tape
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				b := bytes.Clone(whole)
				b[at] ^= 1 << random.Intn(8)
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
					t.Fatal(err)
				}
				repaired(t, dir)
			})
		}
		if err := os.WriteFile(filepath.Join(dir, name), whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
