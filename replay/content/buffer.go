// SPDX-License-Identifier: Apache-2.0

package content

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// AnonymisedContent says what became of a tape's content.
func AnonymisedContent(t *trace.Tape) trace.AnonymisedContent {
	if a := t.Manifest().Anonymised; a != nil {
		return a.Content
	}
	return trace.ContentKept
}

// HashHolds reports whether the hash in the entry of a tape's tree is that of what a
// replay makes: when content was replaced (package anon) only where all of it is there.
func HashHolds(content trace.AnonymisedContent, e *tree.Entry) bool {
	return content == trace.ContentKept || content == trace.ContentSubstituted && e.Has(tree.KnownContent)
}

// KnownPrefix returns how many of a buffer's bytes, from the first on, the tape has.
func KnownPrefix(b *event.Buf) int64 {
	n := int64(len(b.Inline))
	for _, r := range b.Refs {
		if r.Chunk == 0 {
			break
		}
		n += int64(r.Len)
	}
	return n
}

// TextKnown reports whether a call's arguments that are text (the name of an attribute) are whole in the tape.
func TextKnown(ev *event.Event) bool {
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; b.Kind == event.KindText && b.Dir == event.In && KnownPrefix(b) < b.Len {
			return false
		}
	}
	return true
}

// Prefix returns the first bytes of a buffer that the tape has, as a buffer.
func Prefix(b *event.Buf) event.Buf {
	p := event.Buf{Arg: b.Arg, Dir: b.Dir, Kind: b.Kind, Len: KnownPrefix(b), Inline: b.Inline}
	for i := range b.Refs {
		if b.Refs[i].Chunk == 0 {
			break
		}
		p.Refs = b.Refs[:i+1]
	}
	return p
}

// WholeOrNone reports whether a tape has all bytes of a buffer, or none.
func WholeOrNone(b *event.Buf) bool {
	known := KnownPrefix(b)
	return len(b.Hashes) == 0 && (known == b.Len || known == 0)
}
