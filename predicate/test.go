// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// testCode is the kind of a test.
type testCode uint8

const (
	testOps     testCode = iota // what an event is: its operation, or its kind
	testNumber                  // a number is in a set
	testAny                     // one of several numbers is
	testFlags                   // of one file, one of several masks fits
	testText                    // a text, or one of several, fits
	testAddress                 // one of the addresses fits
	testDescent                 // the process descends from another one
	testMark                    // a flag of the event is set
)

// test is one question about an event. Tests are immutable.
type test struct {
	code  testCode
	field *field
	text  string // canonical

	ops    *opSet
	set    intervals
	masks  []flagMask
	words  *words
	addrs  *addresses
	pid    uint32
	hostOf []string // for testNumber of hosts: the names, for the text
}

// opSlots is how many different things an event can be: an operation, or a kind that is
// no call.
const (
	opSlots  = 2048
	kindSlot = opSlots - 64 // + kind
)

// opSet is a set of what events can be.
type opSet [opSlots / 64]uint64

func slotOf(ev *event.Event) uint {
	if ev.Kind != event.Call {
		return kindSlot + uint(ev.Kind)&63
	}
	return opSlot(ev.Op)
}

func opSlot(op event.Op) uint {
	if op >= kindSlot {
		return 0
	}
	return uint(op)
}

func (s *opSet) add(slot uint)      { s[slot/64] |= 1 << (slot & 63) }
func (s *opSet) has(slot uint) bool { return s[slot/64]>>(slot&63)&1 != 0 }

// allOps are the slots that events can have, calls those of calls.
var allOps, calls = func() (all, calls opSet) {
	for slot := range uint(kindSlot) {
		calls.add(slot)
	}
	all = calls
	for k := event.Exited; int(k) < event.NumKinds; k++ {
		all.add(kindSlot + uint(k))
	}
	return all, calls
}()

// constant returns whether the test has always the same result.
func (t *test) constant() (ref, bool) {
	switch t.code {
	case testOps:
		if *t.ops == (opSet{}) {
			return never, true
		}
		if *t.ops == allOps {
			return always, true
		}
	case testNumber, testAny:
		if len(t.set) == 0 {
			return never, true
		}
		if t.field.every && t.set[0].lo <= t.field.lo && t.set[0].hi >= t.field.hi {
			return always, true
		}
	}
	return never, false
}

// complement returns the test that holds whenever t does not, nil if there is none.
func (t *test) complement() *test {
	switch {
	case t.code == testOps:
		var rest opSet
		for i := range rest {
			rest[i] = allOps[i] &^ t.ops[i]
		}
		return &test{code: testOps, field: t.field, ops: &rest}
	case t.code == testNumber && t.field.every:
		return &test{code: testNumber, field: t.field, set: t.set.complement(t.field.lo, t.field.hi), hostOf: t.hostOf}
	}
	return nil
}

// joins reports whether the test can be joined with others of its family.
func (t *test) joins(and bool) bool {
	switch t.code {
	case testOps, testNumber:
		return true
	case testAny, testFlags:
		return !and
	case testAddress:
		return !and && !t.addrs.any
	case testText:
		return !and && !t.words.any
	}
	return false
}

// family names what tests can be joined with.
func (t *test) family() string {
	if t.code == testOps {
		return "is"
	}
	return strconv.Itoa(int(t.code)) + fields[t.field.id].name + strconv.Itoa(int(t.field.id))
}

// join returns the conjunction or the disjunction of tests of one family.
func join(and bool, tests []*test) *test {
	first := tests[0]
	if len(tests) == 1 {
		return first
	}
	j := &test{code: first.code, field: first.field, hostOf: first.hostOf}
	switch first.code {
	case testOps:
		j.ops = joinOps(and, tests)
	case testNumber, testAny:
		j.set = joinSets(and, tests)
	case testFlags:
		for _, t := range tests {
			for _, m := range t.masks {
				if !slices.Contains(j.masks, m) {
					j.masks = append(j.masks, m)
				}
			}
		}
	case testAddress:
		j.addrs = &addresses{paths: map[string]bool{}}
		for _, t := range tests {
			j.addrs.nets = append(j.addrs.nets, t.addrs.nets...)
			maps.Copy(j.addrs.paths, t.addrs.paths)
		}
	case testText:
		j.words = joinWords(tests)
	}
	return j
}

func joinOps(and bool, tests []*test) *opSet {
	joined := *tests[0].ops
	for _, t := range tests[1:] {
		for i := range joined {
			if and {
				joined[i] &= t.ops[i]
			} else {
				joined[i] |= t.ops[i]
			}
		}
	}
	return &joined
}

func joinSets(and bool, tests []*test) intervals {
	if and {
		joined := tests[0].set
		for _, t := range tests[1:] {
			joined = joined.intersect(t.set)
		}
		return joined
	}
	var all []interval
	for _, t := range tests {
		all = append(all, t.set...)
	}
	return newIntervals(all)
}

// cost is about how many ns the test takes.
func (t *test) cost() int {
	switch t.code {
	case testText:
		return t.field.cost + t.words.cost()
	case testDescent:
		return 15
	}
	return t.field.cost + bits.Len(uint(len(t.set)))
}

// describe writes the test's text.
func (t *test) describe() {
	switch t.code {
	case testOps:
		t.text = t.ops.String()
	case testNumber, testAny:
		t.text = t.numbers()
	case testFlags:
		if t.text = "has flags"; slices.Contains(t.masks, flagMask{}) {
			return
		}
		var parts []string
		for _, m := range t.masks {
			parts = append(parts, maskText(m))
		}
		t.text = "flags has " + braced(parts)
	case testText:
		t.text = t.words.describe(t.field.name)
	case testAddress:
		if t.text = "has an addr"; t.addrs.any {
			return
		}
		t.text = "addr in " + braced(t.addrs.texts())
	case testDescent:
		t.text = fmt.Sprintf("descendant of %d", t.pid)
	case testMark:
		t.text = t.field.name
	}
}

// braced writes a set; one element stands alone.
func braced(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func maskText(m flagMask) string {
	if m.value == 0 && m.mask == 3 {
		return "O_RDONLY"
	}
	var b []string
	rest := m.value
	for i := range openFlags.Items {
		it := &openFlags.Items[i]
		if it.Value != 0 && rest&it.Value == it.Value {
			b = append(b, it.Name)
			rest &^= it.Value
		}
	}
	return strings.Join(b, "|")
}

// String writes the shorter one of what is in the set and what is not.
func (s *opSet) String() string {
	in, out := s.ops()
	kinds, others := s.kinds()
	unknown := s.has(0)
	var text string
	if classes := s.classes(); len(kinds) == 0 && len(classes) > 0 && len(in) > 1 && len(out) > 0 {
		return "class in {" + strings.Join(classes, ", ") + "}"
	}
	switch {
	case len(in) == 0 && !unknown:
		text = "kind in {" + strings.Join(kinds, ", ") + "}"
		if len(kinds) == 1 {
			text = "kind = " + kinds[0]
		}
		return text
	case len(out) == 0 && unknown:
		if len(others) > 0 && len(kinds) == 0 {
			return "kind = call"
		}
		return "kind not in {" + strings.Join(others, ", ") + "}"
	case unknown: // a complement
		text = "op not in {" + strings.Join(out, ", ") + "}"
		if len(out) == 1 {
			text = "op != " + out[0]
		}
	default:
		text = "op in {" + strings.Join(in, ", ") + "}"
		if len(in) == 1 {
			text = "op = " + in[0]
		}
	}
	if len(kinds) > 0 {
		text += " or kind in {" + strings.Join(kinds, ", ") + "}"
	}
	return text
}

// ops returns the names of the operations that are in the set, and of those that are not.
func (s *opSet) ops() (in, out []string) {
	for _, spec := range event.Specs() {
		switch {
		case spec.Op == event.OpUnknown:
		case s.has(opSlot(spec.Op)):
			in = append(in, spec.Name)
		default:
			out = append(out, spec.Name)
		}
	}
	return in, out
}

// kinds returns the same of the kinds of events that are no calls.
func (s *opSet) kinds() (in, out []string) {
	for k := event.Exited; int(k) < event.NumKinds; k++ {
		if s.has(kindSlot + uint(k)) {
			in = append(in, kindNames[k])
		} else {
			out = append(out, kindNames[k])
		}
	}
	return in, out
}

// classes returns the classes whose operations are the calls of the set, nil if it is
// not of whole classes.
func (s *opSet) classes() (names []string) {
	var seen, has [256]bool
	for slot := range uint(kindSlot) {
		class := event.Lookup(event.Op(slot)).Class
		if seen[class] && has[class] != s.has(slot) {
			return nil
		}
		seen[class], has[class] = true, s.has(slot)
	}
	for class, ok := range has {
		if ok {
			names = append(names, event.Class(class).String())
		}
	}
	return names
}

// numbers writes a test of numbers.
func (t *test) numbers() string {
	f := t.field
	var parts []string
	for _, i := range t.set {
		switch {
		case i.lo == i.hi:
			parts = append(parts, t.number(i.lo))
		case i.lo <= f.lo && i.hi >= f.hi:
			return "has a " + f.name
		case i.hi >= f.hi && len(t.set) == 1:
			return f.name + " >= " + t.number(i.lo)
		case i.lo <= f.lo && len(t.set) == 1:
			return f.name + " <= " + t.number(i.hi)
		case i.hi >= f.hi:
			parts = append(parts, t.number(i.lo)+"..")
		case i.lo <= f.lo:
			parts = append(parts, ".."+t.number(i.hi))
		default:
			parts = append(parts, t.number(i.lo)+".."+t.number(i.hi))
		}
	}
	if len(parts) == 1 && !strings.Contains(parts[0], "..") {
		return f.name + " = " + parts[0]
	}
	return f.name + " in {" + strings.Join(parts, ", ") + "}"
}

func (t *test) number(v int64) string {
	switch f := t.field; {
	case f.id == fieldDev:
		u := uint64(v) ^ 1<<63
		return fmt.Sprintf("%d:%d", u>>8&0xfff|u>>32&^0xfff, u&0xff|u>>12&0xffffff00)
	case f.id == fieldIno:
		return strconv.FormatUint(uint64(v)^1<<63, 10)
	case f.typ == typeSpan || f.id == fieldTime:
		return spanText(v)
	case f.id == fieldWall:
		return Quote(wallText(v))
	case f.typ == typeErrno && v > 0:
		if n := event.ErrnoName(syscallErrno(v)); !strings.Contains(n, " ") {
			return n
		}
	case f.typ == typeSignal && v > 0:
		return event.SignalName(int(v))
	case f.id == fieldFileType:
		for _, n := range []string{"file", "dir", "link", "char", "block", "pipe", "socket", "anon"} {
			if fileTypes[n] == v {
				return n
			}
		}
	case f.id == fieldHost && v >= 0 && v < int64(len(t.hostOf)):
		return Quote(t.hostOf[v])
	}
	return strconv.FormatInt(v, 10)
}

// addresses are what an address is compared with.
type addresses struct {
	any   bool // every address fits
	nets  []netip.Prefix
	paths map[string]bool // of local sockets
}

func (a *addresses) texts() []string {
	var list []string
	for _, n := range a.nets {
		if n.IsSingleIP() {
			list = append(list, n.Addr().String())
		} else {
			list = append(list, n.String())
		}
	}
	for _, p := range slices.Sorted(maps.Keys(a.paths)) {
		list = append(list, Quote(p))
	}
	return list
}

func (a *addresses) has(s *socketAddress) bool {
	if a.any {
		return true
	}
	if s.addr.IsValid() {
		for _, n := range a.nets {
			if n.Contains(s.addr) {
				return true
			}
		}
		return false
	}
	return s.path != "" && a.paths[s.path]
}
