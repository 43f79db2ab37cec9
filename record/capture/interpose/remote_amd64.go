// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
)

// remote is a stopped thread that makes calls for the recorder, by the code of the same name (inproc/entry.S), with
// all signals blocked. Should there be no tracer any more, that code makes the thread what it was.
type remote struct {
	t     *ptracer.Tracee
	sp    *space
	at    uint64 // of the code
	saved unix.PtraceRegs
	mask  uint64
	was   []byte // what is where the code is
}

const restartCall = 219 // SYS_RESTART_SYSCALL

// remote readies a thread. The space has the memory of its process.
func (s *session) remote(sp *space, t *ptracer.Tracee, maps []mapping) (*remote, error) {
	if t.Where() == ptracer.AtFork && !t.EndCall() {
		return nil, errGone
	}
	r := &remote{t: t, sp: sp}
	c := s.code
	code := append([]byte(nil), c.text[c.remote:c.remoteEnd]...)
	at, ok := sp.unused(maps, len(code))
	if r.was = make([]byte, len(code)); !ok || !sp.read(r.was, at) {
		return nil, errors.New("it has no room for code")
	}
	r.at = at
	if unix.PtraceGetRegs(t.TID, &r.saved) != nil {
		return nil, errGone
	}
	var err error
	if r.mask, err = signalMask(t.TID); err != nil {
		return nil, errGone
	}
	g := r.saved
	if restarts(&g) {
		g.Rip -= uint64(len(syscallBytes))
		if g.Rax = g.Orig_rax; int64(r.saved.Rax) == -516 { // ERESTART_RESTARTBLOCK
			g.Rax = restartCall
		}
	}
	flags := g.Eflags<<8&0xff00 | g.Eflags>>11&1
	for i, v := range []uint64{g.Rdi, g.Rsi, g.Rdx, g.R10, g.R8, g.R9, g.Rcx, g.R11, g.Rax, g.Rip, flags, r.mask} {
		binary.LittleEndian.PutUint64(code[c.remoteData-c.remote+uint64(8*i):], v)
	}
	if !sp.write(code, at) {
		return nil, errors.New("it has no room for code")
	}
	if setSignalMask(t.TID, ^uint64(0)) != nil {
		return nil, errGone
	}
	return r, nil
}

// restarts reports whether a thread is in a call that the kernel makes again when it goes on.
func restarts(regs *unix.PtraceRegs) bool {
	ret := int64(regs.Rax)
	return int64(regs.Orig_rax) >= 0 && (ret <= -512 && ret >= -514 || ret == -516)
}

// call makes a call. It returns what the kernel does.
func (r *remote) call(nr uint64, args ...uint64) (int64, error) {
	regs := r.saved
	to := []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9}
	for i := range to {
		*to[i] = 0
		if i < len(args) {
			*to[i] = args[i]
		}
	}
	regs.Rax, regs.Orig_rax, regs.Rip = nr, ^uint64(0), r.at
	if unix.PtraceSetRegs(r.t.TID, &regs) != nil || !r.t.RunCall() || unix.PtraceGetRegs(r.t.TID, &regs) != nil {
		return 0, errGone
	}
	ret := int64(regs.Rax)
	if ret < 0 && ret > -4096 {
		return ret, unix.Errno(-ret)
	}
	return ret, nil
}

// end makes the thread what it was, but for what was changed in saved and mask.
func (r *remote) end() error {
	_ = setSignalMask(r.t.TID, r.mask)
	ok := unix.PtraceSetRegs(r.t.TID, &r.saved) == nil && r.t.Rest() && unix.PtraceSetRegs(r.t.TID, &r.saved) == nil
	r.sp.write(r.was, r.at)
	if !ok {
		return errGone
	}
	return nil
}

// action asks for what is done at a signal, as rt_sigaction(2) gives it. The memory for it is of a thread's slot.
func (r *remote) action(th *thread, sig unix.Signal) (a [4]uint64, err error) {
	_, err = r.call(unix.SYS_RT_SIGACTION, uint64(sig), 0, r.actionAt(th), 8)
	return th.slot.Act, err
}

// setAction sets what is done at a signal.
func (r *remote) setAction(th *thread, sig unix.Signal, a [4]uint64) error {
	th.slot.Act = a
	_, err := r.call(unix.SYS_RT_SIGACTION, uint64(sig), r.actionAt(th), 0, 8)
	return err
}

func (r *remote) actionAt(th *thread) uint64 {
	return r.sp.arena.slotAddr(th.index) + uint64(unsafe.Offsetof(th.slot.Act))
}
