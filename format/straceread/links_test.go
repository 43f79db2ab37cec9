// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"testing"

	"github.com/iotape/iotape/event"
)

// TestBothNames: -y says how the kernel calls a file. The tape has that name and the one that the call was given.
func TestBothNames(t *testing.T) {
	tape := importedText(t, `10 openat(AT_FDCWD</w>, "/lib/c.so.6", O_RDONLY|O_CLOEXEC) = 3</usr/lib/c-2.36.so>
10 openat(AT_FDCWD</w>, "/lib/b", O_RDONLY) = 4</usr/lib/b>
10 openat(AT_FDCWD</w>, "/lib/c.so.6", O_RDONLY) = 5</usr/lib/c-2.36.so>
10 openat(AT_FDCWD</w>, "l/x/y", O_RDONLY) = 6</w/real/x/y>
10 open("/w/q", O_RDONLY) = 7</w/q>
10 open("/proc/self/maps", O_RDONLY) = 8</proc/10/maps>
10 open("/w/../a", O_RDONLY) = 9</a>
10 openat(4</usr/lib/b>, "d", O_RDONLY) = 10</usr/lib/b/d>
10 open("/var/\303\244", O_RDONLY) = 11</mnt/\303\244>
10 chroot("/jail") = 0
10 open("/etc/passwd", O_RDONLY) = 12</jail/etc/passwd>
`)
	want := [][2]string{
		{"/lib/c.so.6", "/usr/lib/c-2.36.so"}, {"/lib/b", "/usr/lib/b"}, {"/lib/c.so.6", "/usr/lib/c-2.36.so"},
		{"/w/l/x/y", "/w/real/x/y"}, {"/w/q", ""}, {"/proc/self/maps", ""}, {"/a", ""}, {"/lib/b/d", "/usr/lib/b/d"},
		{"/var/\303\244", "/mnt/\303\244"}, {"/jail/etc/passwd", ""},
	}
	n := 0
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call || ev.FileArg(event.ResultArg) == nil {
			continue
		}
		if n == len(want) {
			t.Fatalf("more opens than %d", n)
		}
		f := ev.FileArg(event.ResultArg)
		if got := [2]string{f.Path, f.Real}; got != want[n] {
			t.Errorf("open %d: %q, want %q", n+1, got, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d opens, want %d", n, len(want))
	}
}
