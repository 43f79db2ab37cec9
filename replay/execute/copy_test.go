// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"syscall"
	"testing"
)

// A copy that a signal ended goes on; one that did less than recorded, and cannot go on, says how much.
func TestWholeCopy(t *testing.T) {
	for _, c := range []struct {
		name  string
		gives []int64 // of each call; negative is an error
		want  int64
		ret   int64
		errno syscall.Errno
		last  uintptr // what the last call is asked for
	}{
		{"at once", []int64{3000}, 3000, 3000, 0, 5000},
		{"a short one", []int64{1000}, 1000, 1000, 0, 5000},
		{"interrupted", []int64{1000, 500, 1500}, 3000, 3000, 0, 3500},
		{"nothing more", []int64{1000, 0}, 3000, 1000, 0, 4000},
		{"an error", []int64{-int64(syscall.EBADF)}, 3000, -1, syscall.EBADF, 5000},
		{"an error in the middle", []int64{1000, -int64(syscall.ENOSPC)}, 3000, 1000, 0, 4000},
		{"the end of the file", []int64{0}, 0, 0, 0, 5000},
	} {
		count, last := uintptr(5000), uintptr(0)
		ret, errno := wholeCopy(c.want, &count, func() (int64, syscall.Errno) {
			if len(c.gives) == 0 {
				t.Fatalf("%s: one more call", c.name)
			}
			n := c.gives[0]
			c.gives, last = c.gives[1:], count
			if n < 0 {
				return -1, syscall.Errno(-n)
			}
			return n, 0
		})
		if ret != c.ret || errno != c.errno || last != c.last {
			t.Errorf("%s: %d, %v, the last call is asked for %d; want %d, %v, %d", c.name, ret, errno, last, c.ret,
				c.errno, c.last)
		}
	}
}
