package snia

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"iotape/event"
	"iotape/format/dataseries"
	"iotape/trace"
)

// Imported says what came of an Import.
type Imported struct {
	Records uint64            // rows of the file
	Events  uint64            // records of the stream
	Unknown map[string]uint64 // rows of calls that have no operation here, by call
}

// ErrNotSyscalls is returned for DataSeries files that hold something else.
var ErrNotSyscalls = fmt.Errorf("no system calls in SNIA's schema in it")

// Import writes the calls of a file as a stream, in the order of their ids.
//
// It does not use what known versions of the tools write wrongly: flags that are
// not null (all true), times of stat (of the first call), ids of the elements of
// vectors (garbage), and the times of the first record.
func Import(r *dataseries.Reader, sw *trace.StreamWriter) (*Imported, error) {
	im := &importer{sw: sw, done: Imported{Unknown: map[string]uint64{}}, groups: map[uint32]uint32{}, execs: map[uint32]*exec{}}
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
			return nil, err
		}
		if err := im.add(s); err != nil {
			return nil, err
		}
	}
	if len(im.sources) == 0 {
		return nil, ErrNotSyscalls
	}
	for len(im.sources) > 0 {
		s := im.sources[0]
		if err := im.row(s); err != nil {
			return nil, fmt.Errorf("%s: record %d: %w", s.name, s.id, err)
		}
		more, err := s.next()
		if err != nil {
			return nil, err
		}
		if more {
			heap.Fix(&im.sources, 0)
		} else {
			heap.Pop(&im.sources)
		}
	}
	for _, pid := range sortedKeys(im.execs) {
		im.execve(pid, im.execs[pid], nil)
	}
	return &im.done, im.flush()
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
	for _, name := range []string{"unique_id", "time_called", "time_returned", "executing_pid", "return_value", "errno_number"} {
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
			return false, fmt.Errorf("extent at %d is not of type %q: %w", s.extents[0], s.typ.Name, dataseries.ErrDamaged)
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

// frameBytes is how many bytes of records go into a frame.
const frameBytes = 4 << 20

type importer struct {
	sw      *trace.StreamWriter
	sources sources
	done    Imported
	payload []byte
	until   uint64
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

func (im *importer) emit(r *trace.Record) error {
	im.done.Events++
	im.payload = trace.AppendRecord(im.payload, r)
	if len(im.payload) >= frameBytes {
		return im.flush()
	}
	return nil
}

func (im *importer) flush() error {
	if len(im.payload) == 0 {
		return nil
	}
	err := im.sw.WriteRecords(trace.Frame{Until: im.until}, im.payload)
	im.payload = im.payload[:0]
	return err
}

// row turns the record at hand into records of the stream.
func (im *importer) row(s *source) error {
	im.done.Records++
	tid := uint32(s.num("executing_pid"))
	if s.id == 0 && s.name == "umask" {
		mask := s.num("mode_value")
		return im.emit(&trace.Record{Type: trace.RecStart, PID: tid, TID: tid, Umask: uint32(mask), Exit: nanoseconds(s.num("time_recorded"))})
	}
	byName, _ := calls()
	c := byName[s.name]
	rec := im.call(s, tid)
	if s.name == "execve" {
		return im.execRow(s, tid, rec)
	}
	if c == nil {
		im.done.Unknown[s.name]++
		return im.emit(rec)
	}
	rec.Op = uint16(c.op)
	rec.NR = uint32(max(event.Number(event.AMD64, c.op), 0))
	spec := event.Lookup(c.op)
	for i, name := range c.args {
		switch {
		case i >= len(rec.Args) || name == "-":
		case structure(name):
			if err := im.structure(s, name, i, rec); err != nil {
				return err
			}
		case i < len(spec.Args) && s.has(name) && s.typ.Fields[s.fields[name]].Kind == dataseries.Variable32:
			rec.Args[i] = 1 // some address
			if spec.Args[i].Kind.IsMemory() {
				rec.Pieces = append(rec.Pieces, pieces(uint8(i), s.bytes(name))...)
			}
		default:
			rec.Args[i] = uint64(s.num(name))
		}
	}
	return im.finish(s, c, rec)
}

// call starts a record with what all calls have.
func (im *importer) call(s *source, tid uint32) *trace.Record {
	pid := tid
	if p, ok := im.groups[tid]; ok {
		pid = p
	}
	rec := &trace.Record{Type: trace.RecCall, PID: pid, TID: tid, Ret: s.num("return_value")}
	rec.Enter, rec.Exit = nanoseconds(s.num("time_called")), nanoseconds(s.num("time_returned"))
	if rec.Exit < rec.Enter {
		rec.Exit = rec.Enter
	}
	if e := s.num("errno_number"); e > 0 && e < 4096 && rec.Ret < 0 {
		rec.Ret = -e
	}
	im.until = max(im.until, rec.Exit)
	return rec
}

// pieces cuts content into pieces that a record may carry.
func pieces(arg uint8, data []byte) []trace.Piece {
	var list []trace.Piece
	for off := uint64(0); ; {
		n := min(len(data), trace.MaxPieceBytes/2)
		list = append(list, trace.Piece{Arg: arg, Off: off, Len: uint32(n), Data: data[:n:n]})
		data, off = data[n:], off+uint64(n)
		if len(data) == 0 {
			return list
		}
	}
}

// finish writes a call, and what it did to processes.
func (im *importer) finish(s *source, c *call, rec *trace.Record) error {
	switch c.op {
	case event.OpExitGroup:
		rec.Ret, rec.Exit = 0, rec.Enter
		if err := im.emit(rec); err != nil {
			return err
		}
		status := int64(rec.Args[0]&0xff) << 8
		return im.emit(&trace.Record{Type: trace.RecExit, PID: rec.PID, TID: rec.TID, Exit: rec.Exit, Ret: status})
	case event.OpFork, event.OpVfork, event.OpClone:
		if rec.Ret <= 0 {
			break
		}
		child := uint32(rec.Ret)
		share := rec.Args[0] & (trace.ShareVM | trace.ShareFS | trace.ShareFiles | trace.ShareThread)
		pid := child
		if share&trace.ShareThread != 0 {
			pid = rec.PID
			im.groups[child] = pid
		}
		// The child runs before its maker returns.
		if err := im.emit(&trace.Record{Type: trace.RecFork, PID: rec.PID, TID: rec.TID, Exit: rec.Enter, Child: pid, ChildTID: child, Share: share}); err != nil {
			return err
		}
	}
	return im.large(rec)
}

// large writes a call; content beyond a record's size goes into more of them.
func (im *importer) large(rec *trace.Record) error {
	total, keep := 0, len(rec.Pieces)
	for i, p := range rec.Pieces {
		if total += len(p.Data); total > trace.MaxPieceBytes/2 && i > 0 {
			keep = i
			break
		}
	}
	rest := rec.Pieces[keep:]
	rec.Pieces = rec.Pieces[:keep]
	if len(rest) > 0 {
		rec.Flags |= trace.CallMore
	}
	if err := im.emit(rec); err != nil {
		return err
	}
	for i, p := range rest {
		data := &trace.Record{Type: trace.RecData, Op: rec.Op, PID: rec.PID, TID: rec.TID, Enter: rec.Enter, Pieces: []trace.Piece{p}}
		if i == len(rest)-1 {
			data.Flags = trace.DataLast
		}
		if err := im.emit(data); err != nil {
			return err
		}
	}
	return nil
}

// exec is an execve under way: its records come at its entry, one more at its return.
type exec struct {
	rec  trace.Record
	path string
	argv []string
}

func (im *importer) execRow(s *source, tid uint32, rec *trace.Record) error {
	x := im.execs[tid]
	switch n := s.num("continuation_number"); {
	case n == 0:
		if x != nil {
			im.execve(tid, x, nil)
		}
		im.execs[tid] = &exec{rec: *rec, path: string(s.bytes("given_pathname"))}
	case n < 0 && x != nil:
		im.execve(tid, x, rec)
		delete(im.execs, tid)
	case x != nil && s.has("argument"):
		x.argv = append(x.argv, string(s.bytes("argument")))
	}
	return nil
}

// execve writes an execve; ret is its return, nil if none was seen.
func (im *importer) execve(tid uint32, x *exec, ret *trace.Record) {
	argv := []byte(strings.Join(x.argv, "\x00"))
	enter := &trace.Record{Type: trace.RecEnter, PID: x.rec.PID, TID: tid, Enter: x.rec.Enter, Op: uint16(event.OpExecve)}
	enter.Pieces = append(pieces(0, []byte(x.path)), pieces(1, argv)...)
	rec := x.rec
	rec.Op, rec.NR = uint16(event.OpExecve), uint32(max(event.Number(event.AMD64, event.OpExecve), 0))
	if ret != nil {
		rec.Ret, rec.Exit = ret.Ret, ret.Exit
	} else {
		rec.Flags |= trace.CallInterrupted
	}
	rec.Args = [6]uint64{1, 1, 1}
	_ = im.emit(enter) // an error stays with the writer
	_ = im.emit(&rec)
}
