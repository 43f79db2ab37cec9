// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
)

const boot = "2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f"

// source hands over frames that a test makes.
type source struct {
	frame func(n int) (payload []byte, events uint64) // nil at the end
	stay  bool                                        // until the stream is to end
	taken []bool
}

func (s *source) Check(r *Record) error { return nil }

func (s *source) Record(ctx context.Context, _ *Record, _ Level, out Sink) error {
	for n := 0; ctx.Err() == nil; n++ {
		payload, events := s.frame(n)
		if payload == nil {
			break
		}
		ok, _ := out.Put([]byte("head"), payload, events)
		s.taken = append(s.taken, ok)
	}
	if s.stay {
		<-ctx.Done()
	}
	return nil
}

// spooling returns the configuration, the spool and the ledger of an agent that is not running.
func spooling(t *testing.T) (*Config, *spool.Spool, *spool.Ledger) {
	t.Helper()
	c := config(t, "")
	sp, err := spool.Open(c.Spool, int64(c.Limits.Spool))
	if err != nil {
		t.Fatal(err)
	}
	l, err := spool.OpenLedger(c.Spool)
	if err != nil {
		t.Fatal(err)
	}
	return c, sp, l
}

// config is one for an agent that reaches nobody.
func config(t *testing.T, rest string) *Config {
	t.Helper()
	c, err := ParseConfig([]byte("host = \"db7\"\ncollectors = [\"nats://127.0.0.1:1\"]\nspool = \"" +
		t.TempDir() + "\"\n" + rest))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runs runs an agent, until its source ends or for a time.
func runs(t *testing.T, c *Config, s Source, bootID string, most time.Duration) {
	t.Helper()
	a, err := New(c, &Options{Version: "test", Source: s, Note: func(string) {}, BootID: bootID,
		StopWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// spooled returns the batches in a spool.
func spooled(t *testing.T, c *Config) (all []batch.Batch) {
	t.Helper()
	s, err := spool.Open(c.Spool, int64(c.Limits.Spool))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for first, next := s.Bounds(); first < next; first++ {
		b, _, err := s.Get(first, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := batch.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func end(t *testing.T, p *batch.Batch) (e staging.End) {
	t.Helper()
	if p.Kind != batch.End {
		t.Fatalf("batch %d of %s is of kind %d", p.Number, p.Stream, p.Kind)
	}
	if err := json.Unmarshal(p.Data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestStream: frames of all sizes make a stream whose batches are numbered and counted,
// and only a frame that is larger than a batch is divided.
func TestStream(t *testing.T) {
	sizes := []int{1, 100, batch.MaxData - 4, batch.MaxData, 3*batch.MaxData + 5, 7}
	want := strings.Builder{}
	s := &source{frame: func(n int) ([]byte, uint64) {
		if n == len(sizes) {
			return nil, 0
		}
		b := make([]byte, sizes[n])
		b[0] = byte(n + 1)
		want.WriteString("head" + string(b))
		return b, uint64(n + 1)
	}}
	c := config(t, "")
	runs(t, c, s, boot, 10*time.Second)
	var got strings.Builder
	events, within := uint64(0), false
	all := spooled(t, c)
	for i, p := range all {
		if p.Number != uint64(i+1) || p.Before != events || p.Lost != 0 {
			t.Errorf("batch %d has number %d, %d events before it, and %d lost", i, p.Number, p.Before, p.Lost)
		}
		if begins := p.Flags&batch.Within != 0; p.Kind == batch.Data && begins != within {
			t.Errorf("batch %d begins within a frame: %v", i, begins)
		}
		if p.Kind == batch.Data {
			got.Write(p.Data)
			within = p.Flags&batch.More != 0
		}
		events += p.Events
	}
	if got.String() != want.String() || events != 21 || within {
		t.Errorf("the batches have %d bytes and %d events, want %d and 21", got.Len(), events, want.Len())
	}
	if e := end(t, &all[len(all)-1]); e.Events != 21 || !e.Complete || e.Reason != staging.ReasonFinished ||
		e.LastBatch != uint64(len(all)) {
		t.Errorf("it ended so: %+v", e)
	}
}

// TestFull: a full spool never makes the source wait, what is not taken is counted, and
// the stream's end still finds room.
func TestFull(t *testing.T) {
	s := &source{frame: func(n int) ([]byte, uint64) {
		if n == 200 {
			return nil, 0
		}
		return make([]byte, 100_000), 10
	}}
	c := config(t, "[limits]\nspool = \"8M\"")
	runs(t, c, s, boot, 20*time.Second)
	all := spooled(t, c)
	e := end(t, &all[len(all)-1])
	taken := uint64(0)
	for _, ok := range s.taken {
		if ok {
			taken += 10
		}
	}
	if taken == 0 || taken == 2000 || e.Events != taken || e.Lost() != 2000-taken || e.Complete ||
		e.Losses[0].Reason != LossSpool {
		t.Errorf("of 2000 events %d were taken; the end says %+v", taken, e)
	}
}

// TestBlock: with overflow = "block" the source waits, and nothing is lost while it does.
func TestBlock(t *testing.T) {
	s := &source{frame: func(n int) ([]byte, uint64) { return make([]byte, 100_000), 10 }}
	c := config(t, "overflow = \"block\"\n[limits]\nspool = \"8M\"")
	runs(t, c, s, boot, time.Second)
	all := spooled(t, c)
	if e := end(t, &all[len(all)-1]); e.Reason != staging.ReasonStop || e.Lost() > 10 || e.Events < 500 {
		t.Errorf("it ended so: %+v", e)
	}
}

// TestKilled: of an agent that ended without a word the next one ends the stream, and
// declares what was in memory; after a reboot it says so.
func TestKilled(t *testing.T) {
	for _, next := range []struct {
		boot string
		want staging.Reason
	}{{boot, staging.ReasonKilled}, {strings.Replace(boot, "2f", "3f", 1), staging.ReasonReboot}} {
		c, sp, l := spooling(t)
		name := staging.StreamName{BootID: boot, StartNS: 1 << 62, Serial: 1}.String() // its clock was ahead
		l.Started(1 << 62)
		l.Begin(name)
		st := &stream{spool: sp, ledger: l, name: name, losses: map[string]uint64{}, size: 1 << 30,
			rotate: func(staging.Reason, string) {}}
		if err := st.begin(&staging.About{}); err != nil {
			t.Fatal(err)
		}
		st.Put([]byte("a"), nil, 7)
		st.Flush()
		st.Lost("the ring was full", 5)
		st.Put([]byte("b"), nil, 11)
		if err := sp.Close(); err != nil { // and the ledger is left as it is
			t.Fatal(err)
		}
		s := &source{frame: func(int) ([]byte, uint64) { return nil, 0 }}
		runs(t, c, s, next.boot, 10*time.Second)
		all := spooled(t, c)
		e := end(t, &all[2])
		lost := map[string]uint64{}
		for _, x := range e.Losses {
			lost[x.Reason] = x.Events
		}
		if all[2].Stream != name || e.Reason != next.want || e.Events != 7 || e.Lost() != 16 ||
			lost[LossKilled] != 11 || lost[LossEarlier] != 5 || e.Complete {
			t.Errorf("the killed agent's stream ended so: %+v", e)
		}
		n, err := staging.ParseStream(all[3].Stream)
		var about staging.About
		if err == nil {
			err = json.Unmarshal(all[3].Data, &about)
		}
		if err != nil || n.StartNS != 1<<62+1 || about.Reason != next.want || about.Previous != name {
			t.Errorf("the next one began so: %+v, %v", about, err)
		}
	}
}

// TestReload: a changed configuration begins a stream; one that is wrong changes nothing.
func TestReload(t *testing.T) {
	s := &source{frame: func(int) ([]byte, uint64) { return nil, 0 }, stay: true}
	c := config(t, "")
	a, err := New(c, &Options{Version: "test", Source: s, Note: func(string) {}, BootID: boot,
		StopWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	recording := func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.current == nil {
			return ""
		}
		return a.current.name
	}
	wait := func(not string) string {
		for {
			if name := recording(); name != "" && name != not {
				return name
			}
			time.Sleep(time.Millisecond)
		}
	}
	first := wait("")
	text := "host = \"db7\"\ncollectors = [\"nats://127.0.0.1:1\"]\nspool = \"" + c.Spool +
		"\"\n[stream]\nage = \"2h\"\n"
	next, err := ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	other, err := ParseConfig([]byte(strings.Replace(text, "db7", "db8", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(other); err == nil {
		t.Error("the host's name changed")
	}
	if err := a.Reload(next); err != nil {
		t.Fatal(err)
	}
	wait(first)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	a.Close()
	all := spooled(t, c)
	if e := end(t, &all[1]); e.Reason != staging.ReasonConfig || !e.Complete {
		t.Errorf("the first ended so: %+v", e)
	}
}

// TestConfig: each mistake has one line that says where.
func TestConfig(t *testing.T) {
	const good = "host = \"db7\"\ncollectors = [\"tls://c:4222\"]\n"
	if c, err := ParseConfig([]byte(good)); err != nil || !c.Record.All || c.Limits.Memory != defaultMemory ||
		c.Overflow != "drop" || len(c.Hash()) != 16 {
		t.Errorf("the least configuration: %+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"": "collectors", good + "colour = 1": "line 3: there is no setting colour", good + "[record]\nal = true": "line 4: there is no setting record.al",
		good + "[limits]\nmemory = \"64X\"": "size", good + "[limits]\ncpu = \"3\"": "share", good + "[limits]\nmemory = \"1M\"": "32 MiB",
		good + "[limits]\nspool = \"1K\"": "limits.spool", good + "[stream]\nage = \"-1h\"": "duration", good + "[stream]\nsize = \"1\"": "stream.size",
		good + "[record]\nall = true\ncgroup = \"/x\"": "only one", good + "[record]\nverbosity = \"loud\"": "record.verbosity", good + "overflow = \"wait\"": "overflow",
		"host = \"a/b\"\ncollectors = [\"tls://c:1\"]": "host", "host = \"a\"\ncollectors = [\"http://c:1\"]": "collectors", "host = \"a\"\ncollectors = [\"tls://u:p@c:1\"]": "secret",
		"host = ": "line 1",
	} {
		c, err := ParseConfig([]byte(text))
		if err == nil || c != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("host = \"db7\"\ncollectors = [\"tls://c:4222\"]\n[limits]\ncpu = \"3%\"\nmemory=\"64M\"\n[stream]\n" +
		"age=\"1h\"")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConfig([]byte(s))
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if err == nil && (staging.CheckHost(c.Host) != nil || c.Limits.Memory < minMemory ||
			c.Limits.Spool < spool.MinBytes) {
			t.Errorf("taken: %+v", c)
		}
	})
}

// TestGovernor: levels go down one at a time, and up again only after a time that grows
// when the level could not be kept.
func TestGovernor(t *testing.T) {
	g := newGovernor(0.03, Content)
	spend := func(share float64, d time.Duration) (steps int) {
		for range d / time.Second {
			if g.used(time.Duration(share*float64(time.Second)), time.Second) {
				steps++
			}
		}
		return steps
	}
	if spend(0.1, 4*time.Second) != 0 {
		t.Error("four seconds are too short to change the level")
	}
	for want := Hashes; want <= Counters; want++ {
		for g.level != want {
			if spend(0.1, time.Second); g.level > want {
				t.Fatalf("from below %s to %s", want, g.level)
			}
		}
	}
	if spend(0.1, time.Minute) != 0 || g.level != Counters {
		t.Errorf("below counters there is %s", g.level)
	}
	if spend(0.02, 10*time.Minute) != 0 {
		t.Error("it went up while it used more than half of its share")
	}
	if spend(0.001, time.Minute) != 1 || g.level != Metadata {
		t.Errorf("after a quiet minute it is at %s", g.level)
	}
	spend(0.1, 5*time.Second)
	if spend(0.001, 90*time.Second) != 0 {
		t.Error("a level that could not be kept was tried again as soon as before")
	}
	if spend(0.001, 10*time.Hour); g.level != Content {
		t.Errorf("after quiet hours it is at %s", g.level)
	}
	if g = newGovernor(0, Metadata); spend(9, time.Hour) != 0 || g.level != Metadata {
		t.Error("without a limit the level changed")
	}
}

func TestBackoff(t *testing.T) {
	for n := range 100 {
		d := backoff(n)
		if d < backoffMin/8 || d > backoffMax+backoffMax/8 {
			t.Errorf("the wait before attempt %d is %s", n, d)
		}
		if n == 0 && d > 2*backoffMin {
			t.Errorf("the first wait is %s", d)
		}
	}
}
