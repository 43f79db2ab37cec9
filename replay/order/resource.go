// SPDX-License-Identifier: Apache-2.0

package order

// Ref names a task: it is the Pos-th, from 1, of those that slot Slot does one after
// the other.
type Ref struct {
	Slot uint32
	Pos  uint64
}

// access is what a task does with a resource.
type access uint8

const (
	accessRead    access = iota // commutes with reads
	accessCommute               // commutes with its own kind
	accessWrite                 // commutes with nothing
)

// resource is something that tasks read and change. The zero value was never accessed.
type resource struct {
	kind access // of cur
	cur  []Ref  // the present phase: the last task of each slot in it
	prev []Ref  // the one before
}

// access makes the task that is being placed wait for the phase before its own, and
// one of its own phase.
func (r *resource) access(o *Order, a access) {
	if len(r.cur) > 0 && (a == accessWrite || a != r.kind) {
		r.prev, r.cur = r.cur, r.prev[:0]
	}
	r.kind = a
	o.waitAll(r.prev)
	r.cur = latest(r.cur, o.self)
}

// releaseLock is a write that waits for reads alone, the last of each slot, and is in one
// phase with the writes and releases before it. Locks are released so: if no order
// explains which task was granted one, the release may stand behind a task that needs it.
func (r *resource) releaseLock(o *Order, reads []Ref) {
	if len(r.cur) > 0 && r.kind == accessRead {
		r.prev, r.cur = r.cur, r.prev[:0]
	}
	o.waitAll(reads)
	r.kind = accessWrite
	r.cur = latest(r.cur, o.self)
}

// awaitChange makes the task wait for what last changed the resource, without being of
// a phase of it.
func (r *resource) awaitChange(o *Order) {
	if len(r.cur) > 0 && r.kind != accessRead {
		o.waitAll(r.cur)
	} else {
		o.waitAll(r.prev)
	}
}

// await makes the task wait for all that accessed the resource.
func (r *resource) await(o *Order) {
	o.waitAll(r.cur)
	o.waitAll(r.prev)
}

// done reports whether no task has to wait for the resource any more: whether
// all that accessed it are done.
func (r *resource) done(o *Order) bool { return o.allDone(r.cur) && o.allDone(r.prev) }

// since makes the resource one that tasks changed before anything is known of it.
func (r *resource) since(refs ...Ref) {
	r.kind, r.cur, r.prev = accessWrite, append(r.cur[:0], refs...), r.prev[:0]
}

// absorb adds the accesses to another resource, which turned out to be the same.
func (r *resource) absorb(other *resource) {
	if len(other.cur) == 0 {
		return
	}
	r.kind = accessWrite
	for _, ref := range other.cur {
		r.cur = latest(r.cur, ref)
	}
	for _, ref := range other.prev {
		r.cur = latest(r.cur, ref)
	}
}

// latest adds a task to a list that has the last one of each slot.
func latest(refs []Ref, r Ref) []Ref {
	for i := range refs {
		if refs[i].Slot == r.Slot {
			refs[i].Pos = max(refs[i].Pos, r.Pos)
			return refs
		}
	}
	return append(refs, r)
}
