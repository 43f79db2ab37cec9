// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
)

// The text form is that of //TRACE's annotated traces (Mesnier et al., FAST 2007, Figure
// 7), of all threads together in the order of the tape. What stands before an event
// happens before it, SIGNAL after it:
//
//	EVENTS(158)
//
//	COMPUTE(6.453019ms)
//	86 20779 write(4<pipe:[40494]>, "hello", 5) = 5
//	SIGNAL(87)
//
//	COMPUTE(3.2µs)
//	WAIT(86)
//	87 20772 read(3<pipe:[40494]>, "hello", 10) = 5
//
// Of an event's line only the number counts. Empty lines and those that begin with # do
// not. An event that is left out has no annotation.

// WriteText writes the annotations of a tape's events. Describe appends an event's text,
// without the number; a line's end after it is left out. Wanted picks the events, nil is
// all.
func (n *Annotations) WriteText(w *bufio.Writer, events iter.Seq2[*event.Event, error], wanted func(*event.Event) bool,
	describe func([]byte, *event.Event) []byte) error {
	waits := n.waits()
	slices.SortStableFunc(waits, func(a, b waitFor) int { return cmp.Compare(a.from, b.from) })
	fmt.Fprintf(w, "EVENTS(%d)\n", n.events)
	c := n.Cursor()
	var line []byte
	for ev, err := range events {
		if err != nil {
			return err
		}
		for len(waits) > 0 && uint64(waits[0].from) < ev.Seq {
			waits = waits[1:]
		}
		if wanted != nil && !wanted(ev) {
			continue
		}
		an := c.At(ev.Seq)
		if an.Compute > 0 || an.Sleep > 0 || len(an.Waits) > 0 {
			w.WriteByte('\n')
		}
		if an.Compute > 0 {
			fmt.Fprintf(w, "COMPUTE(%v)\n", an.Compute)
		}
		for _, d := range an.Waits {
			if d.Lag > 0 {
				fmt.Fprintf(w, "WAIT(%d, %v)\n", d.Event, d.Lag)
			} else {
				fmt.Fprintf(w, "WAIT(%d)\n", d.Event)
			}
		}
		if an.Sleep > 0 {
			fmt.Fprintf(w, "SLEEP(%v)\n", an.Sleep)
		}
		line = strconv.AppendUint(line[:0], ev.Seq, 10)
		line = append(line, ' ')
		w.WriteString(strings.TrimRight(string(describe(line, ev)), "\n"))
		w.WriteByte('\n')
		for ; len(waits) > 0 && uint64(waits[0].from) == ev.Seq; waits = waits[1:] {
			fmt.Fprintf(w, "SIGNAL(%d)\n", waits[0].to)
		}
	}
	return nil
}

// maxLine is the longest line of the text form, in bytes.
const maxLine = 16 << 20

// ReadText reads the text form for the tape of these events, and checks that a replay
// could come to its end: that every WAIT has its SIGNAL, and that no events wait for each
// other in a circle. The error names the line, or the circle.
func ReadText(r io.Reader, events iter.Seq2[*event.Event, error]) (*Annotations, error) {
	p := &textParser{}
	var err error
	if p.line, p.tids, err = threadsOf(events); err != nil {
		return nil, err
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for n := 1; s.Scan(); n++ {
		if err := p.take(strings.TrimSpace(s.Text())); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read annotations: %w", err)
	}
	return p.finish()
}

// threadsOf returns the thread of each event, numbered from 0, and their own numbers.
func threadsOf(events iter.Seq2[*event.Event, error]) (line, tids []uint32, err error) {
	index := map[thread]uint32{}
	for ev, err := range events {
		if err != nil {
			return nil, nil, err
		}
		id := thread{ev.Host, ev.TID}
		k, ok := index[id]
		if !ok {
			k = uint32(len(tids))
			index[id], tids = k, append(tids, ev.TID)
		}
		if line = append(line, k); len(line) > maxEvents {
			return nil, nil, errors.New("too many events")
		}
	}
	return line, tids, nil
}

type textParser struct {
	line, tids []uint32
	begun      bool
	compute    []timeAt
	sleeps     []timeAt
	waits      []waitFor
	signals    []waitFor
	last       int64 // event, -1 before the first
	// What stands before the next event.
	next    Annotation
	pending bool
}

// errNotBegun is the error of what stands before the number of events.
var errNotBegun = errors.New("the first line is to be EVENTS(n)")

// take takes the next line.
func (p *textParser) take(text string) error {
	if text == "" || text[0] == '#' {
		return nil
	}
	if text[0] >= '0' && text[0] <= '9' {
		number, _, _ := strings.Cut(text, " ")
		return p.event(number)
	}
	word, rest, ok := strings.Cut(text, "(")
	arg, end, closed := strings.Cut(rest, ")")
	if !ok || !closed || strings.TrimSpace(end) != "" {
		return fmt.Errorf("%.60q is neither an event, which begins with its number, nor WORD(…)", text)
	}
	switch {
	case word == "EVENTS":
		return p.begin(arg)
	case !p.begun:
		return errNotBegun
	}
	switch word {
	case "COMPUTE":
		return p.duration(word, arg, &p.next.Compute)
	case "SLEEP":
		return p.duration(word, arg, &p.next.Sleep)
	case "WAIT":
		return p.wait(arg)
	case "SIGNAL":
		return p.signal(arg)
	}
	return fmt.Errorf("%.20s is neither COMPUTE, SLEEP, WAIT nor SIGNAL", word)
}

// begin takes EVENTS(n).
func (p *textParser) begin(arg string) error {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || n != uint64(len(p.line)) {
		return fmt.Errorf("annotations of %.20s events; the tape has %d", arg, len(p.line))
	}
	p.begun, p.last = true, -1
	return nil
}

// duration adds what COMPUTE or SLEEP says to a sum.
func (p *textParser) duration(word, arg string, sum *time.Duration) error {
	d, err := time.ParseDuration(arg)
	if err != nil || d < 0 {
		return fmt.Errorf("%s(%.20s): no time such as 1.5ms", word, arg)
	}
	if d > maxNS-*sum {
		return fmt.Errorf("%s(%.20s): with what stands before it, that is longer than %v",
			word, arg, time.Duration(maxNS))
	}
	*sum += d
	p.pending = true
	return nil
}

// wait takes WAIT(event) and WAIT(event, lag).
func (p *textParser) wait(arg string) error {
	first, second, two := strings.Cut(arg, ",")
	n, err := p.number(first)
	if err != nil {
		return err
	}
	d := Dependency{Event: n}
	if two {
		if d.Lag, err = time.ParseDuration(strings.TrimSpace(second)); err != nil || d.Lag < 0 {
			return fmt.Errorf("WAIT(%.40s): no time such as 1.5ms", arg)
		}
		if d.Lag > maxNS {
			return fmt.Errorf("WAIT(%.40s): that is longer than %v", arg, time.Duration(maxNS))
		}
	}
	if len(p.next.Waits) >= maxWaits {
		return errors.New("too many WAITs for one event")
	}
	p.next.Waits = append(p.next.Waits, d)
	p.pending = true
	return nil
}

// signal takes SIGNAL(event).
func (p *textParser) signal(arg string) error {
	n, err := p.number(arg)
	if err != nil {
		return err
	}
	if p.last < 0 || p.pending {
		return fmt.Errorf("SIGNAL(%d) has to stand behind the event that gives it", n)
	}
	p.signals = append(p.signals, waitFor{to: uint32(n), from: uint32(p.last)})
	return nil
}

// number reads the number of an event.
func (p *textParser) number(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil || n >= uint64(len(p.line)) {
		return 0, fmt.Errorf("there is no event %.20s; the last is %d", s, len(p.line)-1)
	}
	return n, nil
}

func (p *textParser) event(number string) error {
	if !p.begun {
		return errNotBegun
	}
	n, err := p.number(number)
	if err != nil {
		return err
	}
	if int64(n) <= p.last {
		return fmt.Errorf("event %d stands behind event %d", n, p.last)
	}
	p.last = int64(n)
	to := uint32(n)
	if p.next.Compute > 0 {
		p.compute = append(p.compute, timeAt{to, int64(p.next.Compute)})
	}
	if p.next.Sleep > 0 {
		p.sleeps = append(p.sleeps, timeAt{to, int64(p.next.Sleep)})
	}
	for _, d := range p.next.Waits {
		w := waitFor{to, uint32(d.Event), int64(d.Lag)}
		if p.line[w.from] == p.line[w.to] {
			return fmt.Errorf("event %d waits for event %d, which is of its own thread", w.to, w.from)
		}
		p.waits = append(p.waits, w)
	}
	p.next, p.pending = Annotation{Waits: p.next.Waits[:0]}, false
	return nil
}

func (p *textParser) finish() (*Annotations, error) {
	switch {
	case !p.begun:
		return nil, errors.New("it is empty: the first line is to be EVENTS(n)")
	case p.pending:
		return nil, errors.New("there is no event behind the last line")
	}
	order := func(a, b waitFor) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) }
	// What is said twice is said once; of two lags the longer one counts.
	once := func(list []waitFor) []waitFor {
		slices.SortFunc(list, func(a, b waitFor) int { return cmp.Or(order(a, b), cmp.Compare(b.lag, a.lag)) })
		return slices.CompactFunc(list, func(a, b waitFor) bool { return order(a, b) == 0 })
	}
	p.waits, p.signals = once(p.waits), once(p.signals)
	for w, s := p.waits, p.signals; len(w)+len(s) > 0; {
		switch {
		case len(s) == 0 || len(w) > 0 && order(w[0], s[0]) < 0:
			return nil, fmt.Errorf("dead-lock: event %d waits for event %d, which does not signal it: write "+
				"SIGNAL(%d) behind that, or remove the WAIT(%d)",
				w[0].to, w[0].from, w[0].to, w[0].from)
		case len(w) == 0 || order(w[0], s[0]) > 0:
			return nil, fmt.Errorf("event %d signals event %d, which does not wait for it: write WAIT(%d) before "+
				"that, or remove the SIGNAL(%d)",
				s[0].from, s[0].to, s[0].from, s[0].to)
		}
		w, s = w[1:], s[1:]
	}
	if c := circle(p.line, len(p.tids), p.waits); c != nil {
		return nil, fmt.Errorf("dead-lock: %s", p.nameCircle(c))
	}
	for _, w := range p.waits {
		if w.from > w.to {
			return nil, fmt.Errorf("event %d waits for event %d, which returned after it: an event can wait for "+
				"earlier ones only", w.to, w.from)
		}
	}
	all := make([]int64, len(p.line))
	for _, c := range p.compute {
		all[c.event] = c.ns
	}
	return newAnnotations(all, p.sleeps, p.waits), nil
}

func (p *textParser) nameCircle(c []waitFor) string {
	var b strings.Builder
	for i, w := range c {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "event %d (thread %d) waits for event %d (thread %d)", w.to, p.tids[p.line[w.to]], w.from,
			p.tids[p.line[w.from]])
		if next := c[(i+1)%len(c)].to; next != w.from {
			fmt.Fprintf(&b, ", before which comes event %d", next)
		}
	}
	return b.String()
}

// circle returns waits of which each holds up the next one, and the last the first: what
// waits is the event that is waited for, or one before it in its thread. It is nil if all
// events can be done. The waits are sorted by their events.
func circle(line []uint32, lines int, waits []waitFor) []waitFor {
	forward := slices.ContainsFunc(waits, func(w waitFor) bool { return w.from > w.to })
	if !forward {
		return nil
	}
	// It goes through the events as a replay does: each thread up to where it waits.
	next := make([]uint32, len(line)) // in the thread
	current := make([]uint32, lines)
	end := uint32(len(line))
	for i := range current {
		current[i] = end
	}
	for i := len(line) - 1; i >= 0; i-- {
		next[i], current[line[i]] = current[line[i]], uint32(i)
	}
	done := make([]bool, len(line))
	stuckAt := make([]waitFor, lines)
	waiting := make([][]uint32, lines) // threads, by the thread that they wait for
	work := make([]uint32, lines)
	for i := range work {
		work[i] = uint32(i)
	}
	for len(work) > 0 {
		l := work[len(work)-1]
		work = work[:len(work)-1]
	thread:
		for current[l] != end {
			e := current[l]
			at, _ := slices.BinarySearchFunc(waits, e, func(w waitFor, e uint32) int { return cmp.Compare(w.to, e) })
			for ; at < len(waits) && waits[at].to == e; at++ {
				if w := waits[at]; !done[w.from] {
					stuckAt[l] = w
					waiting[line[w.from]] = append(waiting[line[w.from]], l)
					break thread
				}
			}
			done[e], current[l] = true, next[e]
			work = append(work, waiting[l]...)
			waiting[l] = waiting[l][:0]
		}
	}
	for l := range current {
		if current[l] == end {
			continue
		}
		// Each stuck thread waits for a stuck one: somewhere that closes.
		seen := map[uint32]int{}
		var path []waitFor
		for k := uint32(l); ; k = line[stuckAt[k].from] {
			if from, ok := seen[k]; ok {
				return path[from:]
			}
			seen[k] = len(path)
			path = append(path, stuckAt[k])
		}
	}
	return nil
}
