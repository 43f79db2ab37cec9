// SPDX-License-Identifier: Apache-2.0

package formattest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// SameEvents compares the events of a tape with those of what its script was compiled to.
// Numbers of open files are compared if opens is set.
func SameEvents(t testing.TB, tape, again *trace.Tape, opens bool) {
	t.Helper()
	if got, want := again.Manifest().Counts.Events, tape.Manifest().Counts.Events; got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	r, s := tape.NewEventReader(), again.NewEventReader()
	var first, second map[event.OpenID]event.OpenID
	if opens {
		first, second = map[event.OpenID]event.OpenID{}, map[event.OpenID]event.OpenID{}
	}
	var a, b event.Event
	for differ := 0; r.Next(&a) == nil && s.Next(&b) == nil && differ < 5; {
		if d := different(told(tape, &a, first), told(again, &b, second)); d != "" {
			differ++
			t.Errorf("event %d, %s: %s", a.Seq, a.Op, d)
		}
	}
}

// told is an event without what a script finds again, or says in another way: numbers of chunks and of open files,
// and real names.
func told(tape *trace.Tape, ev *event.Event, opens map[event.OpenID]event.OpenID) event.Event {
	e := ev.Clone()
	for i := range e.Files {
		f := &e.Files[i]
		if opens != nil && f.Open != 0 && opens[f.Open] == 0 {
			opens[f.Open] = event.OpenID(len(opens) + 1)
		}
		if f.Open = opens[f.Open]; ev.Kind == event.Call {
			f.Real = ""
		}
		if strings.HasPrefix(f.Path, "anon_inode:") { // older versions did not name all of them
			f.Path = ""
		}
	}
	for i := range e.Paths {
		e.Paths[i].Real = ""
	}
	for i := range e.Bufs {
		b := &e.Bufs[i]
		data, _ := tape.ContentRange(b, 0, int(min(b.Len, 1<<20)), nil)
		b.Inline, b.Refs = data, nil
	}
	if e.Flags&event.Interrupted != 0 {
		e.Ret = 0 // that of a call without one is of no meaning
	}
	if e.Kind == event.Call && e.Op != event.OpUnknown {
		for i := range e.Args {
			e.Args[i] = meant(ev, i)
		}
	}
	return *e
}

// meant returns what the kernel looks at of an argument: nothing of those that it does not have, 32 bits of an int, and
// memory is known by its content.
func meant(ev *event.Event, i int) uint64 {
	spec := ev.Spec()
	if i >= len(spec.Args) {
		return 0
	}
	switch a := spec.Argument(i, &ev.Args); a.Kind {
	case event.KindNone:
		return 0
	case event.KindFD, event.KindDirFD, event.KindPID, event.KindID, event.KindSignal:
		return uint64(uint32(ev.Args[i]))
	case event.KindMode:
		return uint64(uint32(ev.Args[i]))
	case event.KindInt:
		if ev.Args[i]>>31 == 1 {
			return uint64(int64(int32(ev.Args[i])))
		}
	default:
		if a.Kind.IsMemory() && !spec.NoCall && ev.Args[i] != 0 && (ev.PathArg(i) != nil || ev.BufArg(i) != nil) {
			return 1
		}
	}
	return ev.Args[i]
}

// different returns the names of the fields of two structures that differ, with their values.
func different(a, b any) string {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	var list []string
	for i := range v.NumField() {
		x, y := fmt.Sprintf("%+v", v.Field(i).Interface()), fmt.Sprintf("%+v", w.Field(i).Interface())
		if x != y {
			list = append(list, fmt.Sprintf("%s was %.1000s and is %.1000s", v.Type().Field(i).Name, x, y))
		}
	}
	return strings.Join(list, "; ")
}
