// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// Prefilter is the part of a filter that a capture can decide before it records a call: a
// table of steps that a program in the kernel walks with bounded work. What it refuses,
// the filter refuses; what it lets through is still to be asked. It has an entry for
// each operation, of the steps that are left when the operation is known and when every
// test that a capture cannot make may have either result.
type Prefilter struct {
	Steps []PrefilterStep // at most MaxPrefilterSteps
	// Entries are where the walk begins, by operation: PrefilterPass, PrefilterDrop or the
	// number of a step. Operations that are not in it are let through.
	Entries map[event.Op]int16
	// Suffixes are ends of names that PrefilterSuffix tests, at most MaxPrefilterSuffixes, each
	// of 1 to MaxSuffix bytes without a slash.
	Suffixes []string
	// Places are the tests of where a process runs that PrefilterPlace makes, at most MaxPrefilterPlaces.
	Places []PrefilterPlaces
}

// PrefilterPlaces is a test of the control group of a process, or of the container, pod or unit that it is of.
type PrefilterPlaces struct {
	Text string // of the test: equal texts are equal tests
	test *test
}

// Hold reports whether the test holds for processes in a control group, which is a path below the
// hierarchy's root.
func (p *PrefilterPlaces) Hold(cgroup string) bool {
	at := placeIn(cgroup)
	return slices.ContainsFunc(at.names[p.test.field.id-fieldCgroup], p.test.words.fits)
}

// Limits of a prefilter: what does not fit is let through.
const (
	MaxPrefilterSteps    = 256
	MaxPrefilterSuffixes = 16
	MaxPrefilterPlaces   = 16
	MaxSuffix            = 16
)

// The ends of a prefilter's walk.
const (
	PrefilterPass int16 = -1
	PrefilterDrop int16 = -2
)

// PrefilterField is what a step looks at.
type PrefilterField uint8

// The fields. Those of the thread are as its last identity record says.
const (
	PrefilterPID PrefilterField = iota
	PrefilterTID
	PrefilterPPID
	PrefilterPGRP
	PrefilterSID
	PrefilterUID
	PrefilterGID
	PrefilterNR
	PrefilterLatency // ns
	PrefilterResult  // -1 if the call failed
	PrefilterErrno
	PrefilterArg0 // arguments, as signed numbers
	PrefilterArg1
	PrefilterArg2
	PrefilterArg3
	PrefilterComm // equality of all 16 bytes: Lo and Hi are the first and the last 8
	// PrefilterSuffix is whether the name that the file of the call's one descriptor was
	// opened by ends in Suffixes[Lo]. Where a capture does not know that, it has to let
	// the call through.
	PrefilterSuffix
	// PrefilterPlace is whether Places[Lo] holds where the process runs. Where a capture does not
	// know that, it has to let the call through.
	PrefilterPlace
)

// PrefilterStep is a test: whether a number is from Lo to Hi, and where to go on. It always
// goes on to a step with a higher number, or to an end.
type PrefilterStep struct {
	Field   PrefilterField
	Yes, No int16
	Lo, Hi  int64
}

// PrefilterCall is what a step can ask of a call that has returned.
type PrefilterCall struct {
	PID, TID, PPID, PGRP, SID, UID, GID uint32
	NR                                  uint32
	Latency                             int64 // ns
	Raw                                 int64 // result; -errno if the call failed
	Args                                [event.MaxArgs]uint64
	Comm                                [16]byte // with NULs at the end
	// Ends are the bits of the suffixes that the name of the call's file has, if Named.
	Ends  uint32
	Named bool
	// Held are the bits of the Places that hold where the process runs, if Placed.
	Held   uint32
	Placed bool
}

// Drops reports whether the filter cannot accept a call, whatever else it is.
func (s *Prefilter) Drops(op event.Op, c *PrefilterCall) bool {
	n, ok := s.Entries[op]
	if !ok {
		return false
	}
	for n >= 0 {
		st := &s.Steps[n]
		if st.Field == PrefilterSuffix && !c.Named || st.Field == PrefilterPlace && !c.Placed {
			return false
		}
		if st.Holds(c) {
			n = st.Yes
		} else {
			n = st.No
		}
	}
	return n == PrefilterDrop
}

// Holds makes the test of a step.
func (s *PrefilterStep) Holds(c *PrefilterCall) bool {
	failed := c.Raw < 0 && c.Raw >= -4095
	var v int64
	switch s.Field {
	case PrefilterPID:
		v = int64(c.PID)
	case PrefilterTID:
		v = int64(c.TID)
	case PrefilterPPID:
		v = int64(c.PPID)
	case PrefilterPGRP:
		v = int64(c.PGRP)
	case PrefilterSID:
		v = int64(c.SID)
	case PrefilterUID:
		v = int64(c.UID)
	case PrefilterGID:
		v = int64(c.GID)
	case PrefilterNR:
		v = int64(c.NR)
	case PrefilterLatency:
		v = c.Latency
	case PrefilterResult:
		if v = c.Raw; failed {
			v = -1
		}
	case PrefilterErrno:
		if failed {
			v = -c.Raw
		}
	case PrefilterArg0, PrefilterArg1, PrefilterArg2, PrefilterArg3:
		v = int64(c.Args[s.Field-PrefilterArg0])
	case PrefilterSuffix, PrefilterPlace:
		return s.bits(c)>>s.Lo&1 != 0
	case PrefilterComm:
		return binary.LittleEndian.Uint64(c.Comm[:]) == uint64(s.Lo) &&
			binary.LittleEndian.Uint64(c.Comm[8:]) == uint64(s.Hi)
	}
	return v >= s.Lo && v <= s.Hi
}

// bits returns the bits of the suffixes or places that a call has.
func (s *PrefilterStep) bits(c *PrefilterCall) uint32 {
	if s.Field == PrefilterPlace {
		return c.Held
	}
	return c.Ends
}

func newPrefilterBuilder(g *Graph) prefilterBuilder {
	return prefilterBuilder{
		g: g, f: newFormulas(), s: &Prefilter{Entries: map[event.Op]int16{}},
		restricted: map[restriction]ref{}, entries: map[ref]int16{}, unsure: always,
	}
}

// Exact returns the prefilter that decides the whole filter, for all system calls, if a
// capture can do that: then it accepts what it does not refuse. A capture that does not
// know what a name ends in has to take it for ending in nothing. Otherwise undecided are
// the operations that the prefilter cannot decide, in the operation table's order; OpUnknown is
// among them if calls that are not in it are.
func (g *Graph) Exact() (s *Prefilter, undecided []event.Op) {
	b := newPrefilterBuilder(g)
	b.exact = true
	for slot := range uint(kindSlot) {
		op := event.Op(slot)
		if spec := event.Lookup(op); op != event.OpUnknown &&
			(!op.Known() || spec.NoCall || op.IsUring() || op.IsAIO()) {
			continue
		}
		b.unsure = never
		least := b.restrict(op, g.root)
		clear(b.restricted)
		b.unsure = always
		most := b.restrict(op, g.root)
		clear(b.restricted)
		entry := PrefilterPass
		if least == most {
			entry = b.entry(op)
		}
		switch {
		case least != most, entry == PrefilterPass && most != always:
			undecided = append(undecided, op)
		case entry != PrefilterPass:
			b.s.Entries[op] = entry
		}
	}
	b.reverse()
	return b.s, undecided
}

// Prefilter returns the prefilter for the operations that a capture may leave out.
func (g *Graph) Prefilter(mayDrop func(op event.Op) bool) *Prefilter {
	b := newPrefilterBuilder(g)
	for slot := range uint(kindSlot) {
		op := event.Op(slot)
		if op == event.OpUnknown || !op.Known() || !mayDrop(op) {
			continue
		}
		if entry := b.entry(op); entry != PrefilterPass {
			b.s.Entries[op] = entry
		}
	}
	b.reverse()
	return b.s
}

// prefilterBuilder makes a prefilter.
type prefilterBuilder struct {
	g          *Graph
	f          formulas // of what is left for an operation
	s          *Prefilter
	restricted map[restriction]ref
	entries    map[ref]int16
	unsure     ref  // what a test is that a capture cannot make
	exact      bool // it is to decide the whole filter
}

type restriction struct {
	op event.Op
	r  ref
}

// entry returns where the walk of an operation begins.
func (b *prefilterBuilder) entry(op event.Op) int16 {
	r := b.restrict(op, b.g.root)
	switch r {
	case always:
		return PrefilterPass
	case never:
		return PrefilterDrop
	}
	if n, ok := b.entries[r]; ok {
		return n
	}
	g := &Graph{formulas: &b.f}
	steps := builder{g: g, done: map[edge]int32{}, steps: map[edge]int32{}}
	entry := steps.build(r, accepted, refused)
	n := b.lower(g.steps, entry)
	b.entries[r] = n
	return n
}

// restrict returns the formula that is left of one in negation normal form when the
// operation is known and tests that cannot be made may hold or not.
func (b *prefilterBuilder) restrict(op event.Op, r ref) ref {
	key := restriction{op, r}
	if x, ok := b.restricted[key]; ok {
		return x
	}
	k := &b.g.formulas.list[r]
	var x ref
	switch k.kind {
	case isConstant:
		x = r
	case isTest, isNot:
		t := b.g.formulas.tests[k.kids[0]]
		if t.code == testOps {
			x = never
			if t.ops.has(opSlot(op)) == (k.kind == isTest) {
				x = always
			}
			break
		}
		if b.exact && event.Lookup(op).NoReturn && ofReturn(t) { // which there is none of
			x = never
			if k.kind == isNot {
				x = always
			}
			break
		}
		// That a name does not end so is sure only where its end is known for certain.
		if x = b.unsure; b.decides(t, op) &&
			(t.code != testText || t.field.id == fieldComm || ofPlace(t) || k.kind == isTest || b.exact) {
			if x = b.f.test(t); k.kind == isNot {
				x = b.f.not(x)
			}
		}
	default:
		var kids []ref
		for _, kid := range k.kids {
			kids = append(kids, b.restrict(op, kid))
		}
		x = b.f.join(k.kind == isAnd, kids)
	}
	b.restricted[key] = x
	return x
}

// decides reports whether a capture can make a test. It need not know where a process runs, so that can be no part of a
// prefilter that decides all.
func (b *prefilterBuilder) decides(t *test, op event.Op) bool {
	return lowered(t, op) != nil && !(b.exact && ofPlace(t))
}

// ofPlace reports whether a test is of where a process runs.
func ofPlace(t *test) bool {
	return t.code == testText && t.field.id >= fieldCgroup && t.field.id <= fieldUnit
}

// ofReturn reports whether a test is of what only a call has that returned.
func ofReturn(t *test) bool {
	if t.field == nil {
		return false
	}
	switch t.field.id {
	case fieldLatency, fieldResult, fieldErrno, fieldFailed:
		return true
	}
	return false
}

// prefilterFields are the fields of numbers that are the same for every operation.
var prefilterFields = map[fieldID]PrefilterField{
	fieldPID: PrefilterPID, fieldTID: PrefilterTID, fieldPPID: PrefilterPPID,
	fieldPGRP: PrefilterPGRP, fieldSID: PrefilterSID, fieldUID: PrefilterUID, fieldGID: PrefilterGID,
	fieldLatency: PrefilterLatency, fieldResult: PrefilterResult, fieldErrno: PrefilterErrno,
}

// lowered returns what a test is in a prefilter: steps of which one has to hold, without
// their ends; nil if a capture cannot make it.
func lowered(t *test, op event.Op) []loweredStep {
	switch t.code {
	case testNumber, testAny:
		return loweredNumber(t, op)
	case testText:
		switch t.field.id {
		case fieldPath, fieldName, fieldExt:
			return loweredSuffixes(t, op)
		case fieldComm:
			return loweredComm(t.words)
		case fieldCgroup, fieldContainer, fieldPod, fieldUnit:
			return []loweredStep{{PrefilterStep: PrefilterStep{Field: PrefilterPlace}, place: t}}
		}
	case testMark:
		if t.field.id == fieldFailed {
			return []loweredStep{{PrefilterStep: PrefilterStep{Field: PrefilterErrno, Lo: 1, Hi: 4095}}}
		}
	}
	return nil
}

// loweredNumber does the same for a test of a number.
func loweredNumber(t *test, op event.Op) (steps []loweredStep) {
	field, ok := prefilterField(t.field.id, op)
	if !ok {
		return nil
	}
	if gap := t.set.complement(t.field.lo, t.field.hi); len(gap) == 1 && len(t.set) == 2 && field < PrefilterArg0 {
		// One step where the number is in the gap; arguments can be beyond the field.
		step := PrefilterStep{Field: field, Lo: gap[0].lo, Hi: gap[0].hi}
		return []loweredStep{{PrefilterStep: step, inverted: true}}
	}
	for _, i := range t.set {
		steps = append(steps, loweredStep{PrefilterStep: PrefilterStep{Field: field, Lo: i.lo, Hi: i.hi}})
	}
	return steps
}

// prefilterField returns where a capture finds the number of a field in calls of op.
func prefilterField(id fieldID, op event.Op) (f PrefilterField, ok bool) {
	if f, ok = prefilterFields[id]; ok {
		return f, true
	}
	positioned := op == event.OpPread64 || op == event.OpPwrite64
	switch {
	case id == fieldNR:
		return PrefilterNR, true
	case id == fieldCount && (positioned || op == event.OpRead || op == event.OpWrite):
		return PrefilterArg2, true
	case id == fieldOffset && positioned:
		return PrefilterArg3, true
	}
	return 0, false
}

// loweredComm does the same for a test of threads' names, if it is of whole names.
func loweredComm(w *words) (steps []loweredStep) {
	if w.any || len(w.prefixes)+len(w.suffixes)+len(w.within)+len(w.under)+len(w.globs)+len(w.regexps) > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.equal)) {
		if name == "" {
			return nil // the field is missing then
		}
		if len(name) <= maxComm {
			var b [16]byte
			copy(b[:], name)
			lo, hi := int64(binary.LittleEndian.Uint64(b[:])), int64(binary.LittleEndian.Uint64(b[8:]))
			steps = append(steps, loweredStep{PrefilterStep: PrefilterStep{Field: PrefilterComm, Lo: lo, Hi: hi}})
		}
	}
	return steps
}

// loweredStep is a step that has not got its place yet.
type loweredStep struct {
	PrefilterStep
	suffix   string // of PrefilterSuffix
	place    *test  // of PrefilterPlace
	inverted bool   // the test holds if the step does not
}

// loweredSuffixes does the same for a test of names, if it is one of their ends, and the
// operation is about one descriptor and no name.
func loweredSuffixes(t *test, op event.Op) (steps []loweredStep) {
	descriptors := 0
	for _, a := range event.Lookup(op).Args {
		switch a.Kind {
		case event.KindFD:
			descriptors++
		case event.KindDirFD, event.KindPath:
			return nil
		}
	}
	w := t.words
	if descriptors != 1 || w.any || len(w.prefixes)+len(w.within)+len(w.under)+len(w.regexps) > 0 {
		return nil
	}
	ends, ok := endings(w, t.field.id == fieldExt)
	if !ok {
		return nil
	}
	for _, end := range ends {
		if end == "" || len(end) > MaxSuffix || strings.ContainsAny(end, "/\x00") {
			return nil
		}
		steps = append(steps, loweredStep{PrefilterStep: PrefilterStep{Field: PrefilterSuffix}, suffix: end})
	}
	return steps
}

// endings returns what names, or extensions, that match end in; ok is false if the words
// ask for more than an end.
func endings(w *words, extensions bool) (ends []string, ok bool) {
	switch {
	case extensions && len(w.suffixes)+len(w.globs) > 0, !extensions && len(w.equal) > 0:
		return nil, false
	}
	ends = slices.Clone(w.suffixes)
	for _, ext := range slices.Sorted(maps.Keys(w.equal)) {
		if ext == "" || strings.Contains(ext, ".") {
			return nil, false
		}
		ends = append(ends, "."+ext)
	}
	for i := range w.globs {
		end, ok := strings.CutPrefix(w.globs[i].text, "*")
		if !ok || strings.ContainsAny(end, `*?[\`) {
			return nil, false
		}
		ends = append(ends, end)
	}
	return ends, true
}

// number gives a step the number of what it tests; false if there is no room for that.
func (b *prefilterBuilder) number(p *loweredStep) bool {
	switch p.Field {
	case PrefilterSuffix:
		p.Lo = b.suffix(p.suffix)
	case PrefilterPlace:
		p.Lo = b.place(p.place)
	}
	return p.Field != PrefilterSuffix && p.Field != PrefilterPlace || p.Lo >= 0
}

// place returns the number of a test of where a process runs, -1 if there is no room for it.
func (b *prefilterBuilder) place(t *test) int64 {
	text := t.text
	i := slices.IndexFunc(b.s.Places, func(p PrefilterPlaces) bool { return p.Text == text })
	if i < 0 {
		if i = len(b.s.Places); i == MaxPrefilterPlaces {
			return -1
		}
		b.s.Places = append(b.s.Places, PrefilterPlaces{text, t})
	}
	return int64(i)
}

// suffix returns the number of an end of names, -1 if there is no room for it.
func (b *prefilterBuilder) suffix(end string) int64 {
	i := slices.Index(b.s.Suffixes, end)
	if i < 0 {
		if i = len(b.s.Suffixes); i == MaxPrefilterSuffixes {
			return -1
		}
		b.s.Suffixes = append(b.s.Suffixes, end)
	}
	return int64(i)
}

// lower adds a graph's steps, whose targets are made before themselves, and returns where
// it begins; PrefilterLet if there is no room.
func (b *prefilterBuilder) lower(steps []step, entry int32) int16 {
	begin := len(b.s.Steps)
	at := map[int32]int16{accepted: PrefilterPass, refused: PrefilterDrop}
	for n := range steps {
		s := &steps[n]
		yes, no := at[s.yes], at[s.no]
		parts := lowered(s.test, event.OpPread64) // whatever the operation: what is left is lowered
		if len(b.s.Steps)+len(parts) > MaxPrefilterSteps {
			b.s.Steps = b.s.Steps[:begin]
			return PrefilterPass
		}
		for _, p := range parts { // one after the other, the last one first
			if !b.number(&p) {
				b.s.Steps = b.s.Steps[:begin]
				return PrefilterPass
			}
			if p.Yes, p.No = yes, no; p.inverted {
				p.Yes, p.No = no, yes
			}
			no = int16(len(b.s.Steps))
			b.s.Steps = append(b.s.Steps, p.PrefilterStep)
		}
		at[int32(n)] = no
	}
	return at[entry]
}

// reverse turns the steps around, so that the walk goes up.
func (b *prefilterBuilder) reverse() {
	last := int16(len(b.s.Steps)) - 1
	turn := func(n int16) int16 {
		if n < 0 {
			return n
		}
		return last - n
	}
	steps := make([]PrefilterStep, len(b.s.Steps))
	for i, s := range b.s.Steps {
		s.Yes, s.No = turn(s.Yes), turn(s.No)
		steps[int(last)-i] = s
	}
	b.s.Steps = steps
	for op, n := range b.s.Entries {
		b.s.Entries[op] = turn(n)
	}
}
