// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
)

// script writes down what it is told.
type script struct{ strings.Builder }

func (s *script) Process(p *Process) error {
	fmt.Fprintf(s, "process %d: pid %d, of %d, uid %d, from %d: %q %q\n", p.ID, p.PID, p.PPID, p.UID, p.Start, p.Name,
		p.Argv)
	return nil
}

func (s *script) Track(t *Track) error {
	fmt.Fprintf(s, "track %d: process %d, tid %d %q", t.ID, t.Process.ID, t.TID, t.Name)
	if t.Thread != nil {
		fmt.Fprintf(s, ", lane %d of %d", t.Lane, t.Thread.ID)
	}
	s.WriteByte('\n')
	return nil
}

func (s *script) Slice(x *Slice) error {
	fmt.Fprintf(s, "slice on %d, %d-%d: %s (%s)", x.Track.ID, x.Begin, x.End, x.Name, x.Class)
	s.args(x.Args)
	for _, l := range []struct {
		name string
		list []uint64
	}{{"out", x.Out}, {"in", x.In}, {"received", x.Received}} {
		if len(l.list) > 0 {
			fmt.Fprintf(s, " %s %v", l.name, l.list)
		}
	}
	s.WriteByte('\n')
	return nil
}

func (s *script) Mark(m *Mark) error {
	on := uint64(0)
	if m.Track != nil {
		on = m.Track.ID
	}
	fmt.Fprintf(s, "mark on %d, %d: %s", on, m.Time, m.Name)
	s.args(m.Args)
	if len(m.In) > 0 {
		fmt.Fprintf(s, " in %v", m.In)
	}
	s.WriteByte('\n')
	return nil
}

func (s *script) Count(c *Count) error {
	fmt.Fprintf(s, "count %d, %d: %s = %d %v\n", c.Process.ID, c.Time, c.Counter, c.Value, c.First)
	return nil
}

func (s *script) args(list []Arg) {
	for _, a := range list {
		if a.Text != "" {
			fmt.Fprintf(s, " %s=%q", a.Name, a.Text)
		} else {
			fmt.Fprintf(s, " %s=%d", a.Name, a.Number)
		}
	}
}

func TestWalk(t *testing.T) {
	tape := formattest.Pipeline(t)
	var s script
	var done format.Done
	if err := Walk(t.Context(), tape, 0, &s, &done); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/pipeline.golden"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(s.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), s.String()); d != "" {
		t.Error(d)
	}
	if n := uint64(strings.Count(s.String(), "slice ")); n != done.Records {
		t.Errorf("%d slices of %d records", n, done.Records)
	}
}
