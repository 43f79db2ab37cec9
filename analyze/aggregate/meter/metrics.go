// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
)

// metrics offers sums to Prometheus. Rows are admitted as they come until there are as
// many as wanted; from then on what has none of these is in one row, all labels of which
// are otherLabel. So no row ever falls, as counters must not.
type metrics struct {
	mu     sync.Mutex
	sum    *aggregate.Table
	alarms map[string]uint64 // by rule
	lost   [2]uint64

	perRow                                         [5]*prometheus.Desc
	seconds, raised, lostCalls, untracked, rowsFit *prometheus.Desc
}

// otherLabel is the value of all labels of the row for the rest.
const otherLabel = "(other)"

func newMetrics(by aggregate.By, series int, rules []*alarm.Rule) *metrics {
	m := &metrics{sum: aggregate.NewTable(by, series), alarms: map[string]uint64{}}
	for _, r := range rules {
		m.alarms[r.Source] = 0
	}
	labels := labelNames(by)
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("iotape_"+name, help, labels, nil)
	}
	m.perRow = [5]*prometheus.Desc{
		desc("calls_total", "System calls.", labels...),
		desc("failed_calls_total", "System calls that returned an error.", labels...),
		desc("unfinished_calls_total", "System calls that did not return: their thread ended.", labels...),
		desc("read_bytes_total", "Bytes that calls moved to programs.", labels...),
		desc("written_bytes_total", "Bytes that calls moved from programs.", labels...),
	}
	m.seconds = desc("call_duration_seconds", "Time from entry to return.", labels...)
	m.raised = desc("alarms_total", "Alarms raised, by rule.", "rule")
	m.lostCalls = desc("uncounted_calls_total", "System calls that were not counted: the kernel had no memory.")
	m.untracked = desc("untracked_threads_total", "Threads that were not followed: the kernel had no memory.")
	m.rowsFit = desc("rows_full", "1 if new rows are counted as "+otherLabel+".")
	return m
}

// labelNames returns the labels of the dimensions.
func labelNames(by aggregate.By) []string {
	var labels []string
	for _, name := range by.Names() {
		switch name {
		case "process":
			labels = append(labels, "pid", "comm")
		case "user":
			labels = append(labels, "uid")
		default:
			labels = append(labels, name)
		}
	}
	return labels
}

// labelValues returns their values; programs' own texts are made valid UTF-8.
func labelValues(by aggregate.By, k aggregate.Key) []string {
	var values []string
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	for _, name := range labelNames(by) {
		v := otherLabel
		if !k.Other {
			switch name {
			case "pid":
				v = number(k.PID)
			case "comm":
				v = strings.ToValidUTF8(k.Comm, "\uFFFD")
			case "uid":
				v = number(k.UID)
			case "signal":
				v = event.SignalName(int(k.Signal))
			case "op":
				v = k.Op.String()
			case "file":
				v = strings.ToValidUTF8(k.File, "\uFFFD")
			case "dir":
				v = strings.ToValidUTF8(k.Dir, "\uFFFD")
			case "container":
				v = strings.ToValidUTF8(k.Place.Container, "\uFFFD")
			case "cgroup":
				v = strings.ToValidUTF8(k.Place.Cgroup, "\uFFFD")
			case "unit":
				v = strings.ToValidUTF8(k.Place.Unit, "\uFFFD")
			case "pod":
				v = strings.ToValidUTF8(k.Place.Pod, "\uFFFD")
			case "extension":
				v = strings.ToValidUTF8(k.Ext, "\uFFFD")
			}
		}
		values = append(values, v)
	}
	return values
}

func (m *metrics) add(r *aggregate.IntervalSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum.Merge(r.Table)
	m.lost[0] += r.Lost
	m.lost[1] += r.Untracked
}

func (m *metrics) alarm(r *alarm.Rule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alarms[r.Source]++
}

// Describe is prometheus.Collector's.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range m.perRow {
		ch <- d
	}
	for _, d := range []*prometheus.Desc{m.seconds, m.raised, m.lostCalls, m.untracked, m.rowsFit} {
		ch <- d
	}
}

// Collect is prometheus.Collector's.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	full := 0.0
	for k, c := range m.sum.Rows() {
		if k.Other {
			full = 1
		}
		labels := labelValues(m.sum.By, k)
		for i, n := range []uint64{c.Calls, c.Failed, c.Unfinished, c.Read, c.Written} {
			counter(m.perRow[i], n, labels...)
		}
		ch <- prometheus.MustNewConstHistogram(m.seconds, c.Timed(), float64(c.NS)/1e9,
			cumulative(&c.Latency), labels...)
	}
	for rule, n := range m.alarms {
		counter(m.raised, n, strings.ToValidUTF8(rule, "\uFFFD"))
	}
	counter(m.lostCalls, m.lost[0])
	counter(m.untracked, m.lost[1])
	ch <- prometheus.MustNewConstMetric(m.rowsFit, prometheus.GaugeValue, full)
}

// cumulative returns the histogram as Prometheus has it: how many calls took at most so
// many seconds, for powers of four from 256 ns to 17 s. Buckets begin at these, so a call
// of exactly such a time counts as longer: a nanosecond's difference.
func cumulative(h *aggregate.Histogram) map[float64]uint64 {
	const lowest, highest = 8, 34 // powers of two
	buckets := map[float64]uint64{}
	sum, next := uint64(0), lowest
	for i, n := range h {
		low, _ := aggregate.BucketRange(i)
		for next <= highest && low >= 1<<next {
			buckets[float64(uint64(1)<<next)/1e9] = sum
			next += 2
		}
		sum += n
	}
	return buckets
}

// server offers metrics over HTTP.
type server struct {
	addr net.Addr
	http *http.Server
	done chan error
}

// listen begins to offer metrics at an address, on the loopback device if it has no host.
func listen(address string, m *metrics) (*server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		l.Close()
		return nil, fmt.Errorf("describe the metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "iotape top: /metrics is for Prometheus")
	})
	s := &server{addr: l.Addr(), done: make(chan error, 1), http: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
