// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"

	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/trace"
)

// openRow is a row of the table opens: an open file from its open to the end of its
// last descriptor.
type openRow struct {
	*history.Open
	host *trace.Host
	name int // position of the host's name
}

// reached returns the name that the kernel knew the file by.
func (o *openRow) reached() string { return cmp.Or(o.Real, o.Path) }

// accessNames are what open(2) says of reading and writing, by O_ACCMODE.
var accessNames = []string{"read-only", "write-only", "read-write"}

func openColumns(hosts []string) []column[openRow] {
	known := func(o *openRow) bool { return o.Mode != 0 }
	made := func(f func(*openRow) int64) func(*openRow) (int64, bool) {
		return func(o *openRow) (int64, bool) { return f(o), o.By != 0 }
	}
	ended := func(f func(*openRow) int64) func(*openRow) (int64, bool) {
		return func(o *openRow) (int64, bool) { return f(o), o.Ender != nil }
	}
	count := func(name string, f func(*openRow) uint64) column[openRow] { return numberColumn(name, f) }
	return []column[openRow]{
		numberColumn("open_id", func(o *openRow) uint64 { return uint64(o.ID) }),
		enumColumn("host", hosts, func(o *openRow) int { return o.name }),
		textColumn("path", (*openRow).reached),
		enumColumn("type", typeNames, func(o *openRow) int { return typeOfMode(o.Mode, known(o)) }),
		maybeColumn("dev", func(o *openRow) (uint64, bool) { return o.Dev, known(o) }),
		maybeColumn("ino", func(o *openRow) (uint64, bool) { return o.Ino, known(o) }),
		maybeColumn("mode", func(o *openRow) (uint32, bool) { return o.Mode, known(o) }),
		maybeColumn("flags", func(o *openRow) (uint32, bool) { return o.Flags, known(o) }),
		enumColumn("access", accessNames, func(o *openRow) int {
			if !known(o) {
				return -1
			}
			return int(o.Flags & 3)
		}),
		numberColumn("pid", func(o *openRow) uint32 { return o.Opener.PID }),
		numberColumn("tid", func(o *openRow) uint32 { return o.TID }),
		textColumn("comm", func(o *openRow) string { return o.Comm }),
		enumColumn("opened_by", opNames, func(o *openRow) int {
			if o.By == 0 {
				return -1
			}
			return opOf(o.By)
		}),
		maybeColumn("opened_seq", func(o *openRow) (uint64, bool) { return o.Seq, o.By != 0 }),
		timeColumn("opened_time", made(func(o *openRow) int64 { return o.host.Wall(o.OpenedNS) })),
		maybeColumn("opened_ns", made(func(o *openRow) int64 { return o.OpenedNS })),
		enumColumn("closed_by", closedNames, func(o *openRow) int {
			switch {
			case o.Ender == nil:
				return -1
			case o.EndedBy == 0:
				return len(opNames) // the end of the process
			}
			return opOf(o.EndedBy)
		}),
		maybeColumn("closed_seq", func(o *openRow) (uint64, bool) { return o.EndedSeq, o.Ender != nil }),
		maybeColumn("closed_pid", func(o *openRow) (uint32, bool) {
			if o.Ender == nil {
				return 0, false
			}
			return o.Ender.PID, true
		}),
		timeColumn("closed_time", ended(func(o *openRow) int64 { return o.host.Wall(o.EndedNS) })),
		maybeColumn("closed_ns", ended(func(o *openRow) int64 { return o.EndedNS })),
		maybeColumn("duration_ns", func(o *openRow) (int64, bool) { return o.EndedNS - o.OpenedNS, o.By != 0 && o.Ender != nil }),
		maybeColumn("size_opened", func(o *openRow) (int64, bool) { return notNegative(o.FirstSize) }),
		maybeColumn("size_closed", func(o *openRow) (int64, bool) { return notNegative(o.Size) }),
		count("calls", func(o *openRow) uint64 { return o.Calls }),
		count("reads", func(o *openRow) uint64 { return o.Reads }),
		count("writes", func(o *openRow) uint64 { return o.Writes }),
		count("seeks", func(o *openRow) uint64 { return o.Seeks }),
		count("closes", func(o *openRow) uint64 { return o.Closes }),
		numberColumn("bytes_read", func(o *openRow) int64 { return o.ReadBytes }),
		numberColumn("bytes_written", func(o *openRow) int64 { return o.WrittenBytes }),
		maybeColumn("sequential", func(o *openRow) (bool, bool) { return o.Sequential(), o.Located > 0 }),
		count("consecutive", func(o *openRow) uint64 { return o.Consecutive }),
		count("ascending", func(o *openRow) uint64 { return o.Ascending }),
		count("located", func(o *openRow) uint64 { return o.Located }),
		count("switches", func(o *openRow) uint64 { return o.Switches }),
		maybeColumn("max_offset", func(o *openRow) (int64, bool) { return o.Max, o.Located > 0 }),
		numberColumn("shared", func(o *openRow) uint32 { return uint32(o.Shared()) }),
	}
}

// closedNames are the operations, and what is none of them.
var closedNames = append(append([]string(nil), opNames...), processEnd)

// processEnd is not "exit", which is a call.
const processEnd = "end of process"

// ended makes rows of open files.
func (s *source) ended(o *history.Open) error {
	r, err := s.opens.begin()
	if err != nil {
		return err
	}
	*r = openRow{o, s.tape.Host(o.Host), s.hostOf(o.Host)}
	s.opens.commit()
	return nil
}

// hostOf returns the position of a host's name.
func (s *source) hostOf(host uint32) int { return min(int(host), len(s.hosts)-1) }
