// SPDX-License-Identifier: Apache-2.0

package printtape

import (
	"bufio"
	"errors"
	"io"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// Options for Tape.
type Options struct {
	Text     stracetext.Options // Hosts, StartNS and Content are set by Tape
	JSON     bool               // one object per line
	CSV      bool               // a table; JSON is stronger
	From, To uint64             // the first and the last event, by number
	Filter   *predicate.Matcher // of the events that are printed; nil: all
	// Processes prints what is said of processes, too (event.Described).
	Processes bool
	Follows   bool        // Filter has to see the events before From, too
	Damaged   func(error) // is told of parts that cannot be read
}

// Tape prints events of a tape. It returns how many damaged parts were left out.
func Tape(w *bufio.Writer, t *trace.Tape, o *Options) (damaged int, err error) {
	m := t.Manifest()
	text := o.Text
	text.Hosts, text.StartNS, text.Content = m.Hosts, m.FirstNS, Content(t)
	pr := stracetext.New(&text)
	write := pr.Append
	switch {
	case o.JSON:
		write = pr.AppendJSON
	case o.CSV:
		write = pr.AppendCSV
		w.WriteString(stracetext.CSVHeader)
	}
	r := t.NewEventReader()
	if o.From > 0 && !o.Follows {
		if err := r.Seek(o.From); err != nil {
			return 0, err
		}
	}
	var e event.Event
	var line []byte
	for {
		switch err := r.Next(&e); {
		case err == io.EOF:
			return damaged, nil
		case errors.Is(err, trace.ErrCorrupt) || errors.Is(err, trace.ErrTruncated):
			if err := w.Flush(); err != nil {
				return damaged, err
			}
			damaged++
			o.Damaged(err)
			continue
		case err != nil:
			return damaged, err
		}
		if e.Seq > o.To {
			return damaged, nil
		}
		if o.Filter != nil && !o.Filter.Match(&e) || e.Seq < o.From || e.Kind == event.Described && !o.Processes {
			continue
		}
		line = write(line[:0], &e)
		if _, err := w.Write(line); err != nil {
			return damaged, err
		}
	}
}
