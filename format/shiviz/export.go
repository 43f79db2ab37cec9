// SPDX-License-Identifier: Apache-2.0

package shiviz

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "ShiViz log",
	ID:       "shiviz",
	Suffixes: []string{".shiviz"},
	About:    "calls with vector clocks, for ShiViz",
	Write:    write,
}

// parser is the regular expression that ShiViz reads the log with.
const parser = `(?<host>\S*) (?<clock>{.*})\n(?<event>.*)`

// maxEvents is how many events are written: ShiViz keeps them all in the browser, a
// clock each.
const maxEvents = 100_000

// contentBytes is how much of a buffer an event shows if the options do not say.
const contentBytes = 16

// line is an event of the log.
type line struct {
	thread int // index into threads
	text   string
}

type exporter struct {
	printer *stracetext.Printer
	threads []string // names
	current map[threadID]int
	reused  map[threadID]int // how often a number was used before
	hosts   []trace.Host
	lines   []line // of all events; those that are not written have no text
}

type threadID struct {
	host, tid uint32
}

func write(ctx context.Context, out io.Writer, t *trace.Tape, o *format.Options) (*format.Done, error) {
	done := &format.Done{}
	m := t.Manifest()
	x := &exporter{current: map[threadID]int{}, reused: map[threadID]int{}, hosts: m.Hosts}
	most := int(o.ContentBytes)
	if most == 0 {
		most = contentBytes
	}
	x.printer = stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, Hosts: m.Hosts, MaxBytes: most,
		Content: func(b *event.Buf, n int) []byte {
			data, err := t.Content(b, nil)
			if err != nil {
				return nil
			}
			return data[:min(n, len(data))]
		}})
	order := causal.NewBuilder()
	for ev, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if done.Records == maxEvents {
			done.LeftOut(fmt.Sprintf("events after the first %d", maxEvents), 1)
			continue
		}
		order.Add(ev)
		switch {
		case x.add(ev):
			done.Records++
		case ev.Spec().NoCall:
			done.LeftOut("reads and writes through mappings", 1)
		}
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s\n\n", parser)
	if n := x.write(w, order.Before()); n > 0 {
		done.LeftOut("events that are proved to come before themselves", n)
	}
	return done, w.Flush()
}

// add takes an event and reports whether it is written: calls and notes, and the ends of
// threads. All others say only what came before what.
func (x *exporter) add(ev *event.Event) bool {
	id := threadID{ev.Host, ev.TID}
	n, ok := x.current[id]
	if !ok {
		n = len(x.threads)
		x.current[id] = n
		x.threads = append(x.threads, x.name(ev))
		x.reused[id]++
	}
	l := line{thread: n}
	if ev.Kind == event.Call && !ev.Spec().NoCall || ev.Kind == event.NoteMark || ev.Kind == event.Exited {
		l.text = x.text(ev)
	}
	x.lines = append(x.lines, l)
	switch ev.Kind {
	case event.Exited:
		delete(x.current, id)
	case event.Forked:
		delete(x.current, threadID{ev.Host, ev.Child})
	}
	return l.text != ""
}

// name names a thread: by its process and, if it is not the first of it, its own number;
// in a tape of several hosts by its host, too.
func (x *exporter) name(ev *event.Event) string {
	name := strconv.FormatUint(uint64(ev.PID), 10)
	if ev.TID != ev.PID {
		name += "/" + strconv.FormatUint(uint64(ev.TID), 10)
	}
	if len(x.hosts) > 1 && int(ev.Host) < len(x.hosts) {
		name = x.hosts[ev.Host].Host + ":" + name
	}
	if n := x.reused[threadID{ev.Host, ev.TID}]; n > 0 {
		name += "#" + strconv.Itoa(n+1)
	}
	return strings.Join(strings.FieldsFunc(name,
		func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\\' }), "_")
}

// text is an event on one line, without the thread's number.
func (x *exporter) text(ev *event.Event) string {
	_, s, _ := strings.Cut(strings.TrimSuffix(string(x.printer.Append(nil, ev)), "\n"), " ")
	if ev.Comm != "" {
		s = ev.Comm + " " + s
	}
	return strings.Map(func(r rune) rune { // ShiViz's "." matches no line's end
		if r < ' ' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// write gives the events their clocks, in an order in which no event comes before what
// it knows of. It returns how many there was no such order for: none, unless the tape is
// wrong.
func (x *exporter) write(w *bufio.Writer, before [][]causal.Edge) (left uint64) {
	after := make([][]int32, len(before))
	missing := make([]int32, len(before))
	for i, list := range before {
		missing[i] = int32(len(list))
		for _, e := range list {
			after[e.From] = append(after[e.From], int32(i))
		}
	}
	clocks := make([]clock, len(before))
	own := make([]uint32, len(x.threads))
	done := make([]bool, len(before))
	uses := make([]int32, len(before)) // of a clock, still to come
	for i := range after {
		uses[i] = int32(len(after[i]))
	}
	var ready []int // that come after what was just written
	visit := func(i int) {
		done[i] = true
		for k, e := range before[i] {
			if k == 0 && uses[e.From] == 1 {
				clocks[i] = clocks[e.From] // nobody else needs it
			} else {
				clocks[i] = clocks[i].join(clocks[e.From], k == 0)
			}
			if uses[e.From]--; uses[e.From] == 0 {
				clocks[e.From] = nil
			}
		}
		if l := &x.lines[i]; l.text != "" {
			own[l.thread]++
			clocks[i] = clocks[i].set(l.thread, own[l.thread])
			x.line(w, l, clocks[i])
		}
		for _, k := range after[i] {
			if missing[k]--; missing[k] == 0 && !done[k] {
				ready = append(ready, int(k))
			}
		}
	}
	for i := range before {
		if !done[i] && missing[i] == 0 {
			visit(i)
		}
		for len(ready) > 0 {
			k := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			if k <= i { // the others' turn comes
				visit(k)
			}
		}
	}
	for _, d := range done {
		if !d {
			left++
		}
	}
	return left
}

// line writes an event.
func (x *exporter) line(w *bufio.Writer, l *line, c clock) {
	fmt.Fprintf(w, "%s {", x.threads[l.thread])
	for i, t := range c {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, "%q:%d", x.threads[t.thread], t.time)
	}
	fmt.Fprintf(w, "}\n%s\n", l.text)
}

// clock is what an event knows of threads: how many of their events came before, by
// thread.
type clock []tick

type tick struct {
	thread int
	time   uint32
}

// join returns the later time of each thread. The result is the receiver, or new memory
// if fresh.
func (c clock) join(o clock, fresh bool) clock {
	if fresh {
		return slices.Clone(o)
	}
	for _, t := range o {
		if i, ok := c.find(t.thread); ok {
			c[i].time = max(c[i].time, t.time)
		} else {
			c = slices.Insert(c, i, t)
		}
	}
	return c
}

func (c clock) set(thread int, time uint32) clock {
	i, ok := c.find(thread)
	if !ok {
		return slices.Insert(c, i, tick{thread, time})
	}
	c[i].time = time
	return c
}

func (c clock) find(thread int) (int, bool) {
	return slices.BinarySearchFunc(c, thread, func(t tick, n int) int { return t.thread - n })
}
