package replay

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// What an immutable file refused is not done to the one here, which is not immutable.
func TestImmutable(t *testing.T) {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	flags := func(n byte) {
		const setFlags = 0x40086602
		s.on(event.OpIoctl, 3, 0, 0, [6]uint64{0, setFlags, 0x1000}, event.Buf{Arg: 2, Kind: event.KindStruct, Len: 4, Inline: []byte{n, 0, 0, 0}})
	}
	flags(0x10)
	s.call(event.OpUnlink, -1, syscall.EPERM, [6]uint64{}, "f")
	s.call(event.OpRename, -1, syscall.EPERM, [6]uint64{}, "f", "g")
	flags(0)
	s.call(event.OpUnlink, 0, 0, [6]uint64{}, "f")
	rep, err := Run(context.Background(), s.close(), &Options{Into: filepath.Join(t.TempDir(), "out"), Checks: CheckAll})
	if err != nil {
		t.Fatal(err)
	}
	if !rep.OK() {
		t.Errorf("%+v", rep.Mismatches)
	}
}
