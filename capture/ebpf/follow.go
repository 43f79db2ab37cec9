package ebpf

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"iotape/capture"
	"iotape/capture/running"
	"iotape/internal/ptracer"
)

// taskJoined is a flag of a followed thread (bpf/record.h).
const (
	taskJoined   = 1 << 8
	taskExcluded = 1 << 9
)

// countPause is the least time between two counts of the followed threads.
const countPause = 100 * time.Millisecond

// follower makes threads followed ones: by the programs, and, where threads are held
// rather than records lost, by the tracer.
type follower struct {
	p  *programs
	d  *drain
	o  *capture.Options
	c  *config
	tr *ptracer.Tracer

	guardian *guardian

	state   running.State
	known   map[int]bool // threads that were followed because they were found
	unheld  int          // of these, that cannot be held
	why     string       // the first of them
	counted time.Time
}

// command is the tracer's gate: the process is about to become the command.
func (f *follower) command(pid int) error {
	if err := f.watch(); err != nil {
		return err
	}
	f.d.begin(running.AppendCommand(nil, pid, now()))
	if err := f.p.follow(pid, f.task(pid, 0)); err != nil {
		return err
	}
	f.started(pid)
	return nil
}

// watch prepares the tracing thread, which calls it: it is in a hurry from now on, and
// if it may hold threads a guardian watches over it.
func (f *follower) watch() (err error) {
	if f.c.block {
		f.guardian, err = startGuardian(f.p.Holding)
	}
	hurry()
	return err
}

// dismiss ends what watch began.
func (f *follower) dismiss() {
	if f.guardian != nil {
		f.guardian.stop()
	}
}

func (f *follower) started(pid int) {
	if f.o.Started != nil {
		f.o.Started(pid)
	}
}

func (f *follower) task(tid int, flags uint32) iotapeTask {
	return iotapeTask{Shard: uint32(tid) & uint32(f.c.shards-1), Flags: flags, Enter: now()}
}

// attach follows what runs already. It is called on the tracing thread.
func (f *follower) attach() error {
	if err := f.watch(); err != nil {
		return err
	}
	f.known = map[int]bool{}
	f.d.describing.Store(now())
	f.find()
	if len(f.known) == 0 {
		return fmt.Errorf("record process %v: %w", f.o.PIDs, os.ErrProcessDone)
	}
	f.d.begin(f.state.AppendChanges(nil, now()))
	f.d.describing.Store(0)
	if f.unheld > 0 {
		f.note(fmt.Sprintf("%d threads are recorded without being held when the recorder falls behind; what that loses is counted (%s)", f.unheld, f.why))
	}
	f.started(0)
	return nil
}

func (f *follower) note(line string) {
	if f.o.Note != nil {
		f.o.Note(line)
	}
}

// find follows the threads of all processes that are to be recorded, again and again
// until none is new: those that are not followed yet may make others. From then on
// the programs and the kernel's tracing follow what threads make.
func (f *follower) find() {
	for {
		at := now()
		processes := f.strangers()
		if len(processes) == 0 {
			return
		}
		f.d.begin(f.state.Append(nil, at, processes))
		for _, p := range processes {
			for _, tid := range p.Threads {
				f.known[tid] = true
				f.join(p.PID, tid)
			}
		}
	}
}

// strangers returns the threads that are not followed yet.
func (f *follower) strangers() []running.Process {
	var list []running.Process
	for _, pid := range f.processes() {
		p := running.Process{PID: pid}
		for _, tid := range running.Threads(pid) {
			if !f.known[tid] {
				p.Threads = append(p.Threads, tid)
			}
		}
		if len(p.Threads) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// processes returns those that are to be recorded now.
func (f *follower) processes() []int {
	var list []int
	for _, pid := range running.Tree(f.o.PIDs) {
		if pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// join follows a thread. One that has ended is no error.
func (f *follower) join(pid, tid int) {
	if err := f.p.follow(tid, f.task(tid, taskJoined)); err != nil || !f.c.block {
		return
	}
	err := f.tr.Seize(pid, tid)
	if err == nil || unix.Tgkill(pid, tid, 0) != nil {
		return
	}
	if f.unheld++; f.why == "" {
		f.why = err.Error()
	}
}

// idle reports whether nothing is left to record.
func (f *follower) idle() bool {
	if time.Since(f.counted) < countPause {
		return false
	}
	f.counted = time.Now()
	n, err := f.p.countFollowed()
	return err == nil && n == 0
}

// leaving makes the programs record nothing more, and waits until the threads that
// they told to stop have come to it: nobody would let them go on later.
func (f *follower) leaving() {
	const patience = 2 * time.Second
	f.p.release()
	for began, quiet := time.Now(), 0; quiet < 2 && time.Since(began) < patience; {
		time.Sleep(2 * time.Millisecond)
		if f.d.hooksRun() || f.stopping() {
			quiet = 0
		} else {
			quiet++
		}
	}
}

// stopping reports whether a followed thread has yet to come to a stop.
func (f *follower) stopping() bool {
	tids := make(chan []int, 1)
	f.tr.Do(func() {
		var list []int
		f.tr.Threads(func(t *ptracer.Tracee) { list = append(list, t.TID) })
		tids <- list
	})
	select {
	case list := <-tids:
		for _, tid := range list {
			if stopPending(tid) {
				return true
			}
		}
	case <-time.After(time.Second): // it has ended
	}
	return false
}

// stopPending reports whether a thread has a SIGSTOP of its own to take.
func stopPending(tid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return false
	}
	set, _ := strconv.ParseUint(string(running.Field(status, "SigPnd:")), 16, 64)
	return set>>(unix.SIGSTOP-1)&1 != 0
}

// hooksRun reports whether a program is at work.
func (d *drain) hooksRun() bool {
	for i := range d.p.shared.Cpus {
		if atomic.LoadUint64(&d.p.shared.Cpus[i].Active) != 0 {
			return true
		}
	}
	return false
}
