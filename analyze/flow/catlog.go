// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
)

// catSignature gives the move before a note the signature that it has.
func (s *scanner) catSignature(ev *event.Event) {
	f := s.f
	n := len(f.moves) - 1
	if n < 0 || f.moves[n].event+1 != s.event || f.moves[n].class != 0 || len(ev.Bufs) == 0 {
		return
	}
	sig, ok := similar.CATSignatureOf(ev.Bufs[0].Inline)
	if !ok {
		return
	}
	f.moves[n].class = f.contents.catClass(&sig, f.moves[n].bytes())
}

// catClass returns the class of a signature and a length. The numbers stand in as many
// digests as they need.
func (c *contents) catClass(sig *similar.CATSignature, n int64) uint32 {
	var b [len(sig) * 8]byte
	for i, v := range sig {
		binary.LittleEndian.PutUint64(b[i*8:], v)
	}
	var parts [3]event.Digest
	for i := range parts {
		copy(parts[i][:], b[min(i*len(parts[i]), len(b)):])
	}
	id, _ := c.add(class{kind: kindCAT, len: n, first: uint32(len(c.digests)), n: uint32(len(parts))},
		append([]byte{kindCAT}, b[:]...), func() {
			c.digests = append(c.digests, parts[:]...)
		})
	return id
}

// catOf returns the signature of a class.
func (c *contents) catOf(id uint32) (sig similar.CATSignature) {
	parts := c.digest(id)
	for i := range sig {
		sig[i] = binary.LittleEndian.Uint64(parts[i/4][i%4*8:])
	}
	return sig
}

// catPairs finds contents of CAT's logs that resemble each other: by the Sørensen–Dice
// coefficient of their numbers, which is the score that CAT has.
func (r *resolver) catPairs() error {
	var ids []uint32
	var sigs []similar.CATSignature
	pairs, err := similar.NewPairs(&similar.IndexOptions{Hashes: similar.CATHashes, Threshold: r.f.o.Threshold})
	if err != nil {
		return err
	}
	for _, id := range r.distinct {
		if r.f.contents.classes[id].kind == kindCAT {
			sig := r.f.contents.catOf(id)
			ids, sigs = append(ids, id), append(sigs, sig)
			pairs.Add(sig[:])
		}
	}
	r.f.stats.Skipped += pairs.All(func(a, b int) {
		if score := sigs[a].Dice(&sigs[b]); score >= r.f.o.Threshold {
			r.near(ids[a], ids[b], score)
		}
	})
	return nil
}
