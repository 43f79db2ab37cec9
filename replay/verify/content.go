// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/replay/plan"
)

// Content compares what a call read with what the tape has of it.
func (c *Checker) Content(t *plan.Task, b *event.Buf, got []byte) {
	switch {
	case t.Unexplained&linearize.UnexplainedContent != 0:
		c.Unexplained()
	case t.Content.Tainted:
		c.Uncompared()
	case len(b.Hashes) > 0:
		c.hashes(t, b, got)
	case len(t.Content.Sums) > 0:
		if want, got, differ := content.CompareSums(c.Tape, t.Content.Sums, got); differ {
			c.Mismatch(t, "content", want, got)
		}
	case !t.Content.Missing:
		c.bytes(t, "content", t.Content.Want, got)
	default:
		if len(got) > 0 {
			c.Uncompared()
		}
		n := min(len(got), len(t.Content.Want)) // the tape has these
		c.bytes(t, "content", t.Content.Want[:n], got[:n])
	}
}

// bytes notes the first byte that differs.
func (c *Checker) bytes(t *plan.Task, field string, want, got []byte) {
	if !bytes.Equal(want, got) {
		w, g := content.FirstDifference(want, got)
		c.Mismatch(t, field, w, g)
	}
}

// hashes compares parts of a buffer by their hashes.
func (c *Checker) hashes(t *plan.Task, b *event.Buf, got []byte) {
	for i := range b.Hashes {
		want := &b.Hashes[i]
		part := got[:min(len(got), event.HashBytes)]
		got = got[len(part):]
		if want.Missing() {
			c.Uncompared()
			return
		}
		// Of a signature the first 8 bytes are the hash's, the others say what it is like.
		if sum := event.Digest(blake3.Sum256(part)); [8]byte(sum[:]) != [8]byte(want[:]) {
			c.Mismatch(t, "content", digestName(want, i), digestName(&sum, i))
			return
		}
	}
}

// digestName names the hash of part i of a buffer.
func digestName(d *event.Digest, i int) string {
	return fmt.Sprintf("blake3:%x at byte %d", d[:8], i*event.HashBytes)
}
