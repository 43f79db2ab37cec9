// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/spell"
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

// didYouMean is the hint for a misspelt word.
func didYouMean(word string, list []string) string {
	if w := spell.Nearest(word, list); w != "" {
		return "did you mean " + w + "?"
	}
	return ""
}

func opNames() []string {
	var list []string
	for i := range event.Specs() {
		if op := event.Specs()[i].Op; op != event.OpUnknown {
			list = append(list, op.String())
		}
	}
	slices.Sort(list)
	return list
}
