// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// findOmission notes whether a call that is not made, or not to where it wrote, changed the tree: the
// replay's tree then lacks what it did.
func (p *Planner) findOmission(t *Task) {
	ev := &t.Event
	if why := halfMade(t); why != whyNone {
		t.Omits, t.Why = true, why
		return
	}
	if tooLittle(t) {
		t.Omits = true // it need not have changed the tree, but nothing is verified of it
		return
	}
	if !ev.OK() || ev.Flags&event.Interrupted != 0 || t.Why == whyOwn || t.Action != Emulate && t.Action != CopyOut {
		return
	}
	if p.shared.removes(ev) {
		t.Omits, t.Why = true, whyHole
		return
	}
	if t.Action == Emulate && effect.ChangesNames(ev) {
		t.Omits = t.Why == whyNoName
		for i := range ev.Paths {
			f := ev.FileArg(int(ev.Paths[i].Arg) - 1)
			if f != nil && f.Arg >= 0 && t.Files.FDs[f.Arg] == nil && !effect.Virtual(f.Path) && !p.outside[f.Open] {
				t.Omits, t.Why = true, whyLost
			}
		}
	}
	if f := effect.ChangedFile(ev); f != nil && p.lost(ev, f) {
		t.Omits = true
		if t.Why == whySimulated {
			t.Why = whyLost
		}
	}
}

// tooLittle reports whether a call that succeeded is not made because the trace lacks its name or a number.
func tooLittle(t *Task) bool {
	return t.Action == Emulate && t.Event.OK() && (t.Why == whyUnsaid || t.Why == whyNoName && nameless(&t.Event))
}

// halfMade returns why a call that is made leaves something else in the tree than it did in the
// recording, or whyNone.
func halfMade(t *Task) Reason {
	switch ev := &t.Event; {
	case ev.OK() && t.Overlaid && t.Action != Emulate && changes(ev):
		return whyOverlay
	case t.Action == CopyIn && ev.Ret > 0 && ev.Flags&event.Incomplete != 0:
		return whyBytes
	}
	return whyNone
}

// changes reports whether a call that succeeded changed a file, or can do so by what it opened.
func changes(ev *event.Event) bool {
	opened := ev.FileArg(event.ResultArg)
	return effect.ChangesNames(ev) || effect.ChangedFile(ev) != nil ||
		opened != nil && ev.Spec().Class == event.Descriptor && opened.Flags&syscall.O_ACCMODE != 0
}

// lost reports whether a descriptor is of a file in the tree, although the replay does not have
// it, or does not make what is done with it. Of a file of which nothing is known, as in traces of others, the
// attributes count: they may be used by name.
func (p *Planner) lost(ev *event.Event, f *event.File) bool {
	if effect.Virtual(f.Path) || p.outside[f.Open] {
		return false
	}
	if !f.Known {
		return strings.HasPrefix(f.Path, "/") && !ev.Traffic().Writes
	}
	typ := effect.TypeOf(f.Mode)
	return f.Nlink > 0 && (typ == tree.File || typ == tree.Dir)
}
