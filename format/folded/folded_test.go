// SPDX-License-Identifier: Apache-2.0

package folded_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/folded"
	"github.com/iotape/iotape/trace"
)

// tape is one of three calls: two of one stack, and one without.
func tape(t *testing.T) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	stack := &event.Stack{Frames: []event.Frame{
		{Module: "/lib/libc.so.6", Offset: 0x10, Function: "read"},
		{Module: "/bin/p", Offset: 0x20},
		{Offset: 0x7f00},
		{Module: "/bin/p", Offset: 0x30, Function: "a;b\n"},
	}}
	for i, s := range []*event.Stack{stack, stack, nil} {
		ev := event.Event{Kind: event.Call, Op: event.OpRead, Comm: "p", Enter: int64(100 * i), Exit: int64(100*i + 30),
			Ret: 5, Stack: s,
			Bufs: []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: 5, Inline: []byte("12345")}}}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tp, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

func TestWrite(t *testing.T) {
	tp := tape(t)
	const path = "p;a:b?;0x7f00;p+0x20;read;read "
	for weight, want := range map[string]string{"": path + "60\n", "time": path + "60\n", "calls": path + "2\n",
		"bytes": path + "10\n"} {
		var out bytes.Buffer
		done, err := folded.Format.Write(context.Background(), &out, tp, &format.Options{Weight: weight})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("weight %q, want - got +:\n%s", weight, diff)
		}
		if n := done.Left["calls without a stack"]; n != 1 || done.Records != 1 {
			t.Errorf("%d records, %d calls without a stack; want 1, 1", done.Records, n)
		}
	}
	other := format.Options{Weight: "x"}
	if _, err := folded.Format.Write(context.Background(), &bytes.Buffer{}, tp, &other); err == nil {
		t.Error("a weight that does not exist is accepted")
	}
}
