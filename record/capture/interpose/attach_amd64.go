// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/internal/bpf"
)

// What runs already gets our code while all its threads stand still. One of them makes the calls that map it
// (remote_amd64.go). Then each gets its slot, and its Syscall User Dispatch from the tracer. Where that is not
// possible, or in doubt, nothing is changed, and the calls of the process all stop.

// sudConfig is struct ptrace_sud_config (linux/ptrace.h, Linux 6.4).
type sudConfig struct {
	mode, selector, offset, bytes uint64
}

const (
	ptraceSetDispatch = 0x4210 // PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG
	ptraceGetDispatch = 0x4211
)

func dispatchConfig(tid int) (c sudConfig, err error) {
	err = ptraceCall(ptraceGetDispatch, tid, unsafe.Sizeof(c), unsafe.Pointer(&c))
	return c, err
}

func setDispatch(tid int, d dispatch) error {
	c := sudConfig{}
	if d.bytes != 0 {
		c = sudConfig{unix.PR_SYS_DISPATCH_ON, d.selector, d.from, d.bytes}
	}
	return ptraceCall(ptraceSetDispatch, tid, unsafe.Sizeof(c), unsafe.Pointer(&c))
}

// enterAll puts our code into all processes that are followed.
func (s *session) enterAll() {
	processes := map[int][]*thread{}
	s.rec.Engine().Threads(func(t *ptracer.Tracee) {
		processes[t.PID] = append(processes[t.PID], s.of(t))
	})
	for pid, threads := range processes {
		if err := s.enterProcess(pid, threads); err != nil {
			if !errors.Is(err, errGone) {
				s.refused[err.Error()]++
			}
			for _, th := range threads {
				th.t.EveryCall = true
			}
		}
	}
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
}

// enterProcess puts our code into one.
func (s *session) enterProcess(pid int, threads []*thread) error {
	if frozen(pid) {
		return errors.New("its control group is frozen")
	}
	caller, err := enterable(pid, threads)
	if err != nil {
		return err
	}
	sp, err := openSpace(pid)
	if err != nil {
		return fmt.Errorf("its memory cannot be opened: %w", err)
	}
	maps := sp.mappings()
	r, err := s.remote(sp, caller.t, maps)
	if err != nil {
		sp.release()
		return err
	}
	if err := s.mapInto(r, maps); err != nil {
		s.takeBack(r)
		_ = r.end()
		sp.release()
		return err
	}
	s.prepare(caller, sp, r.mask)
	if caller.slot == nil {
		s.takeBack(r)
		_ = r.end()
		s.finish(caller)
		return errors.New("it has no room for its threads")
	}
	caller.slot.Inherited = caller.slot.Blocked
	for _, th := range threads {
		if th != caller && th.t.Where() != ptracer.AtEnd {
			s.join(th, caller)
		}
	}
	r.saved.Gs_base = sp.arena.slotAddr(caller.index)
	switch err := s.change(r, caller, threads); {
	case errors.Is(err, errGone):
		return nil // the loop is told
	case err != nil:
		s.leaveProcess(r, sp, threads)
		return err
	}
	for _, m := range maps {
		if m.perms == "r-xp" && m.ino != 0 {
			s.addRegion(caller, &m)
		}
	}
	return nil
}

// change has the calls of all threads lead to our code.
func (s *session) change(r *remote, caller *thread, threads []*thread) error {
	actions, err := s.actionsOf(r, caller)
	for _, th := range threads {
		if th.space == r.sp && th != caller {
			th.findSlot()
		}
		if err == nil && th.slot != nil {
			err = s.dispatches(th)
		}
	}
	if err != nil {
		return err
	}
	return s.commit(r, caller, actions, threads)
}

// commit changes what the program can see of us, the actions of signals and the masks of threads, and has our code
// answer its questions about them from then on. If the recorder is killed in between, what it has changed stays: all
// else is done before or after.
func (s *session) commit(r *remote, caller *thread, actions []signalAction, threads []*thread) error {
	for _, a := range actions {
		if err := r.setAction(caller, a.sig, a.to); err != nil {
			return err
		}
	}
	for _, th := range threads {
		if th.slot == nil {
			continue
		}
		th.slot.Open = r.sp.addr(s.code.common)
		th.slot.Entry = th.slot.Open
		if th == caller {
			continue // its calls are not the program's until its end
		}
		if th.slot.Blocked != 0 {
			if mask, err := signalMask(th.t.TID); err == nil {
				_ = setSignalMask(th.t.TID, mask&^signalBit(unix.SIGSYS))
			}
		}
		th.selects(selectBlock)
	}
	r.mask &^= signalBit(unix.SIGSYS)
	if err := r.end(); err != nil {
		return err
	}
	caller.selects(selectBlock)
	return nil
}

var errWaits = errors.New("a signal SIGSYS waits for it")

// enterable returns a thread that can make calls for the recorder, or why our code cannot be put into its process.
func enterable(pid int, threads []*thread) (caller *thread, err error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil, errGone
	}
	switch {
	case statusNumber(status, "Seccomp:", 10) != 0:
		return nil, errors.New("calls are forbidden to it (seccomp)")
	case statusNumber(status, "ShdPnd:", 16)&signalBit(unix.SIGSYS) != 0:
		return nil, errWaits
	}
	if parent := int(statusNumber(status, "PPid:", 10)); parent > 0 && (shares(pid, parent, kcmpVM) ||
		shares(pid, parent, kcmpFiles)) {
		return nil, errors.New("it shares its memory or its descriptors with another process")
	}
	for _, th := range threads {
		tid := th.t.TID
		switch th.t.Where() {
		case ptracer.AtEnd:
			continue
		case ptracer.Running, ptracer.Elsewhere, ptracer.AtEntry:
			return nil, errors.New("a thread of it could not be stopped where that is possible")
		}
		own, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
		if statusNumber(own, "SigPnd:", 16)&signalBit(unix.SIGSYS) != 0 {
			return nil, errWaits
		}
		var regs unix.PtraceRegs
		if unix.PtraceGetRegs(tid, &regs) != nil {
			return nil, errGone
		}
		if err := injectable(&regs); err != nil {
			return nil, err
		}
		switch c, err := dispatchConfig(tid); {
		case err != nil:
			return nil, fmt.Errorf("the kernel cannot set Syscall User Dispatch for what runs already "+
				"(Linux 6.4 can): %w", err)
		case c.mode != unix.PR_SYS_DISPATCH_OFF:
			return nil, errors.New("it uses Syscall User Dispatch")
		}
		if tid != pid && !shares(pid, tid, kcmpFiles) {
			return nil, errors.New("its threads do not share their descriptors")
		}
		if caller == nil || th.t.Where() == ptracer.Resting {
			caller = th
		}
	}
	if caller == nil {
		return nil, errGone
	}
	return caller, nil
}

// frozen reports whether the control group of a process is frozen (cgroup.freeze). Its threads make no calls for us.
func frozen(pid int) bool {
	root, err := bpf.CgroupRoot()
	if err != nil {
		return false
	}
	for group := running.CgroupOf(pid); len(group) > 1; group = filepath.Dir(group) {
		b, _ := os.ReadFile(filepath.Join(root, group, "cgroup.freeze")) // the root has none
		if bytes.HasPrefix(b, []byte("1")) {
			return true
		}
	}
	return false
}

// What kcmp(2) compares.
const (
	kcmpVM    = 1
	kcmpFiles = 2
)

// shares reports whether two threads share something.
func shares(a, b, what int) bool {
	r, _, e := unix.RawSyscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), uintptr(what), 0, 0, 0)
	return e == 0 && r == 0
}

// statusNumber returns a number of /proc/PID/status.
func statusNumber(status []byte, name string, base int) uint64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(rest)), base, 64)
			return n
		}
	}
	return 0
}

// mapInto maps the arena and the code, as the loader does (inproc/entry.S). What it has mapped is in the space.
func (s *session) mapInto(r *remote, maps []mapping) error {
	sp, c := r.sp, s.code
	refused := func(err error) error { return fmt.Errorf("it may not make and map shared memory: %w", err) }
	fd, err := r.call(unix.SYS_MEMFD_CREATE, r.at+c.remoteName-c.remote, unix.MFD_CLOEXEC)
	if err != nil {
		return refused(err)
	}
	base, err := r.call(unix.SYS_MMAP, place(maps), uint64(arenaBytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED, uint64(fd), 0)
	var a *arena
	if err == nil {
		if a, err = s.share(r.t.PID, int(fd)); err != nil {
			a = &arena{refs: 1} // to be taken back
		}
		a.base = uint64(base)
		sp.arena = a
	}
	if _, closed := r.call(unix.SYS_CLOSE, uint64(fd)); err == nil {
		err = closed
	}
	if err != nil {
		return refused(err)
	}
	const fixed = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED
	const code = unix.PROT_READ | unix.PROT_EXEC
	if _, err := r.call(unix.SYS_MMAP, a.base, codeBytes, code, fixed, ^uint64(0)); err != nil {
		return refused(err)
	}
	if _, err := r.call(unix.SYS_MPROTECT, a.base+codeBytes, uint64(controlBytes), unix.PROT_READ); err != nil {
		return refused(err)
	}
	if _, err := r.call(unix.SYS_MADVISE, a.base, uint64(arenaBytes), unix.MADV_DONTDUMP); err != nil {
		return refused(err)
	}
	if !sp.write(c.text, a.base) {
		return errors.New("memory of its own cannot be written")
	}
	sp.stubs = []stubPage{{addr: a.base + stubsAt, size: codeBytes - stubsAt}}
	if want := sp.placeOfStubs(maps); want != 0 {
		const free = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
		at, err := r.call(unix.SYS_MMAP, want, stubPageBytes, unix.PROT_READ|unix.PROT_EXEC, free, ^uint64(0))
		if errors.Is(err, errGone) {
			return err
		}
		if err == nil {
			sp.stubs = append(sp.stubs, stubPage{addr: uint64(at), size: stubPageBytes})
		}
	}
	return nil
}

// takeBack unmaps what mapInto has mapped.
func (s *session) takeBack(r *remote) {
	if len(r.sp.stubs) > 1 {
		_, _ = r.call(unix.SYS_MUNMAP, r.sp.stubs[1].addr, stubPageBytes)
	}
	if r.sp.arena != nil {
		_, _ = r.call(unix.SYS_MUNMAP, r.sp.arena.base, uint64(arenaBytes))
	}
}

// join gives a thread its part of the space that another has.
func (s *session) join(th, caller *thread) {
	th.space, th.files = caller.space, caller.files
	th.space.users++
	if th.files != nil {
		th.files.users++
		atomic.StoreUint64(&th.files.of().Shared, 1)
	}
	s.takeSlot(th)
	if th.slot == nil {
		th.t.EveryCall = true
		return
	}
	raw := th.space.addr(s.code.raw)
	th.slot.Entry, th.slot.Open = raw, raw // until it is told of calls
	if mask, err := signalMask(th.t.TID); err == nil {
		th.slot.Blocked = mask >> (unix.SIGSYS - 1) & 1
		th.slot.Inherited = th.slot.Blocked
	}
}

// signalAction is what is to be done at a signal, as rt_sigaction(2) takes it.
type signalAction struct {
	sig unix.Signal
	to  [4]uint64
}

// actionsOf returns what is to change of the actions of a process: the handler of SIGSYS becomes ours, and no handler
// blocks it. The program's are kept for its questions.
func (s *session) actionsOf(r *remote, caller *thread) (changes []signalAction, err error) {
	sp, f := r.sp, caller.files.of()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(sp.pid) + "/status")
	if err != nil {
		return nil, errGone
	}
	for sig := unix.Signal(1); sig <= 64; sig++ {
		if sig == unix.SIGSYS || statusNumber(status, "SigCgt:", 16)&signalBit(sig) == 0 {
			continue
		}
		a, err := r.action(caller, sig)
		if err != nil {
			return nil, err
		}
		if a[3]&signalBit(unix.SIGSYS) != 0 {
			f.Masking |= signalBit(sig)
			a[3] &^= signalBit(unix.SIGSYS)
			changes = append(changes, signalAction{sig, a})
		}
	}
	if f.Action, err = r.action(caller, unix.SIGSYS); err != nil {
		return nil, err
	}
	const sigInfo, restorer, onStack, noDefer = 4, 0x04000000, 0x08000000, 0x40000000
	return append(changes, signalAction{unix.SIGSYS, [4]uint64{sp.addr(s.code.orphan),
		sigInfo | restorer | onStack | noDefer, sp.addr(s.code.restorer), ^signalBit(unix.SIGSYS)}}), nil
}

// findSlot has a thread find its slot at the base of gs.
func (th *thread) findSlot() {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(th.t.TID, &regs) != nil {
		return // it ended
	}
	if regs.Gs_base = th.space.arena.slotAddr(noThread); th.slot != nil {
		regs.Gs_base = th.space.arena.slotAddr(th.index)
	}
	_ = unix.PtraceSetRegs(th.t.TID, &regs)
}

// dispatches sets a thread's Syscall User Dispatch, which lets all its calls through until its selector says no.
func (s *session) dispatches(th *thread) error {
	th.selects(selectAllow)
	if err := setDispatch(th.t.TID, s.dispatchOf(th)); err != nil && !errors.Is(err, unix.ESRCH) {
		return errRefused
	}
	th.armed = true
	return nil
}
