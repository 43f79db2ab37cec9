// SPDX-License-Identifier: Apache-2.0

package snia

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/dataseries"
	"github.com/iotape/iotape/trace"
)

// ErrNotSyscalls is returned for DataSeries files that hold something else.
var ErrNotSyscalls = fmt.Errorf("no system calls in SNIA's schema in it")

// Import writes the calls of a file as a stream, in the order of their ids.
//
// It does not use what known versions of the tools write wrongly: flags that are
// not null (all true), times of stat (of the first call), ids of the elements of
// vectors (garbage), and the times of the first record.
func Import(r *dataseries.Reader, w *format.Writer, done *format.Done) error {
	im := &importer{w: w, done: done, groups: map[uint32]uint32{}, execs: map[uint32]*exec{}}
	for _, t := range r.Types() {
		name, ok := strings.CutPrefix(t.Name, typePrefix)
		if !ok {
			continue
		}
		s := &source{r: r, typ: t, name: name, fields: map[string]int{}}
		for i := range t.Fields {
			s.fields[t.Fields[i].Name] = i
		}
		for _, x := range r.Index() {
			if x.Type == t {
				s.extents = append(s.extents, x.Offset)
			}
		}
		if err := s.check(); err != nil {
			return err
		}
		if err := im.add(s); err != nil {
			return err
		}
	}
	if len(im.sources) == 0 {
		return ErrNotSyscalls
	}
	for len(im.sources) > 0 {
		s := im.sources[0]
		if err := im.row(s); err != nil {
			return fmt.Errorf("%s: record %d: %w", s.name, s.id, err)
		}
		more, err := s.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&im.sources, 0)
		} else {
			heap.Pop(&im.sources)
		}
	}
	for _, pid := range sortedKeys(im.execs) {
		if err := im.execve(pid, im.execs[pid], nil); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// source iterates over the records of one type, an extent at a time.
type source struct {
	r       *dataseries.Reader
	typ     *dataseries.Type
	name    string
	fields  map[string]int
	extents []int64 // still to come
	e       *dataseries.Extent
	at      int
	id      int64 // of the record at hand
}

// check wants the fields that all calls have.
func (s *source) check() error {
	for _, name := range []string{"unique_id", "time_called", "time_returned", "executing_pid", "return_value",
		"errno_number"} {
		i, ok := s.fields[name]
		if !ok || (s.typ.Fields[i].Kind != dataseries.Int64 && s.typ.Fields[i].Kind != dataseries.Int32) {
			return fmt.Errorf("type %q without a number %s: %w", s.typ.Name, name, dataseries.ErrDamaged)
		}
	}
	return nil
}

// next moves to the next record; false at the end.
func (s *source) next() (bool, error) {
	for s.at++; s.e == nil || s.at >= s.e.Len(); s.at = 0 {
		if len(s.extents) == 0 {
			return false, nil
		}
		var err error
		if s.e, err = s.r.ReadExtent(s.extents[0]); err != nil {
			return false, err
		}
		if s.e.Type != s.typ {
			return false, fmt.Errorf("extent at %d is not of type %q: %w", s.extents[0], s.typ.Name,
				dataseries.ErrDamaged)
		}
		s.extents = s.extents[1:]
	}
	s.id = s.num("unique_id")
	return true, nil
}

// has reports whether the record has a value in a field.
func (s *source) has(field string) bool {
	i, ok := s.fields[field]
	return ok && !s.e.Null(s.at, i)
}

// num returns a number, 0 if there is none.
func (s *source) num(field string) int64 {
	i, ok := s.fields[field]
	if !ok || s.e.Null(s.at, i) {
		return 0
	}
	switch s.typ.Fields[i].Kind {
	case dataseries.Byte, dataseries.Int32, dataseries.Int64:
		return s.e.Int(s.at, i)
	case dataseries.Bool:
		if s.e.Bool(s.at, i) {
			return 1
		}
	}
	return 0
}

// bytes returns a string; nil if there is none.
func (s *source) bytes(field string) []byte {
	i, ok := s.fields[field]
	if !ok || s.e.Null(s.at, i) || s.typ.Fields[i].Kind != dataseries.Variable32 {
		return nil
	}
	b := s.e.Bytes(s.at, i)
	if isName(field) {
		b = []byte(strings.TrimSuffix(string(b), cString))
	}
	return b
}

// element reports whether the record is an element of a vector, which belongs to
// the record before it whatever its id says.
func (s *source) element() bool { return s.num("iov_number") >= 0 && s.has("iov_number") }

type sources []*source

func (h sources) Len() int           { return len(h) }
func (h sources) Less(i, j int) bool { return h[i].id < h[j].id }
func (h sources) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)        { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}

type importer struct {
	w       *format.Writer
	sources sources
	done    *format.Done
	groups  map[uint32]uint32 // process of a thread, where it is another
	execs   map[uint32]*exec  // by thread
}

func (im *importer) add(s *source) error {
	more, err := s.next()
	if more {
		heap.Push(&im.sources, s)
	}
	return err
}

// tfracsFrom tells the two units of the files' times apart: nanoseconds since 1970
// are below it until 2096, and 2^-32 seconds above it since 2001.
const tfracsFrom = 4e18

func nanoseconds(v int64) uint64 {
	if v >= tfracsFrom {
		return uint64(v>>32)*1e9 + uint64(v&0xffffffff)*1e9>>32
	}
	return uint64(max(v, 0))
}

// row turns the record at hand into records of the stream.
func (im *importer) row(s *source) error {
	im.done.Records++
	tid := uint32(s.num("executing_pid"))
	if s.id == 0 && s.name == "umask" {
		mask := s.num("mode_value")
		return im.w.Record(&trace.Record{Type: trace.RecStart, PID: tid, TID: tid, Umask: uint32(mask),
			Exit: nanoseconds(s.num("time_recorded"))})
	}
	byName, _ := calls()
	c := byName[s.name]
	rec := im.call(s, tid)
	if s.name == "execve" {
		return im.execRow(s, tid, rec)
	}
	if c == nil {
		im.done.LeftOut(s.name, 1)
		return im.w.Call(rec)
	}
	rec.Op = c.op
	spec := event.Lookup(c.op)
	for i, name := range c.args {
		switch {
		case i >= len(rec.Args) || name == "-":
		case structure(name):
			if err := im.structure(s, name, i, rec); err != nil {
				return err
			}
		case i < len(spec.Args) && s.has(name) && s.typ.Fields[s.fields[name]].Kind == dataseries.Variable32:
			if rec.Args[i] = 1; spec.Args[i].Kind.IsMemory() { // some address
				rec.Bytes(i, s.bytes(name), 0)
			}
		default:
			rec.Args[i] = uint64(s.num(name))
		}
	}
	if c.op == event.OpClone && rec.Ret > 0 && rec.Args[0]&trace.ShareThread != 0 {
		im.groups[uint32(rec.Ret)] = rec.PID
	}
	return im.w.Call(rec)
}

// call starts a record with what all calls have.
func (im *importer) call(s *source, tid uint32) *format.Call {
	pid := tid
	if p, ok := im.groups[tid]; ok {
		pid = p
	}
	rec := &format.Call{PID: pid, TID: tid, Ret: s.num("return_value")}
	rec.Enter, rec.Exit = nanoseconds(s.num("time_called")), nanoseconds(s.num("time_returned"))
	rec.Untimed = !s.has("time_returned")
	if e := s.num("errno_number"); e > 0 && e < 4096 && rec.Ret < 0 {
		rec.Ret = -e
	}
	return rec
}

// exec is an execve under way: its records come at its entry, one more at its return.
type exec struct {
	call format.Call
	path string
	argv []string
}

func (im *importer) execRow(s *source, tid uint32, rec *format.Call) (err error) {
	x := im.execs[tid]
	switch n := s.num("continuation_number"); {
	case n == 0:
		if x != nil {
			err = im.execve(tid, x, nil)
		}
		im.execs[tid] = &exec{call: *rec, path: string(s.bytes("given_pathname"))}
	case n < 0 && x != nil:
		err = im.execve(tid, x, rec)
		delete(im.execs, tid)
	case x != nil && s.has("argument"):
		x.argv = append(x.argv, string(s.bytes("argument")))
	}
	return err
}

// execve writes an execve; ret is its return, nil if none was seen.
func (im *importer) execve(tid uint32, x *exec, ret *format.Call) error {
	c := x.call
	c.Op, c.Args = event.OpExecve, [6]uint64{1, 1, 1}
	c.Text(0, x.path, false)
	c.Strings(1, x.argv)
	if ret != nil {
		c.Ret, c.Exit, c.Untimed = ret.Ret, ret.Exit, ret.Untimed
	} else {
		c.Interrupted = true
	}
	return im.w.Call(&c)
}
