package script

import (
	"fmt"
	"slices"

	"iotape/event"
)

// Error is what is wrong with a script, and where. Line and Column count from 1, the
// column in bytes.
type Error struct {
	File         string // within the script's directory
	Line, Column int
	What         string
	Hint         string // what to do; "" if there is nothing to say
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.What)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// near returns the word of a list that a misspelt one is most like, "" if none is.
func near(word string, list []string) string {
	best, least := "", max(len(word)/3, 1)+1
	for _, w := range list {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is how many letters have to be changed, added or removed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// didYouMean is the hint for a misspelt word.
func didYouMean(word string, list []string) string {
	const long = 64
	if len(word) > long {
		return ""
	}
	if w := near(word, list); w != "" {
		return "did you mean " + w + "?"
	}
	return ""
}

func opNames() []string {
	var list []string
	for i := range event.Catalogue() {
		if op := event.Catalogue()[i].Op; op != event.OpUnknown {
			list = append(list, op.String())
		}
	}
	slices.Sort(list)
	return list
}
