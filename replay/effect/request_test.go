// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"

	"github.com/iotape/iotape/event"
)

func TestAsCall(t *testing.T) {
	const cur = ^uint64(0)
	for _, c := range []struct {
		name string
		op   event.Op
		args [6]uint64
		want event.Op
		then [6]uint64
	}{
		{"read at an offset", event.OpUringRead, [6]uint64{3, 1, 10, 20}, event.OpPread64, [6]uint64{3, 1, 10, 20}},
		{"read at the position", event.OpUringReadFixed, [6]uint64{3, 1, 10, cur}, event.OpRead, [6]uint64{3, 1, 10}},
		{"write at the position", event.OpUringWrite, [6]uint64{3, 1, 10, cur}, event.OpWrite, [6]uint64{3, 1, 10}},
		{"append", event.OpUringWrite, [6]uint64{3, 1, 10, 20, 16}, event.OpPwritev2, [6]uint64{3, 1, 1, 20, 0, 16}},
		{"flags that do not matter", event.OpUringWrite, [6]uint64{3, 1, 10, 20, 9}, event.OpPwrite64,
			[6]uint64{3, 1, 10, 20}},
		{"vector", event.OpUringReadv, [6]uint64{3, 1, 2, cur}, event.OpPreadv2, [6]uint64{3, 1, 2, cur}},
		{"fsync", event.OpUringFsync, [6]uint64{3, 0}, event.OpFsync, [6]uint64{3}},
		{"fdatasync", event.OpUringFsync, [6]uint64{3, 1, 5, 6}, event.OpFdatasync, [6]uint64{3}},
		{"splice", event.OpUringSplice, [6]uint64{3, cur, 4, 100, 7}, event.OpSplice, [6]uint64{3, 0, 4, 1, 7}},
		{"aio", event.OpAIOPwritev, [6]uint64{3, 1, 2, 20}, event.OpPwritev2, [6]uint64{3, 1, 2, 20}},
		{"no call does it", event.OpUringNop, [6]uint64{}, event.OpUringNop, [6]uint64{}},
	} {
		ev := &event.Event{Op: c.op, Args: c.args, Ret: 7, Bufs: []event.Buf{
			{Arg: 1, Kind: event.KindBuf, Len: 7}, {Arg: event.RequestArg, Kind: event.KindStruct},
		}}
		AsCall(ev)
		if c.op == event.OpUringSplice {
			// Calls have the offset in memory, as it is afterwards.
			_, to := ev.CopySides()
			if b := ev.BufArg(3); b == nil || to.Start(ev) != 100 {
				t.Errorf("%s: offset %+v", c.name, b)
			}
			ev.Args[3] = 1
		}
		if ev.Op != c.want || ev.Args != c.then {
			t.Errorf("%s: %v%v, want %v%v", c.name, ev.Op, ev.Args, c.want, c.then)
		}
		if c.want != c.op && ev.BufArg(event.RequestArg) != nil {
			t.Errorf("%s: the request's head is left", c.name)
		}
	}
}
