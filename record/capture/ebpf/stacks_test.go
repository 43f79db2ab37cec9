// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
)

// TestStackCalls says for filters when stacks are taken, and from which latency on.
func TestStackCalls(t *testing.T) {
	arch, ok := event.ParseArch(runtime.GOARCH)
	if !ok {
		t.Skip("no operation table for " + runtime.GOARCH)
	}
	for _, c := range []struct {
		filter string
		op     event.Op
		when   uint8
		least  uint64
	}{
		{"op = fsync", event.OpFsync, stackEntry, 0},
		{"op = fsync", event.OpRead, stackNever, 0},
		{"latency > 10ms", event.OpRead, stackReturn, 10_000_001},
		{"latency > 10ms or failed", event.OpRead, stackReturn, 0},
		{"latency > 10ms and failed", event.OpRead, stackReturn, 10_000_001},
		{"not latency < 5ms and uid = 0", event.OpRead, stackReturn, 5_000_000},
		{"op = fsync and latency > 1ms or op = read", event.OpRead, stackEntry, 0},
		{"op = fsync and latency > 1ms or op = read", event.OpFsync, stackReturn, 1_000_001},
		{"latency > 10ms", event.OpExecve, stackEntry, 0},
	} {
		x, err := predicate.Parse(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		g, err := predicate.Compile(x, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &capture.Stacks{Prefilter: g.Prefilter(func(event.Op) bool { return true })}
		when, least := stackCalls(s)
		if nr := event.Number(arch, c.op); when[nr] != c.when || least[nr] != c.least {
			t.Errorf("%s: the stack of %s is taken at time %d, from %d ns on; want %d, %d", c.filter, c.op, when[nr],
				least[nr], c.when, c.least)
		}
	}
}

// perfRecord is a record of perf_event_open(2) with a time behind it.
func perfRecord(kind uint32, misc uint16, time uint64, words ...uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, misc)
	b = binary.LittleEndian.AppendUint16(b, uint16(16+8*len(words)))
	for _, w := range append(words, time) {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// TestSpaces applies what the kernel says of processes up to a time.
func TestSpaces(t *testing.T) {
	const exec = 1 << 13
	pair := func(pid, from uint32) uint64 { return uint64(from)<<32 | uint64(pid) }
	mapping := func(time uint64, pid uint32, addr, length, off uint64, path string) []byte {
		var name [8]byte
		copy(name[:], path)
		return perfRecord(unix.PERF_RECORD_MMAP2, 0, time, pair(pid, pid), addr, length, off, 0, 77, 0, 0,
			binary.LittleEndian.Uint64(name[:]))
	}
	s := &spaces{known: map[int]*process{}}
	for _, b := range [][]byte{
		perfRecord(unix.PERF_RECORD_COMM, exec, 10, pair(5, 5)),
		mapping(11, 5, 0x1000, 0x1000, 0, "/a"),
		perfRecord(unix.PERF_RECORD_FORK, 0, 12, pair(6, 5), pair(6, 5)),
		mapping(13, 6, 0x1000, 0x800, 0x2000, "/b"),
		perfRecord(unix.PERF_RECORD_COMM, 0, 14, pair(5, 5)), // a new name, no program
		perfRecord(unix.PERF_RECORD_COMM, exec, 15, pair(5, 5)),
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18},
	} {
		if e, ok := parseMapEvent(b); ok {
			s.events = append(s.events, e)
		}
	}
	path := func(pid int) string {
		if p := s.known[pid]; p != nil && len(p.maps) == 1 {
			return p.maps[0].Path
		}
		return ""
	}
	for _, c := range []struct {
		time         uint64
		first, child string
		events       int
	}{{11, "/a", "", 3}, {12, "/a", "/a", 2}, {14, "/a", "/b", 1}, {15, "", "/b", 0}} {
		s.until(c.time)
		if path(5) != c.first || path(6) != c.child || len(s.events) != c.events {
			t.Errorf("at %d: %q and %q are mapped, %d events are left; want %q, %q, %d", c.time, path(5), path(6),
				len(s.events), c.first, c.child, c.events)
		}
	}
}

// TestParseRaw takes only what a record has.
func TestParseRaw(t *testing.T) {
	b := make([]byte, rawStackAt+16)
	binary.LittleEndian.PutUint64(b[16:], 16)
	if r, ok := parseRaw(b); !ok || len(r.memory) != 16 {
		t.Errorf("%d bytes of stack, %v; want 16", len(r.memory), ok)
	}
	binary.LittleEndian.PutUint64(b[16:], 17)
	if _, ok := parseRaw(b); ok {
		t.Error("a record of more bytes than it has is accepted")
	}
	if _, ok := parseRaw(b[:100]); ok {
		t.Error("a record that ends early is accepted")
	}
}
