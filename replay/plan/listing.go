// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// recentChanges are the names that came and went in directories lately. A directory that is
// listed meanwhile may show such a name or not (readdir(3)).
type recentChanges struct {
	in  map[string][]nameChange
	all int
}

type nameChange struct {
	name string
	exit int64 // ns; return of the call
}

// Changes that are remembered: of a directory, of which a program can make thousands between two calls
// that list it, and of all.
const (
	maxRecentChanges = 1 << 13
	maxAllChanges    = 1 << 17
)

// observe notes what a task's call adds to directories or takes from them.
func (r *recentChanges) observe(ev *event.Event) {
	if !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	if ev.Spec().Class != event.Namespace && effect.OpenFlags(ev)&event.OpenCreat == 0 && ev.Op != event.OpBind {
		return
	}
	for i := range ev.Paths {
		abs := ev.Paths[i].Abs
		if abs == "" {
			continue
		}
		change := nameChange{path.Base(abs), ev.Exit}
		r.add(path.Dir(abs), change)
		f := ev.FileArg(int(ev.Paths[i].Arg) - 1)
		if f != nil && f.Open != 0 && !strings.Contains(ev.Paths[i].Raw, "/") {
			r.add(openKey(f.Open), change) // it may have been renamed since it was opened
		}
	}
	if r.all > maxAllChanges {
		clear(r.in)
		r.all = 0
	}
}

func (r *recentChanges) add(key string, c nameChange) {
	list := r.in[key]
	if len(list) >= maxRecentChanges {
		list = append(list[:0], list[maxRecentChanges/2:]...)
		r.all -= maxRecentChanges / 2
	}
	r.in[key] = append(list, c)
	r.all++
}

// openKey is the key of an open directory: no name has a NUL.
func openKey(id event.OpenID) string { return "\x00" + strconv.FormatUint(uint64(id), 16) }

// findUnsure gives a task that lists a directory the names that came or went since the
// directory was opened or rewound: on btrfs, a listing has those that were there then.
func (r *recentChanges) findUnsure(t *Task) {
	ev, h := &t.Event, t.Files.FDs[0]
	if effect.SeeksDirectory(ev) && h != nil {
		h.listedFrom = ev.Enter
	}
	if ev.Effect() != event.EffectList || len(ev.Files) == 0 || h == nil {
		return
	}
	if h.listedFrom == 0 {
		h.listedFrom = ev.Enter
	}
	f := &ev.Files[0]
	keys := append(make([]string, 0, 3), path.Clean(f.Path), openKey(f.Open))
	if f.Real != "" && f.Real != f.Path {
		keys = append(keys, f.Real)
	}
	for _, key := range keys {
		for _, c := range r.in[key] {
			if c.exit >= h.listedFrom {
				t.Unsure = append(t.Unsure, c.name)
			}
		}
	}
	h.listedFrom = ev.Enter // the next call adds what came since
	if ev.Ret == 0 {
		h.listedFrom = 0
	}
}

// Listing is what a directory stream has given so far, since file systems differ in the
// order of names and in how many fit into one call.
type Listing struct {
	Mu     sync.Mutex           // of what follows; held for a whole getdents
	Begun  bool                 // elsewhere than at the start, or before the recording: it is not compared
	Ended  bool                 // all was listed
	Want   map[string]tree.Type // as recorded, so far
	Unsure map[string]bool      // names that came or went meanwhile
	First  map[string]tree.Type // in the target when the stream was first read
}
