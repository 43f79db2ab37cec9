// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"slices"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// parts returns a call whose content comes later, and that content in two records.
func parts(enter uint64) (more, first, last trace.Record) {
	more = call(event.OpRead, enter, "abc")
	more.Flags = trace.CallMore
	first = trace.Record{Type: trace.RecData, Op: uint16(event.OpRead), PID: tid, TID: tid, Enter: enter, Exit: enter,
		Pieces: []trace.Piece{{Arg: 1, Off: 3, Len: 2, Data: []byte("de")}}}
	last = first
	last.Flags = trace.DataLast
	return more, first, last
}

// detach detaches in the background, and returns when the Fanout knows of it.
func detach(t *testing.T, f *Fanout, tr *Tracer) <-chan Counts {
	t.Helper()
	done := make(chan Counts, 1)
	go func() { done <- f.Detach(tr, &trace.End{Running: true}) }()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		closing := tr.closing != nil || tr.out == nil
		f.mu.Unlock()
		if closing {
			return done
		}
	}
	t.Fatal("it is not being detached")
	return nil
}

// TestDetachBetweenCallAndContent: a tracer that is stopped while a call's content is on its
// way gets that, and nothing else any more.
func TestDetachBetweenCallAndContent(t *testing.T) {
	for _, filter := range []string{"", "uid = 5", "uid = 6"} {
		f, sw := newFan(t, Options{})
		tr, c := attach(t, f, filter, Verbosity{})
		_, other := attach(t, f, "", Verbosity{})
		more, first, last := parts(20)
		write(t, sw, task(5), call(event.OpRead, 10, "x"), more)
		done := detach(t, f, tr)
		if filter == "uid = 6" { // it does not have the call
			if <-done; len(c.calls(0)) != 0 || c.end == nil {
				t.Errorf("%s: calls at %v", filter, c.calls(0))
			}
			continue
		}
		write(t, sw, first)
		f.mu.Lock()
		if c.end != nil {
			t.Error("it was closed while content was to come")
		}
		f.mu.Unlock()
		// Another thread's call, a loss, and the rest.
		late := call(event.OpRead, 30, "x")
		late.TID, late.PID = 8, 8
		if err := sw.WriteRecords(trace.Frame{Until: 40, Round: 40, Lost: 3},
			trace.AppendRecord(nil, &late)); err != nil {
			t.Fatal(err)
		}
		write(t, sw, last)
		counts := <-done
		data := slices.DeleteFunc(slices.Clone(c.records), func(r trace.Record) bool { return r.Type != trace.RecData })
		if got := c.calls(0); !slices.Equal(got, []uint64{10, 20}) || len(data) != 2 ||
			data[1].Flags&trace.DataLast == 0 || c.end == nil || counts.Lost != 0 {
			t.Errorf("%q: calls at %v with %d data records, %+v", filter, got, len(data), counts)
		}
		if got := other.calls(0); !slices.Equal(got, []uint64{10, 20, 30}) {
			t.Errorf("the other has calls at %v", got)
		}
	}
}

// TestDetachEnds: content that never comes is not waited for longer than it is sure that it
// may come.
func TestDetachEnds(t *testing.T) {
	for name, end := range map[string]func(sw *trace.StreamWriter){
		"the thread goes on": func(sw *trace.StreamWriter) { write(t, sw, call(event.OpRead, 30, "x")) },
		"the thread ends": func(sw *trace.StreamWriter) {
			write(t, sw, trace.Record{Type: trace.RecExit, PID: tid, TID: tid, Exit: 30})
		},
		"the recording ends": func(sw *trace.StreamWriter) {
			if err := sw.Close(&trace.End{}); err != nil {
				t.Error(err)
			}
		},
	} {
		f, sw := newFan(t, Options{})
		tr, c := attach(t, f, "", Verbosity{})
		more, _, _ := parts(20)
		write(t, sw, task(5), more)
		done := detach(t, f, tr)
		end(sw)
		began := time.Now()
		<-done
		f.mu.Lock()
		if got := c.calls(0); !slices.Equal(got, []uint64{20}) || c.end == nil {
			t.Errorf("%s: calls at %v, after %v", name, got, time.Since(began))
		}
		select {
		case <-tr.closing.done:
		default:
			t.Errorf("%s: it was waited for in vain", name)
		}
		f.mu.Unlock()
	}
}

// TestUnfinishedIsBounded: calls whose content is lost do not pile up.
func TestUnfinishedIsBounded(t *testing.T) {
	u := newUnfinished()
	var payload []byte
	for i := range uint32(3 * maxUnfinished) {
		more, _, _ := parts(uint64(i) + 1)
		more.TID = i
		payload = trace.AppendRecord(payload[:0], &more)
		u.see(payload)
	}
	if len(u.calls) > maxUnfinished || len(u.last) > maxUnfinished {
		t.Errorf("%d and %d", len(u.calls), len(u.last))
	}
	// Requests of one thread are under way together; only its own call ends its last one.
	u = newUnfinished()
	var some []trace.Record
	for i, op := range []event.Op{event.OpUringRead, event.OpUringRead, event.OpRead, event.OpUringRead} {
		more, _, _ := parts(uint64(i) + 1)
		more.Op = uint16(op)
		some = append(some, more)
	}
	some = append(some, call(event.OpWrite, 9, "x"))
	payload = payload[:0]
	for i := range some {
		payload = trace.AppendRecord(payload, &some[i])
	}
	u.see(payload)
	if _, own := u.calls[callKey{tid, 3}]; own || len(u.calls) != 3 {
		t.Errorf("%v", u.calls)
	}
}
