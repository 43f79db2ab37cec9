// SPDX-License-Identifier: Apache-2.0

package tail

import (
	"bufio"
	"cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// printer prints the events of one stream.
type printer struct {
	o    *Options
	w    *bufio.Writer
	text *stracetext.Printer
	m    *predicate.Matcher // nil: all events fit
	h    *trace.Head
	line []byte
}

func newPrinter(o *Options) *printer { return &printer{o: o, w: bufio.NewWriterSize(o.Out, 64<<10)} }

func (p *printer) head(h *trace.Head) (err error) {
	p.h = h
	p.m, err = matcher(h, p.o)
	return err
}

// event prints an event, if it fits.
func (p *printer) event(ev *event.Event) error {
	if fits := p.see(ev); !fits {
		return nil
	}
	return p.print(ev)
}

// see takes an event, and reports whether it fits. Times are counted from the first one.
func (p *printer) see(ev *event.Event) (fits bool) {
	if p.text == nil {
		p.text = stracetext.New(&stracetext.Options{MaxBytes: p.o.MaxBytes, Stacks: p.o.Stacks,
			Clock: cmp.Or(p.o.Clock, stracetext.Elapsed), Location: p.o.Location, Style: p.o.Style,
			Hosts: []trace.Host{{Head: *p.h}}, StartNS: ev.Enter})
	}
	return (p.m == nil || p.m.Match(ev)) && ev.Kind != event.Described
}

// print prints an event. What is written at once ends with a line: others may write between.
func (p *printer) print(ev *event.Event) error {
	if p.o.See != nil {
		p.o.See(ev)
		return nil
	}
	if p.o.JSON {
		p.line = p.text.AppendJSON(p.line[:0], ev)
	} else {
		p.line = p.text.Append(p.line[:0], ev)
	}
	if len(p.line) > p.w.Available() {
		if err := p.w.Flush(); err != nil {
			return err
		}
	}
	_, err := p.w.Write(p.line)
	return err
}
