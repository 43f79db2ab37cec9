// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
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
			if o.Ender != m.Process || o.EndedSeq != m.Seq || o.EndedBy != m.Op ||
				o.EndedBy == event.OpClose && o.Closes == 0 {
				t.Errorf("%s was ended by event %d, %v; it says %d, %v, %d calls of close", o.Path, m.Seq, m.Op,
					o.EndedSeq, o.EndedBy, o.Closes)
			}
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
		if o.Shared() < 1 || o.Located > o.Reads+o.Writes || o.Ascending < o.Consecutive || o.Located < o.Ascending {
			t.Errorf("%s: shared by %d, %d reads, %d writes: %+v", o.Path, o.Shared(), o.Reads, o.Writes, o.Access)
		}
		if strings.HasSuffix(o.Path, "main.o") && o.WrittenBytes > 0 && o.Max != o.Size {
			t.Errorf("%s of %d bytes was written up to %d", o.Path, o.Size, o.Max)
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

// Reads and writes follow each other, or they do not.
func TestAccess(t *testing.T) {
	type io struct {
		offset, n int64
		write     bool
	}
	for _, c := range []struct {
		name       string
		ios        []io
		want       Access
		sequential bool
	}{
		{"nothing", nil, Access{}, false},
		{"one in the middle", []io{{100, 10, false}}, Access{Located: 1, Max: 110}, true},
		{"to the end", []io{{0, 10, false}, {10, 5, false}, {15, 0, false}}, Access{Located: 3, Consecutive: 2, Ascending: 2, Max: 15}, true},
		{"with a gap", []io{{0, 10, false}, {20, 5, false}}, Access{Located: 2, Ascending: 1, Max: 25}, false},
		{"backwards", []io{{20, 10, true}, {10, 5, true}}, Access{Located: 2, Max: 30}, false},
		{"to and fro", []io{{0, 10, true}, {0, 10, false}, {10, 1, true}}, Access{Located: 3, Consecutive: 1, Ascending: 1, Switches: 2, Max: 11}, false},
	} {
		var a Access
		for _, io := range c.ios {
			a.add(io.offset, io.n, io.write)
		}
		sequential := a.Sequential()
		a.next, a.wrote = 0, false
		if a != c.want || sequential != c.sequential {
			t.Errorf("%s: %+v, sequential %v; want %+v, %v", c.name, a, sequential, c.want, c.sequential)
		}
	}
}
