// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// collected is an assembly that keeps the records that it gets.
type collected struct {
	records []trace.Record
	frames  []trace.Frame
	changes []trace.FilterChange
	end     *trace.End
	fail    error // of writing
}

func (c *collected) WriteRecords(f trace.Frame, payload []byte) error {
	if c.fail != nil {
		return c.fail
	}
	c.frames = append(c.frames, f)
	for body, err := range trace.Records(bytes.Clone(payload)) {
		var r trace.Record
		if err == nil {
			err = r.Decode(body)
		}
		if err != nil {
			return err
		}
		c.records = append(c.records, r)
	}
	return nil
}

func (c *collected) ChangeFilter(f *trace.FilterChange) error {
	c.changes = append(c.changes, *f)
	return nil
}

func (c *collected) Close(end *trace.End) error {
	c.end = end
	return nil
}

func (c *collected) open(*trace.Window) (Assembly, error) { return c, nil }

// calls are the call records' enter times.
func (c *collected) calls(op event.Op) (enters []uint64) {
	for i := range c.records {
		if r := &c.records[i]; r.Type == trace.RecCall && (op == 0 || r.Op == uint16(op)) {
			enters = append(enters, r.Enter)
		}
	}
	return enters
}

func newFan(t *testing.T, o Options) (*Fanout, *trace.StreamWriter) {
	t.Helper()
	f, err := NewFanout(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	sw, err := trace.NewStreamWriterTo(f, 1, &trace.Head{Arch: "amd64", Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f, sw
}

func filterOf(t *testing.T, text string) Filter {
	t.Helper()
	g, err := predicate.New(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Filter{Expr: g.Expr(),
		Prefilter: g.Prefilter(func(op event.Op) bool { return op == event.OpRead || op == event.OpWrite })}
}

// attach attaches a tracer with an assembly that collects.
func attach(t *testing.T, f *Fanout, filter string, v Verbosity) (*Tracer, *collected) {
	t.Helper()
	with := Filter{}
	if filter != "" {
		with = filterOf(t, filter)
	}
	tr, c := New("t", with, v), &collected{}
	if err := f.Attach(tr, c.open); err != nil {
		t.Fatal(err)
	}
	return tr, c
}

// write writes calls of one thread in a frame: each begins at its time and takes 5 ns.
func write(t *testing.T, sw *trace.StreamWriter, recs ...trace.Record) {
	t.Helper()
	var payload []byte
	until := uint64(0)
	for i := range recs {
		payload = trace.AppendRecord(payload, &recs[i])
		until = max(until, recs[i].Exit)
	}
	if err := sw.WriteRecords(trace.Frame{Until: until, Round: uint32(until)}, payload); err != nil {
		t.Fatal(err)
	}
}

const tid = 7

func task(uid uint32) trace.Record {
	return trace.Record{Type: trace.RecTask, PID: tid, TID: tid, UID: uid, Exit: 1}
}

func call(op event.Op, enter uint64, data string) trace.Record {
	return trace.Record{Type: trace.RecCall, Op: uint16(op), PID: tid, TID: tid, Enter: enter, Exit: enter + 5,
		CPU: 3, Ret: int64(len(data)),
		Args:   [6]uint64{3, 0x1000, uint64(len(data))},
		Pieces: []trace.Piece{{Arg: 1, Len: uint32(len(data)), Data: []byte(data)}}}
}

func TestFilters(t *testing.T) {
	f, sw := newFan(t, Options{})
	_, all := attach(t, f, "", Verbosity{})
	_, writes := attach(t, f, "op = write", Verbosity{})
	_, mine := attach(t, f, "uid = 5", Verbosity{})
	more := call(event.OpRead, 30, "abc")
	more.Flags = trace.CallMore
	rest := trace.Record{Type: trace.RecData, Op: uint16(event.OpRead), PID: tid, TID: tid, Enter: 30, Exit: 30,
		Flags: trace.DataLast, Pieces: []trace.Piece{{Arg: 1, Off: 3, Len: 2, Data: []byte("de")}}}
	write(t, sw, task(5), call(event.OpRead, 10, "x"), call(event.OpWrite, 20, "y"), more, call(event.OpOpenat, 35, ""))
	write(t, sw, rest, task(6), call(event.OpRead, 40, "x"), call(event.OpWrite, 50, "y"))
	for _, k := range []struct {
		c     *collected
		calls []uint64
		data  int
	}{
		{all, []uint64{10, 20, 30, 35, 40, 50}, 1},
		{writes, []uint64{20, 35, 50}, 0}, // what is not a read or write is context
		{mine, []uint64{10, 20, 30, 35}, 1},
	} {
		data := 0
		for i := range k.c.records {
			if k.c.records[i].Type == trace.RecData {
				data++
			}
		}
		if got := k.c.calls(0); !slices.Equal(got, k.calls) || data != k.data {
			t.Errorf("calls at %v with %d data records, want %v with %d", got, data, k.calls, k.data)
		}
	}
}

// TestFilterChange changes a filter while records of earlier calls are still to come: every
// call is judged by the filter that held when it began.
func TestFilterChange(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, sw := newFan(t, Options{})
		tr, c := attach(t, f, "op = write", Verbosity{})
		write(t, sw, task(5))
		wants := func(op event.Op, filter string) bool { return filter == "" || filter == "op = "+op.String() }
		filter, clock := "op = write", uint64(100)
		var held []trace.Record // begun, and not written
		var want []uint64
		for range 40 {
			switch r.IntN(4) {
			case 0:
				filter = []string{"", "op = read", "op = write"}[r.IntN(3)]
				next := Filter{}
				if filter != "" {
					next = filterOf(t, filter)
				}
				if _, err := f.SetFilter(tr, next, func() int64 { return int64(clock) }); err != nil {
					t.Fatal(err)
				}
			case 1:
				write(t, sw, held...)
				held = nil
			default:
				op := []event.Op{event.OpRead, event.OpWrite}[r.IntN(2)]
				held = append(held, call(op, clock, "x"))
				if wants(op, filter) {
					want = append(want, clock)
				}
			}
			clock += 10
		}
		write(t, sw, held...)
		if got := c.calls(0); !slices.Equal(got, want) {
			t.Fatalf("seed %d: calls at %v, want %v", seed, got, want)
		}
	}
}

func TestVerbosity(t *testing.T) {
	f, sw := newFan(t, Options{Wakeups: true})
	head := capture.Everywhere(capture.KeepHead)
	head.Read.Head, head.Write.Head = 4, 4
	_, whole := attach(t, f, "", Verbosity{Wakeups: true})
	_, short := attach(t, f, "", Verbosity{Content: head, Omit: GroupCPU | GroupAttributes})
	_, hashed := attach(t, f, "", Verbosity{Content: capture.Everywhere(capture.KeepHash)})
	_, none := attach(t, f, "", Verbosity{Content: capture.Everywhere(capture.KeepNone)})
	stat := trace.Record{Type: trace.RecCall, Op: uint16(event.OpFstat), PID: tid, TID: tid, Enter: 40, Exit: 45,
		Flags: trace.CallDelays, DelayBefore: 6, DelayWithin: 7,
		Pieces: []trace.Piece{{Arg: 1, Len: 144, Data: make([]byte, 144)}}}
	write(t, sw, task(5), call(event.OpWrite, 10, "0123456789"), stat,
		trace.Record{Type: trace.RecWake, PID: tid, TID: tid, Exit: 46})
	for _, k := range []struct {
		name string
		c    *collected
		want string
	}{
		{"whole", whole, "write cpu 3: 10 bytes 0123456789. fstat cpu 0 delays 6 7: 144 bytes data. wake"},
		{"short", short, "write cpu 0: 4 bytes 0123 6 omitted. fstat cpu 0: 144 omitted."},
		{"hashed", hashed, "write cpu 3: 10 hashed. fstat cpu 0 delays 6 7: 144 bytes data."},
		{"none", none, "write cpu 3: 10 omitted. fstat cpu 0 delays 6 7: 144 bytes data."},
	} {
		got := ""
		for i := range k.c.records {
			switch r := &k.c.records[i]; r.Type {
			case trace.RecWake:
				got += " wake"
			case trace.RecCall:
				got += fmt.Sprintf(" %s cpu %d", event.Op(r.Op), r.CPU)
				if r.Flags&trace.CallDelays != 0 {
					got += fmt.Sprintf(" delays %d %d", r.DelayBefore, r.DelayWithin)
				}
				got += ":"
				for _, p := range r.Pieces {
					switch {
					case p.Flags&trace.PieceOmitted != 0:
						got += fmt.Sprintf(" %d omitted", p.Len)
					case p.Flags&trace.PieceHash != 0:
						got += fmt.Sprintf(" %d hashed", p.Len)
					case p.Len > 100:
						got += fmt.Sprintf(" %d bytes data", p.Len)
					default:
						got += fmt.Sprintf(" %d bytes %s", p.Len, p.Data)
					}
				}
				got += "."
			}
		}
		if got != " "+k.want {
			t.Errorf("%s:%s\nwant %s", k.name, got, k.want)
		}
	}
}

// TestFailingOutput has a tracer whose output fails: it loses, the other does not notice.
func TestFailingOutput(t *testing.T) {
	f, sw := newFan(t, Options{})
	_, good := attach(t, f, "", Verbosity{})
	bad, broken := attach(t, f, "", Verbosity{})
	write(t, sw, task(5), call(event.OpRead, 10, "x"))
	broken.fail = errors.New("the disk is full")
	write(t, sw, call(event.OpRead, 20, "x"), call(event.OpRead, 30, "x"))
	broken.fail = nil
	write(t, sw, call(event.OpRead, 40, "x"))
	if got := good.calls(0); len(got) != 4 {
		t.Errorf("the good one has %v", got)
	}
	if c := bad.Counts(); c.Lost != 3 || c.Err == nil || c.Err.Error() != "the disk is full" {
		t.Errorf("%+v", c)
	}
	if c := f.Detach(bad, &trace.End{}); c.Lost != 3 || broken.end == nil || broken.end.Lost != 3 {
		t.Errorf("%+v, %+v", c, broken.end)
	}
	if len(broken.calls(0)) != 1 {
		t.Error("after a failure nothing may follow: the stream would have a hole")
	}
}

// TestLate attaches tracers in the middle: they begin with the state.
func TestLate(t *testing.T) {
	f, sw := newFan(t, Options{})
	write(t, sw, task(5), call(event.OpRead, 10, "x"))
	if err := f.Attach(New("late", Filter{}, Verbosity{}), (&collected{}).open); !errors.Is(err, ErrTooLate) {
		t.Error(err)
	}
	f, sw = newFan(t, Options{Late: true})
	write(t, sw, trace.Record{Type: trace.RecStart, PID: tid, TID: tid, Exit: 1,
		Pieces: []trace.Piece{{Len: 4, Data: []byte("/dir")}}}, task(5))
	open := call(event.OpOpen, 10, "")
	open.Pieces = []trace.Piece{{Len: 2, Data: []byte("f\x00")}}
	open.Args, open.Ret = [6]uint64{0x1000}, 3
	open.Objects = []trace.Object{{Arg: event.ResultArg, FD: 3, Ino: 77, Mode: 0o100644}}
	write(t, sw, open)
	const later = 1e9 // long past what is kept as records
	for i := range uint64(20) {
		write(t, sw, call(event.OpRead, later*(i+1), "x"))
	}
	for n := 0; ; n++ { // what is older than keepAge becomes state, in a goroutine
		if bytes, _ := f.keep.Held(); bytes < 1000 {
			break
		}
		if n > 5000 {
			t.Fatal("all records are still kept")
		}
		time.Sleep(time.Millisecond)
	}
	late, c := New("late", Filter{}, Verbosity{}), &collected{}
	var since int64
	err := f.Attach(late, func(w *trace.Window) (Assembly, error) {
		since = w.SinceNS
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, sw, call(event.OpRead, later*30, "x"))
	if got := c.calls(0); len(got) == 0 || got[len(got)-1] != later*30 || len(got) > 21 {
		t.Errorf("calls at %v", got)
	}
	if err := f.Attach(late, c.open); err == nil {
		t.Error("it is attached twice")
	}
	seen := map[trace.RecordType]bool{}
	for i := range c.records {
		seen[c.records[i].Type] = true
	}
	if !seen[trace.RecTask] || !seen[trace.RecStart] || !seen[trace.RecFile] || since < later {
		t.Errorf("the state at %d lacks something: %v", since, seen)
	}
}

func TestCovers(t *testing.T) {
	hash := capture.Everywhere(capture.KeepHash)
	f, _ := newFan(t, Options{Content: hash})
	for _, k := range []struct {
		v  Verbosity
		ok bool
	}{
		{Verbosity{Content: hash}, true}, {Verbosity{Content: capture.Everywhere(capture.KeepNone)}, true},
		{Verbosity{}, false}, {Verbosity{Content: hash, Wakeups: true}, false},
	} {
		if err := f.Covers(&k.v); (err == nil) != k.ok {
			t.Errorf("%+v: %v", k.v, err)
		}
	}
	if err := f.Attach(New("t", Filter{}, Verbosity{}), (&collected{}).open); err == nil {
		t.Error("more content than there is")
	}
}

// TestDelays: how long a thread waited for a processor in calls that a filter refuses is
// before the next that it does not.
func TestDelays(t *testing.T) {
	f, sw := newFan(t, Options{})
	_, all := attach(t, f, "", Verbosity{})
	_, writes := attach(t, f, "op = write", Verbosity{})
	delayed := func(op event.Op, enter uint64, before, within uint32) trace.Record {
		r := call(op, enter, "x")
		r.Flags, r.DelayBefore, r.DelayWithin = trace.CallDelays, before, within
		return r
	}
	write(t, sw, task(5), delayed(event.OpRead, 10, 1, 20), delayed(event.OpRead, 20, 300, 0),
		call(event.OpWrite, 30, "y"),
		delayed(event.OpWrite, 40, 4000, 7), delayed(event.OpWrite, 50, 5, 8), delayed(event.OpRead, 60, 1<<32-1, 0),
		delayed(event.OpWrite, 70, 1, 0))
	for _, k := range []struct {
		c    *collected
		want string
	}{{all, "1+20 300+0 0+0 4000+7 5+8 4294967295+0 1+0"}, {writes, "0+0 4321+7 5+8 4294967295+0"}} {
		var got []string
		for i := range k.c.records {
			if r := &k.c.records[i]; r.Type == trace.RecCall {
				got = append(got, fmt.Sprintf("%d+%d", r.DelayBefore, r.DelayWithin))
			}
		}
		if s := strings.Join(got, " "); s != k.want {
			t.Errorf("got %s, want %s", s, k.want)
		}
	}
}
