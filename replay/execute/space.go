// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
)

// space bounds what a replay takes of the target's file system. A tape of a few lines can ask for
// more than any disk has.
type space struct {
	most  int64        // bytes; 0: there is no limit
	free  int64        // bytes, at the start
	files int64        // 0: there is no limit
	used  int64        // files that the file system had at the start; -1: it does not say
	made  atomic.Int64 // calls that may have made one
}

// unlookedBytes is how much a worker writes before it looks at the file system again.
const unlookedBytes = 16 << 20

func (s *space) init(l *Limits) {
	s.files, s.used = l.Files, usedFiles()
	if free, ok := freeSpace(); ok {
		s.most, s.free = l.Bytes, free
	}
}

// usedFiles returns how many files the root directory's file system has, -1 if it does not say.
func usedFiles() int64 {
	var fs unix.Statfs_t
	if unix.Statfs("/", &fs) != nil || fs.Files == 0 {
		return -1
	}
	return int64(fs.Files - fs.Ffree)
}

// mayMakeFile reports whether a task can make a file.
func mayMakeFile(t *plan.Task) bool {
	switch t.Event.Effect() {
	case event.EffectMkdir, event.EffectMknod, event.EffectSymlink:
		return t.Event.OK()
	case event.EffectOpen:
		return t.Event.OK() && effect.OpenFlags(&t.Event)&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0
	}
	return t.Action == plan.NameSocket
}

// reserveFile is called before a call that may make a file. It stops the replay and reports false if
// there would be more than the limit. A call that is counted may have found its file: so what
// the file system says counts, if it says something.
func (w *worker) reserveFile() bool {
	s := &w.env.space
	if s.files == 0 || s.made.Add(1) <= s.files {
		return true
	}
	if s.used >= 0 && usedFiles()-s.used < s.files {
		return true
	}
	w.env.stop(fmt.Errorf("the replay would make more than %d files: --max-files allows more", s.files))
	return false
}

// errOpen says that the limit of descriptors was met.
func errOpen() error {
	return fmt.Errorf("the replay would have more than %d files open: --max-open allows more, up to the limit "+
		"of the user (ulimit -Hn)", openLimit())
}

func openLimit() uint64 {
	var l unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &l) // getrlimit is a call that the filter refuses
	return l.Cur
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
	if n < min(unlookedBytes, s.most/8)-w.unlooked { // the sum of what a tape says can be more than an int64 has
		w.unlooked += n
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
