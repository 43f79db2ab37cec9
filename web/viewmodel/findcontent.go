// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
)

// Words that begin a search for content, and its limits.
const (
	containing = "containing "
	hashWord   = "hash "

	leastHash   = 8       // digits of a hash, so that it tells something
	mostContent = 1 << 20 // bytes of a content that are looked at
)

// accepts returns what says which events of a tape a search fits: a filter, or content: containing TEXT,
// containing "TEXT" (with the escapes of Go), containing 0xBYTES, or hash BLAKE3, of which the first digits
// will do.
func (s *Scene) accepts(t *tape, text string) (func(ev *event.Event) bool, error) {
	if what, ok := strings.CutPrefix(text, containing); ok {
		part := []byte(wanted(strings.TrimSpace(what)))
		return func(ev *event.Event) bool { return len(part) > 0 && t.contains(ev, part) }, nil
	}
	if what, ok := strings.CutPrefix(text, hashWord); ok {
		digits := strings.ToLower(strings.TrimSpace(what))
		if _, err := hex.DecodeString(digits[:len(digits)/2*2]); err == nil && len(digits) >= leastHash {
			return func(ev *event.Event) bool { return t.hashed(ev, digits) }, nil
		}
	}
	return s.o.Filter(t.Tape, text)
}

// wanted returns the bytes that a text stands for.
func wanted(text string) string {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return string(b)
		}
	}
	if quoted, err := strconv.Unquote(text); err == nil && len(text) > 0 && text[0] == '"' {
		return quoted
	}
	return text
}

// contains reports whether bytes stand in a content of an event.
func (t *tape) contains(ev *event.Event, part []byte) bool {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Len < int64(len(part)) || b.Omitted {
			continue
		}
		if data, _ := t.ContentRange(b, 0, mostContent, nil); bytes.Contains(data, part) {
			return true
		}
	}
	return false
}

// hashed reports whether a content of an event, all of it, has a hash that begins with digits.
func (t *tape) hashed(ev *event.Event, digits string) bool {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		switch {
		case len(b.Hashes) == 1: // of a recording without content
			if strings.HasPrefix(hex.EncodeToString(b.Hashes[0][:]), digits) {
				return true
			}
		case b.Len > 0 && b.Len <= mostContent && !b.Omitted && b.Missing == 0:
			data, missing := t.ContentRange(b, 0, mostContent, nil)
			sum := blake3.Sum256(data)
			if missing == 0 && strings.HasPrefix(hex.EncodeToString(sum[:]), digits) {
				return true
			}
		}
	}
	return false
}
