// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/account"
	"github.com/iotape/iotape/record/capture/running"
)

// unprivileged notes programs whose files give rights that the kernel denies them, because a process without
// CAP_SYS_PTRACE traces them. Each is told once.
type unprivileged map[string]bool

// mostUnprivileged is how many programs are told.
const mostUnprivileged = 100

// executed looks whether the program that a process has begun lacks rights, and returns what there is to say, "" for
// nothing.
func (u *unprivileged) executed(pid int) string {
	if os.Geteuid() == 0 || len(*u) >= mostUnprivileged {
		return ""
	}
	var st unix.Stat_t
	dir := "/proc/" + strconv.Itoa(pid)
	if unix.Stat(dir+"/exe", &st) != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
		return ""
	}
	name, err := os.Readlink(dir + "/exe")
	if err != nil || (*u)[name] {
		return ""
	}
	status, _ := os.ReadFile(dir + "/status")
	what := lacking(status, &st)
	if what == "" {
		return ""
	}
	if *u == nil {
		*u = unprivileged{}
	}
	(*u)[name] = true
	return fmt.Sprintf("%s runs without the rights of %s that its file gives, since an ordinary user records it: "+
		"record as root", name, what)
}

// lacking returns whose rights a file gives that a process with a status does not have.
func lacking(status []byte, st *unix.Stat_t) string {
	const executableByGroup = 0o010 // else the bit is one of file locks
	switch {
	case st.Mode&unix.S_ISUID != 0 && effective(status, "Uid:") != strconv.FormatUint(uint64(st.Uid), 10):
		return account.UserText(st.Uid)
	case st.Mode&unix.S_ISGID != 0 && st.Mode&executableByGroup != 0 &&
		effective(status, "Gid:") != strconv.FormatUint(uint64(st.Gid), 10):
		return account.GroupText(st.Gid)
	}
	return ""
}

// effective returns the second of the numbers in a line of /proc/PID/status, the effective one.
func effective(status []byte, name string) string {
	if f := bytes.Fields(running.Field(status, name)); len(f) > 1 {
		return string(f[1])
	}
	return ""
}
