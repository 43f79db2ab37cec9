// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/iotape/iotape/event"

// elsewhere has the names that lead, at one moment or another, to files that the kernel makes up,
// such as a link to /dev/null, and whether they do so now.
type elsewhere map[string]bool

func newElsewhere(names []string) elsewhere {
	e := elsewhere{}
	for _, name := range names {
		e[name] = true
	}
	return e
}

// observe follows what a call does to these names.
func (e elsewhere) observe(ev *event.Event) {
	if len(e) == 0 || !ev.OK() {
		return
	}
	from := false
	for i := range ev.Paths {
		name := ev.Paths[i].Abs
		was, known := e[name]
		use, _ := ev.NameUse(i)
		now := was
		switch use {
		case event.NameRemove:
			now = false
		case event.NameFrom, event.NameLink:
			if from = was; use == event.NameFrom {
				now = false
			}
		case event.NameTo:
			now = from
		case event.NameCreate:
			now = ev.Effect() == event.EffectSymlink
		}
		if known {
			e[name] = now
		}
	}
}
