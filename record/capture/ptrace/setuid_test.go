// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestLacking: only a process that has not got the rights of its program's file lacks them.
func TestLacking(t *testing.T) {
	const status = "Name:\tx\nUid:\t1000\t4000000000\t1000\t1000\nGid:\t1000\t1001\t1000\t1000\n"
	for _, c := range []struct {
		st   unix.Stat_t
		want string
	}{
		{unix.Stat_t{Mode: 0o755}, ""},
		{unix.Stat_t{Mode: unix.S_ISUID | 0o755}, "root"},
		{unix.Stat_t{Mode: unix.S_ISUID | 0o755, Uid: 4000000000}, ""},
		{unix.Stat_t{Mode: unix.S_ISUID | 0o755, Uid: 4000000001}, "user 4000000001"},
		{unix.Stat_t{Mode: unix.S_ISGID | 0o755, Gid: 1001}, ""},
		{unix.Stat_t{Mode: unix.S_ISGID | 0o755, Gid: 4000000002}, "group 4000000002"},
		{unix.Stat_t{Mode: unix.S_ISGID | 0o745, Gid: 4000000002}, ""}, // mandatory locks
	} {
		if got := lacking([]byte(status), &c.st); got != c.want {
			t.Errorf("a file of mode %o, user %d, group %d: %q, want %q", c.st.Mode, c.st.Uid, c.st.Gid, got, c.want)
		}
	}
}
