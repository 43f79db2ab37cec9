// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"cmp"
	"hash/maphash"
	"strings"

	"github.com/iotape/iotape/event"
)

// Matcher evaluates a filter on the events of one trace, in their order. It belongs to
// one goroutine.
type Matcher struct {
	g     *Graph
	seed  maphash.Seed
	cache [cacheSize]cached
	past  matchState
}

// cacheSize is how many results of costly comparisons of texts are remembered.
const cacheSize = 512

// cached is the result of a test for a text.
type cached struct {
	text string
	test int32 // + 1
	fits bool
}

// NewMatcher returns a matcher that has seen nothing.
func (g *Graph) NewMatcher() *Matcher {
	m := &Matcher{g: g, seed: maphash.MakeSeed()}
	m.past.init(g)
	return m
}

// Match sees an event and reports whether the filter accepts it.
func (m *Matcher) Match(ev *event.Event) bool {
	if m.g.follows != (follows{}) {
		m.past.see(ev)
	}
	n := m.g.entry
	steps := m.g.steps
	for n >= 0 {
		s := &steps[n]
		if m.holds(s, ev) {
			n = s.yes
		} else {
			n = s.no
		}
	}
	return n == accepted
}

// See sees an event that is not asked for. It is needed if Graph.Follows.
func (m *Matcher) See(ev *event.Event) {
	if m.g.follows != (follows{}) {
		m.past.see(ev)
	}
}

// Unknown returns how many processes there were whose program, control group or what follows from that was not known
// when the filter asked for it.
func (m *Matcher) Unknown() int { return len(m.past.unknown) }

func (m *Matcher) holds(s *step, ev *event.Event) bool {
	switch s.code {
	case testOps:
		return s.ops.has(slotOf(ev))
	case testNumber:
		v, ok := m.number(s.field, ev)
		switch {
		case !ok:
			return false
		case s.simple:
			return v >= s.lo && v <= s.hi
		}
		return s.test.set.has(v)
	case testAny:
		return m.any(s, ev)
	case testFlags:
		return m.flags(s.test.masks, ev)
	case testText:
		return m.text(s, ev)
	case testAddress:
		return m.address(s, ev)
	case testDescent:
		return m.past.kinOf(ev.Host, ev.PID, ev.PPID)>>uint(s.lo)&1 != 0
	case testMark:
		return mark(s.field, ev)
	}
	return false
}

// number returns the value of a field that has at most one; ok is false if it has none.
func (m *Matcher) number(f fieldID, ev *event.Event) (v int64, ok bool) {
	switch f {
	case fieldPID:
		return int64(ev.PID), true
	case fieldTID:
		return int64(ev.TID), true
	case fieldPPID:
		return int64(ev.PPID), true
	case fieldPGRP:
		return int64(ev.PGID), true
	case fieldSID:
		return int64(ev.SID), true
	case fieldUID:
		return int64(ev.UID), true
	case fieldGID:
		return int64(ev.GID), true
	case fieldHost:
		return int64(ev.Host), true
	case fieldSeq:
		return int64(ev.Seq), true
	case fieldTime:
		return m.wall(ev) - m.g.startNS, true
	case fieldWall:
		return m.wall(ev), true
	case fieldOffset:
		return ev.Offset, ev.Offset >= 0
	case fieldCount:
		return ev.Count, ev.Count >= 0
	case fieldSignal:
		sig, ok := ev.AboutSignal()
		return int64(sig), ok
	case fieldBytes:
		t := ev.Traffic()
		return t.Bytes(), t.Reads || t.Writes
	}
	if ev.Kind != event.Call {
		return 0, false
	}
	return callNumber(f, ev)
}

// callNumber returns the value of a field that only calls have.
func callNumber(f fieldID, ev *event.Event) (v int64, ok bool) {
	returned := ev.Flags&event.Interrupted == 0
	switch f {
	case fieldNR:
		return int64(ev.NR), !ev.Op.IsUring() && !ev.Op.IsAIO()
	case fieldLatency:
		return ev.Exit - ev.Enter, returned && ev.Flags&event.Untimed == 0
	case fieldDelayBefore:
		return int64(ev.DelayBefore), ev.Flags&event.Delays != 0
	case fieldDelayWithin:
		return int64(ev.DelayWithin), ev.Flags&event.Delays != 0
	case fieldResult:
		return ev.Ret, returned
	case fieldErrno:
		return int64(ev.Errno), returned
	}
	return 0, false
}

func (m *Matcher) wall(ev *event.Event) int64 {
	if int(ev.Host) < len(m.g.hosts) {
		return ev.Enter + m.g.hosts[ev.Host].WallNS
	}
	return ev.Enter
}

// any reports whether one of the values of a field is in a set.
func (m *Matcher) any(s *step, ev *event.Event) bool {
	set := s.test.set
	if s.field >= fieldAddr && s.field <= fieldPeerPort {
		var list [maxAddresses]socketAddress
		for _, a := range m.past.addresses(s.field, ev, list[:0]) {
			if a.addr.IsValid() && set.has(int64(a.port)) {
				return true
			}
		}
		return false
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		var v int64
		switch s.field {
		case fieldFD:
			if f.FD < 0 {
				continue
			}
			v = int64(f.FD)
		case fieldDev:
			v = unsigned(f.Dev)
		case fieldIno:
			v = unsigned(f.Ino)
		case fieldSize:
			v = f.Size
		case fieldFileType:
			v = int64(f.Mode >> 12 & 15)
		}
		if (f.Known || s.field == fieldFD) && set.has(v) {
			return true
		}
	}
	if s.field == fieldFD && ev.Kind == event.Call && len(ev.Files) == 0 {
		return closedFD(ev, set)
	}
	return false
}

// closedFD reports whether a descriptor argument of a call that found none open there is
// in a set.
func closedFD(ev *event.Event, set intervals) bool {
	args := ev.Spec().Args
	for i := range args {
		if args[i].Kind == event.KindFD && ev.ArgKnown(i) && set.has(int64(int32(ev.Args[i]))) {
			return true
		}
	}
	return false
}

// flags reports whether one of the event's sets of open flags fits.
func (m *Matcher) flags(masks []flagMask, ev *event.Event) bool {
	arch := event.AMD64
	if int(ev.Host) < len(m.g.hosts) {
		arch = m.g.hosts[ev.Host].Arch
	}
	if given, ok := givenFlags(ev); ok && fitsFlags(masks, event.OpenFlags(arch, given)) {
		return true
	}
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Known && fitsFlags(masks, event.OpenFlags(arch, uint64(f.Flags))) {
			return true
		}
	}
	return false
}

// givenFlags returns the open flags that a call was given.
func givenFlags(ev *event.Event) (flags uint64, ok bool) {
	if ev.Kind != event.Call {
		return 0, false
	}
	switch ev.Op.Like() {
	case event.OpOpen:
		return ev.Args[1], ev.ArgKnown(1)
	case event.OpOpenat:
		return ev.Args[2], ev.ArgKnown(2)
	case event.OpCreat:
		return 0o1101, true // O_CREAT|O_WRONLY|O_TRUNC
	case event.OpOpenat2:
		if b := ev.BufArg(2); b != nil && len(b.Inline) >= 8 {
			for i := range 8 { // open_how.flags
				flags |= uint64(b.Inline[i]) << (8 * i)
			}
			return flags, true
		}
	}
	return 0, false
}

func fitsFlags(masks []flagMask, v uint64) bool {
	for _, m := range masks {
		if v&m.mask == m.value {
			return true
		}
	}
	return false
}

// text reports whether one of the texts of a field fits.
func (m *Matcher) text(s *step, ev *event.Event) bool {
	switch s.field {
	case fieldComm:
		return ev.Comm != "" && m.fits(s, ev.Comm)
	case fieldExe:
		exe := m.past.program(ev)
		return exe != "" && m.fits(s, exe)
	case fieldCgroup, fieldContainer, fieldPod, fieldUnit:
		return m.place(s, ev)
	case fieldStack:
		return m.stack(s, ev)
	}
	for i := range ev.Files {
		if f := &ev.Files[i]; m.named(s, f.Path) || m.named(s, f.Real) {
			return true
		}
	}
	for i := range ev.Paths {
		p := &ev.Paths[i]
		if m.named(s, cmp.Or(p.Abs, p.Raw)) || m.named(s, p.Real) {
			return true
		}
	}
	return false
}

// place reports whether one of the names of where the process of an event runs fits.
func (m *Matcher) place(s *step, ev *event.Event) bool {
	p := m.past.placeOf(ev)
	if p == nil {
		return false
	}
	for _, name := range p.names[s.field-fieldCgroup] {
		if m.fits(s, name) {
			return true
		}
	}
	return false
}

// named compares a name, or the part of it that the field is.
func (m *Matcher) named(s *step, name string) bool {
	if name == "" {
		return false
	}
	if s.field == fieldPath {
		return m.fits(s, name)
	}
	name = lastPart(name)
	if s.field == fieldExt {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
	return name != "" && m.fits(s, name)
}

func (m *Matcher) fits(s *step, text string) bool {
	w := s.test.words
	if !s.cached {
		return w.fits(text)
	}
	c := &m.cache[(maphash.String(m.seed, text)+uint64(s.number))%cacheSize]
	if c.test != s.number+1 || c.text != text {
		*c = cached{text, s.number + 1, w.fits(text)}
	}
	return c.fits
}

func (m *Matcher) address(s *step, ev *event.Event) bool {
	var list [maxAddresses]socketAddress
	for _, a := range m.past.addresses(s.field, ev, list[:0]) {
		if s.test.addrs.has(&a) {
			return true
		}
	}
	return false
}

func mark(f fieldID, ev *event.Event) bool {
	switch f {
	case fieldFailed:
		return ev.Kind == event.Call && ev.Errno != 0
	case fieldInterrupted:
		return ev.Kind == event.Call && ev.Flags&event.Interrupted != 0
	case fieldIncomplete:
		return ev.Flags&event.Incomplete != 0
	case fieldCompat:
		return ev.Flags&event.Compat != 0
	case fieldMissed:
		return ev.Flags&event.Missed != 0
	}
	return false
}
