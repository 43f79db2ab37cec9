// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestUnreadPath: a path that the kernel could not read either is none, and not the empty one.
func TestUnreadPath(t *testing.T) {
	for _, tc := range []struct {
		name  string
		piece trace.Piece
		errno syscall.Errno
		want  int // paths
	}{
		{"bad address", trace.Piece{Flags: trace.PieceMissing}, syscall.EFAULT, 0},
		{"empty", trace.Piece{}, syscall.ENOENT, 1},
		{"empty, and another address is bad", trace.Piece{}, syscall.EFAULT, 1},
		{"only the recorder could not read it", trace.Piece{Flags: trace.PieceMissing}, 0, 1},
	} {
		it := &item{}
		it.ev = event.Event{Kind: event.Call, Op: event.OpOpen, Errno: tc.errno}
		if err := (&assembler{}).piece(it, &tc.piece); err != nil {
			t.Fatal(err)
		}
		if got := len(it.ev.Paths); got != tc.want {
			t.Errorf("%s: got %d paths, want %d", tc.name, got, tc.want)
		}
	}
}
