// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
)

// part is a stream as its batches make it.
type part struct {
	about staging.About
	end   *staging.End
	data  string
}

// parts puts the batches of a spool together.
func parts(t *testing.T, c *Config) (list []part) {
	t.Helper()
	for _, p := range spooled(t, c) {
		if p.Kind == batch.About {
			list = append(list, part{})
			if err := json.Unmarshal(p.Data, &list[len(list)-1].about); err != nil {
				t.Fatal(err)
			}
		}
		last := &list[len(list)-1]
		if last.about.Stream != p.Stream {
			t.Fatalf("a batch of %s is among those of %s", p.Stream, last.about.Stream)
		}
		switch p.Kind {
		case batch.Data:
			last.data += string(p.Data)
		case batch.End:
			e := end(t, &p)
			last.end = &e
		}
	}
	return list
}

// frames hands over so many frames of 10 kB.
func frames(n int) *source {
	return &source{frame: func(i int) ([]byte, uint64) {
		if i >= n {
			return nil, 0
		}
		b := make([]byte, 10_000)
		b[0] = byte(i)
		return b, 1
	}}
}

// TestGoesOn: a stream that is as large as it may become is followed by another one in the
// same recording, and no frame is missing between them.
func TestGoesOn(t *testing.T) {
	s := frames(50)
	c := config(t, "[stream]\nsize = \"64K\"")
	runs(t, c, s, boot, 20*time.Second)
	list := parts(t, c)
	if len(list) < 5 {
		t.Fatalf("500 kB made %d streams", len(list))
	}
	var all string
	events := uint64(0)
	for i, p := range list {
		all += p.data
		last := i == len(list)-1
		if p.end == nil || !p.end.Complete || p.end.Continued == last || len(p.end.Losses) > 0 {
			t.Fatalf("stream %d ended so: %+v", i, p.end)
		}
		events += p.end.Events
		if want := staging.ReasonSize; !last && p.end.Reason != want {
			t.Errorf("stream %d ended because of %s", i, p.end.Reason)
		}
		if p.about.Continues != (i > 0) || i > 0 && (p.about.Previous != list[i-1].about.Stream || p.about.GapNS != 0 ||
			p.about.Reason != staging.ReasonSize) {
			t.Errorf("stream %d began so: %+v", i, p.about)
		}
	}
	var want strings.Builder
	for i := range 50 {
		b, _ := frames(50).frame(i)
		want.WriteString("head" + string(b))
	}
	if all != want.String() || events != 50 {
		t.Errorf("the streams have %d bytes and %d events, want %d and 50", len(all), events, want.Len())
	}
}

// aging records nothing, until a stream has gone on in another, and a recording has been
// followed by another one.
type aging struct {
	continued bool
	ended     int // recordings
}

func (s *aging) Check(*Record) error { return nil }

func (s *aging) Record(ctx context.Context, _ *Record, _ Level, out Sink) error {
	st := out.(*stream)
	for ctx.Err() == nil {
		st.mu.Lock()
		s.continued = s.continued || st.parts > 0
		st.mu.Unlock()
		if s.continued && s.ended > 0 {
			return nil
		}
		pause(ctx, time.Millisecond)
	}
	s.ended++
	return nil
}

// TestAge: a stream that is as old as it may become goes on in another, also when nothing
// happens; a recording that is, ends.
func TestAge(t *testing.T) {
	c := config(t, "")
	c.Stream.Age, c.Tape.Age = Duration(20*time.Millisecond), Duration(200*time.Millisecond)
	runs(t, c, &aging{}, boot, time.Minute)
	continued, anew := 0, 0
	for _, p := range parts(t, c)[1:] {
		switch {
		case p.about.Reason != staging.ReasonAge:
			t.Errorf("a stream began so: %+v", p.about)
		case p.about.Continues:
			continued++
		default:
			anew++
		}
	}
	if continued == 0 || anew == 0 {
		t.Errorf("%d streams go on from the one before, and %d begin anew", continued, anew)
	}
}

// TestAnew: a recording that is as large as it may become, or has lost something, does not
// go on.
func TestAnew(t *testing.T) {
	c := config(t, "[stream]\nsize = \"64K\"\n[tape]\nsize = \"150K\"")
	n := 0
	s := &source{}
	s.frame = func(int) ([]byte, uint64) {
		if n++; n > 60 {
			return nil, 0
		}
		return make([]byte, 10_000), 1
	}
	runs(t, c, s, boot, time.Minute)
	run, longest, recordings := int64(0), int64(0), 0
	for _, p := range parts(t, c) {
		if !p.about.Continues {
			run = 0
			recordings++
		}
		run += int64(len(p.data))
		longest = max(longest, run)
	}
	if recordings < 3 || longest < 150<<10 || longest > 250<<10 {
		t.Errorf("600 kB made %d recordings, the longest of %d bytes", recordings, longest)
	}
}

// counting hands over what a source does that only counts.
type counting struct{ recordings int }

func (s *counting) Check(*Record) error { return nil }

func (s *counting) Record(ctx context.Context, _ *Record, _ Level, out Sink) error {
	s.recordings++
	for range 20 {
		out.Lost("the agent kept counters only", 10)
		if taken, _ := out.Put([]byte("counters"), nil, 0); !taken {
			return errors.New("there is no room for counters")
		}
	}
	return ctx.Err()
}

// TestSparse: what is only counted, because that is the level, does not begin a recording
// anew.
func TestSparse(t *testing.T) {
	c := config(t, "[record]\nverbosity = \"counters\"")
	s := &counting{}
	runs(t, c, s, boot, time.Minute)
	list := parts(t, c)
	if s.recordings != 1 || len(list) != 1 || list[0].end.Lost() != 200 || list[0].end.Complete {
		t.Errorf("%d recordings, and %d streams: %+v", s.recordings, len(list), list[0].end)
	}
}

// TestKilledGoingOn: an agent that is killed while its ledger goes from one stream to the
// next leaves the second to be ended, wherever it was.
func TestKilledGoingOn(t *testing.T) {
	for step := range 4 {
		c, sp, l := spooling(t)
		name := func(serial uint64) string {
			return staging.StreamName{BootID: boot, StartNS: 1000, Serial: serial}.String()
		}
		l.Started(1000)
		l.Begin(name(1))
		st := &stream{spool: sp, ledger: l, name: name(1), losses: map[string]uint64{}, size: 1 << 30}
		if err := st.begin(&staging.About{}); err != nil {
			t.Fatal(err)
		}
		st.Put([]byte("a"), nil, 7)
		if !st.flush() {
			t.Fatal("no room")
		}
		last := batch.Batch{Kind: batch.End, Stream: name(1), Number: 3, Before: 7, Data: []byte(`{"continued":true}`)}
		first := batch.Batch{Kind: batch.About, Stream: name(2), Number: 1, Data: []byte("{}")}
		steps := []func(){func() { l.Spooled(3, 7, 0) }, l.End, func() { l.Begin(name(2)) }}
		if err := sp.PutAll([][]byte{last.Append(nil), first.Append(nil)}, func() {
			for _, f := range steps[:step] {
				f()
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := sp.Close(); err != nil { // and the ledger is left as it is
			t.Fatal(err)
		}
		runs(t, c, frames(0), boot, 10*time.Second)
		list := spooled(t, c)
		e := end(t, &list[4])
		var about staging.About
		if err := json.Unmarshal(list[5].Data, &about); err != nil {
			t.Fatal(err)
		}
		if list[4].Stream != name(2) || list[4].Number != 2 || e.Reason != staging.ReasonKilled || e.Events != 0 ||
			e.Lost() != 0 || e.Complete || about.Previous != name(2) {
			t.Errorf("after step %d the second stream ended so: %+v, %+v; the next began so: %+v",
				step, list[4], e, about)
		}
	}
}
