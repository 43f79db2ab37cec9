// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/unwind"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// stackRingBytes is the size of the ring between the programs and the recorder.
const stackRingBytes = 32 << 20

// stackTaker follows the stacks that the programs copy (bpf/stack.c). nil takes none.
type stackTaker struct {
	arch     *unwind.Arch
	ring     *ring
	counters *ebpf.Map
	loaded   map[string]*ebpf.Program
	files    *unwind.Modules
	spaces   *spaces
	spans    []span
	records  []rawStack
}

// rawStack is what the programs say of a call (struct stack_head).
type rawStack struct {
	enter    uint64
	pid, tid uint32
	regs     []byte
	memory   []byte
}

const (
	rawRegsAt  = 24
	rawRegs    = 34 * 8
	rawStackAt = rawRegsAt + rawRegs
)

// newStackTaker loads the programs; nil if stacks are not wanted.
func newStackTaker(p *programs, o *capture.Options) (*stackTaker, error) {
	arch := unwind.ArchOf(runtime.GOARCH)
	if o.Stacks == nil || arch == nil {
		return nil, nil
	}
	spec, err := loadStack()
	if err != nil {
		return nil, err
	}
	when, least := stackCalls(o.Stacks)
	for name, v := range map[string]any{
		stackVarStackBytes: stackBytesOf(o.Stacks), stackVarStackEvery: max(o.Stacks.Every, 1),
		stackVarStackWhen: when, stackVarStackLeast: least,
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	if err := bpf.SetNamespace(spec, p.own); err != nil {
		return nil, err
	}
	spec.Maps[stackMapStacks].MaxEntries = stackRingBytes
	delete(spec.Variables, stackVarShared)
	for _, unused := range []string{stackMapWorks, stackMapTable, ".bss"} {
		delete(spec.Maps, unused)
	}
	dropLines(spec)
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: bpf.Types(),
		MapReplacements: map[string]*ebpf.Map{stackMapTasks: p.Tasks}})
	if err != nil {
		return nil, err
	}
	s := &stackTaker{arch: arch, files: unwind.NewModules(), loaded: coll.Programs,
		counters: coll.Maps[stackMapStackCounters]}
	stacks := coll.Maps[stackMapStacks]
	delete(coll.Maps, stackMapStacks)
	delete(coll.Maps, stackMapStackCounters)
	coll.Programs = nil
	coll.Close()
	if s.ring, err = mapRing(stacks); err != nil {
		s.close()
		return nil, err
	}
	s.spaces = newSpaces(s.files)
	return s, nil
}

// stackBytesOf is how much of each stack is copied.
func stackBytesOf(o *capture.Stacks) uint64 {
	return uint64(cmp.Or(min(o.Bytes, capture.MaxStackBytes), capture.DefaultStackBytes)+7) &^ 7
}

// When the stack of a call is taken (bpf/stack.c).
const (
	stackNever  = 0
	stackEntry  = 1
	stackReturn = 2
)

// stackCalls says by the number of a call when its stack is taken, and how long, in ns, one takes at least whose
// stack is taken at its return.
func stackCalls(o *capture.Stacks) (when [512]uint8, least [512]uint64) {
	arch, _ := bpf.Arch()
	for nr := range when {
		op := event.ByNumber(arch, nr)
		when[nr] = stackEntry
		if o.Prefilter == nil {
			continue
		}
		switch entry, ok := o.Prefilter.Entries[op]; {
		case !ok:
		case entry == predicate.PrefilterDrop:
			when[nr] = stackNever
		case o.AtReturn(op):
			when[nr] = stackReturn
			visits := 0
			least[nr] = uint64(max(shortest(o.Prefilter, entry, 0, &visits), 0))
		}
	}
	return when, least
}

// shortest returns the least latency with which a walk through a prefilter from a step can end in accepting a call,
// whatever the call is otherwise, if the call takes at least so long.
func shortest(f *predicate.Prefilter, n int16, least int64, visits *int) int64 {
	const most = 1 << 14
	if *visits++; n == predicate.PrefilterPass || *visits > most {
		return least
	}
	if n == predicate.PrefilterDrop {
		return math.MaxInt64
	}
	s := &f.Steps[n]
	if s.Field != predicate.PrefilterLatency {
		return min(shortest(f, s.Yes, least, visits), shortest(f, s.No, least, visits))
	}
	yes, no := int64(math.MaxInt64), int64(math.MaxInt64)
	if least <= s.Hi {
		yes = shortest(f, s.Yes, max(least, s.Lo), visits)
	}
	switch {
	case least < s.Lo:
		no = shortest(f, s.No, least, visits)
	case s.Hi < math.MaxInt64:
		no = shortest(f, s.No, max(least, s.Hi+1), visits)
	}
	return min(yes, no)
}

// programs returns those to attach before and after those of calls.
func (s *stackTaker) programs() (first, last []*ebpf.Program) {
	if s == nil {
		return nil, nil
	}
	return []*ebpf.Program{s.loaded[stackProgOnSysExitStack]}, []*ebpf.Program{s.loaded[stackProgOnSysEnterStack]}
}

func (s *stackTaker) close() {
	if s == nil {
		return
	}
	for _, p := range s.loaded {
		p.Close()
	}
	s.counters.Close()
	if s.ring != nil {
		s.ring.close()
	}
	if s.spaces != nil {
		s.spaces.close()
	}
}

// report says what could not be recorded.
func (s *stackTaker) report(note func(string)) {
	var n stackStackCounts
	if s.counters.Lookup(uint32(0), &n) == nil && n.Lost > 0 {
		note(fmt.Sprintf("%d calls have no stack: they came faster than stacks can be followed; "+
			"--stacks-every records fewer", n.Lost))
	}
}

// take follows the stacks that have come, and returns records of them, and how many bytes they had in the ring.
func (s *stackTaker) take() (records []byte, bytes uint64) {
	if s == nil {
		return nil, 0
	}
	s.spans, _ = s.ring.scan(s.spans[:0], s.ring.produced())
	s.records = s.records[:0]
	for _, span := range s.spans {
		for body := range trace.Records(s.ring.bytes(span.from, span.to)) {
			if raw, ok := parseRaw(body); ok {
				s.records = append(s.records, raw)
			}
		}
		bytes += span.to - span.from
	}
	slices.SortFunc(s.records, func(a, b rawStack) int { return cmp.Compare(a.enter, b.enter) })
	s.spaces.read()
	for i := range s.records {
		records = trace.AppendRecord(records, s.follow(&s.records[i]))
	}
	if n := len(s.spans); n > 0 {
		s.ring.consume(s.spans[n-1].to)
	}
	return records, bytes
}

func parseRaw(b []byte) (r rawStack, ok bool) {
	le := binary.LittleEndian
	if len(b) < rawStackAt {
		return r, false
	}
	n := le.Uint64(b[16:])
	if n > uint64(len(b)-rawStackAt) {
		return r, false
	}
	return rawStack{enter: le.Uint64(b), pid: le.Uint32(b[8:]), tid: le.Uint32(b[12:]),
		regs: b[rawRegsAt:rawStackAt], memory: b[rawStackAt:][:n]}, true
}

// follow follows a stack.
func (s *stackTaker) follow(r *rawStack) *trace.Record {
	regs, sp := rawRegisters(r.regs)
	s.spaces.until(r.enter)
	st := &event.Stack{}
	if space := s.spaces.of(int(r.pid)); space == nil {
		st.Frames, st.End = []event.Frame{{Offset: regs.PC}}, event.StackUnreadable
	} else {
		st.Frames, st.End = space.Walk(s.arch, &regs, copied{sp, r.memory}, 0)
	}
	rec := trace.StackRecord(r.pid, r.tid, r.enter, st)
	return &rec
}

// copied is what was copied of a thread's stack.
type copied struct {
	at uint64
	b  []byte
}

// Read is unwind.Memory's.
func (c copied) Read(addr uint64, b []byte) bool {
	if addr < c.at || addr-c.at > uint64(len(c.b)) {
		return false
	}
	return copy(b, c.b[addr-c.at:]) == len(b)
}

// processMemory is the memory of a process, if it is still there.
type processMemory struct{ pid int }

// Read is unwind.Memory's.
func (t processMemory) Read(addr uint64, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	local := unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))}
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
	n, err := unix.ProcessVMReadv(t.pid, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	return err == nil && n == len(b)
}
