package slice

import (
	"path"
	"slices"
	"strings"

	"iotape/event"
	"iotape/posix"
)

// Selection picks calls: those that fit all of its fields that are set. Each fits if one
// of its elements does.
type Selection struct {
	PIDs    []uint32 // processes
	Tree    bool     // and their descendants
	Paths   []string // patterns for names (Match)
	Ops     []event.Op
	Classes []event.Class
}

// Match reports whether a name fits a pattern: as in path.Match, but "**" fits slashes
// too; a pattern without a slash is for the name's last element, and one that fits a
// directory fits everything below it.
func Match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(name))
		return ok
	}
	return matchParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matchParts(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], name[0]); !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return true
}

type process struct{ host, pid uint32 }

// choice is a Selection and what it needs.
type choice struct {
	sel       *Selection
	selected  map[process]bool // by number
	processes map[process]bool // whose life is told
	parents   map[process]uint32
	opens     map[event.OpenID]bool // whose descriptors are told
	positions map[event.OpenID]bool // whose position is told as well
	names     map[string]bool       // whether they fit, as a cache
	everyone  bool                  // it was too much to find out: all that Changes
}

func newChoice(s *Selection) *choice {
	c := &choice{sel: s, selected: map[process]bool{}, processes: map[process]bool{}, parents: map[process]uint32{}, opens: map[event.OpenID]bool{}, positions: map[event.OpenID]bool{}, names: map[string]bool{}}
	return c
}

// maxRounds bounds how often the tape is read to find what is needed by what is needed.
const maxRounds = 8

// choose finds out what the picked calls need.
func (c *cut) choose() error {
	ch := c.chosen
	err := c.events("selecting", func(ev *event.Event, in bool) error {
		ch.follow(ev)
		if in && ev.Kind == event.Call && ch.picks(ev) {
			ch.tell(ev)
		}
		return nil
	})
	for round := 0; err == nil; round++ {
		if round == maxRounds {
			ch.everyone = true
			return nil
		}
		processes, opens := len(ch.processes), len(ch.opens)+len(ch.positions)
		err = c.events("selecting", func(ev *event.Event, in bool) error {
			if in && ev.Kind == event.Call && ch.needs(ev) {
				ch.tell(ev)
			}
			return nil
		})
		if len(ch.processes) == processes && len(ch.opens)+len(ch.positions) == opens {
			break
		}
	}
	return err
}

// follow keeps the selected processes and their descendants.
func (c *choice) follow(ev *event.Event) {
	if ev.Kind != event.Forked || uint32(ev.Ret) == ev.PID {
		return
	}
	child := process{ev.Host, uint32(ev.Ret)}
	c.parents[child] = ev.PID
	c.selected[child] = c.sel.Tree && c.isSelected(process{ev.Host, ev.PID})
}

func (c *choice) isSelected(p process) bool {
	return c.selected[p] || slices.Contains(c.sel.PIDs, p.pid)
}

// tell makes everything about an event needed.
func (c *choice) tell(ev *event.Event) {
	for p := (process{ev.Host, ev.PID}); !c.processes[p]; {
		c.processes[p] = true
		parent, ok := c.parents[p]
		if !ok {
			break
		}
		p.pid = parent
	}
	moves := movesPosition(ev)
	for i := range ev.Files {
		if id := ev.Files[i].Open; id != 0 {
			c.opens[id] = true
			if moves && positioned(&ev.Files[i]) {
				c.positions[id] = true
			}
		}
	}
}

// movesPosition reports whether a call uses the position of an open file, and moves it.
func movesPosition(ev *event.Event) bool {
	if !ev.OK() {
		return false
	}
	switch ev.Op.Like() {
	case event.OpRead, event.OpReadv, event.OpWrite, event.OpWritev, event.OpLseek, event.OpGetdents, event.OpGetdents64,
		event.OpSendfile, event.OpSplice, event.OpCopyFileRange:
		return true
	case event.OpPreadv2, event.OpPwritev2:
		return int64(ev.Args[3]) == -1
	case event.OpPread64, event.OpPwrite64:
		return ev.Op.IsUring() && int64(ev.Args[3]) == -1
	}
	return false
}

// positioned reports whether a file has a position that counts.
func positioned(f *event.File) bool {
	const typeMask, typeDir, typeReg = 0o170000, 0o040000, 0o100000
	return f.Known && (f.Mode&typeMask == typeReg || f.Mode&typeMask == typeDir)
}

// picks reports whether an event is wanted.
func (c *choice) picks(ev *event.Event) bool {
	if c == nil {
		return true
	}
	s := c.sel
	switch ev.Kind {
	case event.LossMark, event.NoteMark:
		return true
	case event.Call:
	case event.Woken:
		if len(s.Ops)+len(s.Classes)+len(s.Paths) > 0 {
			return false
		}
	default:
		return false // they are told of whom it matters
	}
	if len(s.PIDs) > 0 && !c.isSelected(process{ev.Host, ev.PID}) {
		return false
	}
	if len(s.Ops) > 0 && !slices.Contains(s.Ops, ev.Op) {
		return false
	}
	if len(s.Classes) > 0 && !slices.Contains(s.Classes, ev.Spec().Class) {
		return false
	}
	return len(s.Paths) == 0 || c.named(ev)
}

// named reports whether one of an event's names fits.
func (c *choice) named(ev *event.Event) bool {
	for i := range ev.Files {
		if c.fits(ev.Files[i].Path) {
			return true
		}
	}
	for i := range ev.Paths {
		p := &ev.Paths[i]
		if c.fits(p.Abs) || p.Abs == "" && c.fits(p.Raw) {
			return true
		}
	}
	return false
}

// maxNames bounds the cache.
const maxNames = 1 << 16

func (c *choice) fits(name string) bool {
	if name == "" {
		return false
	}
	ok, known := c.names[name]
	if !known {
		ok = slices.ContainsFunc(c.sel.Paths, func(p string) bool { return Match(p, name) })
		if len(c.names) >= maxNames {
			clear(c.names)
		}
		c.names[name] = ok
	}
	return ok
}

// needs reports whether an event says what others mean.
func (c *choice) needs(ev *event.Event) bool {
	if c == nil {
		return true
	}
	if ev.Kind == event.Call && !posix.Changes(ev) {
		return movesPosition(ev) && slices.ContainsFunc(ev.Files, func(f event.File) bool { return c.positions[f.Open] })
	}
	if c.everyone {
		return true
	}
	p := process{ev.Host, ev.PID}
	switch ev.Kind {
	case event.Exited, event.Started:
		return c.processes[p]
	case event.Forked:
		return c.processes[process{ev.Host, uint32(ev.Ret)}]
	case event.Call, event.Inherited:
	default:
		return false
	}
	switch ev.Op {
	case event.OpChdir, event.OpFchdir, event.OpGetcwd, event.OpChroot, event.OpUmask, event.OpUnshare, event.OpExecve, event.OpExecveat, event.OpCloseRange:
		return c.processes[p]
	}
	for i := range ev.Files {
		if c.opens[ev.Files[i].Open] {
			return true
		}
	}
	return false
}
