// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/iotape/iotape/internal/spell"
)

// Error is what is wrong with a filter, or with another text that a Scanner reads, and
// where.
type Error struct {
	What     string // the text is; "" is a filter
	Source   string // the text
	Pos, End int    // bytes of it that are meant; both its length for something that is missing at the end
	Message  string
	Hint     string // what was perhaps meant, "" if that is unknown
}

// Error returns one line: place, message and hint. What they quote of the text has its line
// ends and other control characters escaped.
func (e *Error) Error() string {
	line, column := e.Place()
	where := fmt.Sprintf("column %d", column)
	if strings.Contains(e.Source, "\n") {
		where = fmt.Sprintf("line %d, column %d", line, column)
	}
	s := fmt.Sprintf("%s, %s: %s", cmp.Or(e.What, "filter"), where, e.Message)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Place returns the line and the column (in bytes) of Pos, from 1.
func (e *Error) Place() (line, column int) {
	before := e.Source[:min(e.Pos, len(e.Source))]
	return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndexByte(before, '\n')
}

// Shown returns the line of the filter that is meant and, below it, a caret at the
// place: two lines without a line end.
func (e *Error) Shown() string {
	const most = 72 // bytes of the line that are shown on each side
	pos := min(e.Pos, len(e.Source))
	start := strings.LastIndexByte(e.Source[:pos], '\n') + 1
	end := len(e.Source)
	if i := strings.IndexByte(e.Source[pos:], '\n'); i >= 0 {
		end = pos + i
	}
	start, end = max(start, pos-most), min(end, pos+most)
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
				return '.'
			}
			return r
		}, s)
	}
	before := clean(e.Source[start:pos])
	width := len([]rune(clean(e.Source[pos:max(pos, min(e.End, end))])))
	return before + clean(e.Source[pos:end]) + "\n" + strings.Repeat(" ", len([]rune(before))) +
		strings.Repeat("^", max(1, width))
}

// suggest returns a hint with the name that is nearest to a misspelt one.
func suggest(name string, names []string) string {
	if near := spell.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}
