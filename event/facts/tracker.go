// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"maps"

	"github.com/iotape/iotape/event"
)

// Tracker says which facts hold of the processes of a tape, whose events it sees in their order. Its zero value
// has seen none.
type Tracker struct {
	known map[id]*Described
}

type id struct{ host, pid uint32 }

// Described is what a recording said of a process.
type Described struct {
	*Process
	Text, Env, Args []byte // as in the event; nil: not known
}

// See sees an event.
func (t *Tracker) See(ev *event.Event) {
	switch ev.Kind {
	case event.Described:
		if t.known == nil {
			t.known = map[id]*Described{}
		}
		key, text := id{ev.Host, ev.PID}, inline(ev, PartFacts)
		d := &Described{}
		if old := t.known[key]; old != nil && bytes.Equal(old.Text, text) {
			d.Process, d.Text = old.Process, old.Text
		} else {
			d.Process, d.Text = Parse(text), bytes.Clone(text)
		}
		d.Env, d.Args = bytes.Clone(inline(ev, PartEnv)), bytes.Clone(inline(ev, PartArgs))
		t.known[key] = d
	case event.Forked:
		made := ev.Fork().PID
		if made == ev.PID {
			return
		}
		child := id{ev.Host, made}
		if d := t.known[id{ev.Host, ev.PID}]; d != nil {
			t.known[child] = d
		} else {
			delete(t.known, child)
		}
	}
}

// Forget forgets a process, which has ended.
func (t *Tracker) Forget(host, pid uint32) { delete(t.known, id{host, pid}) }

// Len returns of how many processes facts are kept, also of those that have ended.
func (t *Tracker) Len() int { return len(t.known) }

// Keep forgets the processes of a host that alive does not name.
func (t *Tracker) Keep(host uint32, alive func(pid uint32) bool) {
	maps.DeleteFunc(t.known, func(k id, _ *Described) bool { return k.host == host && !alive(k.pid) })
}

// Of returns the facts of a process, nil if none are known.
func (t *Tracker) Of(host, pid uint32) *Described { return t.known[id{host, pid}] }
