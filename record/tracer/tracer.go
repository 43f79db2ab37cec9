// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/trace"
)

// An Assembly makes something of the records of a tracer (Tracefs: an assembly driver). A
// trace.StreamWriter is one. Its methods are called one at a time, in the way of the
// recording: what they wait for, the recorded programs wait for.
type Assembly interface {
	// WriteRecords takes records that the tracer's filter may want, in a frame as the
	// capture made it. The payload is the caller's again when it returns.
	WriteRecords(f trace.Frame, payload []byte) error
	// ChangeFilter says that another filter holds for calls from a time on. Records of
	// earlier ones may still come.
	ChangeFilter(c *trace.FilterChange) error
	// Close ends it.
	Close(end *trace.End) error
}

var _ Assembly = (*trace.StreamWriter)(nil)

// Filter is what a tracer records. The zero value is all.
type Filter struct {
	Expr *predicate.Expr
	// Prefilter is what can be decided of it at a record; nil is nothing.
	Prefilter *predicate.Prefilter
}

// Text returns the expression, "" for all.
func (f *Filter) Text() string {
	if f.Expr == nil {
		return ""
	}
	return f.Expr.String()
}

// Verbosity is how much a tracer keeps of what fits.
type Verbosity struct {
	Content capture.Content // the bytes that calls move
	Omit    Group           // what else is left out
	Wakeups bool            // keep who woke whom
}

// Group is a set of parts of an event that are not content.
type Group uint8

// The groups.
const (
	GroupCPU        Group = 1 << iota // CPU time of the thread, and how long it waited for a processor
	GroupAttributes                   // what stat, statx, statfs, getxattr and the like say
	GroupListings                     // entries of directories
)

// Groups are the names of the groups.
var Groups = map[string]Group{"cpu": GroupCPU, "attributes": GroupAttributes, "listings": GroupListings}

// ParseGroups returns the set of groups with these names. Empty names are none.
func ParseGroups(names []string) (g Group, err error) {
	for _, name := range names {
		one, ok := Groups[name]
		if !ok && name != "" {
			return 0, fmt.Errorf("omit %q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(Groups)), ", "))
		}
		g |= one
	}
	return g, nil
}

// Names returns the names of a set's groups, in order.
func (g Group) Names() []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(Groups)) {
		if g&Groups[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Counts say what a tracer has.
type Counts struct {
	Bytes uint64 // of records
	Lost  uint64 // records that its output did not take, and that its target's capture lost
	Err   error  // the first of its output; what came after is lost
}

// A Tracer picks of a capture's records. Its methods are the Fanout's, which it is attached to.
type Tracer struct {
	Name string

	filter     Filter
	verbosity  Verbosity
	plain      bool // the verbosity is the capture's
	prefilters []prefilter
	digest     *digest.Rewriter
	refused    map[callKey]struct{} // calls whose data records are to come
	// Ns that threads waited for a processor in calls that were refused since the last that was not.
	delays  map[uint32]uint64
	out     Assembly // nil: not attached
	closing *closing // nil: not being detached
	buf     []byte
	pieces  []trace.Piece
	counts  counts
}

// counts are read while records are written.
type counts struct {
	bytes, lost atomic.Uint64
	err         atomic.Pointer[error]
}

func (c *counts) fail(err error) {
	if err != nil {
		c.err.CompareAndSwap(nil, &err)
	}
}

func (c *counts) failed() error {
	if p := c.err.Load(); p != nil {
		return *p
	}
	return nil
}

// Counts returns what the tracer has of its present recording, or had of the last. It may be
// called at any time.
func (t *Tracer) Counts() Counts {
	return Counts{Bytes: t.counts.bytes.Load(), Lost: t.counts.lost.Load(), Err: t.counts.failed()}
}

// prefilter holds for calls that begin at a time or later.
type prefilter struct {
	since uint64
	*predicate.Prefilter
}

type callKey struct {
	tid   uint32
	enter uint64
}

// maxUnfinished bounds the calls whose data records are to come; there are as many as threads
// and requests, unless records are being lost.
const maxUnfinished = 1 << 14

// New returns a Tracer that is not attached.
func New(name string, filter Filter, v Verbosity) *Tracer {
	return &Tracer{Name: name, filter: filter, verbosity: v}
}

// reset readies a tracer for a recording.
func (t *Tracer) reset(f *Fanout) {
	t.refused = map[callKey]struct{}{}
	t.delays = map[uint32]uint64{}
	t.counts.bytes.Store(0)
	t.counts.lost.Store(0)
	t.counts.err.Store(nil)
	t.prefilters, t.closing = []prefilter{{0, t.filter.Prefilter}}, nil
	t.prepare(f)
}

func (t *Tracer) prepare(f *Fanout) {
	v := &t.verbosity
	t.plain = v.Content == f.o.Content && v.Omit == 0 && v.Wakeups == f.o.Wakeups
	t.digest = nil
	if v.Content != f.o.Content {
		t.digest = digest.New(v.Content)
	}
}

// takesAll reports whether frames go to the tracer as they are.
func (t *Tracer) takesAll() bool {
	return t.plain && t.closing == nil && len(t.prefilters) == 1 && t.prefilters[0].Prefilter == nil
}

// wants reports whether the tracer needs a record; r is nil if all do. thread is what is known
// of its thread, nil if that is nothing.
func (t *Tracer) wants(r *trace.Record, thread *predicate.PrefilterCall) bool {
	if t.closing != nil && !t.closing.wants(r) {
		return false
	}
	if r == nil {
		return true
	}
	switch r.Type {
	case trace.RecWake:
		return t.verbosity.Wakeups
	case trace.RecData:
		key := callKey{r.TID, r.Enter}
		if _, refused := t.refused[key]; !refused {
			return true
		}
		if r.Flags&trace.DataLast != 0 {
			delete(t.refused, key)
		}
		return false
	case trace.RecCall:
		if !t.refuses(r, thread) {
			return true
		}
		if r.Flags&trace.CallMore != 0 {
			if len(t.refused) >= maxUnfinished {
				clear(t.refused)
			}
			t.refused[callKey{r.TID, r.Enter}] = struct{}{}
		}
		if tellsDelays(r) && r.DelayBefore|r.DelayWithin != 0 {
			t.delays[r.TID] += uint64(r.DelayBefore) + uint64(r.DelayWithin)
		}
		return false
	case trace.RecExit:
		delete(t.delays, r.TID)
	}
	return true
}

// tellsDelays reports whether a call's record says how long its thread waited for a processor (event.TellsDelays).
func tellsDelays(r *trace.Record) bool {
	return r.Flags&trace.CallDelays != 0 && event.Lookup(event.Op(r.Op)).Class != event.Block
}

// refuses reports whether the filter that held when a call began cannot pick it, and
// nothing needs it. What was written at its entry cannot be taken back, and who was woken up
// has to be in a call.
func (t *Tracer) refuses(r *trace.Record, thread *predicate.PrefilterCall) bool {
	s := t.prefilters[0].Prefilter
	for _, later := range t.prefilters[1:] {
		if r.Enter >= later.since {
			s = later.Prefilter
		}
	}
	if s == nil || thread == nil || t.verbosity.Wakeups || r.Flags&(trace.CallCompat|trace.CallInterrupted) != 0 {
		return false
	}
	op := event.Op(r.Op)
	if _, ok := s.Entries[op]; !ok || readAtEntry(op) {
		return false
	}
	c := *thread
	c.NR, c.Latency, c.Raw, c.Args = r.NR, int64(r.Exit-r.Enter), r.Ret, r.Args
	return s.Drops(op, &c)
}

// readAtEntry reports whether memory of an operation is read before the call.
func readAtEntry(op event.Op) bool {
	args := event.Lookup(op).Args
	for i := range args {
		if args[i].Kind.IsMemory() && args[i].When != event.AtExit {
			return true
		}
	}
	return false
}

// add puts a record into the tracer's buffer, as far as it is kept. r is nil if all of it is.
func (t *Tracer) add(r *trace.Record, body []byte) {
	if r != nil && r.Type == trace.RecCall && tellsDelays(r) && t.delays[r.TID] > 0 {
		longer := *r // other tracers get the record, too
		longer.DelayBefore = uint32(min(t.delays[r.TID]+uint64(r.DelayBefore), math.MaxUint32))
		delete(t.delays, r.TID)
		r, body = &longer, longer.Append(nil)
	}
	if r == nil || t.plain || r.Type != trace.RecCall && r.Type != trace.RecData {
		t.buf = binary.LittleEndian.AppendUint64(t.buf, uint64(len(body)))
		t.buf = append(t.buf, body...)
		for len(t.buf)%8 != 0 {
			t.buf = append(t.buf, 0)
		}
		return
	}
	spec := event.Lookup(event.Op(r.Op))
	less := *r // other tracers get the record, too
	t.pieces = t.verbosity.Content.Trim(t.pieces[:0], spec, r.Pieces)
	less.Pieces = t.pieces
	if t.verbosity.Omit != 0 {
		t.verbosity.Omit.leaveOut(&less, spec)
	}
	t.buf = trace.AppendRecord(t.buf, &less)
}

// leaveOut takes groups out of a record. The pieces are the caller's to change.
func (g Group) leaveOut(r *trace.Record, spec *event.Spec) {
	if g&GroupCPU != 0 {
		r.CPU, r.Flags = 0, r.Flags&^trace.CallDelays
	}
	for i := range r.Pieces {
		p := &r.Pieces[i]
		_, arg := event.SplitPart(int(p.Arg))
		if arg < len(spec.Args) && g&groupOf(spec, arg) != 0 && p.Flags&(trace.PieceMissing|trace.PieceHash) == 0 {
			p.Flags, p.Data = p.Flags|trace.PieceOmitted, nil
		}
	}
}

// groupOf returns the group that an argument's memory is of, 0 if it is of none.
func groupOf(spec *event.Spec, arg int) Group {
	a := &spec.Args[arg]
	switch {
	case spec.Op.Effect() == event.EffectList:
		return GroupListings
	case spec.Class == event.Meta && a.Dir == event.Out:
		return GroupAttributes
	}
	return 0
}

// write gives a frame to the assembly.
func (t *Tracer) write(h *trace.Frame, payload []byte) {
	t.counts.lost.Add(h.Lost)
	if t.counts.failed() == nil {
		t.counts.fail(t.out.WriteRecords(*h, payload))
	}
	if t.counts.failed() == nil {
		t.counts.bytes.Add(uint64(len(payload)))
		return
	}
	for range trace.Records(payload) {
		t.counts.lost.Add(1)
	}
}
