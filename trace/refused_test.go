// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestRefusedEvents writes events with lengths and arguments that no event has.
func TestRefusedEvents(t *testing.T) {
	w, err := trace.CreateTape(filepath.Join(t.TempDir(), "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	path := func(arg int8) event.Event {
		return event.Event{Op: event.OpUnlink, Paths: []event.Path{{Arg: arg, Raw: "x", Abs: "/x"}}}
	}
	buf := func(arg int8, n int64) event.Event {
		return event.Event{Op: event.OpRead, Bufs: []event.Buf{{Arg: arg, Kind: event.KindBuf, Len: n}}}
	}
	for _, c := range []struct {
		ev   event.Event
		want string // "": it is taken
	}{
		{path(0), ""},
		{path(event.MaxArgs - 1), ""},
		{path(event.MaxArgs), "unlink with a name of argument 6"},
		{path(100), "unlink with a name of argument 100"},
		{path(-128), "unlink with a name of argument -128"},
		{buf(1, event.MaxBytes), ""},
		{buf(127, 5), ""},
		{buf(1, event.MaxBytes+1), "read with a buffer of argument 1, 1152921504606846977 bytes"},
		{buf(1, -1), "read with a buffer of argument 1, -1 bytes"},
		{buf(-1, 5), "read with a buffer of argument -1, 5 bytes"},
	} {
		err := w.Write(&c.ev)
		if got := err == nil; got != (c.want == "") || !got && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
