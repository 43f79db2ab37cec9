// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inject puts our code into a program that has just been executed, before its first
// instruction. If that fails the program is left as it was, and its calls all stop.
func (s *session) inject(th *thread) {
	sp, maps, err := s.load(th)
	if err != nil {
		if !errors.Is(err, errGone) {
			s.refused[err.Error()]++
			th.t.EveryCall = true
		}
		return
	}
	th.space, th.files = sp, sp.newFiles()
	s.takeSlot(th)
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(th.t.TID, &regs) != nil {
		return
	}
	s.arm(th, &regs)
	if sp.gone {
		return
	}
	for _, m := range maps {
		if m.perms == "r-xp" && m.ino != 0 {
			s.addRegion(th, &m)
		}
	}
}

var errGone = errors.New("the thread ended")

// load maps the arena and the code into a program, by making it execute a few calls.
func (s *session) load(th *thread) (sp *space, maps []mapping, err error) {
	tid := th.t.TID
	if th.confined {
		return nil, nil, errors.New("calls are forbidden to it (seccomp)")
	}
	var saved, regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &saved); err != nil {
		return nil, nil, errGone
	}
	if err := injectable(&saved); err != nil {
		return nil, nil, err
	}
	if sp, err = openSpace(th.t.PID); err != nil {
		return nil, nil, fmt.Errorf("its memory cannot be opened: %w", err)
	}
	defer func() {
		if err != nil && sp != nil {
			sp.release()
			sp = nil
		}
	}()
	mask, err := signalMask(tid)
	if err != nil {
		return sp, maps, errGone
	}
	maps = sp.mappings()
	loader := s.code.text[s.code.loader:s.code.loaderEnd]
	was := make([]byte, len(loader))
	if !sp.read(was, saved.Rip) || !sp.write(loader, saved.Rip) {
		return sp, maps, errors.New("its code cannot be written")
	}
	_ = setSignalMask(tid, ^uint64(0))
	defer func() {
		if !sp.write(was, saved.Rip) && err == nil {
			err = errGone
		}
		_ = unix.PtraceSetRegs(tid, &saved)
		_ = setSignalMask(tid, mask)
	}()

	regs = saved
	regs.Orig_rax = ^uint64(0)
	regs.R12, regs.R13, regs.R14 = uint64(arenaBytes), codeBytes, uint64(controlBytes)
	fd, err := s.step(th, &regs)
	if err != nil {
		return sp, maps, err
	}
	if fd < 0 {
		return sp, maps, fmt.Errorf("it may not make shared memory: %w", unix.Errno(-fd))
	}
	if sp.arena, err = s.share(th.t.PID, int(fd)); err != nil {
		return sp, maps, err
	}
	regs.R15, regs.Rbx = uint64(fd), place(maps)
	base, err := s.step(th, &regs)
	if err != nil {
		return sp, maps, err
	}
	if base < 0 && base > -4096 {
		return sp, maps, fmt.Errorf("it may not map shared memory: %w", unix.Errno(-base))
	}
	sp.arena.base = uint64(base)
	if !sp.write(s.code.text, uint64(base)) {
		return sp, maps, errors.New("memory of its own cannot be written")
	}
	sp.stubs = []stubPage{{addr: uint64(base) + stubsAt, size: codeBytes - stubsAt}}
	sp.startStubs(&sp.stubs[0], s.code.common)
	c := sp.arena.control()
	c.Selector, c.Lo, c.Hi = 1, uint64(base), uint64(base)+uint64(arenaBytes)
	if s.o.Sizes {
		c.Sizes = 1
	}
	s.tables.write(c)
	s.mu.Lock()
	c.publish(s.timer.renew())
	s.mu.Unlock()
	return sp, maps, nil
}

// injectable reports why our code cannot run in a program.
func injectable(regs *unix.PtraceRegs) error {
	const cs64 = 0x33
	if regs.Cs != cs64 {
		return errors.New("it is a 32-bit program")
	}
	if regs.Gs_base != 0 {
		return errors.New("it uses the register GS")
	}
	return nil
}

// place returns where the arena should be: far enough below what is mapped at the top that
// the program gets the addresses that it would have got, near enough for our jumps. 0 if it
// does not matter.
func place(maps []mapping) uint64 {
	const (
		top      = 0x7000_0000_0000 // above it, libraries and stacks
		distance = 1 << 30
	)
	for _, m := range maps {
		if m.start > top+distance+uint64(arenaBytes) {
			return m.start - distance - uint64(arenaBytes)
		}
	}
	return 0
}

// step sets a thread's registers, lets it run to its next breakpoint, and returns the result
// of the call before it.
func (s *session) step(th *thread, regs *unix.PtraceRegs) (int64, error) {
	if unix.PtraceSetRegs(th.t.TID, regs) != nil || !th.t.RunToTrap() || unix.PtraceGetRegs(th.t.TID, regs) != nil {
		return 0, errGone
	}
	return int64(regs.Rax), nil
}

// share maps the memory file that a process has as a descriptor.
func (s *session) share(pid, theirs int) (*arena, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be opened: %w", pid, err)
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, theirs, 0)
	if err != nil {
		return nil, fmt.Errorf("a descriptor of process %d cannot be copied: %w", pid, err)
	}
	defer unix.Close(fd)
	return mapArena(fd)
}

// makeCall makes a stopped thread do a system call of ours.
func (s *session) makeCall(th *thread, nr uint64, args ...uint64) (int64, error) {
	tid := th.t.TID
	var saved unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &saved) != nil {
		return 0, errGone
	}
	mask, err := signalMask(tid)
	if err != nil {
		return 0, errGone
	}
	_ = setSignalMask(tid, ^uint64(0))
	regs := saved
	regs.Orig_rax, regs.Rax, regs.Rip = ^uint64(0), nr, th.space.addr(s.code.tool)
	for i, to := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9} {
		if i < len(args) {
			*to = args[i]
		}
	}
	ret, err := s.step(th, &regs)
	if err != nil {
		return 0, err
	}
	_ = unix.PtraceSetRegs(tid, &saved)
	_ = setSignalMask(tid, mask)
	return ret, nil
}

// mapped is told that a thread has mapped something executable.
func (s *session) mapped(th *thread, addr uint64) {
	m := mapping{start: addr, end: addr + (th.args[1]+pageBytes-1)&^(pageBytes-1), off: th.args[5], perms: "r-xp"}
	th.space.attach(th.t.PID)
	th.space.cover(m.start, m.end)
	if th.args[3]&(unix.MAP_ANONYMOUS|unix.MAP_SHARED) != 0 && th.args[3]&unix.MAP_TYPE != unix.MAP_PRIVATE ||
		th.args[3]&unix.MAP_ANONYMOUS != 0 || th.args[2]&unix.PROT_WRITE != 0 {
		return // code that is made as it runs is left alone
	}
	name := "/proc/" + strconv.Itoa(th.t.TID) + "/fd/" + strconv.Itoa(int(int32(th.args[4])))
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil {
		return
	}
	m.dev, m.ino = unix.Major(st.Dev)<<20|unix.Minor(st.Dev), st.Ino
	m.name, _ = os.Readlink(name)
	s.addRegion(th, &m)
}
