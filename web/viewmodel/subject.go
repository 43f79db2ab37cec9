// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
)

// subject is what a tape has of a content, as far as it is looked at: bytes, or what recordings
// without content and logs of CAT have in their place. Of nothing, nothing is said.
type subject struct {
	len    int64
	bytes  []byte // nil: they are not in the tape
	hash   event.Digest
	sign   similar.Digest
	sketch []byte
	cat    *similar.CATSignature
	has    has
	parts  []event.Digest // of hash or sign: all of them
}

// has says which fields of a subject tell something.
type has uint8

const (
	hasNothing has = iota
	hasBytes
	hasHash
	hasSignature
	hasCAT
)

func (h has) String() string {
	return [...]string{"", "bytes", "hashes", "signatures", "signatures of CAT"}[h]
}

// subject returns what a tape has of a content. note is the mark behind the event, nil if there
// is none.
func (f *finding) subject(tape int, host uint32, b *event.Buf, note []byte) *subject {
	t := f.s.tapes[tape]
	s := &subject{len: b.Len}
	hosts := t.Manifest().Hosts
	switch {
	case len(b.Hashes) > 0 && !b.Hashes[0].Missing():
		s.parts = slices.Clone(b.Hashes)
		if s.has = hasHash; int(host) < len(hosts) && strings.Contains(hosts[host].Content, "signature") {
			s.has, s.sign = hasSignature, similar.Digest(b.Hashes[0])
			s.sketch = slices.Clone(b.Sketch[:min(len(b.Sketch), similar.SketchBytes(int(min(b.Len, similarBytes))))])
		}
		s.hash = b.Hashes[0]
	case !b.Omitted && b.Missing == 0:
		if s.bytes = f.bytes(t.Tape, b); int64(len(s.bytes)) == min(b.Len, similarBytes) {
			s.has = hasBytes
		}
	default:
		if sig, ok := similar.CATSignatureOf(note); ok {
			s.has, s.cat = hasCAT, &sig
		}
	}
	return s
}

// compare says how alike a content is to the one that is asked for; ok is false if that cannot
// be known.
func (f *finding) compare(s *subject) (v verdict, ok bool) {
	o := f.asked
	switch kind := max(s.has, o.has); {
	case s.has == hasNothing || o.has == hasNothing:
		return v, false
	case kind == hasBytes:
		return f.compareBytes(s.bytes), true
	case s.has != o.has && min(s.has, o.has) != hasBytes || kind == hasCAT && s.has != o.has:
		return v, false // of different kinds
	case kind == hasCAT:
		v.equal = s.len == o.len && *s.cat == *o.cat
		v.jaccard = s.cat.Dice(o.cat)
	case kind == hasHash:
		v.equal = s.len == o.len && equalParts(s.hashes(), o.hashes())
	default:
		a, b := s.signature(&f.digester), o.signature(&f.digester)
		v.equal = s.len == o.len && equalParts(a.parts, b.parts)
		v.jaccard = a.sign.EstimateWith(&b.sign, a.sketch, b.sketch)
	}
	if v.equal {
		v.jaccard = 1
	}
	return v, true
}

// equalParts compares the digests of parts of two contents of one length, as far as both have
// them: of bytes, only the first part was read.
func equalParts(a, b []event.Digest) bool {
	n := min(len(a), len(b))
	return n > 0 && slices.Equal(a[:n], b[:n])
}

func (s *subject) hashes() []event.Digest {
	if s.has == hasBytes {
		return []event.Digest{blake3.Sum256(s.bytes)}
	}
	return s.parts
}

// signature returns a subject that has signatures.
func (s *subject) signature(d *similar.Digester) *subject {
	if s.has == hasSignature {
		return s
	}
	digest, sketchh := d.Sign(nil, s.bytes)
	return &subject{sign: digest, sketch: sketchh, parts: []event.Digest{event.Digest(digest)}}
}

// compareBytes compares bytes with those that are asked for.
func (f *finding) compareBytes(data []byte) (v verdict) {
	if v.equal = bytes.Equal(data, f.asked.bytes); v.equal {
		v.jaccard, v.shared = 1, len(data)
		return v
	}
	f.scratch = f.signer.Sign(f.scratch[:0], data)
	if len(f.scratch) == len(f.signature) && len(f.scratch) > 0 {
		v.jaccard = similar.Estimate(f.scratch, f.signature)
	}
	f.matches = f.origins.Find(f.matches[:0], data)
	v.shared = similar.Cover(f.matches)
	return v
}
