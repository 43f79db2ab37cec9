// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"maps"
	"path"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// others finds what processes that were not recorded changed while the recording went on: a file, or
// what a name leads to, is another one than before, and no recorded call did that. A replay cannot
// know when they did.
type others struct {
	files   map[effect.Inode]version  // as last seen
	names   map[seenName]effect.Inode // likewise; the zero value: there was none
	written map[effect.Inode]bool     // files that recorded calls changed, or may have
	changed map[string]bool           // names, and directories of names, that they changed
	found   map[string]bool           // names that others changed
}

// version is what changes when a file does.
type version struct{ mtime, size int64 }

// seenName is a name, through a link at its end or not.
type seenName struct {
	name   string
	follow bool
}

// maxSeen bounds each of the maps: what comes after is not looked at.
const maxSeen = 1 << 18

func newOthers() *others {
	return &others{
		files: map[effect.Inode]version{}, names: map[seenName]effect.Inode{}, written: map[effect.Inode]bool{},
		changed: map[string]bool{}, found: map[string]bool{},
	}
}

// result returns the names that others changed, sorted.
func (o *others) result() []string { return slices.Sorted(maps.Keys(o.found)) }

// full reports whether no more can be remembered: then recorded changes could be missed.
func (o *others) full() bool { return len(o.written) >= maxSeen || len(o.changed) >= maxSeen }

// observe learns from a call.
func (o *others) observe(ev *event.Event, arch event.Arch) {
	if ev.Kind != event.Call || ev.Flags&event.Interrupted != 0 || o.full() {
		return
	}
	if ev.OK() {
		o.changes(ev)
	}
	var n seenName
	if len(ev.Paths) > 0 {
		_, n.follow = ev.NameUse(0)
		n.name = ev.Paths[0].Reached()
	}
	if !ev.OK() {
		if ev.Errno == syscall.ENOENT && len(ev.Paths) == 1 {
			o.sees(ev, n, effect.Inode{})
		}
		return
	}
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && f.Ino != 0 && len(ev.Paths) == 1 {
		o.sees(ev, n, effect.InodeOf(f))
	}
	o.statted(ev, n, arch)
}

// statted learns from a call of the stat family.
func (o *others) statted(ev *event.Event, n seenName, arch event.Arch) {
	st, ok := effect.DecodeStat(ev, arch)
	if !ok || st.Ino == 0 || !effect.IsFileOrDirectory(st.Mode) {
		return
	}
	id := effect.Inode{Dev: st.Dev, Ino: st.Ino}
	if len(ev.Paths) > 0 && ev.Paths[0].Raw != "" {
		o.sees(ev, n, id)
	} else if n.name = ""; ev.FileArg(0) != nil { // of a descriptor
		n.name = ev.FileArg(0).Path
	}
	now := version{st.MTime, st.Size}
	was, seen := o.files[id]
	if seen && was != now && !o.written[id] {
		o.find(ev, n.name)
	}
	if seen || len(o.files) < maxSeen {
		o.files[id] = now
	}
}

// changes notes what a call that succeeded changed.
func (o *others) changes(ev *event.Event) {
	if effect.ChangesNames(ev) || ev.Op == event.OpBind {
		for i := range ev.Paths {
			for _, name := range [...]string{ev.Paths[i].Abs, ev.Paths[i].Reached()} {
				o.changed[name], o.changed[path.Dir(name)+"/"] = true, true
			}
		}
	}
	if f := effect.ChangedFile(ev); f != nil {
		o.written[effect.InodeOf(f)] = true
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Flags&syscall.O_ACCMODE != 0 || ev.Op == event.OpUtimensat { // also by a mapping
			o.written[effect.InodeOf(f)] = true
		}
	}
}

// sees notes what a name leads to.
func (o *others) sees(ev *event.Event, n seenName, id effect.Inode) {
	was, seen := o.names[n]
	if seen && was != id {
		o.find(ev, n.name)
	}
	if seen || len(o.names) < maxSeen {
		o.names[n] = id
	}
}

// find notes a name that others changed, unless a recorded call may have done it.
func (o *others) find(ev *event.Event, name string) {
	if name == "" || name[0] != '/' || effect.Virtual(name) || o.changed[name+"/"] {
		return
	}
	for at := name; at != "/" && at != "."; at = path.Dir(at) {
		if o.changed[at] {
			return
		}
	}
	o.found[name] = true
	if len(ev.Paths) > 0 && ev.Paths[0].Abs != "" { // through a link
		o.found[ev.Paths[0].Abs] = true
	}
}
