// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// planOpen plans to open what was open at the start.
func (p *Planner) planOpen(t *Task) {
	f := &t.Event.Files[0]
	if p.handles[f.Open] != nil {
		return // by another number already
	}
	t.Action = OpenAtStart
	t.Files.Result = NewHandle(f.Path)
	t.Files.Result.Listing.Begun = effect.TypeOf(f.Mode) == tree.Dir && f.Pos != 0
	p.handles[f.Open] = t.Files.Result
}
