// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

func closeOnExec(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, unix.FD_CLOEXEC)
	return err
}

// validator checks the contract of package capture on decoded records. It shares
// nothing with the recorder.
type validator struct {
	t       *testing.T
	threads map[uint32]*threadState
	first   bool
	events  uint64
}

type threadState struct {
	task  bool
	last  uint64 // end of the last call
	entry uint64 // of a RecEnter without its call
	more  *trace.Record
	moved map[int]uint64 // bytes seen by argument, of more
}

func validate(t *testing.T, rec *recording) {
	t.Helper()
	v := &validator{t: t, threads: map[uint32]*threadState{}}
	until := uint64(0)
	for i, f := range rec.frames {
		if f.Round != uint32(i) || f.Until < until {
			t.Errorf("frame %d: round %d, until %d after %d", i, f.Round, f.Until, until)
		}
		until = f.Until
	}
	for i := range rec.records {
		r := &rec.records[i]
		if f := &rec.frames[rec.frameOf[i]]; r.Exit > f.Until {
			t.Errorf("record %d of time %d in a frame until %d", i, r.Exit, f.Until)
		}
		v.record(r)
		if t.Failed() {
			t.Fatalf("at record %d of %d: %+v", i, len(rec.records), summary(r))
		}
	}
	for tid := range v.threads {
		t.Errorf("thread %d has no exit", tid)
	}
	if rec.result != nil && v.events != rec.result.Events {
		t.Errorf("%d calls, result says %d", v.events, rec.result.Events)
	}
}

func summary(r *trace.Record) trace.Record {
	s := *r
	s.Pieces = nil
	return s
}

func (v *validator) record(r *trace.Record) {
	t := v.t
	s := v.threads[r.TID]
	if s == nil {
		if v.first && r.Type != trace.RecTask {
			t.Errorf("thread %d has no fork before its first record", r.TID)
		}
		s = &threadState{}
		v.threads[r.TID] = s
		v.first = true
	}
	if r.Type != trace.RecTask && !s.task {
		t.Errorf("thread %d has no task record", r.TID)
	}
	if s.more != nil && r.Type != trace.RecData {
		t.Error("a call's data has no end")
	}
	switch r.Type {
	case trace.RecTask:
		s.task = true
	case trace.RecFork:
		if v.threads[r.ChildTID] != nil {
			t.Errorf("thread %d is made twice", r.ChildTID)
		}
		v.threads[r.ChildTID] = &threadState{last: r.Exit}
	case trace.RecExit:
		if s.entry != 0 {
			t.Error("an entry without its call")
		}
		delete(v.threads, r.TID)
	case trace.RecEnter:
		s.entry = r.Enter
	case trace.RecCall:
		v.call(s, r)
	case trace.RecData:
		if s.more == nil || s.more.Enter != r.Enter {
			t.Fatal("data without its call")
		}
		v.pieces(s, r)
		if r.Flags&trace.DataLast != 0 {
			v.complete(s)
		}
	}
}

func (v *validator) call(s *threadState, r *trace.Record) {
	v.events++
	if event.Op(r.Op) == event.OpMmapPwrite {
		return // no call: it stands within one of the thread's, or between two
	}
	if r.Enter < s.last || r.Exit < r.Enter {
		v.t.Errorf("call from %d to %d after %d", r.Enter, r.Exit, s.last)
	}
	if s.entry != 0 && s.entry != r.Enter {
		v.t.Errorf("entry at %d, call at %d", s.entry, r.Enter)
	}
	s.entry, s.last = 0, r.Exit
	s.more, s.moved = r, map[int]uint64{}
	v.pieces(s, r)
	if r.Flags&trace.CallMore == 0 {
		v.complete(s)
	}
}

func (v *validator) pieces(s *threadState, r *trace.Record) {
	total := 0
	for _, p := range r.Pieces {
		part, _ := event.SplitPart(int(p.Arg))
		if part == event.PartSocket && p.Off >= uint64(len(r.Objects)) {
			v.t.Errorf("ends of object %d of %d", p.Off, len(r.Objects))
		}
		if p.Flags&trace.PieceShape == 0 && part != event.PartSocket {
			if p.Off != s.moved[int(p.Arg)] {
				v.t.Errorf("piece of argument %d at %d, not %d", p.Arg, p.Off, s.moved[int(p.Arg)])
			}
			s.moved[int(p.Arg)] += uint64(p.Len)
		}
		total += len(p.Data)
	}
	if total > trace.MaxPieceBytes {
		v.t.Errorf("record with %d bytes", total)
	}
}

// complete checks that a finished call has all memory that its row asks for.
func (v *validator) complete(s *threadState) {
	r := s.more
	s.more = nil
	spec := event.Lookup(event.Op(r.Op))
	if r.Flags&trace.CallInterrupted != 0 {
		return
	}
	for i := range spec.Args {
		a := &spec.Args[i]
		if !a.Kind.IsMemory() || a.When == event.AtEntry || r.Args[i] == 0 || a.Cond.Mask != 0 {
			continue
		}
		_, has := s.moved[i]
		want, exact := uint64(0), true
		switch a.Len {
		case event.LenNUL:
			if !has {
				v.t.Errorf("%s: argument %s is missing", spec.Name, a.Name)
			}
			exact = false
		case event.LenConst:
			if a.Dir == event.In || r.Ret >= 0 {
				want = uint64(a.Bytes(event.AMD64))
			}
		case event.LenArg:
			want, exact = r.Args[a.LenArg], r.Ret >= 0
		case event.LenRet:
			if r.Ret > 0 {
				want = min(uint64(r.Ret), r.Args[a.LenArg])
			}
		case event.LenVec:
			if r.Ret > 0 {
				want = uint64(r.Ret)
			}
		case event.LenPositive:
			if r.Ret > 0 {
				want = uint64(a.Bytes(event.AMD64))
			}
		default:
			exact = false // TestCalls looks at these
		}
		if exact && s.moved[i] != want {
			v.t.Errorf("%s = %d: argument %s has %d bytes, want %d", spec.Name, r.Ret, a.Name, s.moved[i], want)
		}
	}
	if spec.NeedsStop && r.Ret > 0 {
		src := 0
		if spec.Op == event.OpSendfile {
			src = 1
		}
		if s.moved[src] != uint64(r.Ret) {
			v.t.Errorf("%s = %d moved %d bytes", spec.Name, r.Ret, s.moved[src])
		}
	}
}
