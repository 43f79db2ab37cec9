// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/iotape/iotape/event"

// planShare plans an ioctl with which files share content, and binds the files that stand
// in its argument.
func (p *Planner) planShare(t *Task) {
	if t.Files.FDs[0] == nil {
		return
	}
	bind := func(open event.OpenID) { t.Files.Others = append(t.Files.Others, p.handles[open]) }
	if _, ok := t.Event.Cloned(); ok {
		if bind(t.Second); t.Files.Others[0] != nil {
			t.Action = CloneRange
		}
		return
	}
	_, _, with := t.Event.Deduped()
	for _, d := range with {
		var open event.OpenID
		for i := range t.Event.Files {
			if f := &t.Event.Files[i]; f.Arg == event.MemoryArg && f.FD == d.FD {
				open = f.Open
			}
		}
		bind(open)
		t.Action = DedupeRange
	}
}
