// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/iotape/iotape/fleet/staging"
)

// Fleet is how all hosts are, at a moment: what `iotape fleet` shows.
type Fleet struct {
	Version    int    `json:"version"` // 1
	TimeNS     int64  `json:"time_ns"`
	UptimeNS   int64  `json:"uptime_ns"` // of the collector
	Storing    bool   `json:"storing"`   // false: the collector cannot write
	Problem    string `json:"problem,omitempty"`
	Hosts      []Host `json:"hosts"`
	Behind     uint64 `json:"behind"` // batches that were delivered and are not durable
	Batches    uint64 `json:"batches"`
	Events     uint64 `json:"events"` // stored since the collector's start
	Bytes      uint64 `json:"bytes"`
	Refusals   `json:"refusals"`
	Stalls     uint64 `json:"stalls"` // commits that failed
	BrokerMsgs uint64 `json:"broker_messages"`
	BrokerUsed uint64 `json:"broker_bytes"`
	BrokerMax  int64  `json:"broker_max_bytes"`
}

// Refusals count what was not taken, since the collector's start.
type Refusals struct {
	Connections uint64 `json:"connections"` // without a valid key or certificate
	Requests    uint64 `json:"requests"`    // for what a key is not for
	Damaged     uint64 `json:"damaged"`     // batches and words that are none
	Forged      uint64 `json:"forged"`      // messages that were not signed by the host they are said to be of
	// Files and streams that could not be read at the start, and were quarantined.
	Aside      uint64 `json:"aside"`
	Duplicates uint64 `json:"duplicate_identities"` // agents with the key of another
	Skewed     uint64 `json:"skewed"`               // hellos of hosts whose clock is off; taken all the same
}

// Host is how one is.
type Host struct {
	Host          string         `json:"host"`
	State         string         `json:"state"` // "recording", "silent", "revoked", or why it was stopped
	LastContactNS int64          `json:"last_contact_ns"`
	AgentVersion  string         `json:"agent_version"`
	AgentStartNS  int64          `json:"agent_start_ns"` // of the agent that last said hello; 0 if none has
	ConfigHash    string         `json:"config_hash"`
	Level         string         `json:"level"`
	SkewNS        int64          `json:"skew_ns"`
	Produced      uint64         `json:"produced"` // events since the agent's start, as it last reported
	Stored        uint64         `json:"stored"`   // events, ever
	StoredBytes   int64          `json:"stored_bytes"`
	EventsRate    float64        `json:"events_per_second"`
	BytesRate     float64        `json:"bytes_per_second"`
	Streams       uint64         `json:"streams"` // finished
	Open          int            `json:"open"`
	Lost          uint64         `json:"lost"` // events, ever
	Losses        []staging.Loss `json:"losses,omitempty"`
	Duplicates    uint64         `json:"duplicates"` // batches that came again
	Reordered     uint64         `json:"reordered"`
	Damaged       uint64         `json:"damaged"`
	Foreign       uint64         `json:"foreign"` // of another protocol
	Spooled       int64          `json:"spooled"`
	SpoolMax      int64          `json:"spool_max"`
	CPUNS         int64          `json:"cpu_ns"` // of the agent
	ResidentBytes int64          `json:"resident_bytes"`
	LastError     string         `json:"last_error,omitempty"`
	// Why a stream of it cannot be written, and waits in the broker.
	Problem        string `json:"problem,omitempty"`
	FirstContactNS int64  `json:"first_contact_ns"`
}

// Fleet returns how the fleet is. Without Run it is nil.
func (c *Collector) Fleet() (f *Fleet) {
	c.do(func() { f = c.fleet() })
	return f
}

func (c *Collector) fleet() *Fleet {
	c.syncPeers()
	now := c.o.Clock().UnixNano()
	f := &Fleet{
		Version: 1, TimeNS: now, UptimeNS: time.Since(c.started).Nanoseconds(), Storing: c.stuck == nil,
		Behind:  c.last - min(c.last, c.position.Seq),
		Batches: c.batches, Events: c.events, Bytes: c.bytes, Stalls: c.stalls, BrokerMax: c.o.BrokerBytes,
		Refusals: Refusals{Damaged: c.damaged.Load(), Forged: c.forged.Load(), Aside: c.quarantine},
	}
	f.Refusals.Connections, f.Refusals.Requests = c.refused()
	f.Refusals.Duplicates, f.Refusals.Skewed = c.handshakes.refusals()
	if c.stuck != nil {
		f.Problem = c.stuck.Error()
	}
	if info := c.bucket.CachedInfo(); info != nil {
		f.BrokerMsgs, f.BrokerUsed = info.State.Msgs, info.State.Bytes
	}
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		f.Hosts = append(f.Hosts, c.hosts[name].show(now, c.o.Silent, c.o.Revoked(name)))
	}
	return f
}

func (h *host) show(now int64, silent time.Duration, revoked bool) Host {
	s := Host{
		Host: h.Host, State: "recording", LastContactNS: h.LastNS, FirstContactNS: h.FirstNS,
		AgentStartNS: h.hello.AgentStartNS,
		AgentVersion: cmp.Or(h.Report.AgentVersion, limit(h.hello.AgentVersion)), ConfigHash: h.Report.ConfigHash,
		Level: h.Report.Level, SkewNS: h.SkewNS,
		Produced: h.Report.Produced, Stored: h.Events, StoredBytes: h.Bytes, EventsRate: h.now.PerSecond.Events,
		BytesRate: h.now.PerSecond.Bytes,
		Streams:   h.Streams, Open: len(h.open), Duplicates: h.Duplicates, Reordered: h.Reordered,
		Damaged: h.Damaged, Foreign: h.Foreign,
		Spooled: h.Report.Spooled, SpoolMax: h.Report.SpoolMax, CPUNS: h.Report.CPUNS, ResidentBytes: h.Report.RSSBytes,
		LastError: h.Report.LastError,
	}
	for _, o := range h.open {
		if o.why != nil {
			s.Problem = o.why.Error()
		}
		s.Stored += o.events
		s.StoredBytes += o.length
	}
	switch r := h.stopped(); {
	case revoked:
		s.State = "revoked"
	case r != "":
		s.State = string(r)
	case time.Duration(now-h.LastNS) >= silent:
		s.State = "silent"
	}
	losses := h.losses()
	for _, reason := range slices.Sorted(maps.Keys(losses)) {
		s.Losses = append(s.Losses, staging.Loss{Reason: reason, Events: losses[reason]})
		s.Lost += losses[reason]
	}
	return s
}
