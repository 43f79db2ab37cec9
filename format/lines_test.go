// SPDX-License-Identifier: Apache-2.0

package format

import (
	"context"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"", ""},
		{"a", "1:a"},
		{"a\n", "1:a"},
		{"a\r\n\nb", "1:a 2: 3:b"},
		{"12345678\n", "1:12345678"},
		{"123456789012345678901234567890\nx\n", "1:LONG 2:x"},
		{"x\n123456789012345678901234567890", "1:x 2:LONG"},
	} {
		l := NewLines(context.Background(), strings.NewReader(x.in), 16)
		var got []string
		for l.Next() {
			s := string(l.Text())
			if l.Long() {
				s = "LONG"
			}
			got = append(got, string(rune('0'+l.Number()))+":"+s)
		}
		if s := strings.Join(got, " "); s != x.want || l.Err() != nil {
			t.Errorf("%q: %q, %v", x.in, s, l.Err())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l := NewLines(ctx, strings.NewReader("a\n"), 16)
	if l.Next() || l.Err() == nil {
		t.Error("it goes on after the context has ended")
	}
}
