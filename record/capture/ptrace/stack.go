// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"runtime"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/unwind"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// stacks finds out where in their programs threads make their calls. The threads are stopped
// then, so their stacks are followed at once, as far as they go.
type stacks struct {
	o      *capture.Stacks
	arch   *unwind.Arch
	files  *unwind.Modules
	spaces map[int]*unwind.Space // by process; gone when its mappings change
	calls  uint64                // whose stack was wanted
	memory memory
}

func newStacks(o *capture.Options) *stacks {
	arch := unwind.ArchOf(runtime.GOARCH)
	if o.Stacks == nil || arch == nil {
		return nil
	}
	return &stacks{o: o.Stacks, arch: arch, files: unwind.NewModules(), spaces: map[int]*unwind.Space{}}
}

// forget says that the mappings of a process are others now.
func (s *stacks) forget(pid int) {
	if s != nil {
		delete(s.spaces, pid)
	}
}

// mapsMemory reports whether an operation changes which files are mapped where.
func mapsMemory(op event.Op) bool {
	switch op {
	case event.OpMmap, event.OpMunmap, event.OpMremap, event.OpMprotect:
		return true
	}
	return false
}

// stopForStacks takes from the calls that need no stop those that stacks make necessary.
func stopForStacks(o *capture.Options, through []Exempt) []Exempt {
	if o.Stacks == nil {
		return through
	}
	return slices.DeleteFunc(slices.Clone(through), func(e Exempt) bool {
		return e.Name == "munmap" || e.Name == "mprotect" || e.Name == "mremap"
	})
}

// stackAtEntry returns the stack of a call that is about to be made, nil if it is not wanted, or not yet.
func (r *Recorder) stackAtEntry(th *thread) *event.Stack {
	s, c := r.stacks, &th.call
	if s == nil || c.compat || s.o.AtReturn(c.spec.Op) {
		return nil
	}
	if s.o.Prefilter != nil {
		p := r.Identity(th.t)
		p.NR, p.Args = c.nr, c.args
		if dropsAtEntry(s.o.Prefilter, c.spec.Op, &p) {
			return nil
		}
	}
	return r.stackOf(th)
}

// dropsAtEntry is Prefilter.Drops for a call whose result is not known.
func dropsAtEntry(f *predicate.Prefilter, op event.Op, p *predicate.PrefilterCall) bool {
	n, ok := f.Entries[op]
	for ok && n >= 0 {
		st := &f.Steps[n]
		switch st.Field {
		case predicate.PrefilterSuffix, predicate.PrefilterPlace, predicate.PrefilterLatency, predicate.PrefilterResult,
			predicate.PrefilterErrno:
			return false
		}
		if n = st.No; st.Holds(p) {
			n = st.Yes
		}
	}
	return ok && n == predicate.PrefilterDrop
}

// stackAtReturn records the stack of a call that has returned, if only now it is known to be wanted.
func (r *Recorder) stackAtReturn(th *thread, exit uint64, ret int64) {
	s, c := r.stacks, &th.call
	if s == nil {
		return
	}
	if mapsMemory(c.spec.Op) {
		s.forget(th.t.PID)
	}
	if c.compat || !c.late && !s.o.AtReturn(c.spec.Op) {
		return
	}
	if s.o.Prefilter != nil {
		p := r.Identity(th.t)
		p.NR, p.Latency, p.Raw, p.Args = c.nr, int64(exit-c.enter), ret, c.args
		if s.o.Prefilter.Drops(c.spec.Op, &p) {
			return
		}
	}
	r.putStack(th, r.stackOf(th))
}

// putStack records the stack of the call that a thread is in.
func (r *Recorder) putStack(th *thread, s *event.Stack) {
	if s == nil {
		return
	}
	rec := trace.StackRecord(uint32(th.t.PID), th.tid, th.call.enter, s)
	r.out.put(&rec)
}

// stackOf returns the stack of a stopped thread, nil if it is the turn of another call.
func (r *Recorder) stackOf(th *thread) *event.Stack {
	s := r.stacks
	s.calls++
	if every := max(s.o.Every, 1); (s.calls-1)%every != 0 {
		return nil
	}
	regs, ok := registers(th.t.TID)
	if !ok {
		return nil
	}
	if r.Place != nil {
		regs.PC = r.Place(th.t, regs.PC)
	}
	s.memory.begin(th.t.TID)
	space := s.spaces[th.t.PID]
	if space == nil {
		var err error
		if space, err = unwind.ReadSpace(th.t.PID, &s.memory, s.files); err != nil {
			return nil
		}
		s.spaces[th.t.PID] = space
	}
	st := &event.Stack{}
	st.Frames, st.End = space.Walk(s.arch, &regs, &s.memory, 0)
	return st
}

// memory reads that of a stopped thread, a page at a time.
type memory struct {
	tid   int
	pages []memoryPage
}

type memoryPage struct {
	addr uint64
	ok   bool
	b    [pageBytes]byte
}

// mostPages bounds what is kept of the memory of a thread.
const mostPages = 64

func (m *memory) begin(tid int) { m.tid, m.pages = tid, m.pages[:0] }

// Read is unwind.Memory's.
func (m *memory) Read(addr uint64, b []byte) bool {
	if len(b) > pageBytes {
		return readMemory(m.tid, addr, b) == len(b)
	}
	for len(b) > 0 {
		p := m.page(addr &^ (pageBytes - 1))
		n := copy(b, p.b[addr%pageBytes:])
		if !p.ok {
			return false
		}
		b, addr = b[n:], addr+uint64(n)
	}
	return true
}

func (m *memory) page(addr uint64) *memoryPage {
	for i := range m.pages {
		if m.pages[i].addr == addr {
			return &m.pages[i]
		}
	}
	if len(m.pages) == mostPages {
		m.pages = m.pages[:0]
	}
	if len(m.pages) < cap(m.pages) {
		m.pages = m.pages[:len(m.pages)+1]
	} else {
		m.pages = append(m.pages, memoryPage{})
	}
	p := &m.pages[len(m.pages)-1]
	p.addr = addr
	p.ok = readMemory(m.tid, addr, p.b[:]) == pageBytes
	return p
}
