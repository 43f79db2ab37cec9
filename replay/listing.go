package replay

import (
	"path"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// recent is which names came and went in directories lately. A directory that is listed
// meanwhile may show such a name or not (readdir(3)).
type recent map[string][]change

type change struct {
	name string
	exit int64 // ns; return of the call
}

// recentChanges is how many are remembered of a directory.
const recentChanges = 64

// see notes what a task's call adds to directories or takes from them.
func (r recent) see(ev *event.Event) {
	if !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	if ev.Spec().Class != event.Namespace && effect.OpenFlags(ev)&effect.OCreat == 0 && ev.Op != event.OpBind {
		return
	}
	for i := range ev.Paths {
		abs := ev.Paths[i].Abs
		if abs == "" {
			continue
		}
		dir := path.Dir(abs)
		list := r[dir]
		if len(list) >= recentChanges {
			list = append(list[:0], list[recentChanges/2:]...)
		}
		r[dir] = append(list, change{path.Base(abs), ev.Exit})
	}
	if len(r) > 1<<16 {
		clear(r)
	}
}

// listed gives a task that lists a directory the names that came or went since the
// listing began.
func (r recent) listed(t *task) {
	ev := &t.ev
	if ev.Op != event.OpGetdents64 && ev.Op != event.OpGetdents || len(ev.Files) == 0 || t.fds[0] == nil {
		return
	}
	h := t.fds[0]
	if h.listedFrom == 0 {
		h.listedFrom = ev.Enter
	}
	for _, c := range r[path.Clean(ev.Files[0].Path)] {
		if c.exit >= h.listedFrom {
			t.unsure = append(t.unsure, c.name)
		}
	}
	if ev.Ret == 0 {
		h.listedFrom = 0
	}
}
