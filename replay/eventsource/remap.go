// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"fmt"
	"path"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// Renames puts what a recording did below some directories below others.
type Renames []Rename

// Rename is one directory and what it becomes; both are absolute and clean.
type Rename struct{ Old, New string }

// ParseRename reads /OLD=/NEW.
func ParseRename(s string) (Rename, error) {
	before, after, ok := strings.Cut(s, "=")
	if !ok || !path.IsAbs(before) || !path.IsAbs(after) {
		return Rename{}, fmt.Errorf("%q is not /OLD=/NEW", s)
	}
	return Rename{path.Clean(before), path.Clean(after)}, nil
}

// Path returns what an absolute name becomes: by the first rename that fits its text
// without ".."; if that of the name as it is leads elsewhere, it is given so. Others, and
// those that no rename is of, stay. What the kernel makes up has no other place if all is
// renamed.
func (rs Renames) Path(name string) string {
	if len(rs) == 0 || name == "" || name[0] != '/' {
		return name
	}
	to := rs.first(name)
	if clean := path.Clean(name); clean != name {
		if straight := rs.first(clean); path.Clean(to) != straight {
			return straight
		}
	}
	return to
}

func (rs Renames) first(name string) string {
	for _, r := range rs {
		rest, ok := strings.CutPrefix(name, r.Old)
		if r.Old == "/" {
			if rest, ok = name, !effect.Virtual(name); rest == "/" {
				rest = ""
			}
		}
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		if rest == "" {
			return r.New
		}
		return strings.TrimSuffix(r.New, "/") + rest
	}
	return name
}

// From returns what a name becomes that begins at a directory, if it is a relative one: it
// stays if it leads from there to what it is to lead to.
func (rs Renames) From(dir, name string) string {
	if name == "" || name[0] == '/' || dir == "" || dir[0] != '/' {
		return rs.Path(name)
	}
	to := rs.Path(path.Join(dir, name))
	if path.Join(rs.Path(dir), name) == to {
		return name
	}
	return to
}

// event renames the paths of an event and the names in its buffers. Relative paths begin
// at bases.
func (rs Renames) event(ev *event.Event, bases []string) {
	switch does := ev.Effect(); {
	case does == event.EffectSymlink:
		rs.text(ev, false)
	case (does == event.EffectReadlink || ev.Op == event.OpGetcwd) && ev.OK():
		rs.text(ev, true)
	}
	rs.names(ev, bases)
}

// names renames the paths of an event, and the names of its open files.
func (rs Renames) names(ev *event.Event, bases []string) {
	for i := range ev.Paths {
		p := &ev.Paths[i]
		p.Raw, p.Abs, p.Real = rs.From(bases[i], p.Raw), rs.Path(p.Abs), rs.Path(p.Real)
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		f.Path, f.Real = rs.Path(f.Path), rs.Path(f.Real)
	}
}

// text renames the name in a buffer, of a link if the event has a path; counted says that
// the result is its length.
func (rs Renames) text(ev *event.Event, counted bool) {
	dir := ""
	if len(ev.Paths) > 0 && ev.Paths[0].Abs != "" {
		dir = path.Dir(ev.Paths[0].Abs)
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		was := effect.CString(b.Inline)
		now := rs.From(dir, was)
		if b.Kind == event.KindPath || now == was {
			continue
		}
		longer := rename(b, now)
		if counted {
			resize(ev, b, longer)
		}
	}
}

// rename gives a buffer another name, and returns how much longer it is.
func rename(b *event.Buf, now string) (longer int) {
	was := effect.CString(b.Inline)
	tail := b.Inline[len(was):]
	b.Inline = append([]byte(now), tail...)
	b.Len = int64(len(b.Inline))
	return len(now) - len(was)
}

// resize lets a call return that a buffer is so much longer.
func resize(ev *event.Event, b *event.Buf, longer int) {
	ev.Ret += int64(longer)
	if a := ev.Spec().Args[b.Arg].LenArg; a != event.NoArg && longer > 0 {
		ev.Args[a] += uint64(longer) // there may be room for what it was only
	}
}
