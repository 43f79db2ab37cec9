// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
)

func testStacks() []*event.Stack {
	libc := event.Frame{Module: "/lib/libc.so.6", BuildID: "aa11", Offset: 0x1000, Function: "fsync", Delta: 16}
	top := event.Frame{Module: "/bin/p", BuildID: "bb22", Offset: 0x2000, Exact: true, Function: "main", File: "p.c",
		Line: 7}
	return []*event.Stack{
		nil,
		{Frames: []event.Frame{libc, top}},
		{Frames: []event.Frame{libc, {Offset: 0x7f00}}, End: event.StackUnknown},
		{Frames: []event.Frame{libc, top}}, // as the second one
	}
}

// TestStackFile writes stacks to a tape and reads them back; equal ones are stored once.
func TestStackFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	want := testStacks()
	for i, s := range want {
		ev := event.Event{Kind: event.Call, Op: event.OpFsync, Enter: int64(i), Exit: int64(i), Stack: s}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tw.Create(StacksName); err == nil {
		t.Error("a caller may make the file of the stacks, want an error")
	}
	if err := tw.Close(&Manifest{Hosts: []Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tp, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	if list, err := tp.Stacks(); len(list) != 2 || err != nil {
		t.Errorf("%d stacks, %v; want 2", len(list), err)
	}
	i := 0
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], ev.Stack); diff != "" {
			t.Errorf("stack of event %d, want - got +:\n%s", i, diff)
		}
		i++
	}
	if r, err := tp.Check(context.Background(), nil); err != nil || !r.OK() {
		t.Errorf("check: %v %v, want no damage", err, r.Damage)
	}
	none := []byte(`{"format":"iotape.stacks","version":1}`)
	if err := os.WriteFile(filepath.Join(dir, StacksName), none, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	r, err := again.Check(context.Background(), nil)
	if err != nil || !strings.Contains(strings.Join(damages(r), "\n"), "has stack 1 of 0") {
		t.Errorf("check of a tape whose stacks are gone: %v %q, want that an event's stack is missing", err, damages(r))
	}
}

func damages(r *CheckReport) (list []string) {
	for _, d := range r.Damage {
		list = append(list, d.String())
	}
	return list
}

func TestParseStacks(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"not JSON", "{"},
		{"another format", `{"format":"x","version":1}`},
		{"module out of range", `{"format":"iotape.stacks","version":1,"frames":[{"module":1}]}`},
		{"frame out of range", `{"format":"iotape.stacks","version":1,"frames":[{}],"stacks":[{"frames":[2]}]}`},
		{"frame 0", `{"format":"iotape.stacks","version":1,"frames":[{}],"stacks":[{"frames":[0]}]}`},
	} {
		if _, err := parseStacks([]byte(c.text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", c.name, err)
		}
	}
	if _, err := parseStacks([]byte(`{"format":"iotape.stacks","version":2}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer version: %v, want ErrNewer", err)
	}
}

// TestStackRecord encodes stacks as records and decodes them.
func TestStackRecord(t *testing.T) {
	for i, s := range testStacks() {
		if s == nil {
			continue
		}
		plain := &event.Stack{End: s.End}
		for _, f := range s.Frames { // names are found later
			plain.Frames = append(plain.Frames,
				event.Frame{Module: f.Module, BuildID: f.BuildID, Offset: f.Offset, Exact: f.Exact})
		}
		for want, rec := range map[*event.Stack]Record{
			plain: StackRecord(1, 2, 3, s), s: NamedStackRecord(1, 2, 3, s),
		} {
			var back Record
			if err := back.Decode(rec.Append(nil)); err != nil {
				t.Fatal(err)
			}
			got, named, err := back.Stack()
			if diff := cmp.Diff(want, got); diff != "" || err != nil || back.Enter != 3 || back.TID != 2 ||
				named != (want == s) {
				t.Errorf("%d: %v, of thread %d at %d, named %v; want - got +:\n%s", i, err, back.TID, back.Enter, named,
					diff)
			}
		}
	}
}

func FuzzStackRecord(f *testing.F) {
	rec := NamedStackRecord(1, 2, 3, testStacks()[1])
	f.Add(rec.Pieces[0].Data, rec.Pieces[1].Data, rec.Pieces[2].Data)
	f.Fuzz(func(t *testing.T, frames, modules, names []byte) {
		r := Record{Type: RecStack, Pieces: []Piece{{Data: frames}, {Arg: 1, Data: modules}, {Arg: 2, Data: names}}}
		if s, _, err := r.Stack(); (s == nil) == (err == nil) {
			t.Errorf("stack %v and error %v, want one of them", s, err)
		}
	})
}
