// SPDX-License-Identifier: Apache-2.0

package mapped

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestCompare looks at pages of 4 bytes, one letter a byte; '.' is zero.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks []string // one after the other, at offset 0; "forget A-B", "doubt A-B" and "shift A by B" in between
		holes bool
		want  string // changes at the last look
	}{
		{"the first look", []string{"aaaabbbb"}, false, "0:aaaabbbb"},
		{"nothing", []string{"aaaabbbb", "aaaabbbb"}, false, ""},
		{"in the middle", []string{"aaaabbbbcccc", "aaaabxbbcccc"}, false, "4:bxbb"},
		{"two stretches", []string{"aaaabbbbcccc", "xaaabbbbcccx"}, false, "0:xaaa 8:cccx"},
		{"a part of a page at the end", []string{"aaaabb", "aaaabx"}, false, "4:bx"},
		{"zeros that were there", []string{"....aaaa"}, true, "4:aaaa"},
		{"zeros without holes", []string{"....aaaa"}, false, "0:....aaaa"},
		{"a page becomes zero", []string{"bbbbaaaa", "....aaaa"}, true, "0:...."},
		{"a hole, and the same again", []string{"bbbbaaaa", "forget 0-4", "bbbbaaaa"}, true, "0:bbbb"},
		{"a part of a page is no hole", []string{"bbbbaaaa", "forget 1-7", "bbbbaaaa"}, true, ""},
		{"a large hole", []string{"bbbbaaaa", "forget 4-4000000", "bbbbaaaa"}, true, "4:aaaa"},
		{"stored back over what a call wrote", []string{"bbbbaaaa", "doubt 1-4", "bbbbaaaa"}, true, "0:bbbb"},
		{"zeros over what a call wrote", []string{"....aaaa", "doubt 0-4", "....aaaa"}, true, "0:...."},
		{"cut off, and all the same again", []string{"bbbbaaaa", "doubt 4-4000000000", "bbbbaaaa...."}, true, "4:aaaa...."},
		{"inserted", []string{"aaaabbbb", "shift 4 by 4", "aaaa....bbbb"}, true, ""},
		{"stored, and then moved", []string{"aaaabbbb", "shift 0 by 4", "....aaaaaaaa"}, true, "8:aaaa"},
		{"collapsed", []string{"aaaabbbbcccc", "shift 4 by -4", "aaaacccc"}, true, ""},
		{"collapsed to what was there", []string{"aaaabbbbcccc", "shift 0 by -4", "aaaacccc"}, true, "0:aaaa"},
	} {
		p, got := NewPages(4), ""
		for _, look := range c.looks {
			var from, to int64
			if n, _ := fmt.Sscanf(look, "forget %d-%d", &from, &to); n == 2 {
				p.Forget(from, to)
				continue
			}
			if n, _ := fmt.Sscanf(look, "doubt %d-%d", &from, &to); n == 2 {
				p.Doubt(from, to)
				continue
			}
			if n, _ := fmt.Sscanf(look, "shift %d by %d", &from, &to); n == 2 {
				p.Shift(from, to)
				continue
			}
			got = ""
			data := bytes.ReplaceAll([]byte(look), []byte("."), []byte{0})
			p.Compare(0, data, c.holes, func(off int64, data []byte) {
				got += fmt.Sprintf(" %d:%s", off, bytes.ReplaceAll(data, []byte{0}, []byte(".")))
			})
		}
		if got = strings.TrimSpace(got); got != c.want {
			t.Errorf("%s: %q changed, want %q", c.name, got, c.want)
		}
	}
}
