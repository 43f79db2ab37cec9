// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
)

// TestStack writes a stack as lines and as JSON.
func TestStack(t *testing.T) {
	ev := &event.Event{Kind: event.Call, Op: event.OpFsync, TID: 7, Offset: -1, Count: -1, Exit: 1000,
		Args: [event.MaxArgs]uint64{3}, Stack: &event.Stack{End: event.StackUnknown, Frames: []event.Frame{
			{Module: "/lib/libc.so.6", BuildID: "aa", Offset: 0x110, Function: "fsync", Delta: 0x10, File: "f.c", Line: 3},
			{Module: "/bin/p\n", Offset: 0x20, Exact: true},
			{Offset: 0x7f00},
		}}}
	const want = `7 fsync(3) = 0 <0.000001>
 > /lib/libc.so.6(fsync+0x10) [0x110] f.c:3
 > /bin/p\x0a() [0x20]
 > [0x7f00]
 > ... (code without a file)
`
	p := New(&Options{Clock: NoClock, Stacks: true})
	if diff := cmp.Diff(want, string(p.Append(nil, ev))); diff != "" {
		t.Errorf("lines, want - got +:\n%s", diff)
	}
	if got := string(New(&Options{Clock: NoClock}).Append(nil, ev)); strings.Contains(got, " > ") {
		t.Errorf("without the option there is a stack:\n%s", got)
	}
	const object = `"stack":[{"module":"/lib/libc.so.6","build_id":"aa","offset":272,"function":"fsync","delta":16,` +
		`"file":"f.c","line":3},{"module":"/bin/p\n","offset":32,"signal":true},{"address":32512}],` +
		`"stack_end":"code without a file"`
	if got := string(p.AppendJSON(nil, ev)); !strings.Contains(got, object) {
		t.Errorf("the object lacks\n%s\nit is\n%s", object, got)
	}
}
