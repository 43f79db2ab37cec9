// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/report"
)

// maxStories limits the findings whose stories are told.
const maxStories = 100

// storyOf tells a finding as lines of plain text: what it is, one line for each step of the
// data, and what would decide it. Names in it are printable.
func storyOf(f *flow.Flow, x *flow.Finding) []string {
	lines := []string{fmt.Sprintf("%s (confidence: %s): %s", x.Problem, x.Confidence, report.Printable(x.Text))}
	for i, id := range f.Story(x) {
		arrow := "  "
		if i > 0 {
			arrow = "→ "
		}
		mark := ""
		if at := slices.Index(x.Moves, id); at >= 0 {
			mark = "  ← " + string(x.Problem)
			if d := x.Diff; d != nil && at == len(x.Moves)-1 {
				all := report.Plural(uint64(max(d.Differ+d.Same, 0)), "byte", "bytes")
				mark += fmt.Sprintf(": %d of %s differ, the first at %s", d.Differ, all,
					report.Count(uint64(max(d.First, 0))))
			}
		}
		lines = append(lines, arrow+stepText(f, id)+mark)
	}
	if x.Decide != "" {
		lines = append(lines, "to decide it: "+x.Decide)
	}
	return lines
}

// stepText says what a move did.
func stepText(f *flow.Flow, id int) string {
	m := f.Move(id)
	verb := map[bool]map[flow.Kind]string{
		true:  {flow.File: "wrote %s to", flow.Stream: "sent %s", flow.Socket: "sent %s"},
		false: {flow.File: "read %s of", flow.Stream: "received %s", flow.Socket: "received %s"},
	}[m.Write][m.Object.Kind]
	switch {
	case m.Object.Kind == flow.File:
	case strings.HasPrefix(m.Object.Name, "/"): // a device
		verb = map[bool]string{true: "wrote %s to", false: "read %s of"}[m.Write]
	default:
		verb += " on"
	}
	at := ""
	if m.At >= 0 && m.Object.Kind == flow.File {
		at = " at " + report.Count(uint64(m.At))
	}
	return fmt.Sprintf("%s "+verb+" %s%s (event %s)", report.Printable(ProcessName(f, m.Process)),
		report.Plural(uint64(m.Bytes), "byte", "bytes"), report.Printable(f.ObjectName(m.Object)), at,
		f.EventName(m.Event))
}

// Stories writes the stories of the findings that are wrong, for a ticket.
func Stories(w io.Writer, f *flow.Flow) error {
	var b strings.Builder
	told, wrong := 0, 0
	for _, x := range f.Findings() {
		if !x.Problem.Wrong() {
			continue
		}
		if wrong++; wrong > maxStories {
			continue
		}
		if told++; told > 1 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Join(storyOf(f, &x), "\n") + "\n")
	}
	switch {
	case wrong == 0:
		b.WriteString("no finding of data that is not what it should be\n")
	case wrong > told:
		fmt.Fprintf(&b, "\n… and %s more\n", report.Plural(uint64(wrong-told), "finding", "findings"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
