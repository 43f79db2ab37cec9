// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Content is the policy for the bytes that calls move: what programs read (from
// files, sockets and pipes) and what they write. The zero value keeps everything.
// Paths, structures, addresses and argument vectors are always kept.
type Content struct {
	Read, Write Policy
}

// Policy says what is kept of the bytes of one argument.
type Policy struct {
	Rule Rule
	Head uint32 // KeepHead: so many bytes from the first on, at least 1
}

// Rule is a way of keeping content.
type Rule uint8

// The rules, from the one that keeps most.
const (
	KeepFull      Rule = iota
	KeepHead           // the first Policy.Head bytes
	KeepSignature      // of each event.HashBytes a similar.Digest: what it equals, and resembles
	KeepHash           // a hash of each event.HashBytes
	KeepNone           // lengths only
)

// Everywhere returns the policy that has one rule for both directions.
func Everywhere(r Rule) Content { return Content{Policy{Rule: r}, Policy{Rule: r}} }

// ParseContent reads a policy: full, head:N, signature, hash or none, for both directions or,
// with read= or write= in front, for one; several are separated by commas. N may
// have the unit K, M or G. What is not named is full.
func ParseContent(s string) (Content, error) {
	var c Content
	seen := map[string]bool{}
	for item := range strings.SplitSeq(s, ",") {
		direction, what, ok := strings.Cut(item, "=")
		if !ok {
			direction, what = "", item
		}
		k, err := parseKeep(what)
		if err != nil {
			return c, err
		}
		switch direction {
		case "":
			c = Content{k, k}
		case "read":
			c.Read = k
		case "write":
			c.Write = k
		default:
			return Content{}, fmt.Errorf("content %q: %q is neither read nor write", s, direction)
		}
		if seen[direction] || direction == "" && len(seen) > 0 {
			return Content{}, fmt.Errorf("content %q says twice what to keep", s)
		}
		seen[direction] = true
	}
	return c, nil
}

func parseKeep(s string) (Policy, error) {
	switch s {
	case "full":
		return Policy{}, nil
	case "signature":
		return Policy{Rule: KeepSignature}, nil
	case "hash":
		return Policy{Rule: KeepHash}, nil
	case "none":
		return Policy{Rule: KeepNone}, nil
	}
	if n, ok := strings.CutPrefix(s, "head:"); ok {
		digits := strings.TrimRight(n, "KMG")
		shift, known := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[n[len(digits):]]
		v, err := strconv.ParseUint(digits, 10, 32)
		if err == nil && known && v > 0 && v<<shift < math.MaxUint32 {
			return Policy{Rule: KeepHead, Head: uint32(v << shift)}, nil
		}
		return Policy{}, fmt.Errorf("content head:%s: wants a number of bytes, 1 or more, such as 4096 or 64K", n)
	}
	return Policy{}, fmt.Errorf("content %q is neither full, head:N, signature, hash nor none", s)
}

// String returns the policy as ParseContent reads it.
func (c Content) String() string {
	if c.Read == c.Write {
		return c.Read.String()
	}
	return "read=" + c.Read.String() + ",write=" + c.Write.String()
}

func (k Policy) String() string {
	switch k.Rule {
	case KeepHead:
		return "head:" + strconv.FormatUint(uint64(k.Head), 10)
	case KeepSignature:
		return "signature"
	case KeepHash:
		return "hash"
	case KeepNone:
		return "none"
	}
	return "full"
}

// Bytes returns how many bytes of an argument have to be read from the program:
// all of them to hash or sign them.
func (k Policy) Bytes() uint32 {
	switch k.Rule {
	case KeepHead:
		return k.Head
	case KeepNone:
		return 0
	}
	return math.MaxUint32
}

// Covers reports whether what a policy wants can be made of what this one keeps.
func (c Content) Covers(want Content) bool {
	return c.Read.covers(want.Read) && c.Write.covers(want.Write)
}

func (k Policy) covers(want Policy) bool {
	switch k.Rule {
	case KeepFull:
		return true
	case KeepHead:
		return want.Rule == KeepHead && want.Head <= k.Head || want.Rule == KeepNone
	}
	return want.Rule == k.Rule || want.Rule == KeepNone
}

// Union returns the policy that keeps least of those that cover both.
func (c Content) Union(d Content) Content {
	return Content{c.Read.union(d.Read), c.Write.union(d.Write)}
}

func (k Policy) union(l Policy) Policy {
	switch {
	case k.covers(l):
		return k
	case l.covers(k):
		return l
	}
	return Policy{}
}

// Trim appends the pieces of a call's record, or of a data record, as far as the policy
// keeps them. Bytes that are to be hashed are all kept.
func (c Content) Trim(to []trace.Piece, s *event.Spec, pieces []trace.Piece) []trace.Piece {
	const noContent = trace.PieceMissing | trace.PieceOmitted | trace.PieceShape
	for _, p := range pieces {
		k := c.Of(s, int(p.Arg))
		if k.Rule == KeepFull || k.hashes() || p.Flags&noContent != 0 {
			to = append(to, p)
			continue
		}
		keep := uint32(0)
		if most := uint64(k.Bytes()); p.Off < most && p.Flags&trace.PieceHash == 0 {
			keep = uint32(min(uint64(p.Len), most-p.Off))
		}
		if keep > 0 {
			to = append(to, trace.Piece{Arg: p.Arg, Flags: p.Flags, Len: keep, Off: p.Off, Data: p.Data[:keep]})
		}
		if keep < p.Len {
			flags := p.Flags&^trace.PieceHash | trace.PieceOmitted
			to = append(to, trace.Piece{Arg: p.Arg, Flags: flags, Len: p.Len - keep, Off: p.Off + uint64(keep)})
		}
	}
	return to
}

// Hashes reports whether some content is hashed or signed.
func (c Content) Hashes() bool { return c.Read.hashes() || c.Write.hashes() }

func (k Policy) hashes() bool { return k.Rule == KeepHash || k.Rule == KeepSignature }

// Of returns what is kept of argument arg of an operation, or of a part of it
// (event.Part.Of). What moves inside the
// kernel (event.Spec.Hold) is both read and written: it is kept as far as either
// rule says.
func (c Content) Of(s *event.Spec, arg int) Policy {
	_, base := event.SplitPart(arg)
	switch {
	case s.NeedsStop && arg == s.MovedFrom():
		if c.Write.Rule < c.Read.Rule || c.Write.Rule == c.Read.Rule && c.Write.Head > c.Read.Head {
			return c.Write
		}
		return c.Read
	case !s.IsContent(arg):
		return Policy{}
	case s.Args[base].Dir == event.Out:
		return c.Read
	}
	return c.Write
}
