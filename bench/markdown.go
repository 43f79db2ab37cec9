// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"strings"
)

// What stands between these lines of a document is ours.
const (
	beginMark = "<!-- begin: written by make bench -->\n"
	endMark   = "<!-- end: written by make bench -->\n"
)

// Markdown returns the results as a part of a document, with headings of level 3.
func (r *Report) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s.\n", cell(r.about()))
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n", cell(t.title))
		if t.text != "" {
			fmt.Fprintf(&b, "%s\n\n", t.text)
		}
		line := func(cells []string) {
			b.WriteByte('|')
			for _, c := range cells {
				fmt.Fprintf(&b, " %s |", cell(c))
			}
			b.WriteByte('\n')
		}
		line(t.head)
		b.WriteString("|" + strings.Repeat("---|", t.left) + strings.Repeat("---:|", len(t.head)-t.left) + "\n")
		for _, row := range t.rows {
			line(row)
		}
	}
	if notes := r.notes(); len(notes) > 0 {
		b.WriteByte('\n')
		for _, n := range notes {
			fmt.Fprintf(&b, "* %s\n", cell(n))
		}
	}
	return b.Bytes()
}

// cell keeps text from being taken for Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ").Replace(s)
}

// Replace puts part into doc, in the place of what stands between the marks.
func Replace(doc, part []byte) ([]byte, error) {
	before, rest, begin := bytes.Cut(doc, []byte(beginMark))
	_, after, end := bytes.Cut(rest, []byte(endMark))
	if !begin || !end {
		return nil, fmt.Errorf("the document has no lines %q and %q for the results to stand between",
			strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return bytes.Join([][]byte{before, []byte(beginMark), part, []byte(endMark), after}, nil), nil
}
