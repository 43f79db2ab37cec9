// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
)

// Follow puts a value into a thread's storage, unless it has one: programs follow a thread
// that has a Task.
func Follow(m *ebpf.Map, tid int, value any) error {
	fd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := m.Update(uint32(fd), value, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return err
	}
	return nil
}

// CountFollowed returns how many threads are followed, which a program counts in shared
// memory.
func CountFollowed(counter *ebpf.Program, followed *uint64) (uint64, error) {
	l, err := link.AttachIter(link.IterOptions{Program: counter})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	r, err := l.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	atomic.StoreUint64(followed, 0)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, err
	}
	return atomic.LoadUint64(followed), nil
}

// OwnProcesses returns the recorder's processes.
func OwnProcesses() []int { return running.Tree([]int{os.Getpid()}) }

// Targets returns the processes that run and are to be recorded now.
func Targets(o *capture.Options) []int {
	var list []int
	switch {
	case o.All:
		list = running.All()
	case o.Cgroup != "":
		list = running.InCgroup(o.Cgroup)
	default:
		list = running.Tree(o.PIDs)
	}
	own := OwnProcesses()
	return slices.DeleteFunc(list, func(pid int) bool { return slices.Contains(own, pid) })
}

// CgroupID returns the kernel's number of a version 2 control group, which is that of
// its directory.
func CgroupID(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, &os.PathError{Op: "look at control group", Path: dir, Err: err}
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return 0, fmt.Errorf("%s is not a control group of version 2", dir)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, &os.PathError{Op: "look at control group", Path: dir, Err: err}
	}
	return st.Ino, nil
}

// Now reads CLOCK_MONOTONIC in ns.
func Now() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
