// SPDX-License-Identifier: Apache-2.0

package asyncio

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// What goes in comes out again, by either interface, and errors are errors.
func TestQueues(t *testing.T) {
	ring, err := NewRing()
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	aio, err := NewAIO()
	if err != nil {
		t.Fatal(err)
	}
	defer aio.Close()
	for _, c := range []struct {
		name               string
		do                 func(*Request) (int64, syscall.Errno)
		read, write, fsync uint8
	}{
		{"io_uring", ring.Do, RingRead, RingWrite, RingFsync},
		{"aio", aio.Do, AIORead, AIOWrite, AIOFsync},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for round := range 20 {
				out, in := []byte{byte(round), 'b', 'c'}, make([]byte, 10)
				fd := int32(f.Fd())
				if n, errno := c.do(&Request{Op: c.write, FD: fd, Addr: uint64(uintptr(unsafe.Pointer(&out[0]))),
					Len: 3, Off: 7}); n != 3 || errno != 0 {
					t.Fatalf("write: %d %v", n, errno)
				}
				if n, errno := c.do(&Request{Op: c.fsync, FD: fd}); n != 0 || errno != 0 {
					t.Fatalf("fsync: %d %v", n, errno)
				}
				if n, errno := c.do(&Request{Op: c.read, FD: fd, Addr: uint64(uintptr(unsafe.Pointer(&in[0]))), Len: 10,
					Off: 7}); n != 3 || errno != 0 || in[0] != byte(round) || in[2] != 'c' {
					t.Fatalf("read: %d %v %q", n, errno, in)
				}
				runtime.KeepAlive(out)
				if _, errno := c.do(&Request{Op: c.read, FD: 1 << 20, Addr: uint64(uintptr(unsafe.Pointer(&in[0]))),
					Len: 1}); errno != syscall.EBADF {
					t.Fatalf("read of nothing: %v", errno)
				}
			}
		})
	}
}
