// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ref is a formula, by its number in formulas.
type ref int32

// The constants.
const (
	never  ref = 0
	always ref = 1
)

type formulaKind uint8

const (
	isConstant formulaKind = iota
	isTest                 // kids[0] is the number of the test
	isNot                  // of a test
	isAnd
	isOr
)

type formula struct {
	kind formulaKind
	kids []ref
	cost int
}

// formulas holds formulas in negation normal form; equal ones have one number.
type formulas struct {
	list  []formula
	known map[string]ref
	tests []*test
	names map[string]ref // tests by their text
}

func newFormulas() formulas {
	return formulas{list: make([]formula, 2), known: map[string]ref{}, names: map[string]ref{}}
}

func (f *formulas) put(kind formulaKind, cost int, kids ...ref) ref {
	key := fmt.Sprint(kind, kids)
	if r, ok := f.known[key]; ok {
		return r
	}
	r := ref(len(f.list))
	f.list = append(f.list, formula{kind, kids, cost})
	f.known[key] = r
	return r
}

// test returns the formula of a test.
func (f *formulas) test(t *test) ref {
	if r, constant := t.constant(); constant {
		return r
	}
	t.describe()
	n, ok := f.names[t.text]
	if !ok {
		n = ref(len(f.tests))
		f.tests = append(f.tests, t)
		f.names[t.text] = n
	}
	return f.put(isTest, t.cost(), n)
}

// testOf returns the test of a formula that is one, nil of others.
func (f *formulas) testOf(r ref) *test {
	if k := &f.list[r]; k.kind == isTest {
		return f.tests[k.kids[0]]
	}
	return nil
}

func (f *formulas) not(r ref) ref {
	switch k := f.list[r]; k.kind {
	case isConstant:
		return always - r
	case isNot:
		return f.put(isTest, k.cost, k.kids[0])
	case isTest:
		if t := f.tests[k.kids[0]].complement(); t != nil {
			return f.test(t)
		}
		return f.put(isNot, k.cost, k.kids[0])
	default:
		var kids []ref
		for _, x := range k.kids {
			kids = append(kids, f.not(x))
		}
		return f.join(k.kind != isAnd, kids)
	}
}

// join returns the conjunction or the disjunction of formulas.
func (f *formulas) join(and bool, kids []ref) ref {
	kind, absorbing := isOr, always
	if and {
		kind, absorbing = isAnd, never
	}
	var flat []ref
	for _, k := range kids {
		if f.list[k].kind == kind {
			flat = append(flat, f.list[k].kids...)
		} else {
			flat = append(flat, k)
		}
	}
	flat = f.merge(and, flat)
	slices.Sort(flat)
	flat = slices.Compact(flat)
	cost := 0
	rest := make([]ref, 0, len(flat))
	for _, k := range flat {
		switch {
		case k == absorbing:
			return absorbing
		case k == always-absorbing:
			continue
		}
		if t := &f.list[k]; t.kind == isNot && contains(flat, f.put(isTest, t.cost, t.kids[0])) {
			return absorbing // x and not x
		}
		rest = append(rest, k)
		cost += f.list[k].cost
	}
	switch len(rest) {
	case 0:
		return always - absorbing
	case 1:
		return rest[0]
	}
	slices.SortStableFunc(rest, func(a, b ref) int { return f.list[a].cost - f.list[b].cost })
	return f.put(kind, cost, slices.Clone(rest)...)
}

// contains reports whether a sorted list has an element.
func contains(list []ref, r ref) bool {
	_, found := slices.BinarySearch(list, r)
	return found
}

// merge makes one test of those of one field that can be one.
func (f *formulas) merge(and bool, kids []ref) []ref {
	families := map[string][]*test{}
	var rest []ref
	for _, k := range kids {
		if t := f.testOf(k); t != nil && t.joins(and) {
			families[t.family()] = append(families[t.family()], t)
		} else {
			rest = append(rest, k)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(families)) {
		rest = append(rest, f.test(join(and, families[key])))
	}
	return rest
}

// String writes a formula, for people.
func (f *formulas) String(r ref) string {
	k := &f.list[r]
	switch k.kind {
	case isConstant:
		return [...]string{"false", "true"}[r]
	case isTest:
		return f.tests[k.kids[0]].text
	case isNot:
		return "not " + f.tests[k.kids[0]].text
	}
	var parts []string
	for _, x := range k.kids {
		s := f.String(x)
		if f.list[x].kind >= isAnd {
			s = "(" + s + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, map[formulaKind]string{isAnd: " and ", isOr: " or "}[k.kind])
}
