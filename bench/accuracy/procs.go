// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of what its commands leave behind, such as a
// database's server: so sweep finds it.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// sweep ends everything that this process has started, but the storage systems.
func (s *study) sweep() {
	var keep []int
	for _, m := range s.stores {
		if m.server != nil {
			keep = append(keep, m.server.Process.Pid)
		}
	}
	deadline := time.Now().Add(3 * time.Second)
	sig := syscall.SIGTERM
	for first := true; ; first = false {
		left := descendants(os.Getpid(), keep)
		for _, pid := range left {
			if first || sig == syscall.SIGKILL {
				_ = syscall.Kill(pid, sig)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // ECHILD: of another parent
		}
		switch {
		case len(left) == 0, time.Now().After(deadline.Add(5 * time.Second)):
			return
		case time.Now().After(deadline):
			sig = syscall.SIGKILL
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// descendants lists the processes that descend from one, without those to keep.
func descendants(of int, keep []int) (pids []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PPID: the name may have anything in it.
		rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(rest) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(rest[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var below func(pid int)
	below = func(pid int) {
		for _, c := range children[pid] {
			if !slices.Contains(keep, c) {
				pids = append(pids, c)
				below(c)
			}
		}
	}
	below(of)
	return pids
}

// end stops a storage system's server, which unmounts what it showed, after 3 s also if
// somebody is still there.
func end(server *exec.Cmd, dir string) error {
	_ = server.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(20*time.Second, func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = server.Process.Kill()
	})
	defer late.Stop()
	return server.Wait()
}
