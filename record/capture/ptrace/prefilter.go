// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/predicate"
)

// refused lists the calls that need no stop because the filter refuses them whatever
// they do: but for those that move a file's position, which take turns with others.
func refused(s *predicate.Prefilter, arch event.Arch) (list []Exempt) {
	if s == nil {
		return nil
	}
	for op, entry := range s.Entries {
		if nr := event.Number(arch, op); entry == predicate.PrefilterDrop && nr >= 0 && !takesTurns(op) {
			list = append(list, Exempt{NR: nr, Name: op.String(), Reason: "the filter refuses it"})
		}
	}
	return list
}

// refuses reports whether the filter refuses a call that has returned. What has been
// written of it at its entry cannot be taken back.
func (r *Recorder) refuses(th *thread, exit uint64, ret int64) bool {
	c := &th.call
	if r.o.Prefilter == nil || c.compat {
		return false
	}
	for i := range c.spec.Args {
		if a := &c.spec.Args[i]; a.Kind.IsMemory() && a.When != event.AtExit {
			return false
		}
	}
	p := r.Identity(th.t)
	p.NR, p.Latency, p.Raw, p.Args = c.nr, int64(exit-c.enter), ret, c.args
	return r.o.Prefilter.Drops(c.spec.Op, &p)
}

// Identity returns what a prefilter can ask of who makes a thread's calls, as it was recorded last.
func (r *Recorder) Identity(t *ptracer.Tracee) predicate.PrefilterCall {
	th := r.of(t)
	return predicate.PrefilterCall{
		PID: uint32(t.PID), TID: th.tid, PPID: th.task.ppid, PGRP: th.task.pgid, SID: th.task.sid,
		UID: th.task.uid, GID: th.task.gid, Comm: th.task.comm,
	}
}
