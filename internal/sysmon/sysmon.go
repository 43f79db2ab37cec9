// SPDX-License-Identifier: Apache-2.0

package sysmon

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
)

// slackNS is how much later than it asked for the monitor wakes up, at most.
const slackNS = 5_000_000

var calm struct {
	sync.Mutex
	users  int
	file   string // of the thread's timer slack; "" if it was not changed
	before []byte
}

// Calm lets the monitor wake up late, and gives Go places for so many more threads that wait
// in the kernel, until every caller has called what it got. It takes the right to change how
// another thread is scheduled (CAP_SYS_NICE, proc_pid_timerslack_ns(5)); without it, or where
// the thread is not found, the monitor stays as it is.
func Calm(waiting int) (restore func()) {
	calm.Lock()
	defer calm.Unlock()
	if calm.users++; calm.users == 1 {
		calm.file, calm.before = slow()
	}
	places(waiting)
	return sync.OnceFunc(func() {
		calm.Lock()
		defer calm.Unlock()
		if calm.users--; calm.users == 0 && calm.file != "" {
			_ = os.WriteFile(calm.file, calm.before, 0)
		}
		places(-waiting)
	})
}

func places(more int) {
	if more != 0 {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0)+more, 1))
	}
}

// slow changes the slack of the monitor's timers, and returns where and what it was.
func slow() (file string, before []byte) {
	tid := thread()
	if tid == "" {
		return "", nil
	}
	file = filepath.Join("/proc", tid, "timerslack_ns")
	before, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, strconv.AppendInt(nil, slackNS, 10), 0) != nil {
		return "", nil
	}
	return file, before
}

// thread returns the monitor's thread id, "" if it is not known. The kernel lists threads in
// the order in which they were made, and the monitor is the first that runtime.main makes.
func thread() string {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return ""
	}
	defer dir.Close()
	const monitor = 1
	ids, _ := dir.Readdirnames(monitor + 1)
	if len(ids) <= monitor || ids[0] != strconv.Itoa(os.Getpid()) {
		return ""
	}
	return ids[monitor]
}
