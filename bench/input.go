// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// random makes the input of workloads: the same on every machine.
type random struct{ *rand.Rand }

func newRandom() random { return random{rand.New(rand.NewPCG(1, 2))} }

// fill writes over b.
func (r random) fill(b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
}

var syllables = strings.Fields(
	"ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu")

// text returns words that compress about as well as text does.
func (r random) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		for range 1 + r.IntN(4) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
	}
	return b.String()
}

// commits returns a history for git fast-import: each commit changes three of 200
// files of about 3 KiB.
func commits(n int) string {
	r := newRandom()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter a <a@example.org> %d +0000\ndata <<.\ncommit %d\n.\n",
			1_600_000_000+i, i)
		for range 3 {
			f := r.IntN(200)
			text := strings.ReplaceAll(r.text(600), " su ", "\n") + "\n"
			fmt.Fprintf(&b, "M 644 inline d%d/f%d\ndata %d\n%s\n", f%10, f, len(text), text)
		}
	}
	return b.String()
}
