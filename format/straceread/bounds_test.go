// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestBounds: what a hostile line has a million of becomes a tape that can be read, or
// is counted.
func TestBounds(t *testing.T) {
	const many = 300_000
	for name, text := range map[string]string{
		"iovec":     "1 writev(1, [" + strings.Repeat(`{iov_base="x"..., iov_len=9}, `, many/3) + "], 5) = 1000000\n",
		"values":    "1 getpid(" + strings.Repeat("1,", 1<<20) + ") = 1\n1 getpid() = 1\n",
		"depth":     "1 getpid(" + strings.Repeat("{[", 1<<16) + "\n1 getpid() = 1\n",
		"processes": strings.Repeat("1 openat(3, \"a\", O_RDONLY) = 3\n1 fork() = 2\n2 +++ exited with 0 +++\n", many/100),
		"fds":       "1 recvmsg(1, {msg_name=NULL, msg_namelen=0, msg_iov=[], msg_iovlen=0, msg_control=[{cmsg_len=16, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[" + strings.Repeat("1, ", many) + "]}], msg_controllen=9999999, msg_flags=0}, 0) = 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			tape := importedText(t, text)
			calls := 0
			for ev, err := range tape.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Kind == event.Call {
					calls++
				}
				for i := range ev.Bufs {
					if _, _, err := tape.ContentZero(&ev.Bufs[i], nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if calls == 0 {
				t.Error("no calls")
			}
		})
	}
}
