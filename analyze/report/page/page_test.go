// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report/page"
)

// hostile is what a traced program may call a file.
const hostile = "</td><script>alert('x')</script>\"'&\x1b[31m\u202e\xff"

// samples has every kind of block, all named by a hostile trace.
func samples() *page.Page {
	table := &page.Table{Title: hostile, Head: []string{hostile, "n"}, Left: 1, Of: 5}
	table.Add(hostile, "1")
	series := []page.Series{{Name: hostile, Values: []float64{0, 1, 3}}, {Name: "other", Values: []float64{2}}}
	return &page.Page{Title: hostile, Lines: []string{hostile}, Sections: []page.Section{
		{ID: "first", Title: hostile, Note: hostile, Data: map[string]string{"name": hostile}, Blocks: []page.Block{
			page.Line(hostile), table,
			&page.Chart{Title: hostile, X: page.NS, Y: page.BytesRate, Step: 1e9, Series: series},
			&page.Bars{Title: hostile, Labels: []string{hostile, "b", "c"}, Series: series},
			&page.Heat{Title: hostile, X: page.NS, Unit: page.Bytes, Step: 1e9, Rows: series},
		}},
		{ID: "second", Title: "Empty", Data: []int{}, Blocks: []page.Block{&page.Table{Head: []string{"a"}}, &page.Chart{}, &page.Bars{}, &page.Heat{}}},
	}}
}

// The page is whole, loads nothing and runs nothing, whatever the names in it are.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := samples().HTML(&b, nil); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"<script", "http://", "https://", "\x1b", "\u202e",
		"<img", "<link", "url(", "@import"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in it", bad)
		}
	}
	for _, good := range []string{"&lt;script&gt;", "prefers-color-scheme:dark", "@media print",
		"Content-Security-Policy", "(1 of 5)", "<svg", "<path", "<rect", "nothing"} {
		if !strings.Contains(text, good) {
			t.Errorf("%q is not in it", good)
		}
	}
	var open []string
	void := map[string]bool{"meta": true, "line": true}
	for _, m := range regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*?(/?)>`).FindAllStringSubmatch(text, -1) {
		switch {
		case void[m[2]] || m[3] == "/":
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			t.Fatalf("</%s> closes %v", m[2], open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := samples().Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\u202e", "\xff"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is in it", bad)
		}
	}
	if !strings.Contains(b.String(), "EMPTY\n") || !strings.Contains(b.String(), "▃") {
		t.Errorf("%s", b.String())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := samples().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var v struct {
		Version int
		First   map[string]string
	}
	if err := json.Unmarshal(b.Bytes(), &v); err != nil || v.Version != 1 ||
		!strings.HasPrefix(v.First["name"], "</td>") {
		t.Errorf("%v %+v", err, v)
	}
}

func TestUnits(t *testing.T) {
	for _, x := range []struct {
		u    page.Unit
		v    float64
		want string
	}{{page.Plain, 9999, "9999"}, {page.Plain, 12345, "12.3 k"}, {page.Plain, 2.5e6, "2.5 M"},
		{page.NS, 1500, "1.50 µs"}, {page.BytesRate, 2048, "2.00 KiB/s"}, {page.CountsRate, 3, "3/s"}} {
		if got := x.u.Format(x.v); got != x.want {
			t.Errorf("%v: %q, not %q", x.v, got, x.want)
		}
	}
}
