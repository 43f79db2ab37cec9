// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
)

// counting hands out tables as read-outs of a second, and calls between after each.
func counting(between func(i int), tables ...*aggregate.Table) Counting {
	return func(ctx context.Context, by aggregate.By, _ time.Duration,
		each func(*aggregate.IntervalSnapshot) error) error {
		for i, t := range tables {
			r := &aggregate.IntervalSnapshot{Table: t.Project(by), At: time.Unix(int64(i)+1, 0), Elapsed: time.Second,
				Last: i == len(tables)-1}
			if err := each(r); err != nil {
				return err
			}
			between(i)
		}
		return ctx.Err()
	}
}

const every = aggregate.ByOp | aggregate.ByUser | aggregate.ByProcess | aggregate.ByExtension | aggregate.ByLatency

// unlinks is a table of a process that unlinks.
func unlinks(pid uint32, n uint64) *aggregate.Table {
	t := aggregate.NewTable(every, 0)
	c := &aggregate.Counts{Calls: n, NS: n * 3000, MaxNS: 3000}
	c.Latency[aggregate.BucketOf(3000)] = n
	t.Add(aggregate.Key{Op: event.OpUnlink, PID: pid, Comm: "rm\xff\n\"", UID: 7, Ext: "o"}, c)
	return t
}

// scrape asks as Prometheus does.
func scrape(t *testing.T, addr net.Addr) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get("http://" + addr.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return families
}

func labels(m *dto.Metric) string {
	var parts []string
	for _, l := range m.GetLabel() {
		parts = append(parts, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(parts, " ")
}

func TestScrape(t *testing.T) {
	rule, err := alarm.ParseRule("unlink > 5/s")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(&Options{By: aggregate.ByOp | aggregate.ByProcess, Listen: ":0", Rules: []*alarm.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if a := m.Addr().(*net.TCPAddr); !a.IP.IsLoopback() {
		t.Errorf("without a host it listens at %s", a)
	}
	before := 0.0
	err = m.Run(t.Context(), counting(func(i int) {
		f := scrape(t, m.Addr())
		calls := f["iotape_calls_total"].GetMetric()
		if len(calls) != 1 || labels(calls[0]) != "comm=rm\uFFFD\n\" op=unlink pid=9" {
			t.Fatalf("calls: %v", calls)
		}
		if v := calls[0].GetCounter().GetValue(); v <= before {
			t.Errorf("read-out %d: %v calls after %v", i, v, before)
		} else {
			before = v
		}
		if v := f["iotape_alarms_total"].GetMetric()[0].GetCounter().GetValue(); v != float64(i) {
			t.Errorf("read-out %d: %v alarms", i, v)
		}
		h := f["iotape_call_duration_seconds"].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != uint64(before) {
			t.Errorf("the histogram has %d calls, not %v", h.GetSampleCount(), before)
		}
		for _, b := range h.GetBucket() { // 3000 ns
			if want := map[bool]uint64{true: uint64(before)}[b.GetUpperBound() > 3e-6]; b.GetCumulativeCount() != want {
				t.Errorf("%d calls took at most %v s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
			}
		}
	}, unlinks(9, 3), unlinks(9, 40)))
	if err != nil || before != 43 {
		t.Errorf("%v, %v calls", err, before)
	}
	if m.Sum().Total().Calls != 43 {
		t.Errorf("in all %+v", m.Sum().Total())
	}
}

// TestSeriesAreBounded has more processes than series: what has no row of its own is in
// one, and nothing is missing or falls.
func TestSeriesAreBounded(t *testing.T) {
	m, err := New(&Options{By: aggregate.ByProcess, Listen: "127.0.0.1:0", Series: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var tables []*aggregate.Table
	for pid := range uint32(30) {
		tables = append(tables, unlinks(pid, 2))
	}
	last := map[string]float64{}
	sum := 0.0
	err = m.Run(t.Context(), counting(func(i int) {
		f := scrape(t, m.Addr())
		sum = 0
		for _, c := range f["iotape_calls_total"].GetMetric() {
			v := c.GetCounter().GetValue()
			sum += v
			if l := labels(c); v < last[l] {
				t.Errorf("%s fell from %v to %v", l, last[l], v)
			} else {
				last[l] = v
			}
		}
		if full := f["iotape_rows_full"].GetMetric()[0].GetGauge().GetValue(); (full == 1) != (i >= 10) {
			t.Errorf("after %d rows full is %v", i+1, full)
		}
	}, tables...))
	if err != nil || len(last) != 11 || sum != 60 || last["comm=(other) pid=(other)"] != 40 {
		t.Errorf("%v: %d series, %v calls: %v", err, len(last), sum, last)
	}
}

func TestAlarmsRunCommandsAndRecordings(t *testing.T) {
	rule, err := alarm.ParseRule("unlink by process > 100/s")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	script := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(script,
		[]byte("#!/bin/sh\necho said; echo \"$1 $IOTAPE_ALARM $IOTAPE_ALARM_PID $IOTAPE_ALARM_VALUE\" >> "+out+"\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var recorded, said []string
	m, err := New(&Options{
		Rules: []*alarm.Rule{rule}, Exec: []string{script, "a b"},
		Detail: func(ctx context.Context, a *alarm.Alarm) error {
			mu.Lock()
			recorded = append(recorded, fmt.Sprint(a.Key.PID))
			mu.Unlock()
			<-ctx.Done() // ends with counting
			return errors.New("cut short")
		},
		Say: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, line)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	hooks := func() []string {
		b, _ := os.ReadFile(out)
		return strings.Fields(strings.ReplaceAll(string(b), " ", "_"))
	}
	quiet := aggregate.NewTable(every, 0)
	wants := []int{1, 2, 3, 4}
	err = m.Run(t.Context(), counting(func(i int) { // one command at a time
		for deadline := time.Now().Add(20 * time.Second); len(hooks()) < wants[i] && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
	}, unlinks(9, 200), quiet, unlinks(9, 300), quiet))
	if err != nil {
		t.Fatal(err)
	}
	if got := hooks(); !slices.Equal(got, []string{"a_b_on_9_200", "a_b_over_9_0", "a_b_on_9_300", "a_b_over_9_0"}) {
		t.Errorf("commands were told %q", got)
	}
	if !slices.Equal(recorded, []string{"9"}) { // the first one went on
		t.Errorf("recorded %q", recorded)
	}
	if !slices.Contains(said, "the recording that an alarm began: cut short") ||
		!slices.Contains(said, script+": said") {
		t.Errorf("said %q", said)
	}
}

func TestWrongOptions(t *testing.T) {
	rule, _ := alarm.ParseRule("unlink > 1/s")
	for name, o := range map[string]Options{
		"no such command":      {Rules: []*alarm.Rule{rule}, Exec: []string{"/no/such/command"}},
		"command without rule": {Exec: []string{"true"}},
		"no port":              {Listen: "127.0.0.1"},
		"no such host":         {Listen: "256.0.0.1:1"},
	} {
		if m, err := New(&o); err == nil {
			m.Close()
			t.Errorf("%s: taken", name)
		}
	}
}

func TestErrorsEndCounting(t *testing.T) {
	enough := errors.New("enough")
	m, err := New(&Options{Show: func(*aggregate.IntervalSnapshot, *aggregate.Table) error { return enough }})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context(), counting(func(int) {}, unlinks(1, 1), unlinks(1, 1))); !errors.Is(err, enough) ||
		m.Sum().Total().Calls != 1 {
		t.Errorf("%v, %d calls", err, m.Sum().Total().Calls)
	}
}
