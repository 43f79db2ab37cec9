// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the search for old versions.
const (
	mostVersioned = 1 << 18 // places in files whose versions are followed
	mostVersions  = 8       // of a place
	mostAnswers   = 4       // different answers to a request that are kept
)

// versions follows what was stored one after the other at the same place, and which requests were
// answered with it.
type versions struct {
	places  map[versionPlace]*history
	old     map[uint32]*history // by content: where a newer one replaced it
	back    map[string]uint32   // streams by name
	last    map[onObject]uint32 // the last move by which a process read from an object
	asks    map[onObject]bool   // the process sent there before it received anything from the other side
	answers map[request]*answers
}

type versionPlace struct {
	object uint32
	at     int64
}

type onObject struct{ process, object uint32 }

type request struct{ process, class uint32 }

// answers are the contents that were sent after a request.
type answers struct {
	classes []uint32
	many    bool // there were more
}

// history is the moves that wrote to a place, the last ones.
type history struct{ moves []uint32 }

func (h *history) now() uint32 { return h.moves[len(h.moves)-1] }

// index makes the streams known by their names.
func (v *versions) index(f *Flow) {
	*v = versions{places: map[versionPlace]*history{}, old: map[uint32]*history{}, back: map[string]uint32{},
		last: map[onObject]uint32{}, asks: map[onObject]bool{}, answers: map[request]*answers{}}
	for i := range f.objects {
		if o := &f.objects[i]; o.Kind == Stream {
			v.back[o.Name] = uint32(i)
		}
	}
}

// store takes a write to a file.
func (v *versions) store(f *Flow, i uint32, m *move) {
	if m.at < 0 || m.bytes() < smallest || f.contents.empty[m.class] {
		return
	}
	delete(v.old, m.class) // it is a present one again
	k := versionPlace{m.object, m.at}
	h := v.places[k]
	if h == nil {
		if len(v.places) < mostVersioned {
			v.places[k] = &history{[]uint32{i}}
		}
		return
	}
	before := f.moves[h.now()].class
	if before == m.class {
		return
	}
	v.old[before] = h
	if len(h.moves) == mostVersions {
		h.moves = h.moves[:copy(h.moves, h.moves[1:])]
	}
	h.moves = append(h.moves, i)
}

// reply is the stream that brings answers to what is sent to a stream.
func (v *versions) reply(f *Flow, stream uint32) (uint32, bool) {
	from, to, ok := strings.Cut(f.objects[stream].Name, "->")
	if !ok {
		return 0, false
	}
	back, ok := v.back[to+"->"+from]
	return back, ok
}

// sent takes a write to a stream: it is an answer to what was received last from the other side.
func (w *finder) sent(i uint32, m *move) {
	f, v := w.f, &w.versions
	back, ok := v.reply(f, m.object)
	if !ok {
		return
	}
	p := f.processOf(i)
	q, ok := v.last[onObject{p, back}]
	if !ok {
		v.asks[onObject{p, m.object}] = true
	}
	if !ok || m.bytes() < smallest {
		return
	}
	key := request{p, f.moves[q].class}
	before := v.answers[key]
	if before != nil {
		w.stale(i, q, m, before)
	} else {
		before = &answers{}
		v.answers[key] = before
	}
	if slices.Contains(before.classes, m.class) {
		return
	}
	if before.many = len(before.classes) >= mostAnswers; !before.many {
		before.classes = append(before.classes, m.class)
	}
}

// stale reports an answer with an old version of what was stored: the process had replaced it before
// it received the request, and all earlier answers to this request were versions of the same.
func (w *finder) stale(i, q uint32, m *move, before *answers) {
	f, v := w.f, &w.versions
	if before.many || len(v.old) == 0 {
		return
	}
	h, old := v.held(f, m.class)
	if h == nil {
		return
	}
	now := h.now()
	if f.processOf(now) != f.processOf(i) ||
		f.order.Exit(int(f.moves[now].event)) > f.order.Wall(int(f.moves[q].event)) {
		return
	}
	if r, ok := f.lastRead(old, f.processOf(i), i); ok && r > now {
		return // it has it from elsewhere since
	}
	for _, class := range before.classes {
		if !slices.ContainsFunc(h.moves, func(k uint32) bool { return f.has(class, f.moves[k].class) }) {
			return
		}
	}
	first := h.moves[0]
	for _, k := range h.moves {
		if f.moves[k].class == old {
			first = k
		}
	}
	f.add(Finding{Problem: Stale, Moves: []int{int(first), int(now), int(q), int(i)}, Bytes: m.bytes(),
		Text: fmt.Sprintf("%s sent an old version of %d bytes (%s): it had stored a newer one in %s at %d before it "+
			"received the request", f.who(int(i)), f.moves[first].bytes(), f.name(&f.objects[m.object]),
			f.name(&f.objects[f.moves[now].object]), max(f.moves[now].at, 0)),
		Confidence: Medium,
		Decide:     "whether the request asks for the newest version, or for that of an earlier time"})
}

// held returns an old version that a content has in it, and where it was replaced.
func (v *versions) held(f *Flow, class uint32) (*history, uint32) {
	if h := v.old[class]; h != nil {
		return h, class
	}
	for _, l := range f.relation.of(class) {
		if h := v.old[l.b]; h != nil && f.has(class, l.b) && !f.has(class, f.moves[h.now()].class) {
			return h, l.b
		}
	}
	return nil, 0
}

// has reports whether all of content b stands in content a.
func (f *Flow) has(a, b uint32) bool { return a == b || f.within(b, a) >= 0 }
