// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"slices"
	"sort"
)

// Problem names a kind of finding. Names are words of the language of Expect.
type Problem string

// The kinds of findings.
const (
	Altered    Problem = "altered"    // received otherwise than it was sent
	Corrupted  Problem = "corrupted"  // read otherwise than it was written
	Changed    Problem = "changed"    // given out by a process otherwise than it took it in
	Differing  Problem = "differing"  // a replica that is not like the others
	Lost       Problem = "lost"       // taken in, and not given out as the others were
	Truncated  Problem = "truncated"  // given out or kept in its first part only
	Duplicated Problem = "duplicated" // taken in once, and given out twice
	Stale      Problem = "stale"      // an older version than the stored one was given out
	Reordered  Problem = "reordered"  // given out in another order than the others
	// sent, or stored instead of what it received, by a process that had it from nowhere
	Unmatched Problem = "unmatched"
	Rewritten Problem = "rewritten"  // written to files of one host more than once
	SameOrder Problem = "same_order" // read again in the same order
	Shuffled  Problem = "shuffled"   // read again in another order
	Plaintext Problem = "plaintext"  // can be read where nothing should be
)

// Problems lists them, in the order of their weight: those up to Plaintext are what went wrong,
// the others what may be.
var Problems = []Problem{Altered, Corrupted, Changed, Differing, Lost, Truncated, Duplicated, Stale, Plaintext,
	Reordered, Unmatched, Rewritten, Shuffled, SameOrder}

// Wrong reports whether data is not what it should be.
func (p Problem) Wrong() bool { return slices.Index(Problems, p) <= slices.Index(Problems, Plaintext) }

// Finding is something that the data shows.
type Finding struct {
	Problem Problem
	Text    string // a sentence without its full stop
	Moves   []int  // that show it, the first ones
	Count   int    // how many of its kind are taken together in it
	Bytes   int64
	Diff    *Diff // nil if no bytes are compared

	Confidence Confidence
	Decide     string // what would decide whether it is so; "" if nothing has to
}

// Confidence says how sure a finding is.
type Confidence uint8

// The levels of confidence.
const (
	Low    Confidence = iota // it is a hint
	Medium                   // other explanations are possible, and rare
	High                     // bytes or places prove it
)

func (c Confidence) String() string { return [...]string{"low", "medium", "high"}[c] }

// usual is the confidence of findings of a kind that do not have their own.
func (x *Finding) usual() Confidence {
	switch {
	case x.Diff != nil && x.Diff.Unseen:
		return Medium
	case x.Problem == Altered || x.Problem == Corrupted || x.Problem == Rewritten || x.Problem == SameOrder ||
		x.Problem == Shuffled:
		return High
	case x.Problem == Unmatched:
		return Low
	}
	return Medium
}

// maxFindings limits the findings of a kind that are kept. All are counted.
const maxFindings = 1000

// Findings returns what the data shows, the heaviest first.
func (f *Flow) Findings() []Finding { return f.found }

// add notes a finding.
func (f *Flow) add(x Finding) {
	x.Count = max(x.Count, 1)
	x.Confidence = max(x.Confidence, x.usual())
	f.totals[string(x.Problem)] += int64(x.Count)
	if f.kept[x.Problem]++; f.kept[x.Problem] <= maxFindings {
		f.found = append(f.found, x)
	}
}

// finder goes through all moves, once.
type finder struct {
	f        *Flow
	files    map[uint32]*extents
	recent   []([recentReads]uint32) // of each process: the last reads, plus 1
	next     []uint8
	got      []bool   // of each process: it has received something
	first    []uint32 // of each class: the first move that wrote it to a file, plus 1
	again    map[uint32]*tally
	loose    map[uint32]*tally
	plain    map[uint32]*tally
	secret   []bool // objects in which nothing may be read
	passes   map[passKey]*passes
	units    int
	execs    map[uint32][]uint32 // of each process
	versions versions
	ended    int                 // ends of files that were taken
	sizes    map[uint32]fileSize // of files that were written
	differ   map[uint32][]uint32 // of each process: writes that are not quite what it had taken in
	states   map[uint32]bool     // files: whether programs keep a state there
	missed   map[uint32]bool     // reads of which comparisons found that bytes were not given out
	divided  map[passedPair]bool // which of these were judged by comparison
}

const recentReads = 8

// tally counts what is taken together in one finding.
type tally struct {
	count int
	bytes int64
	moves []int
	why   string
}

func (t *tally) add(id int, n int64) {
	t.count++
	t.bytes += n
	if len(t.moves) < 4 {
		t.moves = append(t.moves, id)
	}
}

// tallyOf returns the tally of a key.
func tallyOf(m map[uint32]*tally, key uint32) *tally {
	t := m[key]
	if t == nil {
		t = &tally{}
		m[key] = t
	}
	return t
}

// find looks for findings.
func (f *Flow) find(ctx context.Context) error {
	f.totals, f.kept = map[string]int64{}, map[Problem]int{}
	w := &finder{
		f: f, files: map[uint32]*extents{}, recent: make([][recentReads]uint32, len(f.procs)),
		next: make([]uint8, len(f.procs)), got: make([]bool, len(f.procs)),
		first: make([]uint32, len(f.contents.classes)), again: map[uint32]*tally{}, loose: map[uint32]*tally{},
		plain: map[uint32]*tally{}, passes: map[passKey]*passes{}, execs: map[uint32][]uint32{},
		sizes: map[uint32]fileSize{}, differ: map[uint32][]uint32{}, states: map[uint32]bool{},
		missed: map[uint32]bool{}, divided: map[passedPair]bool{},
	}
	for _, e := range f.execs {
		p := f.process[f.order.Line(int(e))]
		w.execs[p] = append(w.execs[p], e)
	}
	w.markSecret()
	w.versions.index(f)
	for i := range f.moves {
		if i&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		w.cutOff(i)
		w.see(i)
		if f.damage != nil {
			return f.damage
		}
	}
	w.cutOff(len(f.moves))
	w.replicas()
	w.comparisons()
	w.passings()
	w.answers()
	w.orders()
	w.report(w.again, Rewritten, func(o *Object, t *tally) string {
		return fmt.Sprintf("%s to %s, %d bytes, of data that the host had written before", many(t.count, "write"),
			f.name(o), t.bytes)
	})
	w.report(w.loose, Unmatched, func(o *Object, t *tally) string {
		if o.Kind == File {
			return fmt.Sprintf("%s to %s, %d bytes, of nothing that the process had read, though it had received "+
				"as many",
				many(t.count, "write"), f.name(o), t.bytes)
		}
		return fmt.Sprintf("%s (%s), %d bytes, of nothing that the process had read or received", many(t.count, "send"),
			f.name(o), t.bytes)
	})
	w.report(w.plain, Plaintext, func(o *Object, t *tally) string {
		return fmt.Sprintf("%s (%s), %d bytes, that can be read: %s", many(t.count, "move"), f.name(o), t.bytes, t.why)
	})
	slices.SortStableFunc(f.found, func(a, b Finding) int {
		return slices.Index(Problems, a.Problem) - slices.Index(Problems, b.Problem)
	})
	return f.damage
}

// report makes findings of tallies, the largest first.
func (w *finder) report(m map[uint32]*tally, p Problem, text func(o *Object, t *tally) string) {
	var keys []uint32
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint32) int {
		if d := m[b].bytes - m[a].bytes; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return int(a) - int(b)
	})
	for _, k := range keys {
		t := m[k]
		w.f.add(Finding{Problem: p, Text: text(&w.f.objects[k], t), Moves: t.moves, Count: t.count, Bytes: t.bytes})
	}
}

// name names an object, with its host if there are several.
func (f *Flow) name(o *Object) string {
	name := o.Name
	if name == "" {
		name = "a " + o.Kind.String() + " without a name"
	}
	return f.HostPrefix(o.Host) + name
}

// HostPrefix returns the name of a host and a colon, "" if there is one name only.
func (f *Flow) HostPrefix(host uint32) string {
	hosts := f.order.Hosts()
	for i := range hosts {
		if hosts[i].Host != hosts[0].Host && hosts[host].Host != "" {
			return hosts[host].Host + ":"
		}
	}
	return ""
}

// many writes a number of things.
func many(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// who names the process of a move.
func (f *Flow) who(id int) string {
	p := &f.procs[f.processOf(uint32(id))]
	return fmt.Sprintf("%s%s[%d]", f.HostPrefix(p.Host), p.Comm, p.PID)
}

// see takes the next move.
func (w *finder) see(i int) {
	f := w.f
	m := &f.moves[i]
	o := &f.objects[m.object]
	if m.at == reset {
		if x := w.files[m.object]; x != nil {
			x.cut(m.bytes())
		}
		w.shrink(m.object, m.bytes())
		return
	}
	if m.write() {
		w.wrote(i, m, o)
	} else {
		w.read(i, m, o)
	}
	if w.secret[m.object] && m.class != 0 {
		w.open(i, m)
	}
}

// read takes a read: it is compared with what was written or sent there.
func (w *finder) read(i int, m *move, o *Object) {
	if m.class != 0 {
		p := w.f.processOf(uint32(i))
		w.recent[p][w.next[p]%recentReads] = uint32(i) + 1
		w.next[p]++
		w.got[p] = w.got[p] || o.Kind != File
		if o.Kind == Stream {
			w.versions.last[onObject{p, m.object}] = uint32(i)
		}
	}
	switch {
	case o.Kind == Stream && o.Known && m.class != 0:
		w.received(i, m, o)
	case o.Kind == File && m.at >= 0:
		w.pass(i, m, o)
		if x := w.files[m.object]; x != nil && m.class != 0 {
			w.readFile(i, m, o, x)
		}
	}
}

// received compares what was received with what was sent.
func (w *finder) received(i int, m *move, o *Object) {
	f := w.f
	for _, e := range f.transported(i) {
		if f.moves[e.From].class == m.class && e.Off == e.FromOff || f.loosely(e.From) || f.loosely(i) {
			continue
		}
		if d, ok := f.differs(&e); ok && d.Differ > 0 {
			f.add(Finding{Problem: Altered, Moves: []int{e.From, i}, Bytes: int64(d.Differ), Diff: &d,
				Text: fmt.Sprintf("%s received other bytes than %s had sent (%s): %s",
					f.who(i), f.who(e.From), f.name(o), &d)})
		}
	}
}

// readFile compares what was read from a file with what was written there.
func (w *finder) readFile(i int, m *move, o *Object, x *extents) {
	f := w.f
	x.each(m.at, m.end(), func(from, to int64, by uint32) {
		v := &f.moves[by]
		if v.class == m.class && v.at == m.at || f.order.Exit(int(v.event)) > f.order.Wall(int(m.event)) {
			return
		}
		e := Edge{From: int(by), To: i, Why: Stored, Bytes: to - from, Of: m.bytes(),
			Off: from - m.at, FromOff: from - v.at}
		d, ok := f.differs(&e)
		if !ok || d.Differ == 0 || f.overwritten(uint32(i), from, to) {
			return
		}
		f.add(Finding{Problem: Corrupted, Moves: []int{int(by), i}, Bytes: int64(d.Differ), Diff: &d,
			Text: fmt.Sprintf("%s read %s at %d otherwise than %s had written it: %s",
				f.who(i), f.name(o), from+int64(d.First)-e.Off, f.who(int(by)), &d)})
	})
}

// loosely reports whether the place of a move in its stream is not certain, because
// another call overlapped with it.
func (f *Flow) loosely(i int) bool {
	m := &f.moves[i]
	list := f.byObject.of(m.object)
	ends := &f.objects[m.object].ends
	side := list[min(int(ends[0]), len(list)):]
	if m.write() {
		side = list[:min(int(ends[0]), len(list))]
	}
	at, ok := slices.BinarySearchFunc(side, m.at,
		func(k uint32, at int64) int { return int(min(max(f.moves[k].at-at, -1), 1)) })
	if !ok {
		return true
	}
	over := func(k int) bool {
		if k < 0 || k >= len(side) || side[k] == uint32(i) {
			return false
		}
		v := &f.moves[side[k]]
		return f.order.Wall(int(v.event)) < f.order.Exit(int(m.event)) &&
			f.order.Wall(int(m.event)) < f.order.Exit(int(v.event))
	}
	return over(at-1) || over(at+1)
}

// overwritten reports whether a later move wrote to a place of a file while move i read
// there.
func (f *Flow) overwritten(i uint32, from, to int64) bool {
	m := &f.moves[i]
	end := f.order.Exit(int(m.event))
	probe := move{at: from, object: m.object, n: uint32(to - from)}
	for _, k := range f.touching(&probe) {
		v := &f.moves[k]
		if k > i && v.write() && (v.at == reset || v.at < to && from < v.end()) && f.order.Wall(int(v.event)) <= end {
			return true
		}
	}
	return false
}

// wrote takes a write: it is compared with what its process had taken in.
func (w *finder) wrote(i int, m *move, o *Object) {
	f := w.f
	if o.Kind == File && m.at >= 0 {
		x := w.files[m.object]
		if x == nil {
			x = &extents{}
			w.files[m.object] = x
		}
		x.put(m.at, m.end(), uint32(i))
		w.grow(m.object, uint32(i), m.end())
	}
	if m.class == 0 {
		return
	}
	switch o.Kind {
	case File:
		w.versions.store(f, uint32(i), m)
		w.rewrote(i, m, o)
	case Stream:
		w.sent(uint32(i), m)
	}
	if i > 0 && f.moves[i-1].event == m.event && !f.moves[i-1].write() {
		return // copied by one call
	}
	p := f.processOf(uint32(i))
	if _, ok := f.lastRead(m.class, p, uint32(i)); ok {
		return
	}
	if w.changed(i, m, p) {
		return
	}
	if (o.Kind != File && w.got[p] || o.Kind == File && w.mayStore(p, m)) && len(f.processed(i)) == 0 {
		tallyOf(w.loose, m.object).add(i, m.bytes())
	}
}

// rewrote takes a write to a file: the host may have written the same before.
func (w *finder) rewrote(i int, m *move, o *Object) {
	f := w.f
	if m.bytes() < smallest {
		return
	}
	switch first := w.first[m.class]; {
	case first == 0:
		w.first[m.class] = uint32(i) + 1
	case f.order.Machine(f.objects[f.moves[first-1].object].Host) == f.order.Machine(o.Host):
		t := tallyOf(w.again, m.object)
		if t.count == 0 {
			t.moves = append(t.moves, int(first-1))
		}
		t.add(i, m.bytes())
	}
}

// mayStore reports whether a write to a file has the size of something that its process received
// lately, with or without a header: what a server that stores what it receives writes.
func (w *finder) mayStore(process uint32, m *move) bool {
	if m.bytes() < smallest {
		return false
	}
	for _, r := range w.recent[process] {
		if r == 0 || w.f.objects[w.f.moves[r-1].object].Kind == File {
			continue
		}
		if more := w.f.moves[r-1].bytes() - m.bytes(); more >= 0 && more <= mostFrame {
			return true
		}
	}
	return false
}

// near returns the resemblance of two contents, 0 if it is not known.
func (f *Flow) near(a, b uint32) float64 {
	for _, l := range f.relation.of(a) {
		if l.b == b {
			return float64(l.near)
		}
	}
	return 0
}

// smallest is the least content that counts as data and not as a word of a protocol.
const smallest = 64

// made reports whether a process gave out a content before it took it in from anywhere.
func (f *Flow) made(class, process uint32) bool {
	list := f.byClass.of(class)
	from := sort.Search(len(list), func(i int) bool { return f.processOf(list[i]) >= process })
	return from < len(list) && f.processOf(list[from]) == process && f.moves[list[from]].write()
}
