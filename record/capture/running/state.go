// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// AppendCommand appends, with time at, what a process has before the execve that
// makes it a command: working directory, umask, and the descriptors that execve
// keeps.
func AppendCommand(b []byte, pid int, at uint64) []byte {
	r := place(pid, pid, at)
	b = trace.AppendRecord(b, &r)
	d := dir(pid, pid)
	var opens OpenFiles
	for _, fd := range numbers(d + "fd") {
		if o, ok := descriptor(d, fd); ok && o.Flags&unix.O_CLOEXEC == 0 {
			o.Open = opens.Number(pid, &o)
			b = appendFile(b, pid, pid, at, o, 0)
		}
	}
	return b
}

func appendFile(b []byte, pid, tid int, at uint64, o trace.Object, flags uint32) []byte {
	r := trace.Record{
		Type: trace.RecFile, PID: uint32(pid), TID: uint32(tid), Exit: at, Flags: flags,
		Objects: []trace.Object{o}, Pieces: link(dir(pid, tid) + "fd/" + strconv.Itoa(int(o.FD))),
	}
	r.Pieces = AppendEnds(r.Pieces, pid, r.Objects, event.EndsAlways)
	return trace.AppendRecord(b, &r)
}

// Process is a process with those of its threads that are to be described.
type Process struct {
	PID     int
	Threads []int
}

// State describes running processes, little by little. Its zero value has described
// none.
type State struct {
	Env   Env   // of them; "" is EnvNames
	Count Count // what was described

	first  map[int]thread // by process: it stands for their common directory and table
	tables map[thread]map[int32]file
	opens  OpenFiles
}

// Count says how much runs.
type Count struct{ Processes, Threads, Descriptors int }

type thread struct{ pid, tid int }

// file is what makes a descriptor another one.
type file struct {
	dev, flags uint32
	ino        uint64
}

func fileOf(o *trace.Object) file { return file{o.Dev, o.Flags, o.Ino} }

// Append appends, with time at, the records of threads that are about to be
// followed: first who they are, then what they share with each other, as if one had
// made the other, then working directories and descriptors.
func (s *State) Append(b []byte, at uint64, processes []Process) []byte {
	if s.first == nil {
		s.first, s.tables = map[int]thread{}, map[thread]map[int32]file{}
	}
	type own struct {
		thread
		shares uint64
	}
	var list []own
	var fresh []int
	for _, p := range processes {
		slices.SortFunc(p.Threads, func(a, c int) int { // its first thread in front
			return cmp.Or(-cmp.Compare(btoi(a == p.PID), btoi(c == p.PID)), cmp.Compare(a, c))
		})
		for _, tid := range p.Threads {
			r, ok := task(p.PID, tid, at)
			if !ok {
				continue
			}
			b = trace.AppendRecord(b, &r)
			me, share := thread{p.PID, tid}, uint64(0)
			maker, known := s.first[p.PID]
			if known {
				share = trace.ShareVM | trace.ShareThread
			} else {
				s.first[p.PID] = me
				fresh = append(fresh, p.PID)
				maker, known = s.first[int(r.PPID)]
			}
			if known {
				share |= shared(maker, me)
			}
			if share != 0 {
				b = trace.AppendRecord(b, &trace.Record{
					Type: trace.RecFork, PID: uint32(maker.pid), TID: uint32(maker.tid), Exit: at,
					Child: uint32(p.PID), ChildTID: uint32(tid), Share: share,
				})
			}
			list = append(list, own{me, share})
		}
	}
	s.Count.Processes += len(fresh)
	s.Count.Threads += len(list)
	for _, pid := range fresh {
		b = AppendProcess(b, pid, at, s.Env, Running)
	}
	for _, t := range list {
		if t.shares&trace.ShareFS == 0 {
			r := place(t.pid, t.tid, at)
			b = trace.AppendRecord(b, &r)
		}
		if t.shares&trace.ShareFiles == 0 {
			s.tables[t.thread] = map[int32]file{}
			b = s.appendTable(b, t.thread, at)
			s.Count.Descriptors += len(s.tables[t.thread])
		}
	}
	return b
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// AppendChanges appends, with time at, the descriptors that are others than when
// they were described: opened meanwhile by calls that nobody saw.
func (s *State) AppendChanges(b []byte, at uint64) []byte {
	for t := range s.tables {
		b = s.appendTable(b, t, at)
	}
	return b
}

// appendTable appends the descriptors of a table that it has not described.
func (s *State) appendTable(b []byte, t thread, at uint64) []byte {
	d, known := dir(t.pid, t.tid), s.tables[t]
	for _, fd := range numbers(d + "fd") {
		o, ok := descriptor(d, fd)
		if !ok || known[o.FD] == fileOf(&o) {
			continue
		}
		known[o.FD] = fileOf(&o)
		o.Open = s.opens.Number(t.tid, &o)
		flags := trace.FileOwn
		if o.FD <= 2 { // its surroundings, by custom
			flags = 0
		}
		b = appendFile(b, t.pid, t.tid, at, o, flags)
	}
	return b
}
