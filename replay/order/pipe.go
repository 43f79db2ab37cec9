// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

func (o *Order) pipe(fd *event.File) bool { return fd.Is(event.TypeFIFO) }

// piped orders what goes through a pipe: a read waits for the writes of its bytes. It
// reports whether the call is of a pipe.
func (o *Order) piped(ev *event.Event, fd *event.File) bool {
	if !o.pipe(fd) {
		return false
	}
	if !ev.OK() {
		return true
	}
	p := o.pipes[effect.InodeOf(fd)]
	if p == nil {
		p = &pipe{}
		o.pipes[effect.InodeOf(fd)] = p
	}
	switch ev.Effect() {
	case event.EffectWrite:
		p.writes = append(p.writes, written{p.wrote, p.wrote + ev.Ret, o.self})
		p.wrote += ev.Ret
	case event.EffectRead:
		p.read += ev.Ret
		k := 0
		for k < len(p.writes) && p.writes[k].end <= p.read {
			o.wait(p.writes[k].by)
			k++
		}
		if k < len(p.writes) && ev.Ret > 0 && p.writes[k].begin < p.read {
			o.wait(p.writes[k].by)
		}
		p.writes = append(p.writes[:0], p.writes[k:]...)
	}
	return true
}
