// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Options for Collect. Zero values are the defaults.
type Options struct {
	// Sections are the IDs of those that are wanted; nil is all.
	Sections []string
	// Top limits the rows of tables that rank. 0 is 10.
	Top int
	// MaxFiles and MaxProcesses limit what is told apart; what is beyond is summed up as
	// one. 0 is 256 Ki files and 16 Ki processes.
	MaxFiles, MaxProcesses int
	// Sessions say what is a session.
	Sessions SessionOptions
	// CallName names calls that are not in the operation table. It may be nil.
	CallName func(a event.Arch, nr uint32) string
	// Progress is called now and then with events. It may be nil.
	Progress func(done uint64)
}

const (
	defaultTop   = 10
	maxFiles     = 256 << 10
	maxProcesses = 16 << 10
)

// view is one section being computed.
type view interface {
	see(s *seen)
	section(c *collector) page.Section
}

// sections are the views in the order of the page.
var sections = []struct {
	id  string
	new func(c *collector) view
}{
	{"findings", newFindings},
	{"run", newRun},
	{"advice", newAdvice},
	{"ops", newOps},
	{"cost", newCost},
	{"overlap", newOverlap},
	{"bandwidth", newBandwidth},
	{"heat", newHeat},
	{"latency", newLatency},
	{"sizes", newSizes},
	{"access", newAccess},
	{"census", newCensus},
	{"top", newTop},
	{"stacks", newStacks},
	{"failures", newFailures},
	{"redundant", newRedundant},
	{"durability", newDurability},
	{"block", newBlockRequests},
	{"conflicts", newConflicts},
	{"imbalance", newImbalance},
	{"phases", newPhases},
	{"processes", newProcesses},
	{"tstat", newTstat},
	{"users", newUsers},
	{"patterns", newPatterns},
	{"sessions", newSessions},
}

// IDs returns the names of all sections, in their order.
func IDs() []string {
	var list []string
	for _, s := range sections {
		list = append(list, s.id)
	}
	return list
}

// seen is an event with what several views need of it.
type seen struct {
	*event.Event
	spec  *event.Spec
	io    event.Traffic
	took  int64       // ns in the call; 0 if that is not known
	timed bool        // took is known
	kind  report.Work // what sort of work it is
	proc  *process    // who made it
	file  *file       // the regular file that it is about, nil if it is about none; the one that is written, of two
	from  *file       // the one that is read, of two
	name  string      // the operation's
}

// collector is one pass.
type collector struct {
	ctx    context.Context // for sections that read the tape again
	o      Options
	tape   *trace.Tape
	views  []view
	hidden []view // that others ask, and that have no section
	files  files
	procs  processes
	first  int64 // ns
	last   int64
	lost   []lossMark
	gone   map[int]int64 // when files lost the name that they were known by, by number
	bad    uint64        // blocks that could not be read
	badIs  string
}

// Collect computes the sections of a tape. Parts of it that cannot be read are left out,
// and counted as damaged.
func Collect(ctx context.Context, t *trace.Tape, o *Options) (p *page.Page, damaged uint64, err error) {
	c, err := pass(ctx, t, o)
	if err != nil {
		return nil, 0, err
	}
	p = &page.Page{Title: c.title()}
	if lacks := report.Lacks(t.Manifest()); lacks != "" {
		p.Lines = append(p.Lines, "the tape is incomplete: "+lacks)
	}
	for _, v := range c.views {
		if s := v.section(c); s.ID != "" {
			p.Sections = append(p.Sections, s)
		}
	}
	return p, c.bad, nil
}

// pass reads the events of a tape for the views that are wanted.
func pass(ctx context.Context, t *trace.Tape, o *Options) (*collector, error) {
	clock, err := happens.NewClock(t)
	if err != nil {
		return nil, err
	}
	c := &collector{ctx: ctx, tape: t, first: clock.First, last: clock.Last}
	if o != nil {
		c.o = *o
	}
	c.o.Top = cmp.Or(c.o.Top, defaultTop)
	c.files.max, c.procs.max = cmp.Or(c.o.MaxFiles, maxFiles), cmp.Or(c.o.MaxProcesses, maxProcesses)
	for _, id := range c.o.Sections {
		if !slices.Contains(IDs(), id) {
			return nil, fmt.Errorf("section %q: there is none of that name: they are %s", id, strings.Join(IDs(), ", "))
		}
	}
	for _, s := range sections {
		if c.o.Sections == nil || slices.Contains(c.o.Sections, s.id) {
			c.views = append(c.views, s.new(c))
		}
	}
	for _, v := range c.views {
		if a, ok := v.(*advice); ok {
			a.ask(c)
		}
	}
	n := uint64(0)
	for ev, err := range t.Events() {
		if n++; n&0xfff == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if c.o.Progress != nil {
				c.o.Progress(n)
			}
		}
		if err != nil {
			if c.bad++; c.bad == 1 {
				c.badIs = err.Error()
			}
			continue
		}
		clock.Correct(ev)
		c.see(ev)
	}
	c.procs.finish(c.last)
	return c, nil
}

func (c *collector) see(ev *event.Event) {
	s := seen{Event: ev, spec: ev.Spec(), io: ev.Traffic()}
	s.proc = c.procs.of(ev)
	if ev.Kind == event.Call {
		s.took, s.timed = ev.Took()
		s.kind = report.WorkOf(ev, &s.io)
		s.file = c.files.of(ev, &s)
		if s.io.Reads && s.io.Writes {
			s.from = c.files.ofFile(ev.Host, s.io.From)
		}
		s.name = c.opName(ev)
		s.proc.call(&s)
	}
	if ev.Kind == event.LossMark && len(c.lost) < maxLosses {
		c.lost = append(c.lost, lossMark{ev.Exit - c.first, ev.Seq, int64(ev.Loss().Records)})
	}
	for _, v := range c.views {
		v.see(&s)
	}
	for _, v := range c.hidden {
		v.see(&s)
	}
	c.names(&s)
}

// names follows what calls do to the names of files. It comes after the views, which see
// the names as they were.
func (c *collector) names(s *seen) {
	if s.spec.Class != event.Namespace || !s.OK() || len(s.Paths) == 0 || s.Kind != event.Call {
		return
	}
	switch s.Effect() {
	case event.EffectUnlink:
		c.remove(s.Host, s.Paths[0].Reached(), s.Exit)
	case event.EffectRename:
		if len(s.Paths) > 1 {
			c.remove(s.Host, s.Paths[1].Reached(), s.Exit)
			c.files.rename(s.Host, s.Paths[0].Reached(), s.Paths[1].Reached())
		}
	}
}

func (c *collector) remove(host uint32, name string, at int64) {
	if f := c.files.named(host, name); f != nil {
		if c.gone == nil {
			c.gone = map[int]int64{}
		}
		c.gone[f.id], f.gone = at, true
		delete(c.files.byPath, fileKey{host: host, path: name})
	}
}

func (c *collector) title() string {
	h := c.tape.Host(0)
	// A script in an argument has lines; a title is one.
	return cmp.Or(strings.Join(strings.Fields(strings.Join(h.Command, " ")), " "), h.Target, c.tape.Name())
}

// opName names the operation of a call.
func (c *collector) opName(ev *event.Event) string {
	if ev.Op != event.OpUnknown && ev.Op.Known() {
		return ev.Op.String()
	}
	if a, ok := event.ParseArch(c.tape.Host(ev.Host).Arch); ok && c.o.CallName != nil {
		if name := c.o.CallName(a, ev.NR); name != "" {
			return name
		}
	}
	return fmt.Sprintf("syscall_0x%x", ev.NR)
}

// tableOf makes a table of at most most rows; 0 is all. With left 0, the last column is
// a name; with a negative one, the last columns are.
func tableOf[T any](title string, head []string, left int, rows []T, most int, cells func(*T) []string) *page.Table {
	t := &page.Table{Title: title, Head: head, Left: left, Of: len(rows)}
	if left <= 0 {
		t.Left, t.Right = 0, len(head)+min(left, -1)
	}
	for i := range rows {
		if most > 0 && i == most {
			break
		}
		t.Add(cells(&rows[i])...)
	}
	return t
}

// Count writes a number for a table, a dash for 0.
func Count(n uint64) string {
	if n == 0 {
		return "–"
	}
	return report.Count(n)
}

// Size writes a number of bytes for a table, a dash for 0.
func Size(n uint64) string {
	if n == 0 {
		return "–"
	}
	return report.Bytes(n)
}

func span(ns int64) string {
	if ns == 0 {
		return "–"
	}
	return report.Duration(ns)
}

// Percent writes which part of a whole something is, for a table, a dash for none of it.
func Percent(part, whole float64) string {
	if whole <= 0 || part == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// share returns a part of a whole, 0 if that is nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}
