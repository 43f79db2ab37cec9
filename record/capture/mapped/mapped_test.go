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
		looks []string // one after the other, at offset 0; "forget A-B" in between
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
	} {
		p, got := NewPages(4), ""
		for _, look := range c.looks {
			var from, to int64
			if n, _ := fmt.Sscanf(look, "forget %d-%d", &from, &to); n == 2 {
				p.Forget(from, to)
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
