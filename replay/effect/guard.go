// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Guards reports whether a call made a file immutable or append-only (ioctl_iflags(2)).
// A replay does not: what it left could not be removed.
func Guards(ev *event.Event) bool {
	const (
		setFlags, immutable, appendOnly   = 0x40086602, 0x10, 0x20
		setXattr, xImmutable, xAppendOnly = 0x401c5820, 0x8, 0x10
	)
	b := ev.BufArg(2)
	if ev.Op != event.OpIoctl || !ev.OK() || b == nil || len(b.Inline) < 4 {
		return false
	}
	flags := binary.LittleEndian.Uint32(b.Inline)
	return ev.Args[1] == setFlags && flags&(immutable|appendOnly) != 0 ||
		ev.Args[1] == setXattr && flags&(xImmutable|xAppendOnly) != 0
}
