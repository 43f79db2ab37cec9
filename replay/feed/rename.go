package feed

import (
	"fmt"
	"path"
	"strings"

	"iotape/event"
	"iotape/replay/effect"
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

// Path returns what an absolute name becomes: by the first rename that fits. Others,
// and those that no rename is of, stay.
func (rs Renames) Path(name string) string {
	if len(rs) == 0 || name == "" || name[0] != '/' {
		return name
	}
	for _, r := range rs {
		rest, ok := strings.CutPrefix(name, r.Old)
		if r.Old == "/" {
			rest, ok = name, true
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

// event renames what an event names, and what it says that names are.
func (rs Renames) event(ev *event.Event) {
	for i := range ev.Paths {
		p := &ev.Paths[i]
		p.Raw, p.Abs = rs.Path(p.Raw), rs.Path(p.Abs)
	}
	for i := range ev.Files {
		ev.Files[i].Path = rs.Path(ev.Files[i].Path)
	}
	switch ev.Op.Like() {
	case event.OpSymlink, event.OpSymlinkat:
		rs.text(ev, false)
	case event.OpReadlink, event.OpReadlinkat, event.OpGetcwd:
		if ev.OK() {
			rs.text(ev, true)
		}
	}
}

// text renames the name in a buffer; counted says that the result is its length.
func (rs Renames) text(ev *event.Event, counted bool) {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		was := effect.CString(b.Inline)
		now := rs.Path(was)
		if b.Kind == event.KindPath || now == was {
			continue
		}
		tail := b.Inline[len(was):]
		b.Inline = append([]byte(now), tail...)
		b.Len = int64(len(b.Inline))
		if counted {
			ev.Ret += int64(len(now) - len(was))
		}
	}
}
