// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the fleet: / is a page, /fleet.json what it shows, /metrics the same
// for Prometheus, /healthz 200 while what comes is stored.
func (c *Collector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fleet.json", func(w http.ResponseWriter, _ *http.Request) {
		if f := c.Fleet(); f != nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(f)
			return
		}
		http.Error(w, "the collector has stopped", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if f := c.Fleet(); f == nil || !f.Storing {
			http.Error(w, "nothing is stored", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "storing")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		f := c.Fleet()
		if f == nil {
			http.Error(w, "the collector has stopped", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		w.Header().Set("Refresh", "5")
		_ = page.Execute(w, f)
	})
	r := prometheus.NewRegistry()
	r.MustRegister(&metrics{c})
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return mux
}

var page = template.Must(template.New("fleet").Funcs(template.FuncMap{
	"ago": func(f *Fleet, ns int64) string {
		return time.Duration(f.TimeNS - ns).Round(time.Second).String()
	},
	"skew": func(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() },
	"rate": func(v float64) string { return fmt.Sprintf("%.0f", v) },
	"sum":  func(h Host) uint64 { return h.Stored + h.Lost },
	"percent": func(h Host) string {
		if h.Stored+h.Lost == 0 {
			return "–"
		}
		return fmt.Sprintf("%.4f", 100*float64(h.Lost)/float64(h.Stored+h.Lost))
	},
}).Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>iotape fleet</title>
<style>body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse}th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #ccc}
th:first-child,td:first-child,.l{text-align:left}.silent{background:#fdd}.bad{color:#b00}</style>
<h1>Fleet</h1>
<p>{{len .Hosts}} host{{if ne (len .Hosts) 1}}s{{end}}; {{.Events}} events and {{.Bytes}} bytes stored since the collector started.
{{if .Problem}}<b class="bad">{{.Problem}}</b>{{end}}
Refused: {{.Refusals.Connections}} connections, {{.Refusals.Requests}} requests, {{.Refusals.Damaged}} damaged, {{.Refusals.Forged}} forged, {{.Refusals.Aside}} quarantined, {{.Refusals.Duplicates}} duplicate identities.</p>
<table><tr><th>host<th class="l">state<th>heard of<th>events/s<th>bytes/s<th>stored<th>lost<th>% lost<th class="l">why<th class="l">level<th>spooled<th>clock off<th class="l">agent</tr>
{{$f := .}}{{range .Hosts}}<tr{{if eq .State "silent"}} class="silent"{{end}}><td>{{.Host}}<td class="l">{{.State}}<td>{{ago $f .LastContactNS}}<td>{{rate .EventsRate}}<td>{{rate .BytesRate}}
<td>{{.Stored}}<td>{{.Lost}}<td>{{percent .}}<td class="l">{{range .Losses}}{{.Reason}}: {{.Events}}<br>{{end}}{{if .Problem}}<b class="bad">{{.Problem}}</b>{{end}}<td class="l">{{.Level}}<td>{{.Spooled}}<td>{{skew .SkewNS}}<td class="l">{{.AgentVersion}}</tr>
{{end}}</table></html>
`))

// metrics are the fleet for Prometheus.
type metrics struct{ c *Collector }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("iotape_"+name, help, labels, nil)
}

var (
	hostUp       = desc("host_recording", "1 if the host's agent records, 0 if it is silent or was stopped.", "host")
	hostSilent   = desc("host_silent", "1 if nothing was heard of the host's agent for too long.", "host")
	hostContact  = desc("host_last_contact_seconds", "Time of the last contact, since 1970.", "host")
	hostStored   = desc("host_stored_events_total", "Events in staging, ever.", "host")
	hostBytes    = desc("host_stored_bytes_total", "Bytes in staging, ever.", "host")
	hostLost     = desc("host_lost_events_total", "Events declared lost, ever.", "host", "reason")
	hostSpool    = desc("host_spool_bytes", "Bytes that wait on the host.", "host")
	hostSkew     = desc("host_clock_skew_seconds", "How far the host's clock is ahead of the collector's.", "host")
	hostCPU      = desc("host_agent_cpu_seconds_total", "Processor time of the agent.", "host")
	hostResident = desc("host_agent_resident_bytes", "Memory of the agent.", "host")
	hostBatches  = desc("host_batches_refused_total", "Batches that were not appended, or not in their order.", "host", "why")
	batchesTotal = desc("batches_total", "Batches delivered since the collector's start.")
	eventsTotal  = desc("events_total", "Events stored since the collector's start.")
	bytesTotal   = desc("bytes_total", "Bytes stored since the collector's start.")
	refusedTotal = desc("refused_total", "What was not taken.", "what")
	storing      = desc("storing", "1 while what comes is stored.")
	stallsTotal  = desc("commit_failures_total", "Commits that failed.")
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hostUp, hostSilent, hostContact, hostStored, hostBytes, hostLost, hostSpool,
		hostSkew, hostCPU, hostResident,
		hostBatches, batchesTotal, eventsTotal, bytesTotal, refusedTotal, storing, stallsTotal} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	f := m.c.Fleet()
	if f == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	one := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		gauge(hostUp, one(h.State == "recording"), h.Host)
		gauge(hostSilent, one(h.State == "silent"), h.Host)
		gauge(hostContact, float64(h.LastContactNS)/1e9, h.Host)
		count(hostStored, float64(h.Stored), h.Host)
		count(hostBytes, float64(h.StoredBytes), h.Host)
		for _, l := range h.Losses {
			count(hostLost, float64(l.Events), h.Host, l.Reason)
		}
		gauge(hostSpool, float64(h.Spooled), h.Host)
		gauge(hostSkew, float64(h.SkewNS)/1e9, h.Host)
		count(hostCPU, float64(h.CPUNS)/1e9, h.Host)
		gauge(hostResident, float64(h.ResidentBytes), h.Host)
		count(hostBatches, float64(h.Duplicates), h.Host, "duplicate")
		count(hostBatches, float64(h.Reordered), h.Host, "reordered")
		count(hostBatches, float64(h.Damaged), h.Host, "damaged")
		count(hostBatches, float64(h.Foreign), h.Host, "foreign")
	}
	count(batchesTotal, float64(f.Batches))
	count(eventsTotal, float64(f.Events))
	count(bytesTotal, float64(f.Bytes))
	count(refusedTotal, float64(f.Refusals.Connections), "connection")
	count(refusedTotal, float64(f.Refusals.Requests), "request")
	count(refusedTotal, float64(f.Refusals.Damaged), "damaged")
	count(refusedTotal, float64(f.Refusals.Forged), "forged")
	count(refusedTotal, float64(f.Refusals.Aside), "aside")
	count(refusedTotal, float64(f.Refusals.Duplicates), "duplicate identity")
	gauge(storing, one(f.Storing))
	count(stallsTotal, float64(f.Stalls))
}

// maxFleet bounds what Get reads, in bytes: that of 100,000 hosts is smaller.
const maxFleet = 256 << 20

// Get asks the collector at an address, such as http://127.0.0.1:7073. token is what its page
// wants, "" if it wants none.
func Get(ctx context.Context, address, token string) (*Fleet, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/fleet.json", nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusUnauthorized {
			return nil, fmt.Errorf("%s wants a token: --token FILE", address)
		}
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	f := &Fleet{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxFleet)).Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if f.Version != 1 {
		return nil, errors.New("the collector is of another version: use its own iotape fleet")
	}
	return f, nil
}
