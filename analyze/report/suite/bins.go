// SPDX-License-Identifier: Apache-2.0

package suite

// bins divide the time of a tape into equal parts.
type bins struct {
	first, step int64 // ns
	values      []float64
}

// steps is how many parts of the time curves and heat maps have.
const steps = 120

func newBins(c *collector) *bins {
	return &bins{first: c.first, step: max((c.last-c.first+steps-1)/steps, 1), values: make([]float64, steps)}
}

// at returns the part that a time is in.
func (b *bins) at(ns int64) int {
	return int(min(max((ns-b.first)/b.step, 0), int64(len(b.values)-1)))
}

// add counts something at a time.
func (b *bins) add(ns int64, amount float64) { b.values[b.at(ns)] += amount }

// spread divides an amount over the parts that [from, to] is in, in proportion: the rule
// of Darshan's heat maps.
func (b *bins) spread(from, to int64, amount float64) {
	i, j := b.at(from), b.at(to)
	if i == j || to <= from {
		b.values[i] += amount
		return
	}
	for k := i; k <= j; k++ {
		start, end := b.first+int64(k)*b.step, b.first+int64(k+1)*b.step
		part := min(to, end) - max(from, start)
		if k == j {
			part = to - max(from, start)
		}
		b.values[k] += amount * float64(max(part, 0)) / float64(to-from)
	}
}

// perSecond returns the values divided by the length of a part.
func (b *bins) perSecond() []float64 {
	list := make([]float64, len(b.values))
	for i, v := range b.values {
		list[i] = v * 1e9 / float64(b.step)
	}
	return list
}
