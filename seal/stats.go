// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Stats says what was sealed.
type Stats struct {
	Head    *trace.Head
	End     *trace.End // nil if the recording did not end in order
	Events  uint64     // of all kinds
	Calls   uint64
	Lost    uint64 // records
	Late    uint64 // events that came out of order
	Missing int64  // bytes of content that could not be recorded
	Refused uint64 // requests to trace a thread that had a tracer: the recorder
	Running int    // threads that had not ended
	Until   int64  // monotonic clock, ns, up to which the recording is complete
	Bytes   int64  // of content that the calls moved
	Stream  int64  // bytes of the stream that were read
	Losses  []trace.Loss
	Damage  error   // why the stream could not be read to its end; nil if it was
	Touched Touched // what the calls named
}

func newStats() *Stats { return &Stats{Touched: newTouched()} }

// count counts an event that was resolved.
func (st *Stats) count(ev *event.Event) {
	st.Touched.see(ev)
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		st.Bytes += b.Len
		st.Missing += b.Missing
	}
	if ev.Kind == event.Call {
		st.Calls++
		if isRefused(ev) {
			st.Refused++
		}
	}
	st.Events++
}

// isRefused reports whether a program asked to trace a thread that is traced.
func isRefused(ev *event.Event) bool {
	const traceMe, attach, seize = 0, 16, 0x4206 // PTRACE_* (linux/ptrace.h)
	return ev.Op == event.OpPtrace && ev.Errno == syscall.EPERM &&
		(ev.Args[0] == traceMe || ev.Args[0] == attach || ev.Args[0] == seize)
}

// lose takes what was lost: as counted here, and as the recorder counted it.
func (st *Stats) lose(l losses) {
	st.Lost = l.total()
	if st.End != nil && st.End.Lost > st.Lost {
		l[trace.LossDisk] += st.End.Lost - st.Lost
		st.Lost = st.End.Lost
	}
	st.Losses = trace.Losses(l)
}

// Manifest returns what the tape's manifest says of the stream.
func (st *Stats) Manifest(program string) *trace.Manifest {
	m := &trace.Manifest{Program: program, Hosts: []trace.Host{{Head: *st.Head}}, Losses: st.Losses}
	switch {
	case st.End != nil:
		m.ExitStatus, m.Signal = st.End.ExitStatus, st.End.Signal
	case st.Damage != nil && !errors.Is(st.Damage, trace.ErrTruncated):
		m.Incomplete, m.Reason = true, "the stream is damaged: "+st.Damage.Error()
	default:
		m.Incomplete, m.Reason = true, "the recording did not end in order: its recorder was killed, or the "+
			"machine stopped"
	}
	if st.Lost > 0 && !m.Incomplete {
		m.Incomplete, m.Reason = true, fmt.Sprintf("%d records were lost", st.Lost)
	}
	return m
}
