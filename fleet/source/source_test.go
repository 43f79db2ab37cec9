// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// sink keeps a stream, and takes what a test lets it.
type sink struct {
	stream bytes.Buffer
	full   func(events uint64) bool
	events uint64
	handed uint64
	lost   map[string]uint64
}

func (s *sink) Put(header, payload []byte, events uint64) (bool, string) {
	s.handed += events
	if s.full != nil && s.full(events) {
		s.lost[agent.LossSpool] += events
		return false, agent.LossSpool
	}
	s.stream.Write(header)
	s.stream.Write(payload)
	s.events += events
	return true, ""
}

func (s *sink) Lost(reason string, events uint64) { s.lost[reason] += events; s.handed += events }

func (s *sink) Handed() uint64 { return s.handed }

// sealed makes a tape of a stream.
func sealed(t *testing.T, b []byte) *seal.Stats {
	t.Helper()
	tw, err := trace.CreateTape(filepath.Join(t.TempDir(), "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	stats, err := seal.Seal(t.Context(), bytes.NewReader(b), tw, &seal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(stats.Manifest("test")); err != nil {
		t.Fatal(err)
	}
	return stats
}

// record makes events up at a level.
func record(t *testing.T, s *sink, l agent.Level) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	src := &Source{Program: "test", Note: func(string) {}}
	s.lost = map[string]uint64{}
	if err := src.Record(ctx, &agent.Record{Synthetic: "rate=50000,size=10,total=20000"}, l, s); err != nil {
		t.Fatal(err)
	}
	if s.handed != 20000 {
		t.Fatalf("handed over %d events", s.handed)
	}
	return s.handed
}

// TestLossesAreInTheStream: what the agent did not take is in the tape as a loss, with
// its reason and number, and the rest as events.
func TestLossesAreInTheStream(t *testing.T) {
	frames := 0
	s := &sink{full: func(events uint64) bool {
		if events == 0 {
			return false
		}
		frames++
		return frames%3 == 0
	}}
	made := record(t, s, agent.Content)
	lost := s.lost[agent.LossSpool]
	if s.events+lost != made || lost == 0 || s.events == 0 {
		t.Fatalf("of %d events %d were taken, and %d not", made, s.events, lost)
	}
	st := sealed(t, s.stream.Bytes())
	if st.Calls != s.events || st.Lost != lost || st.Damage != nil || len(st.Losses) != 1 ||
		st.Losses[0].Reason != trace.LossReason(trace.LossSpool) {
		t.Errorf("the tape has %d calls, %d lost %v, %v; taken were %d", st.Calls, st.Lost,
			st.Losses, st.Damage, s.events)
	}
	var numbers []uint64
	for fr := trace.NewFrameReader(bytes.NewReader(s.stream.Bytes())); ; {
		f, payload, err := fr.Next()
		if err != nil {
			break
		}
		if f.Kind == trace.FrameRecords {
			if err := Numbers(payload, func(n uint64) { numbers = append(numbers, n) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			t.Fatalf("event %d follows event %d", numbers[i], numbers[i-1])
		}
	}
}

// TestCounters: at the lowest level the stream has numbers in place of events, and says
// how many it lacks.
func TestCounters(t *testing.T) {
	s := &sink{}
	made := record(t, s, agent.Counters)
	if s.events != 0 || s.lost[trace.LossReason(trace.LossCounted)] != made {
		t.Errorf("taken %d, lost %v", s.events, s.lost)
	}
	if b := s.stream.String(); !strings.Contains(b, `{"pwrite64":20000}`) {
		t.Errorf("the stream has no counters: %q", b)
	}
	st := sealed(t, s.stream.Bytes())
	if st.Calls != 0 || st.Lost != made || st.Losses[0].Reason != trace.LossReason(trace.LossCounted) || st.End == nil {
		t.Errorf("the tape has %d calls, and %v", st.Calls, st.Losses)
	}
}

// TestProbe: a configuration is tried as the agent would record it, and what the machine lacks is named.
func TestProbe(t *testing.T) {
	testenv.NeedBPF(t)
	s := &Source{MemoryBytes: 32 << 20}
	for _, test := range []struct {
		name, without string // what the kernel is to be without
		record        agent.Record
		want          string // part of the error, "" for none
	}{
		{"all", "", agent.Record{All: true}, ""},
		{"a function is missing", "bpf_ringbuf_reserve_dynptr", agent.Record{All: true}, "bpf_ringbuf_reserve_dynptr"},
		{"events are made up", "bpf_ringbuf_reserve_dynptr", agent.Record{Synthetic: "10/s"}, ""},
		{"the group is missing", "", agent.Record{Cgroup: "/no/such/group"}, "cgroup: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("IOTAPE_TEST_WITHOUT", test.without)
			got := ""
			if err := s.Probe(&test.record); err != nil {
				got = err.Error()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("Probe: %q, want an error with %q", got, test.want)
			}
		})
	}
}

// TestNotItself: what would record the agent is refused before it starts.
func TestNotItself(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	src := &Source{Program: "test"}
	for _, r := range []agent.Record{{PIDs: []int{1, os.Getpid()}}, {Command: []string{exe}}} {
		if err := src.Check(&r); err == nil || !strings.Contains(err.Error(), "its own recording") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for text, want := range map[string]string{"rate=0": "rate", "size=1G": "size", "colour=red": "none of",
		"rate=NaN": "rate", "total=-1": "total"} {
		if err := src.Check(&agent.Record{Synthetic: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("synthetic %s: %v", text, err)
		}
	}
	if err := src.Check(&agent.Record{All: true, Content: "some"}); err == nil {
		t.Error("content some is taken")
	}
}

// TestHangup: the signal that makes an agent read its configuration again does not end what
// it records.
func TestHangup(t *testing.T) {
	testenv.NeedRoot(t)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	// One that is not the recorder's own child, which would be left out.
	out, err := exec.Command("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
	defer end()
	src := &Source{Program: "test", Note: func(string) {}}
	begun := make(chan struct{})
	var once sync.Once
	s := &sink{lost: map[string]uint64{}, full: func(events uint64) bool {
		if events > 0 {
			once.Do(func() { close(begun) })
		}
		return false
	}}
	recorded := make(chan error, 1)
	go func() {
		recorded <- src.Record(t.Context(), &agent.Record{PIDs: []int{pid}}, agent.Content, s)
	}()
	select {
	case <-begun:
	case err := <-recorded:
		t.Fatalf("nothing is recorded: %v", err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-hangup
	select {
	case err := <-recorded:
		t.Fatalf("the recording has ended while the program runs: %v", err)
	case <-time.After(time.Second):
	}
	end()
	if err := <-recorded; err != nil {
		t.Error(err)
	}
}
