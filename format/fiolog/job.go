// SPDX-License-Identifier: Apache-2.0

package fiolog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Limits of a job file.
const (
	maxJobs   = 64      // sections: those that moved most
	maxBlocks = 16      // sizes of a distribution
	maxShapes = 1 << 16 // that are collected
)

// Shape is what a thread did to the content of a file, as far as a job of fio has it.
type Shape struct {
	TID              uint32
	Comm, File       string
	Size             int64 // that the file needed
	Reads, Writes    Side
	Syncs, DataSyncs uint64
	Direct           uint64 // calls with O_DIRECT
	Start, ThinkNS   int64  // of the first call; between the calls, ns
	Depth            int    // most requests in progress

	last       int64   // ns, the return of the last call
	inProgress []int64 // returns of requests
	end        int64   // of the last call, in the file
}

// place is a thread and a file.
type place struct {
	tid  uint32
	file string
}

// Side is one of reads and writes.
type Side struct {
	Calls, Bytes, Sequential uint64
	Sizes                    map[int64]uint64 // calls by bytes
}

func (s *Side) add(offset, n, end int64) {
	s.Calls++
	s.Bytes += uint64(n)
	if offset == end {
		s.Sequential++
	}
	if s.Sizes == nil {
		s.Sizes = map[int64]uint64{}
	}
	if _, ok := s.Sizes[n]; ok || len(s.Sizes) < 1<<12 {
		s.Sizes[n]++
	}
}

// Shapes returns the shapes of what a tape's threads did to files, those that moved most first.
func Shapes(tape *trace.Tape, done *format.Done) ([]*Shape, error) {
	shapes := map[place]*Shape{}
	var acts []action
	for ev, err := range tape.Events() {
		if err != nil {
			return nil, err
		}
		acts = appendActions(acts[:0], ev, done)
		for i := range acts {
			at := place{ev.TID, acts[i].file.Path}
			s := shapes[at]
			if s == nil {
				if len(shapes) == maxShapes {
					done.LeftOut(fmt.Sprintf("calls of threads on files beyond the first %d", maxShapes), 1)
					continue
				}
				s = &Shape{TID: ev.TID, File: at.file, Start: ev.Enter, last: ev.Enter}
				shapes[at] = s
			}
			s.Comm = cmp.Or(ev.Comm, s.Comm)
			s.act(ev, &acts[i], done)
		}
	}
	return slices.SortedFunc(maps.Values(shapes), func(a, b *Shape) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(a.TID, b.TID), cmp.Compare(a.File, b.File))
	}), nil
}

func (s *Shape) bytes() uint64 { return s.Reads.Bytes + s.Writes.Bytes }

// act adds what a call did.
func (s *Shape) act(ev *event.Event, a *action, done *format.Done) {
	if a.file.Flags&event.OpenDirect != 0 {
		s.Direct++
	}
	s.Size = max(s.Size, a.offset+a.length)
	switch a.what {
	case "sync":
		s.Syncs++
		return
	case "datasync":
		s.DataSyncs++
		return
	case "trim":
		done.LeftOut("trims", 1)
		return
	case "read":
		s.Reads.add(a.offset, a.length, s.end)
	case "write":
		s.Writes.add(a.offset, a.length, s.end)
	}
	s.end = a.offset + a.length
	if ev.Enter > s.last {
		s.ThinkNS += ev.Enter - s.last
	}
	s.last = max(s.last, ev.Exit)
	s.inProgress = slices.DeleteFunc(s.inProgress, func(until int64) bool { return until <= ev.Enter })
	if len(s.inProgress) < 1<<10 {
		s.inProgress = append(s.inProgress, ev.Exit)
	}
	s.Depth = max(s.Depth, len(s.inProgress))
}

// ExportJob writes a job file for fio that resembles a tape: a job for each file of a thread, with as many
// calls of the same sizes, and the same mix, order, depth, pauses and flushes. It has names of its own for the files.
func ExportJob(out io.Writer, tape *trace.Tape) (*format.Done, error) {
	if n := len(tape.Manifest().Hosts); n > 1 {
		return nil, fmt.Errorf("the tape has events of %d hosts, a job file is of one: "+
			"iotape slice makes a tape of each", n)
	}
	done := &format.Done{}
	shapes, err := Shapes(tape, done)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "; A job that resembles a tape of iotape: one section for each file of a thread.\n"+
		"; Run it with: fio --directory=DIR FILE\n[global]\nbs_unaligned=1\nrandrepeat=1\nthread\n")
	first := int64(0)
	for _, s := range shapes {
		if s.Reads.Calls+s.Writes.Calls > 0 && (first == 0 || s.Start < first) {
			first = s.Start
		}
	}
	n := 0
	for _, s := range shapes {
		calls := s.Reads.Calls + s.Writes.Calls
		if calls == 0 {
			continue
		}
		if n == maxJobs {
			done.LeftOut(fmt.Sprintf("calls of threads on files beyond the %d that moved most", maxJobs), calls)
			continue
		}
		n++
		done.Records++
		s.section(w, n, s.Start-first, done)
	}
	if n == 0 {
		return nil, errors.New("the tape has no reads and writes of files at known positions: a job would do nothing")
	}
	return done, w.Flush()
}

// section writes a job; delay is how much later than the first it began, ns.
func (s *Shape) section(w io.Writer, n int, delay int64, done *format.Done) {
	calls := s.Reads.Calls + s.Writes.Calls
	fmt.Fprintf(w, "\n; thread %d, %s: %d reads of %d bytes, %d writes of %d bytes: %s\n[job%d]\n", s.TID,
		printable(s.Comm), s.Reads.Calls, s.Reads.Bytes, s.Writes.Calls, s.Writes.Bytes, printable(s.File), n)
	sequential := 100 * (s.Reads.Sequential + s.Writes.Sequential) / calls
	kind := "rw"
	switch {
	case s.Writes.Calls == 0:
		kind = "read"
	case s.Reads.Calls == 0:
		kind = "write"
	}
	if sequential < 100 {
		kind = "rand" + kind
	}
	fmt.Fprintf(w, "rw=%s\n", kind)
	if sequential < 100 {
		fmt.Fprintf(w, "percentage_random=%d,%d\nnorandommap\n", s.Reads.random(), s.Writes.random())
	}
	if s.Reads.Calls > 0 && s.Writes.Calls > 0 {
		fmt.Fprintf(w, "rwmixread=%d\n", (100*s.Reads.Calls+calls/2)/calls)
	}
	fmt.Fprintf(w, "bssplit=%s,%s\n", s.Reads.split(done), s.Writes.split(done))
	fmt.Fprintf(w, "filename=file%d\nfilesize=%d\nnumber_ios=%d\nio_size=%d\n", n, s.Size, calls, s.bytes())
	if s.Depth > 1 {
		fmt.Fprintf(w, "ioengine=libaio\niodepth=%d\n", s.Depth)
	} else {
		fmt.Fprint(w, "ioengine=psync\n")
	}
	if s.Direct*2 > calls {
		fmt.Fprint(w, "direct=1\n")
	}
	for _, f := range [...]struct {
		option string
		calls  uint64
	}{{"fsync", s.Syncs}, {"fdatasync", s.DataSyncs}} {
		switch {
		case f.calls == 0 || s.Writes.Calls == 0:
		case f.calls == 1:
			fmt.Fprint(w, "end_fsync=1\n")
		default:
			// fio flushes again after each read until the next write.
			fmt.Fprintf(w, "%s=%d\n", f.option, max(1, (calls+f.calls/2)/f.calls))
		}
	}
	s.think(w, int64(calls))
	if delay >= 1000 {
		fmt.Fprintf(w, "startdelay=%dus\n", delay/1000)
	}
}

// think writes the pauses: fio has them in whole µs, each behind a number of calls.
func (s *Shape) think(w io.Writer, calls int64) {
	const µs = 1000
	if s.ThinkNS < µs {
		return
	}
	every := max(1, (10*µs*calls+s.ThinkNS-1)/s.ThinkNS) // pauses of at least 10 µs: fio's own work takes some
	fmt.Fprintf(w, "thinktime=%dus\nthinktime_blocks=%d\n", max(1, s.ThinkNS*every/calls/µs), every)
}

// random returns how many of a hundred calls are not where the last one ended.
func (s *Side) random() uint64 {
	if s.Calls == 0 {
		return 0
	}
	return 100 - (100*s.Sequential+s.Calls/2)/s.Calls
}

// split writes the distribution of sizes: bytes/percent:…, the percents being 100 together.
func (s *Side) split(done *format.Done) string {
	sizes := slices.SortedFunc(maps.Keys(s.Sizes), func(a, b int64) int {
		return cmp.Or(cmp.Compare(s.Sizes[b], s.Sizes[a]), cmp.Compare(a, b))
	})
	if len(sizes) == 0 {
		return "4096/100"
	}
	if len(sizes) > maxBlocks {
		for _, n := range sizes[maxBlocks:] {
			done.LeftOut(fmt.Sprintf("sizes of calls beyond the %d most frequent of a job", maxBlocks), s.Sizes[n])
		}
		sizes = sizes[:maxBlocks]
	}
	all := uint64(0)
	for _, n := range sizes {
		all += s.Sizes[n]
	}
	percent, left := make([]uint64, len(sizes)), uint64(100)
	for i, n := range sizes {
		percent[i] = 100 * s.Sizes[n] / all
		left -= percent[i]
	}
	for i := 0; left > 0; i = (i + 1) % len(sizes) { // what was rounded down
		percent[i]++
		left--
	}
	var parts []string
	for i, n := range sizes {
		if percent[i] > 0 {
			parts = append(parts, fmt.Sprintf("%d/%d", n, percent[i]))
		}
	}
	return strings.Join(parts, ":")
}

// printable keeps a name from ending a comment's line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, s)
}
