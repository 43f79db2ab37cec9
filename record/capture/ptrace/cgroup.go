// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/running"
)

// cgroups notices that followed processes moved to other control groups: after one of them has written to a file
// of a control group.
type cgroups struct {
	device uint32         // of the version 2 hierarchy; 0: there is none
	known  map[int]string // by process
}

func newCgroups() cgroups { return cgroups{device: running.CgroupDevice(), known: map[int]string{}} }

func (c *cgroups) executed(pid int) {
	if c.device != 0 {
		c.known[pid] = running.CgroupOf(pid)
	}
}

func (c *cgroups) forked(parent, child int) {
	if at, ok := c.known[parent]; ok && parent != child {
		c.known[child] = at
	}
}

// CgroupDevice returns the device of the files of control groups, 0 if there is none.
func (r *Recorder) CgroupDevice() uint32 { return r.cgroups.device }

// maybeMoved looks which processes have moved, if the call in r.rec, which has returned, can have moved any.
func (r *Recorder) maybeMoved(ret int64) {
	c := &r.cgroups
	if ret <= 0 || c.device == 0 || len(r.rec.Objects) == 0 || r.rec.Objects[0].Dev != c.device {
		return
	}
	switch event.Op(r.rec.Op) {
	case event.OpWrite, event.OpWritev, event.OpPwrite64, event.OpPwritev, event.OpPwritev2:
	default:
		return
	}
	r.tr.Threads(func(t *ptracer.Tracee) {
		if t.TID != t.PID {
			return
		}
		if at := running.CgroupOf(t.PID); at != "" && at != c.known[t.PID] {
			c.known[t.PID] = at
			r.changed(t.PID)
		}
	})
}

// changed describes a process whose facts are others now.
func (r *Recorder) changed(pid int) {
	rec := running.ProcessRecord(pid, now(), r.o.Environ, running.Changed)
	r.out.put(&rec)
}
