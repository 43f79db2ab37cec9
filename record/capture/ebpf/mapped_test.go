// SPDX-License-Identifier: Apache-2.0

package ebpf

import "testing"

func TestAreaAt(t *testing.T) {
	maps := []byte("55d0c8a3b000-55d0c8a3d000 r-xp 00002000 fe:00 247026                     /usr/bin/cat\n" +
		"7f1bc0000000-7f1bc0010000 rw-s ff000 fe:00 12 /tmp/a b\n7f1bd0000000-7f1bd0021000 rw-p 00000000 00:00 0 \n")
	for addr, want := range map[uint64]area{
		0x55d0c8a3b000: {from: 0x55d0c8a3b000, to: 0x55d0c8a3d000, off: 0x2000, exec: true},
		0x55d0c8a3cfff: {from: 0x55d0c8a3b000, to: 0x55d0c8a3d000, off: 0x2000, exec: true},
		0x7f1bc0000001: {from: 0x7f1bc0000000, to: 0x7f1bc0010000, off: 0xff000, shared: true},
		0x7f1bd0000000: {from: 0x7f1bd0000000, to: 0x7f1bd0021000},
		0x55d0c8a3d000: {}, 0: {},
	} {
		if got, ok := areaAt(maps, addr); got != want || ok != (want.to != 0) {
			t.Errorf("%x: %+v, %v; want %+v", addr, got, ok, want)
		}
	}
	for n := range maps { // cut off anywhere
		areaAt(maps[:n], 0x7f1bc0000001)
	}
}
