// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
)

// link says what one content has of another.
type link struct {
	a, b  uint32  // of a, bytes stand in b
	bytes uint32  // how many; 0: only their resemblance is known
	run   uint32  // the longest run of them has so many,
	off   uint32  // begins here in a,
	from  uint32  // and here in b
	near  float32 // Jaccard index, or an estimate of it; 0 if it was not asked for
}

// relations are the links between different contents.
type relations struct {
	list  []link
	first []uint32 // of each class
	back  groups   // of each class, the links to it
}

// Limits of what is remembered and looked at.
const (
	maxLinks  = 64       // of one content
	maxPlaces = 64       // contents that have a piece in common, of which one finds the others
	keepBytes = 64 << 20 // contents of so many bytes are kept in memory while they are compared
	morePiece = 64 << 20 // bytes of content from which on pieces get longer
	maxBatch  = 1 << 18  // pairs that are decided together
	tolerance = 0.05     // below the threshold, estimates without sketches may be right
)

// of returns the links of a class, the best first.
func (r *relations) of(class uint32) []link { return r.list[r.first[class]:r.first[class+1]] }

// resolve finds out which contents are equal, and which are related.
func (f *Flow) resolve(ctx context.Context) error {
	c := &f.contents
	distinct, total, err := f.unify(ctx)
	if err != nil {
		return err
	}
	for i := range f.moves {
		m := &f.moves[i]
		m.class = c.same[m.class]
	}
	f.stats.Contents, f.stats.ContentBytes = len(distinct), total
	f.o.Progress("similarity")
	r := &resolver{f: f, distinct: distinct, links: make([][]link, len(c.classes))}
	if total <= keepBytes {
		r.kept = map[uint32][]byte{}
	}
	if err := r.origins(ctx, total); err != nil {
		return err
	}
	if err := r.pairs(ctx); err != nil {
		return err
	}
	r.kept = nil
	f.relation.first = make([]uint32, len(c.classes)+1)
	for id, links := range r.links {
		f.relation.list = append(f.relation.list, links...)
		f.relation.first[id+1] = uint32(len(f.relation.list))
	}
	f.relation.back = group(len(c.classes), len(f.relation.list), func(i int) uint32 { return f.relation.list[i].b })
	f.stats.Related = len(f.relation.list) / 2
	return nil
}

// unify gives contents of the same bytes, which were cut differently or of which one
// tape has a hash only, the number of the first. It returns those that are different.
func (f *Flow) unify(ctx context.Context) (distinct []uint32, total int64, err error) {
	c := &f.contents
	c.same, c.samples, c.empty = make([]uint32, len(c.classes)), make([][sampleBytes]byte, len(c.classes)), make([]bool,
		len(c.classes))
	signs := slices.ContainsFunc(c.classes, func(k class) bool { return k.kind == kindSignature })
	hashes := slices.ContainsFunc(c.classes, func(k class) bool { return k.kind == kindHash })
	seen := make(map[[16]byte]uint32, len(c.classes))
	var digester similar.Digester
	for id := 1; id < len(c.classes); id++ {
		k := &c.classes[id]
		if id&0xff == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		var keys [][16]byte
		if k.hashed() {
			keys = append(keys, digestKey(k, c.digest(uint32(id))))
		} else {
			content, err := c.borrow(uint32(id))
			if err != nil {
				return nil, 0, err
			}
			c.samples[id], c.empty[id] = sample(content), len(content) > 256 && !telling(content)
			sum := blake3.Sum256(content)
			keys = append(keys, [16]byte(sum[:16]))
			var parts []event.Digest
			if hashes {
				for at := 0; at < len(content); at += event.HashBytes {
					parts = append(parts, blake3.Sum256(content[at:min(at+event.HashBytes, len(content))]))
				}
				keys = append(keys, digestKey(&class{kind: kindHash, len: k.len}, parts))
			}
			if signs {
				parts = parts[:0]
				for at := 0; at < len(content); at += event.HashBytes {
					parts = append(parts, event.Digest(digester.Sum(content[at:min(at+event.HashBytes, len(content))])))
				}
				keys = append(keys, digestKey(&class{kind: kindSignature, len: k.len}, parts))
			}
		}
		c.same[id] = uint32(id)
		for _, key := range keys {
			if first, ok := seen[key]; ok {
				c.same[id] = first
				break
			}
		}
		for _, key := range keys {
			if _, ok := seen[key]; !ok {
				seen[key] = c.same[id]
			}
		}
		if c.same[id] == uint32(id) {
			distinct = append(distinct, uint32(id))
			total += k.len
		} else if first := &c.classes[c.same[id]]; first.hashed() && !k.hashed() {
			*first = *k // it has the bytes
		}
	}
	return distinct, total, nil
}

// digestKey is what the hashes of a content are known by.
func digestKey(k *class, parts []event.Digest) [16]byte {
	h := blake3.New()
	h.Write([]byte{k.kind, byte(k.len), byte(k.len >> 8), byte(k.len >> 16), byte(k.len >> 24), byte(k.len >> 32)})
	for i := range parts {
		p := parts[i][:]
		if k.kind == kindSignature {
			p = p[:8]
		}
		h.Write(p)
	}
	return [16]byte(h.Sum(nil))
}

// resolver finds the links.
type resolver struct {
	f        *Flow
	distinct []uint32
	links    [][]link
	kept     map[uint32][]byte // nil: there is too much
	source   []byte
	sourceID uint32
	err      error
}

// bytes returns a content for Origins.
func (r *resolver) bytes(id uint32) []byte {
	if b, ok := r.kept[id]; ok {
		return b
	}
	if r.sourceID == id && id != 0 {
		return r.source
	}
	b, err := r.f.contents.appendBytes(r.source[:0], id)
	if err != nil && r.err == nil {
		r.err = err
	}
	if r.kept != nil {
		b = slices.Clone(b)
		r.kept[id] = b
		return b
	}
	r.source, r.sourceID = b, id
	return b
}

// origins finds which bytes of contents stand in others.
func (r *resolver) origins(ctx context.Context, total int64) error {
	o := similar.OriginOptions{Piece: 128, MaxPlaces: maxPlaces}
	for n := total; n > morePiece && o.Piece < 1024; n /= 2 {
		o.Piece *= 2
	}
	x, err := similar.NewOrigins(&o, r.bytes)
	if err != nil {
		return err
	}
	var content []byte
	for pass := range 2 {
		var matches []similar.Match
		for i, id := range r.distinct {
			if i&0xff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if k := &r.f.contents.classes[id]; k.hashed() || k.len == 0 {
				continue
			}
			if pass == 0 {
				x.Add(id)
			} else {
				content = append(content[:0], r.bytes(id)...)
				matches = x.Find(matches[:0], content)
				r.take(id, content, matches)
			}
			if r.err != nil {
				return r.err
			}
		}
	}
	r.f.stats.Skipped += x.Lost()
	return nil
}

// take notes what stands in others, for each of them in all.
func (r *resolver) take(id uint32, content []byte, matches []similar.Match) {
	matches = slices.DeleteFunc(matches, func(m similar.Match) bool {
		return m.Source == id || m.Len < len(content) && !telling(content[m.Off:m.Off+m.Len])
	})
	slices.SortStableFunc(matches, func(a, b similar.Match) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Off, b.Off))
	})
	var list []link
	for from := 0; from < len(matches); {
		to := from + 1
		longest := from
		for to < len(matches) && matches[to].Source == matches[from].Source {
			if matches[to].Len > matches[longest].Len {
				longest = to
			}
			to++
		}
		m := matches[longest]
		covered := similar.Cover(matches[from:to])
		if at, ok := r.within(content, &m); ok {
			m.Off, m.From, m.Len = at, 0, r.length(m.Source)
			covered = max(covered, m.Len)
		}
		list = append(list, link{a: id, b: m.Source, bytes: uint32(covered), run: uint32(m.Len), off: uint32(m.Off),
			from: uint32(m.From)})
		from = to
	}
	slices.SortStableFunc(list, func(a, b link) int { return cmp.Compare(b.bytes, a.bytes) })
	r.links[id] = slices.Clone(list[:min(len(list), maxLinks)])
}

// within reports whether all of a source of which a long run was found stands in a content, and
// where. Of contents that repeat, the run may be one that stands a period beside it.
func (r *resolver) within(content []byte, m *similar.Match) (at int, ok bool) {
	n := r.length(m.Source)
	if m.Len == n || m.Len < n/2 || n > len(content) || n > maxSight {
		return 0, false
	}
	at = bytes.Index(content, r.bytes(m.Source))
	return at, at >= 0
}

// length returns the length of a content in bytes.
func (r *resolver) length(id uint32) int { return int(r.f.contents.classes[id].len) }

// telling reports whether bytes are more than runs of the same one, such as zeros, which
// are everywhere.
func telling(b []byte) bool { return changes(b) >= 24 }

// changes counts the bytes that are not like the one before, 24 at most.
func changes(b []byte) (n int) {
	for i := 1; i < len(b) && n < 24; i++ {
		if b[i] != b[i-1] {
			n++
		}
	}
	return n
}

// pairs finds contents that resemble each other, whose bytes are not known or too much
// changed for origins to see.
func (r *resolver) pairs(ctx context.Context) error {
	c, err := r.candidates()
	if err != nil {
		return err
	}
	for i, id := range r.distinct {
		if i&0xff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c.add(id)
	}
	if err := r.catPairs(); err != nil {
		return err
	}
	c.decideExactly()
	if c.mixed {
		c.estimateOthers()
	}
	return r.err
}

// candidates are the contents by what makes pairs of them probable: full signatures of
// those whose bytes are known, and the smaller ones of recordings.
type candidates struct {
	r          *resolver
	signer     *similar.Signer
	digester   similar.Digester
	sig        similar.Signature // to use again
	full       *similar.Pairs
	fullIDs    []uint32 // by number in full
	small      *similar.Pairs
	smallIDs   []uint32 // by number in small
	signatures map[uint32][]signature
	mixed      bool // there are contents of which only a signature is known
}

func (r *resolver) candidates() (c *candidates, err error) {
	c = &candidates{r: r, signatures: map[uint32][]signature{},
		mixed: slices.ContainsFunc(r.distinct, r.f.isSignature)}
	o := &similar.IndexOptions{Threshold: r.f.o.Threshold}
	if c.full, err = similar.NewPairs(o); err != nil {
		return nil, err
	}
	if c.small, err = similar.NewDigestPairs(o); err != nil {
		return nil, err
	}
	c.signer, err = similar.NewSigner(nil)
	return c, err
}

// isSignature reports whether of a content only its signature is known.
func (f *Flow) isSignature(id uint32) bool { return f.contents.classes[id].kind == kindSignature }

// add takes a content.
func (c *candidates) add(id uint32) {
	f := c.r.f
	k := &f.contents.classes[id]
	switch {
	case f.isSignature(id):
		c.signatures[id] = f.contents.signed(id)
	case k.hashed() || k.len < 8:
		return
	default:
		content := c.r.bytes(id)
		c.sig = c.signer.Sign(c.sig[:0], content)
		c.full.Add(c.sig)
		c.fullIDs = append(c.fullIDs, id)
		if c.mixed {
			c.signatures[id] = sign(&c.digester, content)
		}
	}
	if s := c.signatures[id]; len(s) > 0 {
		c.small.AddDigest(&s[0].digest)
		c.smallIDs = append(c.smallIDs, id)
	}
}

// decideExactly decides on pairs whose bytes are known. It does so in batches, by number:
// bytes are near each other in the tapes that came one after the other.
func (c *candidates) decideExactly() {
	v := verifier{r: c.r, signer: c.signer}
	batch := make([][2]uint32, 0, maxBatch)
	decide := func() {
		slices.SortFunc(batch, func(x, y [2]uint32) int {
			return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
		})
		for _, p := range batch {
			v.exact(p[0], p[1])
		}
		batch = batch[:0]
	}
	c.r.f.stats.Skipped += c.full.All(func(a, b int) {
		if batch = append(batch, [2]uint32{c.fullIDs[a], c.fullIDs[b]}); len(batch) == maxBatch {
			decide()
		}
	})
	decide()
}

// estimateOthers decides on pairs with a content of which only a signature is known.
func (c *candidates) estimateOthers() {
	f := c.r.f
	f.stats.Skipped += c.small.All(func(a, b int) {
		x, y := c.smallIDs[a], c.smallIDs[b]
		if !f.isSignature(x) && !f.isSignature(y) {
			return // decided exactly
		}
		least := f.o.Threshold
		if len(c.signatures[x][0].sketch) == 0 || len(c.signatures[y][0].sketch) == 0 {
			least -= tolerance
		}
		if j := estimate(c.signatures[x], c.signatures[y]); j >= least {
			c.r.near(x, y, j)
		}
	})
}

// estimate compares contents part by part.
func estimate(a, b []signature) float64 {
	sum := 0.0
	for i := range min(len(a), len(b)) {
		sum += a[i].digest.EstimateWith(&b[i].digest, a[i].sketch, b[i].sketch)
	}
	return sum / float64(max(len(a), len(b)))
}

// near notes the resemblance of two contents.
func (r *resolver) near(a, b uint32, jaccard float64) {
	for _, p := range [][2]uint32{{a, b}, {b, a}} {
		list := r.links[p[0]]
		if i := slices.IndexFunc(list, func(l link) bool { return l.b == p[1] }); i >= 0 {
			list[i].near = float32(jaccard)
		} else if len(list) < maxLinks {
			r.links[p[0]] = append(list, link{a: p[0], b: p[1], near: float32(jaccard)})
		} else {
			r.f.stats.Skipped++
		}
	}
}

// verifier decides on candidates by their shingles.
type verifier struct {
	r      *resolver
	signer *similar.Signer
	a, b   similar.Set
	of     uint32 // whose shingles a is
}

func (v *verifier) exact(a, b uint32) {
	if len(v.r.links[a]) >= maxLinks && len(v.r.links[b]) >= maxLinks {
		v.r.f.stats.Skipped++
		return
	}
	if v.of != a {
		v.a, v.of = v.signer.Set(v.a[:0], v.r.bytes(a)), a
	}
	v.b = v.signer.Set(v.b[:0], v.r.bytes(b))
	if j := similar.Jaccard(v.a, v.b); j >= v.r.f.o.Threshold {
		v.r.near(a, b, j)
	}
}
