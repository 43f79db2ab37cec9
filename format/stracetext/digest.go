// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"encoding/hex"

	"github.com/iotape/iotape/event"
)

// Hashes that a line shows: so many of a buffer, with so many digits. Verbose
// lines have all.
const (
	shownDigests = 4
	shownDigits  = 16
)

// appendDigests writes the hashes of a buffer's parts in place of its content.
func (p *Printer) appendDigests(dst []byte, b *event.Buf) []byte {
	many := len(b.Hashes) > 1
	if many {
		dst = append(dst, '[')
	}
	for i := range b.Hashes {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if i == shownDigests && !p.o.Verbose {
			dst = append(dst, "..."...)
			break
		}
		text := digestText(&b.Hashes[i])
		if prefix := len(digestPrefix) + shownDigits; !p.o.Verbose && len(text) > prefix {
			text = text[:prefix] + "..."
		}
		dst = append(dst, text...)
	}
	if many {
		dst = append(dst, ']')
	}
	return dst
}

const digestPrefix = "blake3:"

// digestText is a hash in full, with a question mark for what could not be read.
func digestText(d *event.Digest) string {
	if d.Missing() {
		return digestPrefix + "?"
	}
	return digestPrefix + hex.EncodeToString(d[:])
}
