// SPDX-License-Identifier: Apache-2.0

package printtape

import (
	"regexp"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// Content returns what reads the first n bytes of a buffer from a tape, zeros where they are
// missing or damaged; see stracetext.Options. The bytes are valid until the next call.
func Content(t *trace.Tape) func(b *event.Buf, n int) []byte {
	var scratch []byte
	return func(b *event.Buf, n int) []byte {
		scratch, _ = t.ContentRange(b, 0, n, scratch[:0])
		return scratch
	}
}

// Line returns what appends the line of an event of a tape, without its time and with the
// first 32 bytes of its buffers.
func Line(t *trace.Tape) func(dst []byte, ev *event.Event) []byte {
	m := t.Manifest()
	return stracetext.New(&stracetext.Options{
		Clock: stracetext.NoClock, Hosts: m.Hosts, StartNS: m.FirstNS, MaxBytes: 32, Content: Content(t),
	}).Append
}

// Lines is like Line for the events of several tapes, without what differs between hosts.
func Lines() func(dst []byte, t *trace.Tape, ev *event.Event) []byte {
	var scratch []byte
	var of *trace.Tape
	pr := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, MaxBytes: 32,
		Content: func(b *event.Buf, n int) []byte {
			scratch, _ = of.ContentRange(b, 0, n, scratch[:0])
			return scratch
		}})
	return func(dst []byte, t *trace.Tape, ev *event.Event) []byte {
		of = t
		return pr.Append(dst, ev)
	}
}

// outcome is what a printed line has in front of the call and behind it: the thread,
// and the time that it took.
var outcome = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+ +(.*?)( <[0-9.]+>)?$`)
})

// Calls returns what writes an event as iotape print does, without what differs from run to
// run: its thread, and the time that it took.
func Calls() func(t *trace.Tape, ev *event.Event) string {
	printers := map[*trace.Tape]*stracetext.Printer{}
	return func(t *trace.Tape, ev *event.Event) string {
		p := printers[t]
		if p == nil {
			p = stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, Hosts: t.Manifest().Hosts,
				Content: Content(t)})
			printers[t] = p
		}
		line := strings.TrimRight(string(p.Append(nil, ev)), "\n")
		if m := outcome().FindStringSubmatch(line); m != nil {
			return m[1]
		}
		return line
	}
}
