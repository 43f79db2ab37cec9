// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"encoding/binary"
	"io"

	"github.com/iotape/iotape/event"
)

// reservations are the commands of ioctl that any file system takes for the fallocate of the
// same effect (fs/ioctl.c: ioctl_preallocate; linux/falloc.h), with its mode.
var reservations = map[uint64]uint64{
	0x40305828: keepSize,             // FS_IOC_RESVSP
	0x4030582a: keepSize,             // FS_IOC_RESVSP64
	0x40305829: keepSize | punchHole, // FS_IOC_UNRESVSP
	0x4030582b: keepSize | punchHole, // FS_IOC_UNRESVSP64
	0x40305839: keepSize | zeroRange, // FS_IOC_ZERO_RANGE
}

const keepSize, punchHole, zeroRange = 1, 2, 0x10

// asFallocate turns such an ioctl into the fallocate.
func asFallocate(ev *event.Event) {
	mode, ok := reservations[ev.Args[1]]
	b, f := ev.BufArg(2), ev.FileArg(0)
	if !ok || b == nil || len(b.Inline) < 24 || f == nil {
		return
	}
	// struct space_resv: type, whence, start, length
	from, n := int64(binary.LittleEndian.Uint64(b.Inline[8:])), binary.LittleEndian.Uint64(b.Inline[16:])
	switch int16(binary.LittleEndian.Uint16(b.Inline[2:])) {
	case io.SeekCurrent:
		from += f.Pos
	case io.SeekEnd:
		from += f.Size
	}
	ev.Op, ev.Bufs = event.OpFallocate, ev.Bufs[:0]
	ev.Args = [event.MaxArgs]uint64{ev.Args[0], mode, uint64(from), n}
	ev.Offset = from
}
