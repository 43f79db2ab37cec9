// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// What an immutable file refused is not done to the one here, which is not immutable.
func TestImmutable(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	flags := func(n byte) {
		const setFlags = 0x40086602
		s.On(event.OpIoctl, 3, 0, 0, [6]uint64{0, setFlags, 0x1000},
			event.Buf{Arg: 2, Kind: event.KindStruct, Len: 4, Inline: []byte{n, 0, 0, 0}})
	}
	flags(0x10)
	s.Call(event.OpUnlink, -1, syscall.EPERM, [6]uint64{}, "f")
	s.Call(event.OpRename, -1, syscall.EPERM, [6]uint64{}, "f", "g")
	flags(0)
	s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "f")
	rep, err := Run(context.Background(), s.Close(), &Options{
		Into: filepath.Join(t.TempDir(), "out"), Checks: CheckAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !rep.OK() {
		t.Errorf("%+v", rep.Mismatches)
	}
}
