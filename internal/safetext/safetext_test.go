// SPDX-License-Identifier: Apache-2.0

package safetext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/safetext"
)

// hostile has a character of each kind that is escaped.
const hostile = "a\x1b[31mb\u0085c\u202ed\u2066e\u200bf\ufeffg\u2028h\U000e0041i\u00adj\x7fk"

func TestString(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain /bin/ls", "plain /bin/ls"},
		{"Grüße 日本 😀 \ufffd", "Grüße 日本 😀 \ufffd"},
		{hostile, `a\u001b[31mb\u0085c\u202ed\u2066e\u200bf\ufeffg\u2028h\udb40\udc41i\u00adj\u007fk`},
		{"line\nnext\ttab\r", `line\nnext\ttab\r`},
		{"bad \x9b\xff\xe2\x80", `bad \x9b\xff\xe2\x80`},
	} {
		if got := safetext.String(c.in); got != c.want {
			t.Errorf("%q is %q, want %q", c.in, got, c.want)
		}
	}
}

// cut writes text in pieces of n bytes.
func cut(t *testing.T, w *safetext.Writer, s string, n int) string {
	t.Helper()
	var b bytes.Buffer
	w.W = &b
	for s != "" {
		k := min(n, len(s))
		if got, err := w.Write([]byte(s[:k])); err != nil || got != k {
			t.Fatalf("write: %d, %v; want %d", got, err, k)
		}
		s = s[k:]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriter(t *testing.T) {
	yes := func() bool { return true }
	csv := "n,name\n-1,\"two\nlines\"\"x\"\n-2.5e3,tab\there\n"
	formulas := "=1+1,+49 30,-1,-1+cmd|' /C calc'!A0,@SUM(A1),\"=A1,B1\",a=b,+7\n=x\n"
	for _, c := range []struct {
		name     string
		w        safetext.Writer
		in, want string
	}{
		{"text", safetext.Writer{}, "x\ty\n" + hostile + "\n", "x\ty\n" + safetext.String(hostile) + "\n"},
		{"a broken character at the end", safetext.Writer{}, "x\xe2\x80", `x\xe2\x80`},
		{"no colours", safetext.Writer{}, "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
		{"colours", safetext.Writer{Colours: yes}, "\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
		{"other marks", safetext.Writer{Colours: yes}, "\x1b[2Ja\x1b]0;title\abc\x1b[3", `\u001b[2Ja\u001b]0;title\u0007bc\u001b[3`},
		{"csv", safetext.Writer{CSV: true}, csv, "n,name\n-1,\"two\\nlines\"\"x\"\n-2.5e3,tab\\there\n"},
		{"formulas stay", safetext.Writer{CSV: true}, formulas, formulas},
		{"formulas", safetext.Writer{CSV: true, Formulas: true}, formulas,
			"'=1+1,'+49 30,-1,'-1+cmd|' /C calc'!A0,'@SUM(A1),\"'=A1,B1\",a=b,+7\n'=x\n"},
		{"a long number is none", safetext.Writer{CSV: true, Formulas: true}, "-" + strings.Repeat("1", 80) + "\n",
			"'-" + strings.Repeat("1", 80) + "\n"},
	} {
		for _, n := range []int{1, 2, 3, 7, 1 << 10} {
			w := c.w
			if got := cut(t, &w, c.in, n); got != c.want {
				t.Errorf("%s, in pieces of %d:\ngot  %q\nwant %q", c.name, n, got, c.want)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	in, err := json.Marshal(map[string]string{"name": hostile})
	if err != nil {
		t.Fatal(err)
	}
	out := cut(t, &safetext.Writer{}, string(in), 5)
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil || got["name"] != hostile {
		t.Errorf("%s is %q, %v; want %q", out, got["name"], err, hostile)
	}
	for _, r := range out {
		if safetext.Unsafe(r) {
			t.Errorf("%U is in %q", r, out)
		}
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte(hostile), 3, true)
	f.Add([]byte("=1,\"a\n\",-1"), 1, true)
	f.Fuzz(func(t *testing.T, in []byte, n int, csv bool) {
		w := &safetext.Writer{CSV: csv, Formulas: csv}
		out := cut(t, w, string(in), max(n, 1))
		for i, r := range out {
			if safetext.Unsafe(r) && r != '\n' && r != '\t' && !strings.HasPrefix(out[i:], "\ufffd") {
				t.Errorf("%U is in %q", r, out)
			}
		}
	})
}
