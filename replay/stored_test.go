// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// storedTape returns a tape with a bit of everything that an initial tree has.
func storedTape(t *testing.T) *trace.Tape {
	s := tapescript.New(t)
	s.Store(trace.SnapshotName, tree.Entry{Path: "work/empty", Type: tree.Dir, Known: tree.KnownListing},
		tree.Entry{Path: "work/p", Type: tree.FIFO}, tree.Entry{Path: "work/f\xff", Type: tree.File})
	s.Size = 6
	s.Open(4, "data", 2)
	s.Move(event.OpPread64, 4, 0, "abcdef")
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "d")
	s.Call(event.OpRename, 0, 0, [6]uint64{}, "f\xff", "d/g")
	s.Call(event.OpUnlink, -1, syscall.ENOENT, [6]uint64{}, "gone")
	s.Add(event.Event{Kind: event.Forked, Child: 2, Ret: 2})
	s.Add(event.Event{Op: event.OpRmdir, PID: 2, TID: 2, Args: [6]uint64{1}, Errno: syscall.ENOENT, Ret: -1,
		Paths: []event.Path{{Raw: "x"}}, Enter: s.Clock, Exit: s.Clock + 50})
	s.Add(event.Event{Op: event.OpMkdir, Args: [6]uint64{1, 0o755}, Paths: []event.Path{{Raw: "x"}},
		Enter: s.Clock - 40, Exit: s.Clock + 60})
	s.Store(trace.FinalName, tree.Entry{Path: "work/d", Type: tree.Dir}, tree.Entry{Path: "work/d/g", Type: tree.File},
		tree.Entry{Path: "work/x", Type: tree.Dir})
	return s.Close()
}

// A replay with what another one stored gives the same, and damaged and strange files are as none.
func TestStored(t *testing.T) {
	tape := storedTape(t)
	replayed := func(what string) *Report {
		t.Helper()
		into := t.TempDir()
		rep, err := Run(t.Context(), tape, &Options{Into: into, Checks: CheckAll})
		if err != nil || !rep.OK() {
			t.Fatalf("%s: %v, %+v", what, err, rep)
		}
		if _, err := os.Stat(filepath.Join(into, "work/d/g")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return rep
	}
	paths := []string{filepath.Join(tape.Dir(), trace.InitialName), filepath.Join(tape.Dir(), trace.OrderName)}
	contents := func() (all [][]byte) {
		t.Helper()
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		return all
	}
	first := replayed("first")
	stored := contents()
	if again := replayed("again"); again.Replayed != first.Replayed || again.InitialEntries != first.InitialEntries ||
		again.TreePaths != first.TreePaths || !reflect.DeepEqual(again.Tree, first.Tree) {
		t.Errorf("with what was stored: %+v\nwithout: %+v", again, first)
	}
	if r, err := tape.Check(t.Context(), nil); err != nil || len(r.Damage)+len(r.Notes) > 0 {
		t.Errorf("the tape is damaged by it: %+v, %v", r, err)
	}
	for what, change := range map[string]func(b []byte) []byte{
		"cut":          func(b []byte) []byte { return b[:len(b)/2] },
		"a bit":        func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"empty":        func([]byte) []byte { return nil },
		"another tape": func(b []byte) []byte { b[10]++; return b },
	} {
		for i, p := range paths {
			if err := os.WriteFile(p, change(slices.Clone(stored[i])), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		replayed(what)
		if !reflect.DeepEqual(contents(), stored) {
			t.Errorf("%s: it was not made again", what)
		}
	}
	for _, p := range paths { // as if nothing could be written
		if err := errors.Join(os.Remove(p), os.Mkdir(p, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	replayed("not writable")
	if err := os.Remove(paths[0]); err != nil {
		t.Errorf("it is not there any more: %v", err)
	}
}

// What is stored is compared with what a replay finds, whatever its hashes say.
func TestCheckStored(t *testing.T) {
	tape := storedTape(t)
	p, err := prepare(t.Context(), tape, &Options{Into: t.TempDir()}) // it stores both
	if err != nil {
		t.Fatal(err)
	}
	key := p.layout.Key()
	check := func(what string, damage, notes int) {
		t.Helper()
		rep, err := tape.Check(t.Context(), nil)
		if err == nil {
			err = CheckStored(t.Context(), tape, rep)
		}
		if err != nil || len(rep.Damage) != damage || len(rep.Notes) != notes {
			t.Errorf("%s: %v, %+v; want %d damages and %d notes", what, err, rep, damage, notes)
		}
	}
	check("as stored", 0, 0)
	initial, err := tape.Derivation(trace.InitialName, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	set := func(name, key string, b []byte) {
		t.Helper()
		if err := tape.SetDerivation(name, key, b); err != nil {
			t.Fatal(err)
		}
	}
	set(trace.InitialName, key, bytes.Replace(slices.Clone(initial), []byte("work/p"), []byte("work/q"), 1))
	check("another tree", 1, 0)
	set(trace.InitialName, key, initial)
	set(trace.OrderName, key, backwards(tape.Manifest().Counts.Events))
	check("another order", 1, 0)
	set(trace.OrderName, "other options", backwards(tape.Manifest().Counts.Events))
	check("of other options", 0, 1)
	path := filepath.Join(tape.Dir(), trace.OrderName)
	if err := os.WriteFile(path, []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("cut", 1, 0)
}

// A tape of few events gets no files.
func TestStoredNotOfShortTapes(t *testing.T) {
	defer func(n uint64) { storeFrom = n }(storeFrom)
	storeFrom = 1000
	tape := storedTape(t)
	if _, err := Run(t.Context(), tape, &Options{Into: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{trace.InitialName, trace.OrderName} {
		if _, err := os.Stat(filepath.Join(tape.Dir(), name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}

// What a stranger stored, with the right sums, makes a replay end with an error or with differences, and nothing else.
func TestHostileStored(t *testing.T) {
	c := newCanary(t)
	tape := storedTape(t)
	p, err := prepare(t.Context(), tape, &Options{Into: t.TempDir()}) // it stores both
	if err != nil {
		t.Fatal(err)
	}
	key := p.layout.Key()
	initial, err := tape.Derivation(trace.InitialName, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for name, order := range map[string][]byte{
		"twice":           {2 << 1, 0, 2 << 1, 3},
		"backwards":       backwards(tape.Manifest().Counts.Events),
		"more than there": binary.AppendUvarint([]byte{}, 1<<40),
		"two places":      {1, 0, byte(1 << 5), 1, 1, byte(2 << 5)},
		"none":            {},
	} {
		if err := tape.SetDerivation(trace.OrderName, key, order); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		hostile(t, tape, c, nil)
	}
	if err := os.Remove(filepath.Join(tape.Dir(), trace.OrderName)); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string][2]string{
		"a name above": {`"work/p"`, `"../etc"`}, "an absolute name": {`"work/p"`, `"/etc/p"`},
		"a chunk of none": {"abcdef", "abcde\x00"},
	} {
		b := bytes.Replace(slices.Clone(initial), []byte(from[0]), []byte(from[1]), 1)
		if err := tape.SetDerivation(trace.InitialName, key, b); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		hostile(t, tape, c, nil)
	}
	for i := range initial { // any byte
		b := slices.Clone(initial)
		b[i] ^= 0x81
		if err := tape.SetDerivation(trace.InitialName, key, b); err != nil {
			t.Fatal(err)
		}
		if _, _, err := infer(t.Context(), tape, p.layout); err != nil {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

// backwards is an order of all events from the last to the first.
func backwards(events uint64) []byte {
	b := binary.AppendVarint([]byte{1 << 1}, int64(events)-1)
	for range events - 1 {
		b = append(b, 1<<1, 3) // step -2
	}
	if _, err := linearize.ParseOrder(b, events); err != nil {
		panic(err)
	}
	return b
}
