// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
)

// Defaults of Options, in bytes.
const (
	DefaultBrokerBytes = 4 << 30
	DefaultMinFree     = 64 << 20
)

// Options of a collector. Zero values are the defaults.
type Options struct {
	Data     string // directory
	Replicas int    // of the broker's stream; 0 is 1
	// BrokerBytes limits the broker's storage; 0 means DefaultBrokerBytes. When it is full, agents keep
	// their batches.
	BrokerBytes int64
	// MinFree bytes of the disk stay free; 0 means DefaultMinFree.
	MinFree int64
	// A host is reported as silent after Silent without a message, and its streams are ended
	// after Abandon. 0 means 5 min and 24 h.
	Silent, Abandon time.Duration
	// Commit is the time between two commits; 0 means 500 ms.
	Commit time.Duration
	// Keys returns the public keys of a host's agent, none if none is known. Messages of a host
	// with keys must be signed with one of them. Nil means that no host has a key. Revoked reports whether a
	// host's key was taken away: nothing is expected of it. Both are called from several goroutines.
	Keys    func(host string) []string
	Revoked func(host string) bool
	Note    func(line string)                  // prints a message for the administrator; not nil
	Alarm   func(host string, d time.Duration) // is called once for a silent host; may be nil
	Clock   func() time.Time                   // nil is time.Now
	// Steady is a clock that nobody sets. Nil is that of Clock.
	Steady func() time.Duration
}

const (
	bufferMax  = 32 << 20    // of data that is not committed
	saveEvery  = time.Minute // the files of all hosts; data that is nowhere else is written at once
	watchEvery = time.Second
)

// Collector collects. Its other methods answer only while Run runs.
type Collector struct {
	o      Options
	js     jetstream.JetStream
	bucket jetstream.Stream
	disk   *os.File // the data's directory
	calls  chan func()
	over   chan struct{}

	// The fields below belong to Run's goroutine.
	step     clockStep
	hosts    map[string]*host
	position position
	last     uint64 // of the messages that were delivered
	buffered int
	stuck    error // why the last commit failed
	saved    time.Time

	started                        time.Time
	batches, events, bytes, stalls uint64
	quarantine                     uint64 // files and streams that could not be read at the start
	refused                        func() (connections, requests uint64)

	// The fields below may be used from any goroutine.
	handshakes      handshakes
	damaged, forged atomic.Uint64 // forged: not signed by whom they are said to be of
	saying          sync.Mutex
	said            map[string]time.Time
}

// position is the place in the broker's stream up to which everything is in staging.
type position struct {
	CreatedNS int64  `json:"created_ns"` // of the broker's stream: another one has other numbers
	Seq       uint64 `json:"seq"`
}

func positionFile(data string) string { return filepath.Join(data, "position.json") }

// New prepares a collector that gets messages from nc. refused, if it is not nil, says
// what the broker refused.
func New(ctx context.Context, nc *nats.Conn, o *Options,
	refused func() (connections, requests uint64)) (*Collector, error) {
	c := &Collector{o: *o, calls: make(chan func()), over: make(chan struct{}), said: map[string]time.Time{},
		started: time.Now(), refused: refused, handshakes: handshakes{hosts: map[string]*peer{}}}
	c.o.Replicas = cmp.Or(c.o.Replicas, 1)
	c.o.BrokerBytes = cmp.Or(c.o.BrokerBytes, DefaultBrokerBytes)
	c.o.MinFree = cmp.Or(c.o.MinFree, DefaultMinFree)
	c.o.Silent = cmp.Or(c.o.Silent, 5*time.Minute)
	c.o.Abandon = cmp.Or(c.o.Abandon, 24*time.Hour)
	c.o.Commit = cmp.Or(c.o.Commit, 500*time.Millisecond)
	switch {
	case c.o.Clock == nil:
		c.o.Clock, c.o.Steady = time.Now, func() time.Duration { return time.Since(c.started) }
	case c.o.Steady == nil:
		c.o.Steady = func() time.Duration { return time.Duration(c.o.Clock().UnixNano()) }
	}
	if c.o.Revoked == nil {
		c.o.Revoked = func(string) bool { return false }
	}
	if c.o.Keys == nil {
		c.o.Keys = func(string) []string { return nil }
	}
	if c.refused == nil {
		c.refused = func() (uint64, uint64) { return 0, 0 }
	}
	for _, dir := range []string{staging.Root(c.o.Data), filepath.Dir(hostFile(c.o.Data, "x"))} {
		if err := wholefile.MkdirOwn(dir, 1, 0o700); err != nil {
			return nil, err
		}
	}
	err := os.Chmod(c.o.Data, 0o700) // made by an earlier version, perhaps
	if err != nil {
		return nil, err
	}
	if c.disk, err = os.Open(c.o.Data); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(c.disk.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		c.disk.Close()
		return nil, fmt.Errorf("%s is in use by another collector", c.o.Data)
	}
	if err = alone(ctx, nc); err == nil {
		err = c.load()
	}
	if err == nil {
		err = c.attach(ctx, nc)
	}
	if err != nil {
		c.disk.Close()
		return nil, err
	}
	return c, nil
}

// attach finds or makes the broker's stream, and finds the position in it.
func (c *Collector) attach(ctx context.Context, nc *nats.Conn) (err error) {
	if c.js, err = jetstream.New(nc); err != nil {
		return err
	}
	info, err := c.makeBucket(ctx)
	if err != nil {
		return err
	}
	if err := c.loadPosition(); err != nil {
		return err
	}
	if created := info.Created.UnixNano(); c.position.CreatedNS != created || c.position.Seq > info.State.LastSeq {
		if c.position.CreatedNS != 0 {
			c.o.Note("the broker's stream is a new one: what the old one had and the collector had not is lost, and " +
				"the agents' counts will say how much")
		}
		c.position = position{CreatedNS: created}
	}
	c.last = c.position.Seq
	return nil
}

// alone returns an error if another collector reads the broker's stream: each would remove there what the other one
// has not stored yet. One that does not answer is taken for a dead one.
func alone(ctx context.Context, nc *nats.Conn) error {
	asking, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	m, err := nc.RequestWithContext(asking, batch.Collectors, nil)
	if err != nil {
		return ctx.Err()
	}
	return hint.With(fmt.Errorf("the collector %.200q takes what agents send to this broker already", m.Data),
		"stop that one first, or give this one a broker or a NATS account of its own")
}

// noPeers is the server's JSClusterNoPeersErrF: not enough brokers are there yet.
const noPeers = 10005

// makeBucket makes the broker's stream. Brokers of a cluster that have just been started
// do not answer until they have elected a leader, so makeBucket repeats the request until ctx
// is done.
func (c *Collector) makeBucket(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	for tries := 1; ; tries++ {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		c.bucket, err = c.js.CreateOrUpdateStream(once, jetstream.StreamConfig{
			Name: batch.Bucket, Subjects: []string{batch.Batches + ">"}, Retention: jetstream.LimitsPolicy,
			Discard:  jetstream.DiscardNew,
			MaxBytes: c.o.BrokerBytes, MaxMsgSize: batch.MaxBytes + 1024, Storage: jetstream.FileStorage,
			Replicas:   c.o.Replicas,
			Duplicates: 2 * time.Minute, AllowDirect: true,
		})
		if err == nil {
			info, err = c.bucket.Info(once)
		}
		cancel()
		var refused jetstream.JetStreamError
		final := errors.As(err, &refused) && refused.APIError() != nil && refused.APIError().Code < 500 &&
			refused.APIError().ErrorCode != noPeers
		switch {
		case err == nil:
			return info, nil
		case ctx.Err() != nil, final:
			return nil, fmt.Errorf("make the broker's stream: %w", err)
		case tries == 2:
			c.o.Note(fmt.Sprintf("waiting for the broker, which does not make its stream: %v", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Run collects until ctx is done. It returns an error only if it cannot continue.
func (c *Collector) Run(ctx context.Context, nc *nats.Conn) error {
	defer c.disk.Close()
	defer close(c.over)
	for subject, handle := range map[string]func(string, *nats.Msg){batch.Hellos: c.answer, batch.Reports: c.reported} {
		sub, err := nc.Subscribe(subject+">", func(m *nats.Msg) {
			if host := strings.TrimPrefix(m.Subject, subject); c.genuine(host, m.Subject, m.Header, m.Data) {
				handle(host, m)
			}
		})
		if err != nil {
			return err
		}
		defer sub.Unsubscribe() //nolint:errcheck // the connection ends, too
	}
	name, _ := os.Hostname()
	here, err := nc.Subscribe(batch.Collectors, func(m *nats.Msg) { _ = m.Respond([]byte(name + ":" + c.o.Data)) })
	if err != nil {
		return err
	}
	defer here.Unsubscribe() //nolint:errcheck // the connection ends, too
	messages := make(chan *message, 64)
	consuming, stop := context.WithCancel(ctx)
	var consumer sync.WaitGroup
	from := c.position.Seq + 1
	consumer.Go(func() { c.consume(consuming, from, messages) })
	defer consumer.Wait()
	defer stop()
	commit := time.NewTicker(c.o.Commit)
	defer commit.Stop()
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	for {
		ready := messages
		if c.buffered > bufferMax || c.stuck != nil {
			ready = nil
		}
		select {
		case <-ctx.Done():
			c.commit(context.WithoutCancel(ctx), true)
			return nil
		case m := <-ready:
			c.deliver(m)
			if c.buffered > bufferMax/2 {
				c.commit(ctx, false)
			}
		case <-commit.C:
			c.retry()
			c.commit(ctx, false)
		case <-watch.C:
			c.watch()
		case f := <-c.calls:
			f()
		}
	}
}

// do runs f in Run's goroutine. Without Run it does nothing.
func (c *Collector) do(f func()) {
	done := make(chan struct{})
	select {
	case c.calls <- func() { f(); close(done) }:
		<-done
	case <-c.over:
	}
}

// commit makes the received batches durable, and then purges them from the broker. The last
// commit also writes the files of all hosts.
func (c *Collector) commit(ctx context.Context, last bool) {
	if err := c.makeDurable(last); err != nil {
		c.stalls++
		if c.stuck == nil {
			c.o.Note(fmt.Sprintf("nothing can be stored, and the broker keeps what comes: %v", err))
		}
		c.stuck = err
		return
	}
	if c.stuck != nil {
		c.o.Note("storing again")
		c.stuck = nil
	}
	to := c.settled()
	if to <= c.position.Seq {
		return
	}
	next := position{c.position.CreatedNS, to}
	if err := staging.WriteFile(positionFile(c.o.Data), 1, &next); err != nil {
		c.say("the position cannot be stored: %v", err)
		return
	}
	c.position = next
	purging, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.bucket.Purge(purging, jetstream.WithPurgeSequence(to+1)); err != nil && ctx.Err() == nil {
		c.say("the broker does not forget: %v", err)
	}
}

// settled returns the position before which no message is needed any more.
func (c *Collector) settled() uint64 {
	to := c.last
	for _, h := range c.hosts {
		for _, o := range h.open {
			for _, seq := range o.held {
				to = min(to, seq-1)
			}
			if o.end != nil && o.endSeq > 0 { // it could not be written
				to = min(to, o.endSeq-1)
			}
		}
	}
	return to
}

// makeDurable writes streams, hosts and ends, in this order. However many there are, the
// file system is synced two or three times.
func (c *Collector) makeDurable(everything bool) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(c.disk.Fd()), &st); err == nil &&
		int64(st.Bavail)*st.Bsize < c.o.MinFree+int64(c.buffered) {
		return fmt.Errorf("%s has %d MiB left: %w", c.o.Data, int64(st.Bavail)*st.Bsize>>20, syscall.ENOSPC)
	}
	var abouts, hosts, ends staging.Batch
	written, err := c.writeStreams(&abouts)
	if err != nil {
		return err
	}
	if err := c.writeHosts(&hosts, &ends, everything || time.Since(c.saved) >= saveEvery); err != nil {
		return err
	}
	if !written && hosts.Len() == 0 {
		return nil
	}
	if err := c.sync(); err != nil {
		return err
	}
	named := abouts.Len() + hosts.Len()
	if err := errors.Join(abouts.Publish(), hosts.Publish()); err != nil {
		return err
	}
	if named > 0 {
		if err := c.sync(); err != nil {
			return err
		}
	}
	// A host's file lists a finished stream before the stream has its end: the archive may
	// remove the stream as soon as it has an end, and it must not be made again then.
	if ends.Len() > 0 {
		if err := errors.Join(ends.Publish(), c.sync()); err != nil {
			return err
		}
	}
	for _, h := range c.hosts {
		h.due = false
		for name, o := range h.open {
			o.made = o.made || o.committed.next > 0
			if o.end != nil && h.find(name) != nil {
				delete(h.open, name)
			}
		}
	}
	return nil
}

func (c *Collector) sync() error {
	if err := unix.Syncfs(int(c.disk.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", c.o.Data, err)
	}
	return nil
}

// writeStreams appends the received batches.
func (c *Collector) writeStreams(abouts *staging.Batch) (written bool, err error) {
	left := 0
	for _, h := range c.hosts {
		for _, o := range h.open {
			if !o.dirty() {
				continue
			}
			written = true
			if why := o.commit(abouts); why != nil {
				if c.probe() != nil { // the problem is not this stream alone
					err = errors.Join(err, why)
				} else {
					c.wait(h, o, why)
				}
			} else if o.why != nil && o.end == nil {
				c.streamRecovered(h, o)
			}
			left += len(o.chunk)
		}
	}
	c.buffered = left
	return written, err
}

// writeHosts prepares the files of hosts, all that have changed or those with streams
// that end, and these ends.
func (c *Collector) writeHosts(hosts, ends *staging.Batch, everything bool) error {
	if everything {
		c.saved = time.Now()
	}
	for _, h := range c.hosts {
		finished := false
		for name, o := range h.open {
			if o.end == nil {
				continue
			}
			if err := ends.Put(filepath.Join(o.dir, staging.EndFile), staging.StreamParts, o.end); err != nil {
				if c.probe() != nil {
					return err
				}
				c.say("stream %s of %s cannot be ended: %v", name, h.Host, err)
				o.why = err
				continue
			}
			finished = true
			if h.find(name) == nil {
				h.close(o)
				for _, seq := range slices.Sorted(maps.Values(o.held)) { // their turn does not come
					if p, err := c.fetch(seq); err == nil {
						late(h, h.find(name), p)
					}
				}
			}
		}
		if finished || h.due || everything && h.dirty {
			if err := hosts.Put(hostFile(c.o.Data, h.Host), hostParts, &h.record); err != nil {
				return err
			}
			h.dirty = false
		}
	}
	return nil
}

// watch finds silent hosts, and computes rates.
func (c *Collector) watch() {
	c.followClock()
	c.syncPeers()
	now := c.o.Clock().UnixNano()
	for _, h := range c.hosts {
		h.now.tick(now)
		silent, abandon := time.Duration(now-h.LastNS), c.o.Abandon
		revoked := silent >= c.o.Silent && c.o.Revoked(h.Host)
		if revoked {
			abandon = c.o.Silent // it cannot come back
		}
		if silent < c.o.Silent {
			h.alarm = false
		} else if !h.alarm && h.stopped() == "" && !revoked {
			h.alarm = true
			c.o.Note(fmt.Sprintf("%s: nothing was heard of its agent for %s", h.Host, silent.Round(time.Second)))
			if c.o.Alarm != nil {
				c.o.Alarm(h.Host, silent)
			}
		}
		for _, o := range h.open {
			if o.end == nil && o.why == nil && time.Duration(now-o.lastNS) >= abandon &&
				(silent >= abandon || h.newer(o)) {
				o.finish(nil, staging.ReasonSilent, "", now)
			}
		}
	}
}

// newer reports whether the agent was started again since it began a stream.
func (h *host) newer(o *open) bool {
	for _, other := range h.open {
		if other.about.AgentStartNS > o.about.AgentStartNS {
			return true
		}
	}
	return false
}

// stopped returns why no message of a host's agent is expected, "" if one is: its last stream
// ended in order, and no other is open.
func (h *host) stopped() staging.Reason {
	if len(h.open) > 0 || len(h.Closed) == 0 {
		return ""
	}
	switch r := h.Closed[len(h.Closed)-1].End.Reason; r {
	case staging.ReasonStop, staging.ReasonFinished:
		return r
	}
	return ""
}

func (r *rate) tick(now int64) {
	const smooth = 0.8
	if r.atNS == 0 {
		r.atNS = now
		return
	}
	seconds := float64(now-r.atNS) / 1e9
	if seconds <= 0 {
		r.atNS = now
		return
	}
	r.PerSecond.Events = smooth*r.PerSecond.Events + (1-smooth)*r.events/seconds
	r.PerSecond.Bytes = smooth*r.PerSecond.Bytes + (1-smooth)*r.bytes/seconds
	r.events, r.bytes, r.atNS = 0, 0, now
}

// say prints a message for the administrator, each one at most once a minute.
func (c *Collector) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.saying.Lock()
	defer c.saying.Unlock()
	if time.Since(c.said[line]) < time.Minute {
		return
	}
	if len(c.said) > 1000 {
		clear(c.said)
	}
	c.said[line] = time.Now()
	c.o.Note(line)
}
