// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/fleet/spool"
)

const (
	// What is sent and not confirmed waits in the broker's memory, for each of thousands of
	// agents; so it is little. An answer that is late must not make all send again.
	windowItems = 32
	windowBytes = 1 << 20
	ackWait     = 30 * time.Second
	helloWait   = 10 * time.Second

	backoffMin = 100 * time.Millisecond
	backoffMax = time.Minute
)

// backoff returns how long to wait before the nth attempt after a failure, from 0: a
// random time up to a bound that doubles, so that agents do not come back all at once.
func backoff(n int) time.Duration {
	bound := backoffMax
	if n < 10 {
		bound = min(backoffMin<<n, backoffMax)
	}
	return bound/8 + rand.N(bound)
}

// shipper sends what is in the spool.
type shipper struct {
	spool *spool.Spool
	host  string
	hello func() *batch.Hello
	sign  func(digest []byte) ([]byte, error) // nil without a key
	note  func(line string)

	mu     sync.Mutex
	nc     *nats.Conn
	errors uint64
	last   string // error
	noted  map[string]time.Time
	skewNS int64 // of our clock to the collector's
	floor  struct {
		stream string
		number uint64
	}
	welcome bool // a collector has said so
}

// connect begins to connect, which goes on in the background.
func (s *shipper) connect(c *Config) error {
	opts := []nats.Option{
		nats.Name("iotape-agent " + c.Host),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(func(n int) time.Duration { return backoff(n - 1) }),
		nats.ReconnectBufSize(-1), // the spool is the buffer
		nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.failed("send", err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { s.failed("connect", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.failed("connection lost", err)
			}
		}),
	}
	if c.Key != "" {
		pair, public, err := key.Read(c.Key)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		s.sign = pair.Sign
		opts = append(opts, nats.Nkey(public, pair.Sign), nats.CustomInboxPrefix(batch.Inbox(public)))
	}
	if c.CA != "" {
		if _, err := os.ReadFile(c.CA); err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		opts = append(opts, nats.RootCAs(c.CA))
	}
	nc, err := nats.Connect(strings.Join(c.Collectors, ","), opts...)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s.mu.Lock()
	s.nc = nc
	s.mu.Unlock()
	return nil
}

// noteAgain is how long an error that goes on is not said again.
const noteAgain = 10 * time.Minute

// failed counts an error, and says it if it is a new one.
func (s *shipper) failed(what string, err error) {
	text := what + ": " + strings.TrimPrefix(err.Error(), "nats: ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors++
	s.last = text
	if time.Since(s.noted[text]) < noteAgain {
		return
	}
	if len(s.noted) > 100 || s.noted == nil {
		s.noted = map[string]time.Time{}
	}
	s.noted[text] = time.Now()
	s.note(text)
}

// run sends until ctx is done.
func (s *shipper) run(ctx context.Context) {
	defer s.nc.Close()
	js, err := jetstream.New(s.nc, jetstream.WithPublishAsyncMaxPending(2*windowItems),
		jetstream.WithPublishAsyncTimeout(ackWait))
	if err != nil {
		s.failed("send", err)
		return
	}
	for attempt := 0; ctx.Err() == nil; {
		if !s.nc.IsConnected() {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		answered, err := s.sendHello(ctx)
		progress := false
		if err == nil {
			progress, err = s.sendGreeted(ctx, js, answered)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !errors.Is(err, nats.ErrDisconnected) && !errors.Is(err, nats.ErrConnectionReconnecting) {
			s.failed("send", err)
		}
		if progress {
			attempt = 0
		}
		pause(ctx, backoff(attempt))
		attempt++
	}
}

// sendGreeted is send. If the hello had no answer, it is said again meanwhile, until it has one: a broker can be
// there before its collector, which then knows nothing of this agent. What the collector refuses ends the sending.
func (s *shipper) sendGreeted(ctx context.Context, js jetstream.JetStream, answered bool) (progress bool, err error) {
	if answered {
		return s.send(ctx, js)
	}
	sending, end := context.WithCancelCause(ctx)
	var greeting sync.WaitGroup
	greeting.Go(func() {
		for attempt := 0; ; attempt++ {
			pause(sending, backoff(attempt))
			if sending.Err() != nil {
				return
			}
			if answered, err := s.sendHello(sending); answered || err != nil {
				if err != nil && sending.Err() == nil {
					end(err)
				}
				return
			}
		}
	})
	progress, err = s.send(sending, js)
	if sending.Err() != nil && ctx.Err() == nil {
		err = context.Cause(sending)
	}
	end(nil)
	greeting.Wait()
	return progress, err
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// sendHello sends a Hello, and reports whether a collector answered it. One that is away does not matter once one was
// there: the broker keeps what is sent.
func (s *shipper) sendHello(ctx context.Context) (answered bool, err error) {
	b, err := json.Marshal(s.hello())
	if err != nil {
		return false, err
	}
	asking, err := s.message(batch.Hellos, b, "")
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	asked := s.hello().ClockNS
	m, err := s.nc.RequestMsgWithContext(ctx, asking)
	s.mu.Lock()
	welcome := s.welcome
	s.mu.Unlock()
	if err != nil {
		if welcome && s.nc.IsConnected() {
			return false, nil
		}
		return false, fmt.Errorf("no collector answers: %w", err)
	}
	var a batch.Answer
	if err := json.Unmarshal(m.Data, &a); err != nil || len(m.Data) > batch.MaxWords {
		return false, errors.New("the collector's answer is not one")
	}
	if a.Refused != "" {
		return false, fmt.Errorf("the collector refuses this agent: %.300s", a.Refused)
	}
	if a.Version != batch.Version {
		return false, fmt.Errorf("the collector speaks version %d of the protocol, this agent %d: "+
			"upgrade the older one", a.Version, batch.Version)
	}
	s.mu.Lock()
	s.welcome = true
	s.last = ""
	// Half of the time that the answer took is taken for its way.
	now := s.hello().ClockNS
	s.skewNS = asked + (now-asked)/2 - a.ClockNS
	s.mu.Unlock()
	return true, nil
}

// sent is a batch that the broker has not confirmed.
type sent struct {
	item   uint64
	bytes  int
	stream string
	number uint64
	ack    jetstream.PubAckFuture
}

// send sends what is in the spool, in order, until something fails; then all that is
// not confirmed is to be sent again. It says whether anything was confirmed.
func (s *shipper) send(ctx context.Context, js jetstream.JetStream) (progress bool, err error) {
	next, _ := s.spool.Bounds()
	var window []sent
	bytes := 0
	for {
		changed := s.spool.Changed()
		for len(window) < windowItems && bytes < windowBytes {
			buf, ok, err := s.spool.Get(next, nil)
			if err != nil {
				return progress, err
			}
			if !ok {
				break
			}
			w, err := s.publish(js, next, buf)
			if errors.Is(err, batch.ErrDamaged) {
				s.failed("spool", err)
				next++
				continue
			}
			if err != nil {
				return progress, err
			}
			window, bytes, next = append(window, w), bytes+w.bytes, next+1
		}
		var ack <-chan *jetstream.PubAck
		var failed <-chan error
		if len(window) > 0 {
			ack, failed = window[0].ack.Ok(), window[0].ack.Err()
			changed = nil
		}
		select {
		case <-ctx.Done():
			return progress, ctx.Err()
		case <-changed:
		case err := <-failed:
			return progress, err
		case <-ack:
			w := window[0]
			window, bytes, progress = window[1:], bytes-w.bytes, true
			s.mu.Lock()
			s.floor.stream, s.floor.number = w.stream, w.number
			s.mu.Unlock()
			if err := s.spool.Free(w.item); err != nil {
				return progress, err
			}
		}
	}
}

// publish sends one item.
func (s *shipper) publish(js jetstream.JetStream, item uint64, b []byte) (sent, error) {
	p, err := batch.Decode(b)
	if err != nil {
		return sent{}, fmt.Errorf("item %d: %w", item, err)
	}
	floor := ""
	s.mu.Lock()
	if first, _ := s.spool.Bounds(); first == item && s.floor.stream != p.Stream {
		// What is not in the spool was confirmed, to an earlier run of the agent.
		s.floor.stream, s.floor.number = p.Stream, p.Number-1
	}
	if s.floor.stream == p.Stream {
		floor = strconv.FormatUint(s.floor.number, 10)
	}
	s.mu.Unlock()
	// It has no id by which the broker drops repetitions: ids are of all agents, and
	// another could use up ours. The collector knows batches by their numbers.
	m, err := s.message(batch.Batches, b, floor)
	if err != nil {
		return sent{}, err
	}
	ack, err := js.PublishMsgAsync(m)
	if err != nil {
		return sent{}, err
	}
	return sent{item, len(b), p.Stream, p.Number, ack}, nil
}

// report tells the collector how the agent is. Nobody keeps it.
func (s *shipper) report(r *batch.Report) {
	s.mu.Lock()
	nc := s.nc
	r.Errors, r.LastError, r.SkewNS = s.errors, s.last, s.skewNS
	s.mu.Unlock()
	b, err := json.Marshal(r)
	if err != nil || !nc.IsConnected() {
		return
	}
	if m, err := s.message(batch.Reports, b, ""); err == nil {
		_ = nc.PublishMsg(m)
	}
}

// message makes a message to a subject of the host, signed if there is a key.
func (s *shipper) message(subject string, b []byte, floor string) (*nats.Msg, error) {
	m := nats.NewMsg(subject + s.host)
	m.Data = b
	if floor != "" {
		m.Header.Set(batch.FloorHeader, floor)
	}
	if s.sign != nil {
		signature, err := s.sign(batch.Digest(m.Subject, floor, b))
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		m.Header.Set(batch.SignatureHeader, base64.RawStdEncoding.EncodeToString(signature))
	}
	return m, nil
}

func (s *shipper) skew() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skewNS
}
