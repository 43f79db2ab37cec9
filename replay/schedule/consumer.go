// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync"

	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
)

// Consumer takes the steps of a queue for the worker that does them.
type Consumer struct {
	Pacer    Pacer
	queue    *Queue
	parker   *parker
	begin    <-chan struct{} // closed when calls may be made
	position uint64          // steps that are done
	tasks    *sync.Pool
}

// Run calls do for each step of the queue until it ends, when the step is due and all is done
// that it waits for. When the replay was stopped, it drops the steps that are left. The calling
// goroutine must be locked to its thread. do gets the step's batch, which has its content.
func (c *Consumer) Run(do func(*plan.Step, *Batch)) {
	if c.Pacer.Paced() {
		sleepExactly()
	}
	<-c.begin
	for b := c.queue.Next(); b != nil; b = c.queue.Next() {
		deps := b.deps
		for i := range b.Steps {
			s := &b.Steps[i]
			if len(b.times) > 0 {
				c.Pacer.step = b.times[i]
			}
			c.wait(s, deps[:s.Deps])
			deps = deps[s.Deps:]
			if !c.Pacer.base.halted.Load() {
				do(s, b)
			} else if s.Task != nil {
				c.Recycle(s.Task)
			}
			if at := c.Pacer.step.done; at != nil {
				at.Store(c.Pacer.done)
			}
			c.position++
			c.queue.Finish(c.position)
		}
		if c.Pacer.calls > 0 {
			c.Pacer.end = now()
		}
		c.queue.Release(b)
	}
}

// wait returns when a step is due and all is done that it waits for.
func (c *Consumer) wait(s *plan.Step, deps []Dependency) {
	base := c.Pacer.base
	if base.paced() {
		c.Pacer.waitForStep(s)
	}
	thinks := base.pace == options.PaceThink
	for i := range deps {
		d := &deps[i]
		if d.queue.done.Load() < d.pos {
			d.queue.await(d.pos, c.parker, base.halted)
		}
		if d.lag > 0 && thinks {
			base.waitUntil(d.done.Load() + base.scale(d.lag))
		}
	}
	if sleep := c.Pacer.step.sleep; sleep > 0 && thinks {
		base.waitUntil(now() + base.scale(sleep))
	}
}

// Recycle gives a task back that is done, so that it can be used for another event.
func (c *Consumer) Recycle(t *plan.Task) {
	t.Shrink()
	c.tasks.Put(t)
}
