// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
)

// Options are what an agent needs besides its configuration.
type Options struct {
	Version string // such as "iotape-agent 0.2.0"
	Source  Source
	Note    func(line string) // is told what a person should know; not nil
	BootID  string            // "" is the kernel's
	Clock   func() time.Time  // the wall clock; nil is time.Now
	CPU     func() time.Duration
	// StopWait is how long an agent that ends tries to send what is left; 0 is 5 s.
	StopWait time.Duration
}

const (
	flushEvery  = time.Second
	reportEvery = 10 * time.Second
	stopWait    = 5 * time.Second // to send what is left
)

// Agent is one. Its methods may be called from anywhere while Run runs.
type Agent struct {
	o      Options
	spool  *spool.Spool
	ledger *spool.Ledger
	ship   *shipper
	start  int64
	serial atomic.Uint64 // of the latest stream

	mu       sync.Mutex
	config   *Config
	governor *governor
	current  *stream
	cancel   context.CancelCauseFunc // of the recording under way
	produced uint64                  // in earlier streams
	losses   map[string]uint64       // likewise
}

// rotation is why one stream ends and the next begins.
type rotation struct {
	reason staging.Reason
	detail string
}

func (r *rotation) Error() string { return string(r.reason) }

// New opens the spool. Close closes it.
func New(c *Config, o *Options) (*Agent, error) {
	a := &Agent{o: *o, config: c, losses: map[string]uint64{}}
	if a.o.Clock == nil {
		a.o.Clock = time.Now
	}
	if a.o.CPU == nil {
		a.o.CPU = usedCPU
	}
	if a.o.BootID == "" {
		b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return nil, fmt.Errorf("find the boot: %w", err)
		}
		a.o.BootID = strings.TrimSpace(string(b))
	}
	if err := a.o.Source.Check(&c.Record); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	var err error
	if a.spool, err = spool.Open(c.Spool, int64(c.Limits.Spool)); err != nil {
		return nil, err
	}
	if a.ledger, err = spool.OpenLedger(c.Spool); err != nil {
		return nil, errors.Join(err, a.spool.Close())
	}
	// A clock that was set back must not make a stream's name again.
	a.start = max(a.o.Clock().UnixNano(), a.ledger.State().StartedNS+1)
	a.ledger.Started(a.start)
	a.govern(c)
	a.ship = &shipper{spool: a.spool, host: c.Host, note: o.Note, hello: a.hello}
	return a, nil
}

// Close closes the spool, after Run.
func (a *Agent) Close() error { return errors.Join(a.ledger.Close(), a.spool.Close()) }

func (a *Agent) govern(c *Config) {
	level, _ := ParseLevel(c.Record.Verbosity) // checked
	a.governor = newGovernor(c.Limits.CPU, level)
}

func usedCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (a *Agent) hello() *batch.Hello {
	return &batch.Hello{Version: batch.Version, AgentVersion: a.o.Version, BootID: a.o.BootID, AgentStartNS: a.start,
		ClockNS: a.o.Clock().UnixNano()}
}

// Run records and sends until ctx is done, or what is recorded has ended, and then
// ends the stream and sends what is left, for a few seconds.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.ship.connect(a.config); err != nil {
		return err
	}
	// What an earlier agent left is looked at before any of it is sent, and goes.
	left, err := a.recover()
	if err != nil {
		return err
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { a.ship.run(sending) })
	background.Go(func() { a.tick(sending) })
	err = a.record(ctx, left)
	a.drain(cmp.Or(a.o.StopWait, stopWait))
	stop()
	background.Wait()
	return err
}

// drain waits until the spool is empty.
func (a *Agent) drain(most time.Duration) {
	end := time.After(most)
	for {
		changed := a.spool.Changed()
		if first, next := a.spool.Bounds(); first == next {
			return
		}
		select {
		case <-changed:
		case <-end:
			return
		}
	}
}

// record makes stream after stream.
func (a *Agent) record(ctx context.Context, left *recoveredState) error {
	why := left.why
	if left.stream != nil {
		if err := a.persist(ctx, func() error { return left.stream.end(why.reason, why.detail) }); err != nil {
			return err
		}
	}
	about := staging.About{Reason: why.reason, Detail: why.detail, Previous: left.previous, GapNS: -1}
	for ctx.Err() == nil {
		name, why, ended, err := a.recordOnce(ctx, &about)
		if err != nil {
			return err
		}
		if why.reason == staging.ReasonStop || why.reason == staging.ReasonFinished {
			return nil
		}
		about = staging.About{Reason: why.reason, Detail: why.detail, Previous: name, GapNS: ended.UnixNano()}
	}
	return nil
}

// recoveredState is what an earlier agent left.
type recoveredState struct {
	previous string // its last stream, "" if there was none
	why      rotation
	stream   *stream // to be ended, because the agent did not come to do it; or nil
}

// recover finds what an earlier agent left.
func (a *Agent) recover() (*recoveredState, error) {
	st := a.ledger.State()
	r := &recoveredState{previous: st.Stream, why: rotation{staging.ReasonStop, ""}}
	last, err := latest(a.spool)
	if err != nil {
		return nil, err
	}
	if n, err := staging.ParseStream(last.Stream); last.Kind == batch.About && (last.Stream != st.Stream || st.Ended) &&
		err == nil && n.BootID == a.o.BootID {
		// It was killed while it noted that it goes on in another stream. Of that nothing else
		// is there, and nothing is missing in it.
		r.previous, r.why.reason = last.Stream, staging.ReasonKilled
		r.stream = &stream{spool: a.spool, ledger: a.ledger, name: last.Stream, number: 1, losses: map[string]uint64{}}
		return r, nil
	}
	switch {
	case st.Stream == "":
		r.why.reason = staging.ReasonStart
		return r, nil
	case st.Ended:
		return r, nil
	}
	n, err := staging.ParseStream(st.Stream)
	if err != nil {
		r.why.detail = "the ledger was damaged"
		return r, nil
	}
	s, err := resumed(a.spool, a.ledger, &last)
	if errors.Is(err, errEnded) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.why.reason = staging.ReasonKilled
	if n.BootID != a.o.BootID {
		r.why = rotation{staging.ReasonReboot,
			"what the kernel had not written to the spool is lost, too, and not counted"}
	}
	if s.number > 0 { // else it has not begun
		r.stream = s
	}
	return r, nil
}

// persist tries until there is room.
func (a *Agent) persist(ctx context.Context, put func() error) error {
	for {
		changed := a.spool.Changed()
		err := put()
		if !errors.Is(err, spool.ErrFull) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // the next agent does it
		case <-changed:
		case <-time.After(time.Second):
		}
	}
}

// describe says what is the same of all streams that begin now.
func (a *Agent) describe(about *staging.About, c *Config, level Level) {
	name := staging.StreamName{BootID: a.o.BootID, StartNS: a.start, Serial: a.serial.Add(1)}.String()
	about.Version, about.Host, about.Stream, about.BootID = staging.Version, c.Host, name, a.o.BootID
	about.AgentVersion, about.AgentStartNS, about.StartNS = a.o.Version, a.start, a.o.Clock().UnixNano()
	about.ConfigHash, about.Level, about.SkewNS = c.Hash(), level.String(), a.ship.skew()
}

// recordOnce makes one recording: a stream, and those that go on from it. It returns the name of
// the last.
func (a *Agent) recordOnce(ctx context.Context,
	about *staging.About) (name string, why rotation, ended time.Time, err error) {
	recording, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.mu.Lock()
	c, level := a.config, a.governor.level
	s := &stream{
		spool: a.spool, ledger: a.ledger, block: c.Overflow == "block", done: recording.Done(),
		size: int64(c.Stream.Size), whole: int64(c.Tape.Size),
		losses: map[string]uint64{}, rotate: func(r staging.Reason, detail string) { cancel(&rotation{r, detail}) },
		sparse: level == Counters,
		next: func(previous string, why staging.Reason) *staging.About {
			about := &staging.About{Reason: why, Previous: previous, Continues: true}
			a.describe(about, c, level)
			return about
		},
	}
	a.mu.Unlock()
	a.describe(about, c, level)
	s.name = about.Stream
	a.ledger.Begin(s.name)
	if about.GapNS > 0 { // the time of the last one's end, until here
		about.GapNS = max(about.StartNS-about.GapNS, 0)
	}
	if err := a.persist(ctx, func() error { return s.begin(about) }); err != nil {
		return s.name, why, a.o.Clock(), err
	}
	a.mu.Lock()
	a.current, a.cancel = s, cancel
	a.mu.Unlock()
	old := time.AfterFunc(time.Duration(c.Tape.Age), func() { s.rotate(staging.ReasonAge, "") })
	aging, stopAging := context.WithCancel(recording)
	go func() {
		for pause(aging, time.Duration(c.Stream.Age)); aging.Err() == nil; pause(aging, time.Duration(c.Stream.Age)) {
			s.Age()
		}
	}()
	err = a.o.Source.Record(recording, &c.Record, level, s)
	old.Stop()
	stopAging()
	s.close()
	ended = a.o.Clock()
	why = rotation{staging.ReasonFinished, ""}
	var r *rotation
	switch {
	case ctx.Err() != nil:
		why.reason = staging.ReasonStop
	case errors.As(context.Cause(recording), &r):
		why = *r
	case err != nil:
		why.detail = err.Error()
	}
	// It may have to wait for room; not for ever when the agent is to stop.
	ending := ctx
	if ctx.Err() != nil {
		var done context.CancelFunc
		ending, done = context.WithTimeout(context.WithoutCancel(ctx), stopWait)
		defer done()
	}
	endErr := a.persist(ending, func() error { return s.end(why.reason, why.detail) })
	a.mu.Lock()
	a.current, a.cancel = nil, nil
	a.produced += s.produced
	for reason, n := range s.losses {
		a.losses[reason] += n
	}
	a.mu.Unlock()
	return s.name, why, ended, errors.Join(err, endErr)
}

// tick does what is due from time to time, until ctx is done.
func (a *Agent) tick(ctx context.Context) {
	every := time.NewTicker(flushEvery)
	defer every.Stop()
	reported := time.Time{}
	cpu, at := a.o.CPU(), time.Now()
	for {
		select {
		case <-ctx.Done():
			a.ship.report(a.state())
			return
		case <-every.C:
		}
		a.Flush()
		now := time.Now()
		used := a.o.CPU()
		a.mu.Lock()
		before := a.governor.level
		changed := a.governor.used(used-cpu, now.Sub(at))
		after, cancel := a.governor.level, a.cancel
		a.mu.Unlock()
		if changed {
			detail := fmt.Sprintf("from %s to %s", before, after)
			a.o.Note("to keep to its share of the processors the agent goes " + detail)
			if cancel != nil {
				cancel(&rotation{staging.ReasonLevel, detail})
			}
		}
		cpu, at = used, now
		if now.Sub(reported) >= reportEvery {
			reported = now
			a.ship.report(a.state())
		}
	}
}

// Flush sends what waits to become a whole batch.
func (a *Agent) Flush() {
	a.mu.Lock()
	s := a.current
	a.mu.Unlock()
	if s != nil {
		s.Flush()
	}
}

// Reload takes another configuration, and begins a new stream with it. The spool, the
// host's name and what says how to connect stay as they are until the agent is started
// again.
func (a *Agent) Reload(c *Config) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.o.Source.Check(&c.Record); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if c.Host != a.config.Host || c.Spool != a.config.Spool || !slices.Equal(c.Collectors, a.config.Collectors) ||
		c.Key != a.config.Key || c.CA != a.config.CA {
		return errors.New("host, collectors, key, ca and spool only change when the agent is started again")
	}
	if c.Hash() == a.config.Hash() {
		return nil
	}
	a.config = c
	a.govern(c)
	if a.cancel != nil {
		a.cancel(&rotation{staging.ReasonConfig, ""})
	}
	return nil
}

// state is what the agent says of itself.
func (a *Agent) state() *batch.Report {
	a.mu.Lock()
	r := &batch.Report{
		AgentVersion: a.o.Version, BootID: a.o.BootID, AgentStartNS: a.start, ConfigHash: a.config.Hash(),
		Level:   a.governor.level.String(),
		ClockNS: a.o.Clock().UnixNano(), Produced: a.produced, CPUNS: a.o.CPU().Nanoseconds(), RSSBytes: resident(),
	}
	losses := maps.Clone(a.losses)
	s := a.current
	a.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		r.Produced += s.produced
		for reason, n := range s.losses {
			losses[reason] += n
		}
		s.mu.Unlock()
	}
	for _, reason := range slices.Sorted(maps.Keys(losses)) {
		r.Losses = append(r.Losses, staging.Loss{Reason: reason, Events: losses[reason]})
	}
	r.Spooled, r.SpoolMax = a.spool.Bytes()
	return r
}

// resident returns the agent's resident memory in bytes, 0 if it is not known.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
