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

// Lister has programs follow threads that user space has no descriptor of: Program, at each
// thread, follows those that are in Listed.
type Lister struct {
	Listed  *ebpf.Map
	Program *ebpf.Program
}

// Follow makes a thread a followed one, unless it is: it puts a Task into its storage.
func (l *Lister) Follow(tasks *ebpf.Map, tid int, task Task) error {
	err := Follow(tasks, tid, task)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := l.Listed.Put(uint32(tid), task); err != nil {
		return err
	}
	defer l.Listed.Delete(uint32(tid))
	return runIterator(l.Program)
}

// openThread opens a descriptor of a thread: EINVAL if the kernel has none of threads that are
// not the first of their process (PIDFD_THREAD, Linux 6.9).
func openThread(tid int) (int, error) {
	if !doWithout("PIDFD_THREAD") {
		fd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
		if !errors.Is(err, unix.EINVAL) {
			return fd, err
		}
	}
	fd, err := unix.PidfdOpen(tid, 0)
	if errors.Is(err, unix.ENOENT) { // newer kernels' word for it
		err = unix.EINVAL
	}
	return fd, err
}

// Follow puts a value into a thread's storage, unless it has one. It returns EINVAL where the
// kernel has no descriptors of threads, and this is not the first of its process.
func Follow(m *ebpf.Map, tid int, value any) error {
	fd, err := openThread(tid)
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
	atomic.StoreUint64(followed, 0)
	if err := runIterator(counter); err != nil {
		return 0, err
	}
	return atomic.LoadUint64(followed), nil
}

// runIterator runs a program at each thread.
func runIterator(program *ebpf.Program) error {
	l, err := link.AttachIter(link.IterOptions{Program: program})
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := l.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
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
