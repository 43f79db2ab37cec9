// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"math"
	"strings"
)

// markSecret finds the objects in which nothing may be read: those that were named, and
// connections that begin with a handshake of TLS (RFC 8446, 5.1).
func (w *finder) markSecret() {
	f := w.f
	w.secret = make([]bool, len(f.objects))
	for i := range f.objects {
		o := &f.objects[i]
		for _, part := range f.o.Encrypted {
			w.secret[i] = w.secret[i] || part != "" && strings.Contains(f.name(o), part)
		}
		w.secret[i] = w.secret[i] || o.secret
	}
}

// open reports content that can be read where nothing should be.
func (w *finder) open(i int, m *move) {
	f := w.f
	o := &f.objects[m.object]
	if !m.write() && o.Kind == Stream && o.ends[0] > 0 {
		return // as it was sent
	}
	why := ""
	if k, ok := w.elsewhere(m); ok {
		why = fmt.Sprintf("it is also in %s", f.name(&f.objects[f.moves[k].object]))
	} else if b := f.view(m.class); !o.secret && len(b) >= smallest && Readable(b) {
		why = "its bytes are not as if by chance"
	}
	if why == "" {
		return
	}
	t := tallyOf(w.plain, m.object)
	if t.count == 0 {
		t.why = why
	}
	t.add(i, m.bytes())
}

// elsewhere returns a move of the same bytes that is where all may be read.
func (w *finder) elsewhere(m *move) (uint32, bool) {
	f := w.f
	at := func(class uint32) (uint32, bool) {
		list := f.byClass.of(class)
		for _, k := range list[:min(len(list), 64)] {
			if !w.secret[f.moves[k].object] {
				return k, true
			}
		}
		return 0, false
	}
	if m.bytes() >= smallest/2 {
		if k, ok := at(m.class); ok {
			return k, true
		}
	}
	for _, l := range f.relation.of(m.class) {
		if l.bytes >= smallest {
			if k, ok := at(l.b); ok {
				return k, true
			}
		}
	}
	return 0, false
}

// Readable reports whether bytes are not as those of a cipher: their entropy (Shannon,
// bits a byte) is less than that of as many random ones by half a bit. It is for 64 bytes
// and more.
func Readable(b []byte) bool {
	b = b[:min(len(b), 64<<10)]
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	n := float64(len(b))
	h := 0.0
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			h -= p * math.Log2(p)
		}
	}
	return h < randomEntropy(n)-0.5
}

// randomEntropy is the entropy that n random bytes have on average: each value comes
// about as often as a Poisson distribution says.
func randomEntropy(n float64) float64 {
	mean := n / 256
	if mean > 64 {
		return 8 - 255/(2*n*math.Ln2) // Miller and Madow
	}
	sum, p := 0.0, math.Exp(-mean)
	for k := 1; k < 400; k++ {
		p *= mean / float64(k)
		sum += p * float64(k) * math.Log2(float64(k))
	}
	return math.Log2(n) - 256*sum/n
}
