// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/iotape/iotape/fleet/batch"
)

// handshakes answers hellos at once, whatever Run does meanwhile. A commit can take many
// seconds on a slow disk, and agents that get no answer ask again, all of them.
type handshakes struct {
	mu                          sync.Mutex
	hosts                       map[string]*peer
	duplicateIdentities, skewed uint64
}

// peer is the state of the handshake with a host.
type peer struct {
	hello   batch.Hello // of the agent that was accepted
	lastNS  int64       // when something of the host was last heard
	fresh   bool        // Run does not know of the hello
	foreign uint64      // hellos of another protocol of which Run does not know
}

// heard notes that something came of a host.
func (d *handshakes) heard(host string, now int64) {
	d.mu.Lock()
	if v := d.hosts[host]; v != nil {
		v.lastNS = now
	}
	d.mu.Unlock()
}

func (d *handshakes) refusals() (duplicates, skewed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.duplicateIdentities, d.skewed
}

// maxSkew is how far a host's clock may be off without a word: a hello may have waited; duplicateWait is how long a
// key is refused from a second machine after the first was heard.
const (
	maxSkew       = time.Minute
	duplicateWait = 45 * time.Second
)

// answer answers a hello.
func (c *Collector) answer(host string, m *nats.Msg) {
	// The asker chooses where the answer goes: to himself, and nowhere else.
	if !c.isInbox(host, m.Reply) {
		return
	}
	if b, err := json.Marshal(c.handleHello(host, m.Data)); err == nil {
		_ = m.Respond(b)
	}
}

// isInbox reports whether a subject is one on which a host's agent gets answers.
func (c *Collector) isInbox(host, subject string) bool {
	publics := c.o.Keys(host)
	if len(publics) == 0 {
		return strings.HasPrefix(subject, batch.Inbox(""))
	}
	return slices.ContainsFunc(publics, func(public string) bool {
		return strings.HasPrefix(subject, batch.Inbox(public)+".")
	})
}

// handleHello decides whether an agent is accepted.
func (c *Collector) handleHello(host string, b []byte) *batch.Answer {
	now := c.o.Clock().UnixNano()
	a := &batch.Answer{Version: batch.Version, ClockNS: now}
	var hello batch.Hello
	if err := json.Unmarshal(b, &hello); err != nil || len(b) > batch.MaxWords {
		a.Refused = "its hello cannot be read"
		c.damaged.Add(1)
		return a
	}
	d := &c.handshakes
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.hosts[host]
	if v == nil {
		v = &peer{}
		d.hosts[host] = v
	}
	switch {
	case hello.Version != batch.Version:
		v.foreign++
		a.Refused = fmt.Sprintf(
			"it speaks version %d of the protocol, and the collector version %d: upgrade the older one",
			hello.Version, batch.Version)
	case v.hello.AgentStartNS != 0 && v.hello.BootID != hello.BootID && now-v.lastNS < duplicateWait.Nanoseconds():
		// The same key on two machines: a clone, or a thief.
		d.duplicateIdentities++
		a.Refused = fmt.Sprintf(
			"an agent of another machine, or of an earlier boot, is or was sending as %s less than %s ago",
			host, duplicateWait)
	}
	if a.Refused != "" {
		c.say("%s: refused: %s", host, a.Refused)
		return a
	}
	v.hello, v.lastNS, v.fresh = hello, now, true
	if skew := time.Duration(hello.ClockNS - now).Abs(); skew > maxSkew {
		d.skewed++
		c.say("%s: its clock is %s off", host, skew.Round(time.Second))
	}
	return a
}

// syncPeers copies the state of handshakes to that of the hosts.
func (c *Collector) syncPeers() {
	d := &c.handshakes
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, v := range d.hosts {
		if !v.fresh && v.foreign == 0 {
			continue
		}
		h := c.host(name)
		h.Foreign += v.foreign
		h.dirty = true
		if v.fresh {
			h.hello, h.LastNS = v.hello, v.lastNS
		}
		v.fresh, v.foreign = false, 0
	}
}
