// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/staging"
)

const boot = "2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f"

// bench is a broker with a collector that a test feeds.
type bench struct {
	t    *testing.T
	data string
	b    *broker.Broker
	nc   *nats.Conn
	js   jetstream.JetStream

	c    *Collector
	stop func()
	mu   sync.Mutex
	said []string
	now  time.Time // if it is not zero, the collector's clock
	sent uint64    // the broker's number of the last published message
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := &bench{t: t, data: t.TempDir()}
	var err error
	if s.b, err = broker.Start(&broker.Options{Data: s.data, Listen: "127.0.0.1:0", Sync: time.Minute,
		Note: s.note}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.b.Close)
	if s.nc, err = s.b.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.nc.Close)
	if s.js, err = jetstream.New(s.nc); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *bench) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, line)
}

func (s *bench) heard(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.said, "\n"), text)
}

func (s *bench) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.IsZero() {
		return time.Now()
	}
	return s.now
}

func (s *bench) setClock(at time.Time) {
	s.mu.Lock()
	s.now = at
	s.mu.Unlock()
}

// run starts the collector; it stops with the test, or by stop.
func (s *bench) run(change func(*Options)) {
	s.t.Helper()
	o := &Options{Data: s.data, MinFree: 1 << 20, Commit: 20 * time.Millisecond, Note: s.note, Clock: s.clock}
	if change != nil {
		change(o)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var err error
	if s.c, err = New(ctx, s.nc, o, s.b.Refused); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx, s.nc) }()
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				s.t.Errorf("the collector: %v", err)
			}
		})
	}
	s.t.Cleanup(s.stop)
	if s.c.Fleet() == nil { // it answers when it listens
		s.t.Fatal("the collector does not run")
	}
}

// publish sends bytes as a host's batch.
func (s *bench) publish(host string, b []byte, floor uint64) {
	s.t.Helper()
	m := nats.NewMsg(batch.Batches + host)
	m.Data = b
	if floor > 0 {
		m.Header.Set(batch.FloorHeader, strconv.FormatUint(floor, 10))
	}
	ack, err := s.js.PublishMsg(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.sent = ack.Sequence
}

// waitDurable waits until the collector has made everything durable that was published.
// That it is not behind does not say so: more may be on its way from the broker.
func (s *bench) waitDurable() {
	s.t.Helper()
	s.wait("storing all that was published", func() bool {
		var seq uint64
		s.c.do(func() { seq = s.c.position.Seq })
		return seq >= s.sent
	})
}

// wait waits until a condition holds.
func (s *bench) wait(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("%s did not happen; the collector said:\n%s", what, strings.Join(s.said, "\n"))
}

// sequence makes a whole stream: its batches, and the bytes that are to be stored. Each
// batch of data has ten events.
func sequence(serial uint64, batches int) (name string, all []batch.Batch, want []byte) {
	name = staging.StreamName{BootID: boot, StartNS: 1000, Serial: serial}.String()
	about, _ := json.Marshal(&staging.About{Version: 1, Host: "somebody-else", Stream: name,
		Reason: staging.ReasonStart, AgentVersion: "test"})
	all = append(all, batch.Batch{Kind: batch.About, Stream: name, Number: 1, Data: about})
	before := uint64(0)
	for i := range batches {
		data := bytes.Repeat([]byte(fmt.Sprintf("<%d.%d>", serial, i)), 50)
		all = append(all, batch.Batch{Kind: batch.Data, Stream: name, Number: uint64(i + 2),
			Before: before, Events: 10, Data: data})
		before += 10
		want = append(want, data...)
	}
	end, _ := json.Marshal(&staging.End{Version: 1, Reason: staging.ReasonStop, LastBatch: uint64(batches + 2),
		Events: before, Complete: true})
	all = append(all, batch.Batch{Kind: batch.End, Stream: name, Number: uint64(batches + 2),
		Before: before, Data: end})
	return name, all, want
}

// ended returns the end of a stream, nil if it has none.
func (s *bench) ended(host, stream string) *staging.End {
	st, err := staging.Open(staging.Dir(s.data, host, stream))
	if err != nil {
		return nil
	}
	return st.End
}

func (s *bench) stored(host, stream string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(staging.Dir(s.data, host, stream), staging.StreamFile))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *bench) host(name string) Host {
	s.t.Helper()
	for _, h := range s.c.Fleet().Hosts {
		if h.Host == name {
			return h
		}
	}
	s.t.Fatalf("the collector does not know %s", name)
	return Host{}
}

// TestEachOnce: batches that come twice, in any order, with the collector stopped and
// started in between, make the same stream.
func TestEachOnce(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	var sent []batch.Batch
	want := map[string][]byte{}
	for serial := uint64(1); serial <= 3; serial++ {
		name, all, bytes := sequence(serial, 30)
		want[name] = bytes
		sent = append(append(sent, all...), all[rand.IntN(len(all)):]...)
	}
	rand.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	for i, p := range sent {
		s.publish("db7", p.Append(nil), 0)
		if i%25 == 24 {
			s.stop()
			s.run(nil)
		}
	}
	for name, bytes := range want {
		s.wait("the end of "+name, func() bool { return s.ended("db7", name) != nil })
		e := s.ended("db7", name)
		if e.Events != 300 || !e.Complete || len(e.Losses) > 0 || e.Reason != staging.ReasonStop ||
			e.Bytes != int64(len(bytes)) {
			t.Errorf("%s ended so: %+v", name, e)
		}
		if string(s.stored("db7", name)) != string(bytes) {
			t.Errorf("%s is not what was sent", name)
		}
		if st, err := staging.Open(staging.Dir(s.data, "db7", name)); err != nil || st.About.Host != "db7" {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}
	s.wait("purging", func() bool {
		info, err := s.c.bucket.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	})
	if h := s.host("db7"); h.Stored != 900 || h.Lost != 0 || h.Streams != 3 || h.Duplicates == 0 || h.Reordered == 0 {
		t.Errorf("the host is shown as %+v", h)
	}
	// What the archive has taken away does not come back.
	for name := range want {
		if err := os.RemoveAll(staging.Dir(s.data, "db7", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range sent {
		s.publish("db7", p.Append(nil), 0)
	}
	s.waitDurable()
	if h := s.host("db7"); h.Duplicates <= uint64(len(sent)) {
		t.Errorf("of %d batches that came again, the host shows %d", len(sent), h.Duplicates)
	}
	if left, err := staging.List(s.data); err != nil || len(left) > 0 {
		t.Errorf("streams came back: %v, %v", left, err)
	}
}

// TestHole: batches that the broker had and lost are a number in the stream's end, and
// what follows them begins with a whole frame.
func TestHole(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	name, all, _ := sequence(1, 9)
	all[5].Flags |= batch.Within // the rest of a frame that began in all[4]
	for i, p := range all {
		if i == 3 || i == 4 {
			continue
		}
		s.publish("db7", p.Append(nil), p.Number-1)
	}
	s.wait("the end", func() bool { return s.ended("db7", name) != nil })
	e := s.ended("db7", name)
	if e.Complete || e.Events != 60 || e.Lost() != 30 || e.Losses[0].Reason != LossGap {
		t.Errorf("it ended so: %+v", e)
	}
	if b := string(s.stored("db7", name)); strings.Contains(b, "<1.2>") || strings.Contains(b, "<1.4>") ||
		!strings.Contains(b, "<1.5>") || !strings.Contains(b, "<1.1>") {
		t.Errorf("stored are %.60s", b)
	}

	// A frame whose rest is missing ends the stream: nothing after it could be read.
	name, all, _ = sequence(2, 6)
	all[3].Flags |= batch.More
	for i, p := range all {
		if i != 4 {
			s.publish("db7", p.Append(nil), p.Number-1)
		}
	}
	s.wait("the end", func() bool { return s.ended("db7", name) != nil })
	s.waitDurable()
	if e := s.ended("db7", name); e.Reason != staging.ReasonLoss || e.Complete {
		t.Errorf("it ended so: %+v", e)
	}
	if h := s.host("db7"); h.Stored+h.Lost != 90+60 || h.Stored != 60+30 {
		t.Errorf("stored %d, lost %d", h.Stored, h.Lost)
	}
}

// TestBadBatches: what is no batch, or of a stream that is none, or claims another host,
// is counted and does no harm.
func TestBadBatches(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	name, all, want := sequence(1, 3)
	newer := all[0].Append(nil)
	newer[4]++
	bad := all[1]
	bad.Stream = "../../etc/passwd"
	for _, b := range [][]byte{[]byte("garbage"), {}, newer, all[1].Append(nil)[:60], bad.Append(nil)} {
		s.publish("db7", b, 0)
	}
	for _, p := range all {
		s.publish("db7", p.Append(nil), 0)
	}
	// A thief with a key of its own can use the stream's name, under its own host.
	thief := all[1]
	thief.Data = []byte("forged")
	s.publish("thief", thief.Append(nil), 0)
	s.wait("the end", func() bool { return s.ended("db7", name) != nil })
	if string(s.stored("db7", name)) != string(want) {
		t.Error("the stream is not what its agent sent")
	}
	if h := s.host("db7"); h.Damaged != 4 || h.Foreign != 1 || h.Stored != 30 {
		t.Errorf("the host is shown as %+v", h)
	}
	if !s.heard("db7: a batch was refused") {
		t.Error("the collector did not say that it refused batches")
	}
}

// TestHello: who is refused, and told why.
func TestHello(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	ask := func(host string, h *batch.Hello) *batch.Answer {
		t.Helper()
		b, _ := json.Marshal(h)
		m, err := s.nc.Request(batch.Hellos+host, b, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		a := &batch.Answer{}
		if err := json.Unmarshal(m.Data, a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	now := time.Now().UnixNano()
	good := batch.Hello{Version: batch.Version, AgentVersion: "a", BootID: boot, AgentStartNS: 5, ClockNS: now}
	if a := ask("db7", &good); a.Refused != "" {
		t.Errorf("a good agent is refused: %s", a.Refused)
	}
	newer := good
	newer.Version++
	if a := ask("db8", &newer); !strings.Contains(a.Refused, "upgrade the older one") {
		t.Errorf("a newer agent: %+v", a)
	}
	twin := good
	twin.BootID = strings.Replace(boot, "2f", "3f", 1)
	if a := ask("db7", &twin); !strings.Contains(a.Refused, "another machine") {
		t.Errorf("a second machine with the same key: %+v", a)
	}
	again := good
	again.AgentStartNS++
	if a := ask("db7", &again); a.Refused != "" {
		t.Errorf("an agent that was started again is refused: %s", a.Refused)
	}
	wrong := good
	wrong.ClockNS -= 7200e9
	if a := ask("db9", &wrong); a.Refused != "" || !s.heard("db9: its clock is 2h0m0s off") {
		t.Errorf("a wrong clock: %+v", a)
	}
	if f := s.c.Fleet(); f.Refusals.Duplicates != 1 || f.Refusals.Skewed != 1 || f.Hosts[1].Foreign != 1 {
		t.Errorf("counted are %+v", f.Refusals)
	}
}

// TestHelloMeanwhile: an agent is let in while the collector commits, however long that takes.
func TestHelloMeanwhile(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	begun, resume, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		s.c.do(func() { close(begun); <-resume }) // in place of a commit
		close(over)
	}()
	<-begun
	b, err := json.Marshal(&batch.Hello{Version: batch.Version, AgentVersion: "a", BootID: boot, AgentStartNS: 5,
		ClockNS: time.Now().UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.nc.Request(batch.Hellos+"db7", b, time.Minute)
	close(resume)
	<-over
	var a batch.Answer
	if err != nil || json.Unmarshal(m.Data, &a) != nil || a.Refused != "" || a.Version != batch.Version {
		t.Fatalf("the answer is %+v, %v", a, err)
	}
	if h := s.host("db7"); h.AgentStartNS != 5 || h.LastContactNS == 0 {
		t.Errorf("of the agent that was let in the fleet says %+v", h)
	}
}

// TestRevoked: nothing is expected of a host whose key was taken away: no alarm, and its streams end at once.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	start := time.Now()
	s.setClock(start)
	var revoked atomic.Bool
	s.run(func(o *Options) {
		o.Silent, o.Abandon = time.Minute, time.Hour
		o.Revoked = func(string) bool { return revoked.Load() }
		o.Alarm = func(host string, _ time.Duration) { t.Errorf("there is an alarm for %s", host) }
	})
	name, all, _ := sequence(1, 5)
	for _, p := range all[:4] {
		s.publish("db7", p.Append(nil), 0)
	}
	s.wait("storing", func() bool { return s.c.Fleet().Events == 30 })
	revoked.Store(true)
	if h := s.host("db7"); h.State != "revoked" {
		t.Errorf("its state is %s, want revoked", h.State)
	}
	s.setClock(start.Add(2 * time.Minute))
	s.wait("the end of its stream", func() bool { return s.ended("db7", name) != nil })
	if e := s.ended("db7", name); e.Reason != staging.ReasonSilent || e.Complete || e.Events != 30 {
		t.Errorf("it ended so: %+v", e)
	}
}

// TestSilent: a host that is not heard is told of; its streams end; what comes after all
// is counted as lost, once.
func TestSilent(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	alarms := make(chan string, 9)
	start := time.Now()
	s.setClock(start)
	s.run(func(o *Options) {
		o.Silent, o.Abandon = time.Minute, time.Hour
		o.Alarm = func(host string, d time.Duration) { alarms <- host }
	})
	name, all, _ := sequence(1, 5)
	for _, p := range all[:4] {
		s.publish("db7", p.Append(nil), 0)
	}
	s.wait("storing", func() bool { return s.c.Fleet().Events == 30 })
	s.setClock(start.Add(2 * time.Minute))
	if host := <-alarms; host != "db7" {
		t.Errorf("the alarm is for %s", host)
	}
	if h := s.host("db7"); h.State != "silent" {
		t.Errorf("its state is %s", h.State)
	}
	s.setClock(start.Add(2 * time.Hour))
	s.wait("giving up", func() bool { return s.ended("db7", name) != nil })
	if e := s.ended("db7", name); e.Reason != staging.ReasonSilent || e.Complete || e.Events != 30 {
		t.Errorf("it ended so: %+v", e)
	}
	for range 2 {
		for _, p := range all[3:] {
			s.publish("db7", p.Append(nil), 0)
		}
	}
	s.waitDurable()
	if h := s.host("db7"); h.Stored != 30 || h.Lost != 20 {
		t.Errorf("stored %d, lost %d", h.Stored, h.Lost)
	}
	// The broker has forgotten the late ones: a collector that is killed now must not.
	if b, err := os.ReadFile(hostFile(s.data, "db7")); err != nil ||
		!strings.Contains(string(b), `"`+LossLate+`": 20`) {
		t.Errorf("the host's file says %s, %v", b, err)
	}
	if len(alarms) > 0 {
		t.Error("the alarm rang twice")
	}
}

// TestPage: what is shown is shown everywhere, and a hostile agent cannot write into it.
func TestPage(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	report, _ := json.Marshal(&batch.Report{AgentVersion: "<script>alert(1)</script>",
		Losses: []staging.Loss{{Reason: `a"b`, Events: 7}}})
	if err := s.nc.Publish(batch.Reports+"db7", report); err != nil {
		t.Fatal(err)
	}
	s.wait("the report", func() bool { return len(s.c.Fleet().Hosts) == 1 })
	srv := httptest.NewServer(s.c.Handler())
	defer srv.Close()
	for path, want := range map[string]string{
		"/": "&lt;script&gt;alert(1)", "/fleet.json": `"host":"db7"`, "/metrics": `iotape_host_recording{host="db7"} 1`, "/healthz": "storing",
	} {
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(b.String(), want) || path == "/" &&
			strings.Contains(b.String(), "<script>") {
			t.Errorf("%s: %s, %v:\n%.600s", path, resp.Status, err, b.String())
		}
	}
	if f, err := Get(t.Context(), srv.URL, ""); err != nil || f.Hosts[0].AgentVersion != "<script>alert(1)</script>" {
		t.Errorf("asked: %+v, %v", f, err)
	}
}

// TestCutAnywhere: whatever of the last commits is on the disk after a power failure, the
// stream is as it was at one of them.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	o := &open{dir: dir, made: true, held: map[uint64]uint64{}}
	states := map[progress]bool{{next: 2}: true}
	for i := range 4 {
		o.next, o.length, o.events = uint64(i+3), o.length+int64(i*7+1), o.events+3
		o.chunk = bytes.Repeat([]byte{byte('a' + i)}, i*7+1)
		if err := o.commit(nil); err != nil {
			t.Fatal(err)
		}
		states[o.progress] = true
	}
	stream, err := os.ReadFile(filepath.Join(dir, staging.StreamFile))
	if err != nil {
		t.Fatal(err)
	}
	commits, err := os.ReadFile(filepath.Join(dir, staging.CommitsFile))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(stream) + 1 {
		for _, torn := range []int{len(commits), len(commits) - 1, len(commits) - commitBytes - 9, 0} {
			again := t.TempDir()
			part := bytes.Clone(stream)
			clear(part[cut:]) // a length that is there before its bytes
			for name, b := range map[string][]byte{staging.StreamFile: part, staging.CommitsFile: commits[:torn]} {
				if err := os.WriteFile(filepath.Join(again, name), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := recoverStream(again)
			if err != nil || !states[p] || p.length > int64(cut) {
				t.Fatalf("cut at %d and %d: %+v, %v", cut, torn, p, err)
			}
			if b, err := os.ReadFile(filepath.Join(again, staging.StreamFile)); err != nil ||
				!bytes.Equal(b, stream[:p.length]) {
				t.Fatalf("cut at %d and %d: %d bytes, %v", cut, torn, len(b), err)
			}
		}
	}
}
