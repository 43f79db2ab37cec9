// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/unwind"
)

// spaces are the address spaces of processes at a time. The kernel's perf events tell of what programs map
// to execute, in order, so that processes that have ended by now are known, too. Others are looked up in
// /proc.
type spaces struct {
	files  *unwind.Modules
	rings  []perfRing
	events []mapEvent // not yet applied, by time
	known  map[int]*process
}

// process is what a process has mapped.
type process struct {
	maps  []unwind.Mapping
	space *unwind.Space // nil: to be made
}

// mostProcesses bounds the processes that are known.
const mostProcesses = 1 << 15

// mapEvent is a mapping, or with exec or fork how a process began.
type mapEvent struct {
	time      uint64
	pid, from int
	exec      bool
	lost      bool // events before it were lost
	mapping   unwind.Mapping
}

func newSpaces(files *unwind.Modules) *spaces {
	s := &spaces{files: files, known: map[int]*process{}}
	cpus, err := ebpf.PossibleCPU()
	for cpu := 0; err == nil && cpu < cpus; cpu++ {
		r, ok := openPerfRing(cpu)
		if ok {
			s.rings = append(s.rings, r)
		}
	}
	return s
}

func (s *spaces) close() {
	for i := range s.rings {
		s.rings[i].close()
	}
}

// read takes the events that have come.
func (s *spaces) read() {
	for i := range s.rings {
		s.events = s.rings[i].read(s.events)
	}
	slices.SortStableFunc(s.events, func(a, b mapEvent) int { return cmp.Compare(a.time, b.time) })
}

// until applies the events up to a time.
func (s *spaces) until(time uint64) {
	n := 0
	for n < len(s.events) && s.events[n].time <= time {
		s.apply(&s.events[n])
		n++
	}
	s.events = slices.Delete(s.events, 0, n)
}

func (s *spaces) apply(e *mapEvent) {
	p := s.known[e.pid]
	switch {
	case e.lost || len(s.known) >= mostProcesses:
		clear(s.known)
	case e.exec:
		s.known[e.pid] = &process{}
	case e.from != 0:
		delete(s.known, e.pid) // an earlier one of that number
		if from := s.known[e.from]; from != nil {
			s.known[e.pid] = &process{maps: slices.Clone(from.maps)}
		}
	case p != nil:
		p.add(e.mapping)
	}
}

// add adds a mapping, which takes the place of others.
func (p *process) add(m unwind.Mapping) {
	p.space = nil
	p.maps = slices.DeleteFunc(p.maps, func(old unwind.Mapping) bool { return old.Start < m.End && m.Start < old.End })
	p.maps = append(p.maps, m)
}

// of returns the address space of a process, nil if it is not known.
func (s *spaces) of(pid int) *unwind.Space {
	p := s.known[pid]
	if p == nil {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
		if err != nil {
			return nil
		}
		defer f.Close()
		p = &process{maps: unwind.ParseMaps(f)}
		if len(s.rings) > 0 { // which tell of changes
			s.known[pid] = p
		}
	}
	if p.space == nil {
		p.space = unwind.NewSpace(slices.Clone(p.maps), "/proc/"+strconv.Itoa(pid)+"/root", processMemory{pid}, s.files)
	}
	return p.space
}

// perfRing is where the kernel writes the events of a CPU.
type perfRing struct {
	fd   int
	data []byte // the header page, then the data
}

const perfPages = 64 // of data, a power of two

// openPerfRing asks for the events of a CPU; it returns false if the kernel gives none.
func openPerfRing(cpu int) (r perfRing, ok bool) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample_type: unix.PERF_SAMPLE_TIME, Clockid: unix.CLOCK_MONOTONIC,
		Bits: unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask |
			unix.PerfBitSampleIDAll | unix.PerfBitUseClockID,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return r, false
	}
	data, err := unix.Mmap(fd, 0, (perfPages+1)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return r, false
	}
	return perfRing{fd, data}, true
}

func (r *perfRing) close() {
	_ = unix.Munmap(r.data)
	unix.Close(r.fd)
}

// read appends the events that have come.
func (r *perfRing) read(events []mapEvent) []mapEvent {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.data[0]))
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	data := r.data[os.Getpagesize():]
	size := uint64(len(data))
	const header = 8
	for head-tail >= header && head-tail <= size {
		n := uint64(binary.LittleEndian.Uint16(data[(tail+6)%size:]))
		if n < header || n > head-tail {
			break
		}
		b := make([]byte, 0, n)
		at := tail % size
		b = append(b, data[at:min(at+n, size)]...)
		b = append(b, data[:n-uint64(len(b))]...)
		if e, ok := parseMapEvent(b); ok {
			events = append(events, e)
		}
		tail += n
	}
	atomic.StoreUint64(&page.Data_tail, head)
	return events
}

// parseMapEvent reads a record of perf_event_open(2). Behind each is the time.
func parseMapEvent(b []byte) (e mapEvent, ok bool) {
	le := binary.LittleEndian
	const commExec = 1 << 13 // PERF_RECORD_MISC_COMM_EXEC
	kind, misc, end := le.Uint32(b), le.Uint16(b[4:]), len(b)-8
	if end < 16 {
		return e, false
	}
	e = mapEvent{time: le.Uint64(b[end:]), pid: int(int32(le.Uint32(b[8:])))}
	switch kind {
	case unix.PERF_RECORD_LOST:
		e.lost = true
		return e, true
	case unix.PERF_RECORD_COMM:
		e.exec = true
		return e, misc&commExec != 0
	case unix.PERF_RECORD_FORK:
		e.from = int(int32(le.Uint32(b[12:])))
		return e, e.from != e.pid && e.from != 0
	case unix.PERF_RECORD_MMAP2:
		const name = 72
		if end < name {
			return e, false
		}
		path, _, _ := bytes.Cut(b[name:end], []byte{0})
		start := le.Uint64(b[16:])
		e.mapping = unwind.Mapping{Start: start, End: start + le.Uint64(b[24:]), Off: le.Uint64(b[32:]),
			Ino: le.Uint64(b[48:]), Path: string(path), Exec: true}
		if e.mapping.Path == "//anon" {
			e.mapping.Path = ""
		}
		return e, e.mapping.Start < e.mapping.End
	}
	return e, false
}
