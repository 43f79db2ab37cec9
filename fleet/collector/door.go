package collector

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/iotape/iotape/fleet/parcel"
)

// door is where hellos are answered: at once, whatever Run does meanwhile. A commit can take
// many seconds where a disk is slow, and agents that are not answered come again, all of them.
type door struct {
	mu            sync.Mutex
	hosts         map[string]*visitor
	twins, skewed uint64
}

// visitor is what the door knows of a host.
type visitor struct {
	hello   parcel.Hello // of the agent that was let in
	lastNS  int64        // when something of the host was last heard
	fresh   bool         // Run does not know of the hello
	foreign uint64       // hellos of another protocol of which Run does not know
}

// heard notes that something came of a host.
func (d *door) heard(host string, now int64) {
	d.mu.Lock()
	if v := d.hosts[host]; v != nil {
		v.lastNS = now
	}
	d.mu.Unlock()
}

func (d *door) refusals() (twins, skewed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.twins, d.skewed
}

// maxSkew is how far a host's clock may be off without a word: a hello may have waited; twinWait is how long a
// key is not taken from a second machine after the first was heard.
const (
	maxSkew  = time.Minute
	twinWait = 45 * time.Second
)

// answer answers a hello.
func (c *Collector) answer(host string, m *nats.Msg) {
	// The asker chooses where the answer goes: to himself, and nowhere else.
	if !strings.HasPrefix(m.Reply, c.inbox(host)) {
		return
	}
	if b, err := json.Marshal(c.greeted(host, m.Data)); err == nil {
		_ = m.Respond(b)
	}
}

// inbox is what the subjects begin with on which a host's agent gets answers.
func (c *Collector) inbox(host string) string {
	if public := c.o.Key(host); public != "" {
		return parcel.Inbox(public) + "."
	}
	return parcel.Inbox("")
}

// greeted decides whether an agent is let in.
func (c *Collector) greeted(host string, b []byte) *parcel.Answer {
	now := c.o.Clock().UnixNano()
	a := &parcel.Answer{Version: parcel.Version, ClockNS: now}
	var hello parcel.Hello
	if err := json.Unmarshal(b, &hello); err != nil || len(b) > parcel.MaxWords {
		a.Refused = "its hello cannot be read"
		c.damaged.Add(1)
		return a
	}
	d := &c.door
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.hosts[host]
	if v == nil {
		v = &visitor{}
		d.hosts[host] = v
	}
	switch {
	case hello.Version != parcel.Version:
		v.foreign++
		a.Refused = fmt.Sprintf("it speaks version %d of the protocol, and the collector version %d: upgrade the older one", hello.Version, parcel.Version)
	case v.hello.AgentStartNS != 0 && v.hello.BootID != hello.BootID && now-v.lastNS < twinWait.Nanoseconds():
		// The same key on two machines: a clone, or a thief.
		d.twins++
		a.Refused = fmt.Sprintf("an agent of another machine, or of an earlier boot, is or was sending as %s less than %s ago", host, twinWait)
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

// visited takes what the door knows to where the rest of the state is.
func (c *Collector) visited() {
	d := &c.door
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
