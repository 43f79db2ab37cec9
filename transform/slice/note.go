// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// notePrefix marks the text of a note where an event is named.
const notePrefix = "note:"

// between puts what lies between two notes into the options: From the first, To the second.
func (p *Pick) between(t *trace.Tape, o *Options) error {
	if p.Notes == "" {
		return nil
	}
	if p.From != "" || p.To != "" {
		return errors.New("--between-notes says where the slice begins and ends; leave out --from and --to")
	}
	first, last, ok := strings.Cut(p.Notes, ",")
	if !ok || first == "" || last == "" {
		return fmt.Errorf("--between-notes %s: it has the form FIRST,LAST", p.Notes)
	}
	from, err := findNote(t, first, 0)
	if err != nil {
		return fmt.Errorf("--between-notes %s: %w", p.Notes, err)
	}
	to, err := findNote(t, last, from+1)
	if err != nil {
		return fmt.Errorf("--between-notes %s: %w", p.Notes, err)
	}
	o.From, o.To = from, to+1
	return nil
}

// findNote returns the number of the first event from a number on that is a note with a text.
func findNote(t *trace.Tape, text string, from uint64) (uint64, error) {
	var ev event.Event
	var others []string
	for r := t.NewEventReader(); ; {
		err := r.Next(&ev)
		switch {
		case err == io.EOF && len(others) == 0:
			return 0, fmt.Errorf("there is no note %q, nor any other", text)
		case err == io.EOF:
			return 0, fmt.Errorf("there is no note %q; there are %s", text, strings.Join(others, ", "))
		case err != nil:
			return 0, err
		}
		if ev.Kind != event.NoteMark || ev.Seq < from {
			continue
		}
		if ev.Note() == text {
			return ev.Seq, nil
		}
		if len(others) < 10 {
			others = append(others, fmt.Sprintf("%q", ev.Note()))
		}
	}
}
