// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/iotape/iotape/replay/order"

// place gives a task its place in its slot, and finds what it has to wait for. made says that
// it does what its event says.
func (p *Planner) place(t *Task, th *thread, made bool) {
	t.Time.Think, th.computed = th.computed, 0
	t.Order.Ref, t.Order.Deps = p.order.Place(th.slot, &t.Event, made, t.Order.Deps)
	if p.annotations != nil {
		p.annotations.apply(t)
	}
	if !th.begun {
		th.begun = true
		p.wait(t, th.origin)
	}
	if t.Step.Kind != StepTask {
		p.wait(t, t.Step.Handle.opener)
		return
	}
	p.waitForFiles(t)
	for _, o := range t.Locks.Ends {
		p.waitAll(t, o.users)
	}
	if t.Locks.Owner != nil {
		t.Locks.Owner.users = use(t.Locks.Owner.users, t.Order.Ref)
	}
	for _, h := range t.Files.Closes {
		p.wait(t, h.opener)
		p.waitAll(t, h.users)
	}
	if c := p.cwds[t.Dir.From]; c != nil {
		p.wait(t, c.setBy)
	}
	if t.Dir.Sets != 0 {
		p.cwds[t.Dir.Sets] = &cwd{setBy: t.Order.Ref, published: t.Dir.Publish}
	}
}

// waitForFiles makes a task wait for the tasks that open its files.
func (p *Planner) waitForFiles(t *Task) {
	for _, list := range [...][]*Handle{t.Files.FDs[:], t.Files.Through[:], t.Files.Others} {
		for _, h := range list {
			if h != nil {
				p.wait(t, h.opener)
				h.users = use(h.users, t.Order.Ref)
			}
		}
	}
	if t.Files.Result != nil {
		t.Files.Result.opener = t.Order.Ref
	}
}

// wait makes the task that was placed last wait for another one.
func (p *Planner) wait(t *Task, r order.Ref) {
	if r.Pos > 0 && r.Slot != t.Order.Ref.Slot {
		t.Order.Deps = p.order.Wait(r)
	}
}

func (p *Planner) waitAll(t *Task, refs []order.Ref) {
	for _, r := range refs {
		p.wait(t, r)
	}
}

// use adds a task to the last ones that use something.
func use(refs []order.Ref, r order.Ref) []order.Ref {
	for i := range refs {
		if refs[i].Slot == r.Slot {
			refs[i].Pos = r.Pos
			return refs
		}
	}
	return append(refs, r)
}
