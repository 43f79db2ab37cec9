// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"

	"github.com/iotape/iotape/analyze/report"
)

// Finding is something that is wrong, or may be, with what shows it.
type Finding struct {
	Kind       string
	Wrong      bool
	Text       string
	Events     []string // SEQ, or TAPE:SEQ with tapes from 1: the live page selects them
	Confidence string
	Decide     string   // what would decide it; "" if nothing has to
	Story      []string // the way of the data in lines; nil if it is not told
}

func (x *Finding) html(b *strings.Builder) {
	class := "finding"
	if x.Wrong {
		class += " wrong"
	}
	b.WriteString("<article class=\"" + class + "\" data-confidence=\"" + escape(x.Confidence) + "\">\n")
	b.WriteString("<h3>" + escape(x.Kind) + " <small>confidence: " +
		escape(x.Confidence) + "</small></h3>\n<p>" + escape(x.Text) + "</p>\n")
	if len(x.Events) > 0 {
		b.WriteString("<p class=\"note\">events:")
		for _, e := range x.Events {
			b.WriteString(" <span class=\"seq\" data-event=\"" + escape(e) + "\">" + escape(e) + "</span>")
		}
		b.WriteString("</p>\n")
	}
	if x.Decide != "" {
		b.WriteString("<p class=\"note\">to decide it: " + escape(x.Decide) + "</p>\n")
	}
	if len(x.Story) > 0 {
		b.WriteString("<details><summary>The way of the data</summary><pre class=\"story\">")
		for _, line := range x.Story {
			b.WriteString(escape(line) + "\n")
		}
		b.WriteString("</pre></details>\n")
	}
	b.WriteString("</article>\n")
}

func (x *Finding) text(b *strings.Builder) {
	for i, line := range x.Story { // it says all of it
		b.WriteString(strings.Repeat("  ", min(i, 1)) + report.Printable(line) + "\n")
	}
	if len(x.Story) > 0 {
		return
	}
	b.WriteString(report.Printable(x.Kind) + ": " + report.Printable(x.Text) + "\n")
	if len(x.Events) > 0 {
		b.WriteString("  events " + report.Printable(strings.Join(x.Events, ", ")) + "\n")
	}
}

// Fold is blocks that a page shows when they are asked for.
type Fold struct {
	Title  string
	Blocks []Block
}

func (x *Fold) html(b *strings.Builder) {
	b.WriteString("<details><summary>" + escape(x.Title) + "</summary>\n")
	for _, block := range x.Blocks {
		block.html(b)
	}
	b.WriteString("</details>\n")
}

func (x *Fold) text(b *strings.Builder) {
	b.WriteString(report.Printable(x.Title) + "\n")
	for _, block := range x.Blocks {
		block.text(b)
	}
}
