// SPDX-License-Identifier: Apache-2.0

package order

// growth is how a file came to be as long as it is: by writes behind its end, which need
// not be done in the order in which they were recorded. A call that found the file so long
// needs the one write that made it so, and no other.
type growth struct {
	safe  int64   // bytes that it has whatever is done: it had them first, and was not cut
	least int64   // bytes that it has, at least; a write behind them makes it longer
	cut   Ref     // the last task that changed its size in another way
	steps []grown // each to more bytes than the one before, since then
}

// grown is a task that made a file longer than all before it.
type grown struct {
	to int64
	by Ref
}

// maxGrown is how many steps of a file are remembered one by one.
const maxGrown = 4096

// begins says how many bytes a file has before its first task.
func (g *growth) begins(size int64) { g.safe, g.least = size, size }

// changed says that the present task changes the size, to an unknown one.
func (g *growth) changed(o *Order) { g.safe, g.least, g.cut, g.steps = 0, 0, o.self, g.steps[:0] }

// grows says that the present task makes the file longer, if that is so.
func (g *growth) grows(o *Order, to int64) {
	if to <= g.least {
		return
	}
	g.least = to
	if n := len(g.steps); n >= 64 && n&(n-1) == 0 {
		g.forget(o)
	}
	g.steps = append(g.steps, grown{to, o.self})
}

// forget drops steps that are done, and if they are too many, every other one.
func (g *growth) forget(o *Order) {
	for i := len(g.steps) - 1; i >= 0; i-- {
		if o.isDone(g.steps[i].by) {
			g.safe = max(g.safe, g.steps[i].to)
			g.steps = append(g.steps[:0], g.steps[i+1:]...)
			break
		}
	}
	if len(g.steps) < maxGrown {
		return
	}
	kept := g.steps[:0]
	for i, s := range g.steps {
		if i%2 == 1 || i == len(g.steps)-1 {
			kept = append(kept, s)
		}
	}
	g.steps = kept
}

// await makes the present task wait until the file has so many bytes.
func (g *growth) await(o *Order, bytes int64) {
	if bytes <= g.safe {
		return
	}
	o.wait(g.cut)
	// The steps that count are mostly the last ones.
	i := len(g.steps)
	for i > 0 && g.steps[i-1].to >= bytes {
		i--
	}
	if i < len(g.steps) {
		o.wait(g.steps[i].by)
	}
}

// writesWithin makes a write that ends within what the file has by now wait for the tasks
// that saw it shorter. It need not wait for the task that made the file longer: if it is
// done before that, no result depends on it.
func (f *file) writesWithin(o *Order, end int64) {
	switch {
	case end <= f.growth.safe:
	case f.size.kind == accessCommute:
		o.waitAll(f.size.prev)
	case f.size.kind == accessWrite:
		o.waitAll(f.size.cur)
	default: // they saw it as long as that, or longer
		f.growth.await(o, end)
	}
}
