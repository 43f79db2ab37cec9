// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
)

// maxClosed is how many finished streams of a host are remembered by name. What comes
// for older ones is a repetition.
const maxClosed = 32

// Losses the collector declares itself.
const (
	LossGap      = "did not reach the collector"
	LossLate     = "came after the stream was closed"
	LossDeclared = "declared by the agent, which did not say why"
	LossOther    = "other reasons"
)

// maxReasons bounds how many reasons are kept of a host, and maxReason their length.
const (
	maxReasons = 32
	maxReason  = 80
)

// closed is a stream that is finished.
type closed struct {
	Stream string      `json:"stream"`
	Known  uint64      `json:"known"` // events that are stored, or counted as lost here
	Lost   uint64      `json:"lost"`  // events that the agent declared lost
	End    staging.End `json:"end"`
}

// record is what is kept of a host on the disk: DATA/hosts/HOST.json.
type record struct {
	Version    int               `json:"version"`
	Host       string            `json:"host"`
	FirstNS    int64             `json:"first_ns"` // contact, by the collector's clock
	LastNS     int64             `json:"last_ns"`
	Streams    uint64            `json:"streams"` // finished
	Events     uint64            `json:"events"`  // in these
	Bytes      int64             `json:"bytes"`
	Losses     map[string]uint64 `json:"losses"`
	Duplicates uint64            `json:"duplicates"` // batches
	Reordered  uint64            `json:"reordered"`
	Damaged    uint64            `json:"damaged"`
	Foreign    uint64            `json:"foreign"` // of another protocol
	SkewNS     int64             `json:"skew_ns"` // the host's clock ahead of ours
	Report     batch.Report      `json:"report"`
	ReportNS   int64             `json:"report_ns"` // when it came
	Closed     []closed          `json:"closed"`
}

// host is what the collector knows of one.
type host struct {
	record
	open  map[string]*open
	dirty bool // the file is out of date
	due   bool // and has something that is nowhere else: it is written with the next commit
	now   rate
	alarm bool // it was told that the host is silent
	hello batch.Hello
}

// rate is of the last seconds.
type rate struct {
	atNS          int64
	events, bytes float64 // up to atNS
	PerSecond     struct{ Events, Bytes float64 }
}

// hostParts is how many of the last parts of a host file's name are below the data.
const hostParts = 2

func hostFile(data, name string) string { return filepath.Join(data, "hosts", name+".json") }

func newHost(name string, nowNS int64) *host {
	return &host{
		record: record{Version: 1, Host: name, FirstNS: nowNS, LastNS: nowNS, Losses: map[string]uint64{}},
		open:   map[string]*open{}, dirty: true,
	}
}

// find returns a finished stream, nil if it is not known as one.
func (h *host) find(stream string) *closed {
	for i := range h.Closed {
		if h.Closed[i].Stream == stream {
			return &h.Closed[i]
		}
	}
	return nil
}

// forgotten reports whether a stream is older than all that are remembered.
func (h *host) forgotten(n staging.StreamName) bool {
	if len(h.Closed) < maxClosed {
		return false
	}
	oldest, err := staging.ParseStream(h.Closed[0].Stream)
	return err == nil && n.Less(oldest)
}

// close counts a stream among the finished ones.
func (h *host) close(o *open) {
	h.Closed = append(h.Closed, closed{Stream: o.about.Stream, Known: o.events + o.gap, Lost: o.lost, End: *o.end})
	if n := len(h.Closed) - maxClosed; n > 0 {
		h.Closed = slices.Delete(h.Closed, 0, n)
	}
	h.Streams++
	h.Events += o.end.Events
	h.Bytes += o.end.Bytes
	for _, l := range o.end.Losses {
		h.lose(l.Reason, l.Events)
	}
	h.dirty = true
}

func (h *host) lose(reason string, events uint64) {
	if events == 0 {
		return
	}
	if _, known := h.Losses[reason]; !known && len(h.Losses) >= maxReasons {
		reason = LossOther
	}
	h.Losses[reason] += events
	h.dirty = true
}

// finish makes the end of a stream, from what its agent said and from what came.
func (o *open) finish(said *staging.End, reason staging.Reason, detail string, nowNS int64) {
	e := &staging.End{Version: staging.Version, Reason: reason, Detail: detail, LastBatch: o.next - 1, Bytes: o.length,
		Events: o.events, EndNS: nowNS}
	declared := uint64(0)
	if said != nil {
		e.Reason, e.Detail, e.Complete = staging.Reason(limit(string(said.Reason))), limit(said.Detail), said.Complete
		e.Continued = said.Continued
		for _, l := range said.Losses[:min(len(said.Losses), maxReasons)] {
			e.Losses = append(e.Losses, staging.Loss{Reason: limit(l.Reason), Events: l.Events})
			declared += l.Events
		}
	}
	if o.lost > declared { // it never came to say why
		e.Losses = append(e.Losses, staging.Loss{Reason: LossDeclared, Events: o.lost - declared})
	}
	if o.gap > 0 {
		e.Losses = append(e.Losses, staging.Loss{Reason: LossGap, Events: o.gap})
		e.Complete = false
	}
	o.end = e
}

func limit(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason], "")
	}
	return s
}

// losses returns those of all streams, finished or not.
func (h *host) losses() map[string]uint64 {
	all := maps.Clone(h.Losses)
	for _, o := range h.open {
		if o.gap > 0 {
			all[LossGap] += o.gap
		}
		if o.lost == 0 {
			continue
		}
		// What the agent last reported says why, as far as it is of this stream.
		all[LossDeclared] += o.lost
	}
	return all
}
