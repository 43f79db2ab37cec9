// SPDX-License-Identifier: Apache-2.0

package predicate

// OfNumbers evaluates an expression over numbers that have names, in place of the fields
// of an event: replicas == 3 and changed < 1. Numbers can have units of bytes. A number
// that stands alone holds if it is not 0. names are for suggestions.
func (x *Expr) OfNumbers(values map[string]int64, names []string) (bool, error) {
	c := &checker{x: x, o: &Options{}}
	return c.ofNumbers(x.root, values, names)
}

func (c *checker) ofNumbers(n node, values map[string]int64, names []string) (bool, error) {
	switch n := n.(type) {
	case *constant:
		return n.value, nil
	case *negation:
		v, err := c.ofNumbers(n.x, values, names)
		return !v, err
	case *logic:
		result := n.and
		for _, k := range n.kids { // all of them: what is wrong with one is said in any case
			v, err := c.ofNumbers(k, values, names)
			if err != nil {
				return false, err
			}
			if n.and {
				result = result && v
			} else {
				result = result || v
			}
		}
		return result, nil
	case *comparison:
		return c.ofNumber(n, values, names)
	}
	return false, c.fail(0, 0, "", "this test is of events")
}

func (c *checker) ofNumber(n *comparison, values map[string]int64, names []string) (bool, error) {
	have, ok := values[n.name]
	if !ok {
		return false, c.fail(n.pos, n.end, suggest(n.name, names), "there is no number %s", Quote(n.name))
	}
	if n.rel == relHolds {
		return have != 0, nil
	}
	if n.rel > relIn {
		return false, c.fail(n.pos, n.end, "", "%s is a number: it can be compared, and be in a set", n.name)
	}
	f := &field{name: n.name, typ: typeBytes, lo: minI64, hi: maxI64}
	found := false
	for i := range n.values {
		iv, err := c.interval(f, n.rel, &n.values[i])
		if err != nil {
			return false, err
		}
		found = found || iv.lo <= have && have <= iv.hi
	}
	return found != (n.negated || n.rel == relNotEqual), nil
}
