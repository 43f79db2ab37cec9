// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/event"
)

// Limits of what a filter may ask for.
const (
	maxRegexp = 4 << 10 // bytes of a regular expression
	maxRoots  = 64      // different processes after "descendant of"
	maxComm   = 15      // bytes of comm (TASK_COMM_LEN, linux/sched.h)
)

// Warning is what is allowed in a filter, but hardly meant.
type Warning struct {
	Pos, End int // bytes of the filter
	Message  string
}

func (c *checker) warn(pos, end int, format string, args ...any) {
	c.warnings = append(c.warnings, Warning{pos, end, fmt.Sprintf(format, args...)})
}

func syscallErrno(v int64) syscall.Errno { return syscall.Errno(v) }

// spanText writes a time span as filters read it.
func spanText(ns int64) string { return strings.ReplaceAll(time.Duration(ns).String(), "µ", "u") }

func wallText(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// meaning returns the formula of a node.
func (c *checker) meaning(n node) (ref, error) {
	switch n := n.(type) {
	case *constant:
		if n.value {
			return always, nil
		}
		return never, nil
	case *negation:
		r, err := c.meaning(n.x)
		if err != nil {
			return 0, err
		}
		return c.f.not(r), nil
	case *logic:
		var kids []ref
		for _, k := range n.kids {
			r, err := c.meaning(k)
			if err != nil {
				return 0, err
			}
			kids = append(kids, r)
		}
		return c.f.join(n.and, kids), nil
	case *descent:
		v, err := strconv.ParseUint(n.value.text, 10, 32)
		if err != nil {
			return 0, c.wrong(&n.value, "", `after "descendant of" stands the number of a process, not %s`,
				Quote(n.value.text))
		}
		return c.f.test(&test{code: testDescent, field: &fields[fieldPID], pid: uint32(v)}), nil
	}
	return c.comparison(n.(*comparison))
}

func (c *checker) comparison(n *comparison) (ref, error) {
	id, ok := fieldNames[n.name]
	if !ok {
		return 0, c.fail(n.pos, n.end, suggest(n.name, knownNames), "there is no field %s", n.name)
	}
	f := &fields[id]
	switch {
	case f.typ == typeBool && n.rel != relHolds:
		return 0, c.fail(n.pos, n.end, "write "+f.name+" or not "+f.name,
			"%s is true or false and stands alone", f.name)
	case f.typ == typeBool:
		return c.f.test(&test{code: testMark, field: f}), nil
	case n.rel == relHolds:
		return 0, c.fail(n.pos, n.end, "", "%s has to be compared with something", f.name)
	}
	if err := c.fitting(f, n); err != nil {
		return 0, err
	}
	t, err := c.test(f, n)
	if err != nil {
		return 0, err
	}
	inverted := n.rel == relNotEqual || n.negated
	if inverted && t.code == testNumber {
		inverted = false
		t.set = t.set.complement(t.field.lo, t.field.hi)
	}
	r := c.f.test(t)
	if inverted {
		r = c.f.join(true, []ref{c.f.test(c.present(t)), c.f.not(r)})
	}
	if r == never || r == always {
		c.warn(n.pos, n.values[len(n.values)-1].end, "%s is always %t", comparisonText(n), r == always)
	}
	return r, nil
}

func comparisonText(n *comparison) string {
	var b strings.Builder
	n.write(&b, 0)
	if b.Len() > 60 {
		return b.String()[:57] + "..."
	}
	return b.String()
}

// fitting checks that a relation fits a field.
func (c *checker) fitting(f *field, n *comparison) error {
	var allowed []relation
	switch f.typ {
	case typeText, typeHost:
		allowed = []relation{relEqual, relNotEqual, relIn, relStartsWith, relEndsWith, relContains,
			relGlob, relMatches, relUnder}
	case typeOp:
		allowed = []relation{relEqual, relNotEqual, relIn, relStartsWith, relEndsWith, relContains, relGlob, relMatches}
	case typeClass, typeKind, typeFile, typeAddress:
		allowed = []relation{relEqual, relNotEqual, relIn}
	case typeFlags:
		allowed = []relation{relHas}
	default:
		allowed = []relation{relEqual, relNotEqual, relLess, relLessEqual, relGreater, relGreaterEqual, relIn}
	}
	if slices.Contains(allowed, n.rel) {
		return nil
	}
	var names []string
	for _, r := range allowed {
		names = append(names, relationText[r])
	}
	return c.fail(n.pos, n.values[0].pos, "", "%s is compared by %s, not by %s", f.name,
		strings.Join(names, ", "), relationText[n.rel])
}

// present returns the test that an event has a value which t can test.
func (c *checker) present(t *test) *test {
	switch t.code {
	case testOps:
		if t.field.id == fieldKind {
			all := allOps
			return &test{code: testOps, field: t.field, ops: &all}
		}
		all := calls
		return &test{code: testOps, field: t.field, ops: &all}
	case testFlags:
		return &test{code: testFlags, field: t.field, masks: []flagMask{{}}}
	case testText:
		return &test{code: testText, field: t.field, words: &words{any: true}}
	case testAddress:
		return &test{code: testAddress, field: t.field, addrs: &addresses{any: true}}
	}
	return &test{code: t.code, field: t.field, set: intervals{{t.field.lo, t.field.hi}}}
}

// test returns the test of a comparison without its negation.
func (c *checker) test(f *field, n *comparison) (*test, error) {
	switch f.typ {
	case typeOp, typeClass, typeKind:
		return c.opTest(f, n)
	case typeFlags:
		t := &test{code: testFlags, field: f}
		for i := range n.values {
			m, err := c.flags(&n.values[i])
			if err != nil {
				return nil, err
			}
			t.masks = append(t.masks, m)
		}
		return t, nil
	case typeText:
		w, err := c.words(f, n)
		return &test{code: testText, field: f, words: w}, err
	case typeAddress:
		a, err := c.addresses(n)
		return &test{code: testAddress, field: f, addrs: a}, err
	case typeHost:
		return c.hostTest(f, n)
	}
	return c.numberTest(f, n)
}

// kindNames are the names of kinds of events.
var kindNames = [...]string{
	event.Call: "call", event.Exited: "exited", event.LossMark: "loss", event.NoteMark: "note", event.Forked: "forked",
	event.Started: "started", event.Inherited: "inherited", event.Woken: "woken", event.Signalled: signalName,
	event.Described: "described",
}

// signalName is what a delivered signal is called as a kind of event, and as an operation.
const signalName = "signal"

// opTest makes a set of operations from names.
func (c *checker) opTest(f *field, n *comparison) (*test, error) {
	t := &test{code: testOps, field: f, ops: new(opSet)}
	w := &words{}
	if f.typ == typeOp {
		var err error
		if w, err = c.words(f, n); err != nil {
			return nil, err
		}
	} else {
		w.equal = map[string]bool{}
		for i := range n.values {
			w.equal[strings.ToLower(n.values[i].text)] = true
		}
	}
	seen := addSlots(t.ops, f.typ, w)
	if n.rel == relEqual || n.rel == relNotEqual || n.rel == relIn {
		for i := range n.values {
			v := &n.values[i]
			if name := strings.ToLower(v.text); f.typ != typeOp && !seen[name] || f.typ == typeOp && !seen[v.text] {
				return nil, c.wrong(v, suggestOp(v.text, seen), "there is no %s %s", f.name, Quote(v.text))
			}
		}
	}
	return t, nil
}

// suggestOp returns a hint with the name that is nearest to a misspelt one. Some functions of the C library
// differ from their calls by an ending alone: it counts more than letters.
func suggestOp(name string, names map[string]bool) string {
	for _, near := range []string{name + "64", strings.TrimSuffix(name, "64")} {
		if names[near] {
			return "did you mean " + near + "?"
		}
	}
	return suggest(name, slices.Sorted(maps.Keys(names)))
}

// addSlots adds to a set the slots whose names fit, and returns all names that there are.
func addSlots(ops *opSet, typ fieldType, w *words) (seen map[string]bool) {
	seen = map[string]bool{}
	if typ == typeKind {
		for k, name := range kindNames {
			switch {
			case !w.equal[name]:
			case k == int(event.Call):
				for i := range ops {
					ops[i] |= calls[i]
				}
			default:
				ops.add(kindSlot + uint(k))
			}
			seen[name] = true
		}
	} else {
		for slot := range uint(kindSlot) {
			spec := event.Lookup(event.Op(slot))
			name := spec.Name
			if typ == typeClass {
				name = spec.Class.String()
			}
			seen[name] = true
			if w.fits(name) {
				ops.add(slot)
			}
		}
	}
	if typ == typeOp && w.equal[signalName] {
		ops.add(kindSlot + uint(event.Signalled))
		seen[signalName] = true
	}
	return seen
}

// words reads what a text is compared with.
func (c *checker) words(f *field, n *comparison) (*words, error) {
	w := &words{}
	for i := range n.values {
		v := &n.values[i]
		text := v.text
		if f.id == fieldExt {
			text = strings.TrimPrefix(text, ".")
		}
		switch n.rel {
		case relEqual, relNotEqual, relIn:
			if w.equal == nil {
				w.equal = map[string]bool{}
			}
			c.plausible(f, v, text)
			w.equal[text] = true
		case relStartsWith:
			w.prefixes = append(w.prefixes, text)
		case relEndsWith:
			w.suffixes = append(w.suffixes, text)
		case relContains:
			w.within = append(w.within, text)
		case relUnder:
			if text = path.Clean(text); text == "." {
				return nil, c.wrong(v, "", "after under stands a directory")
			}
			w.under = append(w.under, text)
		case relGlob:
			g, err := newGlob(text)
			if err != nil {
				return nil, c.wrong(v, "", "%s is no pattern: *, ?, [a-z]; ** for parts of a path", Quote(text))
			}
			w.globs = append(w.globs, g)
		case relMatches:
			if len(text) > maxRegexp {
				return nil, c.wrong(v, "", "a regular expression has at most %d bytes", maxRegexp)
			}
			re, err := regexp.Compile(text)
			if err != nil {
				return nil, c.wrong(v, "", "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
			w.regexps = append(w.regexps, re)
		}
	}
	return w, nil
}

// plausible warns of texts that a field is never equal to.
func (c *checker) plausible(f *field, v *value, text string) {
	switch {
	case f.id == fieldComm && len(text) > maxComm:
		c.warn(v.pos, v.end, "comm is never %s: the kernel keeps %d bytes of a thread's name", Quote(text), maxComm)
	case (f.id == fieldName || f.id == fieldExt) && strings.Contains(text, "/"):
		c.warn(v.pos, v.end, "%s is never %s: it has no slash", f.name, Quote(text))
	case v.form == bare && f.id != fieldComm && strings.ContainsAny(text, "*?["):
		c.warn(v.pos, v.end, "= compares with the text %s itself; glob compares with a pattern", Quote(text))
	}
}

// numberTest makes a set of numbers.
func (c *checker) numberTest(f *field, n *comparison) (*test, error) {
	var list []interval
	wall := false
	for i := range n.values {
		v := &n.values[i]
		if f.typ == typeTime {
			if _, ok := wallTime(v.text); ok {
				wall = true
			}
		}
		iv, err := c.interval(f, n.rel, v)
		if err == nil {
			err = c.possible(f, n.rel, v, iv)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, iv)
	}
	if wall {
		f = &fields[fieldWall]
		if len(c.o.Hosts) == 0 {
			return nil, c.fail(n.pos, n.end, "", "the wall clock is not known here; time since the start (2.5s) is")
		}
		for i := range n.values {
			if _, ok := wallTime(n.values[i].text); !ok {
				return nil, c.wrong(&n.values[i], "",
					"times since the start and by the wall clock cannot stand in one set")
			}
		}
	}
	t := &test{code: testNumber, field: f}
	if f.several {
		t.code = testAny
	}
	t.set = newIntervals(list).intersect(intervals{{f.lo, f.hi}})
	return t, nil
}

// possible checks that a field can have one of the numbers that a value and a relation stand for.
func (c *checker) possible(f *field, rel relation, v *value, iv interval) error {
	if iv.lo <= f.hi && iv.hi >= f.lo || f.typ == typeTime || f.typ == typeDevice {
		return nil
	}
	show := func(n int64) string {
		if f.typ == typeSpan {
			return spanText(n)
		}
		return strconv.FormatInt(n, 10)
	}
	limits := "is from " + show(f.lo) + " to " + show(f.hi)
	if f.hi == maxI64 {
		limits = "is never less than " + show(f.lo)
	}
	hint := ""
	if f.hi == maxU32 && v.text == "-1" && f.typ == typeNumber {
		hint = "write " + show(maxU32)
	}
	sign := ""
	switch rel {
	case relLess, relLessEqual, relGreater, relGreaterEqual:
		sign = relationText[rel] + " "
	}
	return c.wrong(v, hint, "%s %s, never %s%s", f.name, limits, sign, v.text)
}

// interval returns the numbers that a value and a relation stand for.
func (c *checker) interval(f *field, rel relation, v *value) (interval, error) {
	if rel == relIn || rel == relEqual {
		if from, to, ok := strings.Cut(v.text, ".."); ok && v.form == bare {
			iv := interval{f.lo, f.hi}
			var err error
			if from != "" {
				iv.lo, err = c.scalar(f, v, from)
			}
			if to != "" && err == nil {
				iv.hi, err = c.scalar(f, v, to)
			}
			if err == nil && iv.lo > iv.hi {
				err = c.wrong(v, "", "the range %s is empty", Quote(v.text))
			}
			return iv, err
		}
	}
	x, err := c.scalar(f, v, v.text)
	if err != nil {
		return interval{}, err
	}
	switch rel {
	case relLess:
		if x == minI64 {
			return interval{1, 0}, nil
		}
		return interval{minI64, x - 1}, nil
	case relLessEqual:
		return interval{minI64, x}, nil
	case relGreater:
		if x == maxI64 {
			return interval{1, 0}, nil
		}
		return interval{x + 1, maxI64}, nil
	case relGreaterEqual:
		return interval{x, maxI64}, nil
	}
	return interval{x, x}, nil
}

// scalar returns the number that a text stands for.
func (c *checker) scalar(f *field, v *value, text string) (int64, error) {
	switch f.typ {
	case typeSignal:
		w := *v
		w.text = text
		return c.signal(f, &w)
	case typeErrno:
		w := *v
		w.text = text
		return c.errno(f, &w)
	case typeFile:
		if t, ok := fileTypes[strings.ToLower(text)]; ok {
			return t, nil
		}
		return 0, c.wrong(v, suggest(text, slices.Sorted(maps.Keys(fileTypes))),
			"there is no type of files %s", Quote(text))
	case typeTime:
		if ns, ok := wallTime(text); ok {
			return ns, nil
		}
	}
	return c.number(f, v, text)
}

// hostTest finds out which hosts are meant.
func (c *checker) hostTest(f *field, n *comparison) (*test, error) {
	t := &test{code: testNumber, field: f}
	var names []string
	for _, h := range c.o.Hosts {
		names = append(names, h.Name)
	}
	t.hostOf = names
	w, err := c.words(f, n)
	if err != nil {
		return nil, err
	}
	var list []interval
	for i, name := range names {
		if w.fits(name) || w.equal[strconv.Itoa(i)] {
			list = append(list, interval{int64(i), int64(i)})
		}
	}
	if len(list) == 0 && (n.rel == relEqual || n.rel == relIn) {
		v := &n.values[0]
		if len(names) == 0 {
			return nil, c.wrong(v, "", "the names of hosts are not known here")
		}
		return nil, c.wrong(v, suggest(v.text, names), "the hosts are %s",
			strings.Join(names[:min(len(names), 8)], ", "))
	}
	t.set = newIntervals(list)
	return t, nil
}

// addresses reads addresses of sockets.
func (c *checker) addresses(n *comparison) (*addresses, error) {
	a := &addresses{paths: map[string]bool{}}
	for i := range n.values {
		v := &n.values[i]
		text := strings.Trim(v.text, "[]")
		if net, err := netip.ParsePrefix(text); err == nil {
			a.nets = append(a.nets, net.Masked())
			continue
		}
		if ip, err := netip.ParseAddr(text); err == nil {
			ip = ip.Unmap()
			a.nets = append(a.nets, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		if !strings.ContainsAny(v.text, "/@") {
			return nil, c.wrong(v, "",
				"%s is neither an address as 10.0.0.7, 10.0.0.0/8 or ::1, nor the path of a local socket",
				Quote(v.text))
		}
		a.paths[v.text] = true
	}
	return a, nil
}
