// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
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
	for _, m := range maps {
		if m.perms == "r-xp" && m.ino != 0 {
			s.addRegion(th, &m)
		}
	}
	if sl := th.slot; sl != nil {
		sl.Open = sp.addr(s.code.common)
		sl.Entry = sl.Open
	}
	th.selects(selectBlock)
}

var (
	errGone    = errors.New("the thread ended")
	errRefused = errors.New("it may not use Syscall User Dispatch")
)

// load maps the arena and the code into a program, by making it execute a few calls. Should there be
// no tracer any more, whenever that is, the program goes on as without: the calls are made in memory that is never
// executed otherwise, and what they lead to is complete before the thread is sent there.
func (s *session) load(th *thread) (sp *space, maps []mapping, err error) {
	tid := th.t.TID
	if th.confined {
		return nil, nil, errors.New("calls are forbidden to it (seccomp)")
	}
	var saved unix.PtraceRegs
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
		if err != nil {
			sp.release()
		}
	}()
	mask, err := signalMask(tid)
	if err != nil {
		return sp, nil, errGone
	}
	maps = sp.mappings()
	regs := saved
	regs.Orig_rax = ^uint64(0)
	regs.R12, regs.R13, regs.R14, regs.R15 = uint64(arenaBytes), codeBytes, uint64(controlBytes), saved.Rip
	regs.Rbx, regs.Rbp = place(maps), sp.placeOfStubs(maps)
	if err := s.announced(th, sp, maps, &regs, mask); err != nil {
		if errors.Is(err, errRefused) { // before it did anything else
			saved.Orig_rax = ^uint64(0)
			_ = unix.PtraceSetRegs(tid, &saved)
			_ = setSignalMask(tid, mask)
		}
		return sp, nil, err
	}
	base, fd := int64(regs.Rdi), int64(regs.R8)
	if base < 0 && base > -4096 {
		err = fmt.Errorf("it may not make and map shared memory: %w", unix.Errno(-base))
	} else if sp.arena, err = s.share(th.t.PID, int(fd)); err == nil {
		sp.arena.base = uint64(base)
		if !sp.write(s.code.text, uint64(base)) {
			err = errors.New("memory of its own cannot be written")
		}
	}
	if err != nil { // it takes all back itself
		th.undo = 2
		if fd >= 0 {
			th.undo++
		}
		_ = setSignalMask(tid, mask)
		return sp, nil, err
	}
	sp.stubs = []stubPage{{addr: uint64(base) + stubsAt, size: codeBytes - stubsAt}}
	if at := regs.Rbp; at != 0 && int64(at) > 0 {
		sp.stubs = append(sp.stubs, stubPage{addr: at, size: stubPageBytes})
	}
	s.prepare(th, sp, mask)
	// From here on it goes on without us, if it has to.
	regs.Orig_rax, regs.Rip = ^uint64(0), regs.Rip-s.code.announceEnd+s.code.settling
	regs.Rsp, regs.R14, regs.R15, regs.Rbx = saved.Rsp, uint64(fd), saved.Rip, sp.addr(s.code.settle)
	regs.Gs_base = sp.arena.slotAddr(th.index)
	set(&regs, s.dispatchOf(th))
	th.armed = true // first: who has a slot must lead to orphaned()
	_ = unix.PtraceSetRegs(tid, &regs)
	return sp, maps, nil
}

// announced lets a thread run the loader, until that needs the tracer.
func (s *session) announced(th *thread, sp *space, maps []mapping, regs *unix.PtraceRegs, mask uint64) error {
	loader := s.code.text[s.code.loader:s.code.loaderEnd]
	at, ok := sp.unused(maps, len(loader))
	if !ok || !sp.write(loader, at) {
		return errors.New("it has no room for code")
	}
	tid := th.t.TID
	_ = setSignalMask(tid, mask&^signalBit(unix.SIGSYS))
	regs.Rip = at
	set(regs, dispatch{from: at, bytes: s.code.loaderGatesEnd - s.code.loader})
	if unix.PtraceSetRegs(tid, regs) != nil || !th.t.RunTo(unix.SIGSYS, unix.SIGTRAP) ||
		unix.PtraceGetRegs(tid, regs) != nil {
		return errGone
	}
	switch regs.Rip - at + s.code.loader {
	case s.code.announceEnd:
		return nil
	case s.code.loaderUnarmed:
		return errRefused
	}
	return errors.New("a signal came in between")
}

// prepare fills the arena of a program that is about to begin, and makes it the thread's.
func (s *session) prepare(th *thread, sp *space, mask uint64) {
	a, c := sp.arena, sp.arena.control()
	c.Lo, c.Hi = a.base, a.base+uint64(arenaBytes)
	if len(sp.stubs) > 1 {
		c.Stubs, c.Beyond = sp.stubs[1].addr, sp.stubs[1].addr+sp.stubs[1].size
	}
	if s.o.Sizes {
		c.Sizes = 1
	}
	c.Cgroups = uint64(s.rec.CgroupDevice())
	s.tables.write(c)
	_, inodes := s.rec.Stored()
	c.watch(s.tables, inodes)
	s.mu.Lock()
	c.publish(s.timer.renew())
	s.mu.Unlock()
	a.ready(a.base + s.code.raw)
	th.space, th.files = sp, sp.newFiles()
	s.takeSlot(th)
	if th.slot != nil {
		th.slot.Entry, th.slot.Open = a.base+s.code.raw, a.base+s.code.raw // until it is told of calls
		th.slot.Blocked = mask >> (unix.SIGSYS - 1) & 1
		if th.blocked {
			th.slot.Blocked = 1
		}
	}
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

// placeOfStubs returns where stubs for a program should be that is far from the arena, 0 if none is.
func (sp *space) placeOfStubs(maps []mapping) uint64 {
	const low = 0x7000_0000_0000
	for _, m := range maps {
		if m.perms == "r-xp" && m.ino != 0 && m.start < low {
			if at, ok := freeNear(maps, m.start, stubPageBytes); ok {
				return at
			}
		}
	}
	return 0
}

// unused returns where n bytes are free that can be executed, and that nothing uses: behind the
// code of the kernel's own library.
func (sp *space) unused(maps []mapping, n int) (uint64, bool) {
	for _, m := range maps {
		if m.name != "[vdso]" {
			continue
		}
		b := make([]byte, pageBytes)
		if !sp.read(b, m.end-pageBytes) {
			return 0, false
		}
		free := uint64(len(b) - len(bytes.TrimRight(b, "\x00")))
		at := (m.end - free + 63) &^ 63
		return at, at+uint64(n) <= m.end
	}
	return 0, false
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
