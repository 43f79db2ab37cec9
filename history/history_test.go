package history

import (
	"testing"

	"iotape/event"
	"iotape/trace"
)

// Counters of open files account for everything that events moved through one, every
// open has the event that made it, and every process of the job has it for ancestor.
func TestEventsAccountForAll(t *testing.T) {
	tape, err := trace.Open("testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var read, written, events int64
	opens := map[*Open]bool{}
	processes := map[*Process]bool{}
	made := map[uint64]event.Op{}
	ids := map[event.OpenID]*Open{}
	var first *Process
	for m, err := range Events(tape) {
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m.Process
		}
		events++
		processes[m.Process] = true
		made[m.Seq] = m.Op
		io := m.Traffic()
		for i := range m.Files {
			f := &m.Files[i]
			o := m.OpenOf(f)
			if (o == nil) != (f.Open == 0) {
				t.Fatalf("event %d: descriptor %d is open file %d in the tape, history has %+v", m.Seq, f.FD, f.Open, o)
			}
			if o == nil {
				continue
			}
			if old := ids[f.Open]; old != nil && old != o {
				t.Fatalf("event %d: open file %d is two in the history", m.Seq, f.Open)
			}
			ids[f.Open], opens[o] = o, true
			if f == io.From {
				read += io.Read
			}
			if f == io.To {
				written += io.Written
			}
		}
		for _, o := range m.Ended {
			if o.EndedNS != m.Exit || o.EndedNS < o.OpenedNS {
				t.Errorf("%s ended at %d, and the event that did it at %d", o.Path, o.EndedNS, m.Exit)
			}
		}
	}
	if want := int64(tape.Manifest().Counts.Events); events != want {
		t.Errorf("%d events of %d", events, want)
	}
	ended := 0
	for o := range opens {
		read, written = read-o.ReadBytes, written-o.WrittenBytes
		if o.Opener == nil || made[o.Seq] != o.By && o.By != 0 {
			t.Errorf("%s: opened by event %d, which is %v, not %v", o.Path, o.Seq, made[o.Seq], o.By)
		}
		if o.EndedNS != 0 {
			ended++
		}
	}
	if read != 0 || written != 0 {
		t.Errorf("%d bytes read and %d written are in no open file's counters", read, written)
	}
	if ended < len(opens)-10 || len(opens) < 100 {
		t.Errorf("of %d open files %d were ended", len(opens), ended)
	}
	if first.Comm != "make" || len(processes) < 10 {
		t.Errorf("%d processes, the first is %q", len(processes), first.Comm)
	}
	commands := map[string]int{}
	for p := range processes {
		if !p.In(first) || !p.Ended || p.Status != 0 {
			t.Errorf("process %d %q of %d: ended %v, status %d", p.PID, p.Argv, p.PPID, p.Ended, p.Status)
		}
		if len(p.Argv) > 0 {
			commands[p.Comm]++
		}
	}
	if commands["as"] != 2 || commands["cc1"] != 2 {
		t.Errorf("commands %v, want two of cc1 and as", commands)
	}
}
