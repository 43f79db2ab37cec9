// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
)

// space bounds what a replay takes of the target's file system. A tape of a few lines can ask for
// more than any disk has.
type space struct {
	most int64 // bytes; 0: there is no limit
	free int64 // bytes, at the start
}

// unlookedBytes is how much a worker writes before it looks at the file system again.
const unlookedBytes = 16 << 20

func newSpace(most int64) space {
	free, ok := freeSpace()
	if !ok {
		return space{}
	}
	return space{most, free}
}

// freeSpace returns how many bytes are free in the root directory's file system, if it says so.
func freeSpace() (int64, bool) {
	var fs unix.Statfs_t
	if unix.Statfs("/", &fs) != nil || fs.Blocks == 0 {
		return 0, false
	}
	return int64(fs.Bavail) * fs.Bsize, true
}

// reserve is called before a call that may take n bytes of the target's file system. It stops the replay
// and reports false if that would be more than the limit.
func (w *worker) reserve(n int64) bool {
	s := &w.env.space
	if s.most == 0 || n <= 0 {
		return true
	}
	if w.unlooked += n; w.unlooked < min(unlookedBytes, s.most/8) {
		return true
	}
	w.unlooked = 0
	if free, ok := freeSpace(); !ok || n <= s.most && s.free-free <= s.most-n {
		return true
	}
	w.env.stop(fmt.Errorf("the replay would take more than %d bytes of the target's file system: --max-bytes allows "+
		"more", s.most))
	return false
}

// takes returns how many bytes a task may take, at most.
func takes(t *plan.Task) int64 {
	const punch, collapse = unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_COLLAPSE_RANGE
	if t.Event.Op == event.OpFallocate && t.Event.Args[1]&(punch|collapse) == 0 {
		return max(int64(t.Event.Args[3]), 0)
	}
	return t.Event.Traffic().Written
}
