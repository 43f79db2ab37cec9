// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/fleet/staging"
)

const (
	maxHeld  = 4096    // batches of a stream that came before their turn
	chunkMax = 4 << 20 // bytes of a stream that are taken out of the broker again at a time
)

// message is what the broker delivers.
type message struct {
	host    string
	header  nats.Header
	data    []byte
	seq     uint64 // in the broker's stream
	genuine bool
}

// deliver takes a message. It counts wrong messages; they are no errors.
func (c *Collector) deliver(m *message) {
	c.last = m.seq
	c.batches++
	if !m.genuine {
		return
	}
	name := m.host
	h := c.host(name)
	now := c.o.Clock().UnixNano()
	h.LastNS, h.dirty = now, true
	c.handshakes.heard(name, now)
	p, err := batch.Decode(m.data)
	if err != nil {
		c.refuse(h, err)
		return
	}
	n, err := staging.ParseStream(p.Stream)
	if err != nil {
		c.refuse(h, err)
		return
	}
	if done := h.find(p.Stream); done != nil {
		late(h, done, &p)
		return
	}
	if h.forgotten(n) {
		h.Duplicates++
		return
	}
	o := h.open[p.Stream]
	if o == nil {
		o = &open{
			dir: staging.Dir(c.o.Data, name, p.Stream), held: map[uint64]uint64{}, progress: progress{next: 1},
			about: staging.About{Version: staging.Version, Host: name, Stream: p.Stream, BootID: n.BootID,
				AgentStartNS: n.StartNS, GapNS: -1},
		}
		h.open[p.Stream] = o
	}
	o.lastNS = now
	if f, err := strconv.ParseUint(m.header.Get(batch.FloorHeader), 10, 64); err == nil && f < p.Number {
		o.floor = max(o.floor, f)
	}
	switch {
	case p.Number < o.next && !o.unknown:
		h.Duplicates++
	case o.why != nil: // it cannot be written
		o.held[p.Number] = m.seq
	case p.Number == o.next:
		c.take(h, o, &p, m.seq)
		c.resume(h, o)
	default:
		if _, twice := o.held[p.Number]; twice {
			h.Duplicates++
			return
		}
		h.Reordered++
		o.held[p.Number] = m.seq
		if len(o.held) > maxHeld { // no agent sends so far ahead
			o.floor = max(o.floor, slices.Min(slices.Collect(maps.Keys(o.held)))-1)
		}
		c.resume(h, o)
	}
}

// genuine reports whether a message was signed by the host that its subject names, if the
// host has a key. A message that was not says nothing about the host.
func (c *Collector) genuine(host, subject string, header nats.Header, data []byte) bool {
	if staging.CheckHost(host) != nil {
		c.damaged.Add(1)
		return false
	}
	publics := c.o.Keys(host)
	if len(publics) == 0 {
		return true
	}
	signature, err := base64.RawStdEncoding.DecodeString(header.Get(batch.SignatureHeader))
	digest := batch.Digest(subject, header.Get(batch.FloorHeader), data)
	signed := func(public string) bool { return key.Verify(public, digest, signature) }
	if err == nil && slices.ContainsFunc(publics, signed) {
		return true
	}
	c.forged.Add(1)
	c.say("a message to %s was not signed with the key of %s, and was dropped", subject, host)
	return false
}

// refuse counts a message that is not a batch.
func (c *Collector) refuse(h *host, err error) {
	if errors.Is(err, batch.ErrVersion) {
		h.Foreign++
	} else {
		h.Damaged++
	}
	c.damaged.Add(1)
	c.say("%s: a batch was refused: %v", h.Host, err)
}

// late counts the events of a batch of a finished stream, and of those that came before it.
func late(h *host, done *closed, p *batch.Batch) {
	until := p.Before + p.Events
	if until <= done.Known && p.Lost <= done.Lost {
		h.Duplicates++
		return
	}
	if until > done.Known {
		h.lose(LossLate, until-done.Known)
		done.Known = until
	}
	if p.Lost > done.Lost {
		h.lose(LossDeclared, p.Lost-done.Lost)
		done.Lost = p.Lost
	}
	h.dirty, h.due = true, true // the broker forgets the batch
}

// take appends the next batch of a stream.
func (c *Collector) take(h *host, o *open, p *batch.Batch, seq uint64) {
	o.taken = append(o.taken, taken{p.Number, seq})
	o.next++
	if missing := p.Before - min(p.Before, o.events+o.gap); missing > 0 {
		o.gap += missing
	}
	o.lost = max(o.lost, p.Lost)
	switch p.Kind {
	case batch.About:
		var a staging.About
		if err := json.Unmarshal(p.Data, &a); err != nil {
			c.refuse(h, fmt.Errorf("the beginning of %s: %w", p.Stream, err))
			return
		}
		// Its description is used if the stream's name and the subject agree.
		a.Version, a.Host, a.Stream, a.BootID, a.AgentStartNS = staging.Version, o.about.Host, o.about.Stream,
			o.about.BootID, o.about.AgentStartNS
		a.AgentVersion, a.ConfigHash, a.Level = limit(a.AgentVersion), limit(a.ConfigHash), limit(a.Level)
		a.Reason, a.Detail, a.Previous = staging.Reason(limit(string(a.Reason))), limit(a.Detail), previous(a.Previous)
		if !o.made {
			o.about = a
		}
	case batch.End:
		var e staging.End
		if err := json.Unmarshal(p.Data, &e); err != nil {
			c.refuse(h, fmt.Errorf("the end of %s: %w", p.Stream, err))
			return
		}
		o.finish(&e, "", "", c.o.Clock().UnixNano())
		// The commit does not have this batch: after a kill before the end is written, the
		// batch must be delivered again.
		o.next--
		o.endSeq = seq
	default:
		if o.skip && p.Flags&batch.Within != 0 {
			o.gap += p.Events // the rest of a frame whose beginning is missing
			return
		}
		o.skip, o.within = false, p.Flags&batch.More != 0
		o.chunk = append(o.chunk, p.Data...)
		o.length += int64(len(p.Data))
		o.events += p.Events
		c.buffered += len(p.Data)
		h.now.events += float64(p.Events)
		h.now.bytes += float64(len(p.Data))
		c.events += p.Events
		c.bytes += uint64(len(p.Data))
	}
}

// previous returns a stream's name, "" if it is not valid.
func previous(s string) string {
	if _, err := staging.ParseStream(s); err != nil {
		return ""
	}
	return s
}

// resume takes the batches that had to wait, and finds those that will not come any more.
func (c *Collector) resume(h *host, o *open) {
	for len(o.held) > 0 && o.end == nil && len(o.chunk) <= chunkMax {
		seq, ok := o.held[o.next]
		if !ok {
			first := slices.Min(slices.Collect(maps.Keys(o.held)))
			if o.floor < first-1 {
				return // the missing may still come
			}
			if o.within {
				// A frame is incomplete: the bytes after it could not be read.
				o.finish(nil, staging.ReasonLoss, "a batch within a frame did not arrive", c.o.Clock().UnixNano())
				return
			}
			c.say("%s: batches %d to %d of stream %s were lost between the broker and here", h.Host,
				o.next, first-1, o.about.Stream)
			if o.next == 1 {
				o.about.Reason, o.about.Detail = staging.ReasonLoss, "its beginning did not arrive"
			}
			o.next, o.skip = first, true
			continue
		}
		p, err := c.fetch(seq)
		if err != nil {
			c.say("%s: batch %d cannot be read from the broker: %v", h.Host, o.next, err)
			if !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, batch.ErrDamaged) {
				return // it is tried again with the next batch
			}
			delete(o.held, o.next)
			o.floor = max(o.floor, o.next)
			continue
		}
		delete(o.held, o.next)
		c.take(h, o, p, seq)
		if o.why != nil {
			return // one batch shows whether the stream can be written
		}
	}
}

// fetch reads a batch that came before its turn from the broker again.
func (c *Collector) fetch(seq uint64) (*batch.Batch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m, err := c.bucket.GetMsg(ctx, seq)
	if err != nil {
		return nil, err
	}
	p, err := batch.Decode(m.Data)
	return &p, err
}

// host returns the state of a host, which may be new.
func (c *Collector) host(name string) *host {
	h := c.hosts[name]
	if h == nil {
		h = newHost(name, c.o.Clock().UnixNano())
		c.hosts[name] = h
	}
	return h
}

// reported takes a report of an agent.
func (c *Collector) reported(name string, m *nats.Msg) {
	var r batch.Report
	if len(m.Data) > batch.MaxWords || json.Unmarshal(m.Data, &r) != nil {
		c.damaged.Add(1)
		return
	}
	r.AgentVersion, r.Level, r.LastError, r.ConfigHash = limit(r.AgentVersion), limit(r.Level),
		limit(r.LastError), limit(r.ConfigHash)
	if len(r.Losses) > maxReasons {
		r.Losses = r.Losses[:maxReasons]
	}
	for i := range r.Losses {
		r.Losses[i].Reason = limit(r.Losses[i].Reason)
	}
	c.do(func() {
		h, now := c.host(name), c.o.Clock().UnixNano()
		h.SkewNS = r.SkewNS
		h.Report, h.ReportNS, h.LastNS, h.dirty = r, now, now, true
		c.handshakes.heard(name, now)
	})
}
