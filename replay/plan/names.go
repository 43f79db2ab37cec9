// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// names has the names that lead, at one moment or another, to files of a kind that a replay does not use, and whether
// they do so now. The kinds are files that the kernel makes up (by a link to /dev/null), and FIFOs, sockets and
// devices.
type names map[string]bool

func newNames(list []string) names {
	n := names{}
	for _, name := range list {
		n[name] = true
	}
	return n
}

// makesLink reports whether a call makes a symbolic link, which can lead to what the kernel makes up. What leads
// there at all is known from the start.
func makesLink(ev *event.Event) (now, learn bool) {
	return ev.Effect() == event.EffectSymlink, false
}

// makesSpecial reports whether a call makes a FIFO, a socket or a device.
func makesSpecial(ev *event.Event) (now, learn bool) {
	if ev.Effect() != event.EffectMknod {
		return false, true
	}
	typ := effect.TypeOf(uint32(ev.Named("mode")))
	return typ != tree.File && typ != 0, true
}

// observe follows what a call does to these names. makes says whether it makes a file of their kind, and whether
// names that are not known so far come to them.
func (n names) observe(ev *event.Event, makes func(*event.Event) (now, learn bool)) {
	made, learn := makes(ev)
	if len(n) == 0 && !(made && learn) || !ev.OK() {
		return
	}
	from := false
	for i := range ev.Paths {
		name := ev.Paths[i].Abs
		was, known := n[name]
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
			now = made
		}
		if known || now && learn {
			n[name] = now
		}
	}
}
