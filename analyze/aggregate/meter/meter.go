// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/model/aggregate"
)

// Counting counts until ctx is done or what is counted has ended, and hands each read-out,
// at least one, to each, whose error ends it.
type Counting func(ctx context.Context, by aggregate.By, interval time.Duration,
	each func(*aggregate.IntervalSnapshot) error) error

// Options says what is done with what is counted. The zero value of a field is its
// default.
type Options struct {
	By       aggregate.By  // what rows are told apart by; 0: operations
	Interval time.Duration // between two read-outs; 0: one second

	// Show, if set, is called with each read-out, which is told apart by By, and with the
	// sums since the beginning, which are the Meter's: they are not to be kept or changed.
	Show func(r *aggregate.IntervalSnapshot, sum *aggregate.Table) error

	Rules []*alarm.Rule
	Alarm func(a *alarm.Alarm) // is called with each alarm, if set, before what follows
	// Exec is a command that is run for each alarm, argument by argument, without a shell,
	// with what alarm.Alarm.Env says in its environment. At most maxCommands run at a
	// time; further alarms run none, and are said.
	Exec []string
	// Detail, if set, records in detail what raised an alarm. It is called in a goroutine
	// for each alarm that begins, with a context that ends with Run; at most maxDetails
	// are under way, and one for a process.
	Detail func(ctx context.Context, a *alarm.Alarm) error

	// Listen is the address, HOST:PORT, at which the sums are offered to Prometheus.
	// Without a host it is that of the loopback device. "" is nowhere.
	Listen string
	// Series is how many rows the metrics have at most; the rest is one more row. 0 is
	// DefaultSeries.
	Series int

	// Say, if set, is called with lines for people. It may be called from any goroutine.
	Say func(line string)
}

// DefaultSeries is how many rows metrics have at most if nothing else is said.
const DefaultSeries = 500

const (
	maxCommands = 4
	maxDetails  = 4
	commandTime = time.Minute // that a command of an alarm may take
	maxSaid     = 4096        // bytes of its output that are said
	lastWait    = 30 * time.Second
)

// Meter is counting that goes on. Make one with New.
type Meter struct {
	o       Options
	needs   aggregate.By // all that anybody wants to be told apart
	watches []*alarm.Watch
	sum     *aggregate.Table
	metrics *metrics
	server  *server

	commands chan struct{} // has one for each that runs
	mu       sync.Mutex
	details  map[uint32]bool // processes that are recorded in detail; 0: everything
	work     sync.WaitGroup
}

// New checks the options, and listens if they say so. Close the Meter, whether it ran or not.
func New(o *Options) (*Meter, error) {
	m := &Meter{o: *o, commands: make(chan struct{}, maxCommands), details: map[uint32]bool{}}
	if m.o.By == 0 {
		m.o.By = aggregate.ByOp
	}
	if m.o.Interval == 0 {
		m.o.Interval = time.Second
	}
	if m.o.Series <= 0 {
		m.o.Series = DefaultSeries
	}
	if len(m.o.Exec) > 0 {
		if _, err := exec.LookPath(m.o.Exec[0]); err != nil {
			return nil, fmt.Errorf("the command for alarms: %w", err)
		}
	}
	if (m.o.Detail != nil || len(m.o.Exec) > 0) && len(m.o.Rules) == 0 {
		return nil, errors.New("what is done on an alarm needs an alarm's rule")
	}
	m.needs = m.o.Needs()
	for _, r := range m.o.Rules {
		m.watches = append(m.watches, alarm.NewWatch(r))
	}
	m.sum = aggregate.NewTable(m.o.By, 0)
	if m.o.Listen != "" {
		m.metrics = newMetrics(m.o.By&^aggregate.ByLatency, m.o.Series, m.o.Rules)
		var err error
		if m.server, err = listen(m.o.Listen, m.metrics); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Needs returns all dimensions that calls have to be told apart by: those of the rows, and those of the rules.
func (o *Options) Needs() aggregate.By {
	by := o.By
	for _, r := range o.Rules {
		by |= r.Needs()
	}
	return by
}

// Addr returns where metrics are offered, nil if nowhere.
func (m *Meter) Addr() net.Addr {
	if m.server == nil {
		return nil
	}
	return m.server.addr
}

// Sum returns what was counted in all. It may be called when Run has returned.
func (m *Meter) Sum() *aggregate.Table { return m.sum }

// Close ends listening.
func (m *Meter) Close() error {
	if m.server == nil {
		return nil
	}
	return m.server.close()
}

// Run counts until that ends. Then it waits for commands and recordings that alarms began.
func (m *Meter) Run(ctx context.Context, count Counting) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := count(ctx, m.needs, m.o.Interval, func(r *aggregate.IntervalSnapshot) error { return m.take(ctx, r) })
	cancel()
	done := make(chan struct{})
	go func() {
		m.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(lastWait):
		m.say("what an alarm began has not ended; it is left alone")
	}
	return err
}

func (m *Meter) say(format string, args ...any) {
	if m.o.Say != nil {
		m.o.Say(fmt.Sprintf(format, args...))
	}
}

// take does with a read-out what is to be done.
func (m *Meter) take(ctx context.Context, r *aggregate.IntervalSnapshot) error {
	if r.Lost > 0 || r.Untracked > 0 {
		m.say("%d calls were not counted, and %d threads not followed: the kernel has no memory for them",
			r.Lost, r.Untracked)
	}
	own := *r
	own.Table = r.Project(m.o.By)
	m.sum.Merge(own.Table)
	if m.metrics != nil {
		m.metrics.add(&own)
	}
	for _, w := range m.watches {
		for _, a := range w.Look(r) {
			m.alarm(ctx, &a)
		}
	}
	if m.o.Show != nil {
		return m.o.Show(&own, m.sum)
	}
	return nil
}

// alarm tells of an alarm, and does what is to be done.
func (m *Meter) alarm(ctx context.Context, a *alarm.Alarm) {
	if m.o.Alarm != nil {
		m.o.Alarm(a)
	}
	if a.On && m.metrics != nil {
		m.metrics.alarm(a.Rule)
	}
	if len(m.o.Exec) > 0 {
		m.command(ctx, a)
	}
	if a.On && m.o.Detail != nil {
		m.detail(ctx, a)
	}
}

// command runs the alarms' command. It is left to end when counting does.
func (m *Meter) command(ctx context.Context, a *alarm.Alarm) {
	select {
	case m.commands <- struct{}{}:
	default:
		m.say("the command for alarms is not run: %d of it still run", maxCommands)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTime)
	// A shell executes it: its file may be in a mount that this very process serves, and until
	// a new process has executed something, the thread that made it cannot be stopped, which
	// a garbage collection would wait for, and the server for the collection.
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, m.o.Exec...)...)
	cmd.Env = append(os.Environ(), a.Env()...)
	said := &limited{left: maxSaid}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	m.work.Go(func() {
		defer cancel()
		defer func() { <-m.commands }()
		err := cmd.Run()
		for line := range strings.Lines(said.String()) {
			m.say("%s: %s", m.o.Exec[0], strings.TrimSpace(line))
		}
		if err != nil {
			m.say("the command for alarms, %s: %v", m.o.Exec[0], err)
		}
	})
}

// limited keeps the beginning of what is written.
type limited struct {
	strings.Builder
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.Builder.Write(b[:n])
	return len(b), nil
}

// detail begins a detailed recording.
func (m *Meter) detail(ctx context.Context, a *alarm.Alarm) {
	pid := a.Key.PID // 0 if the rule does not tell processes apart
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.details[pid]:
		return // goes on
	case len(m.details) >= maxDetails:
		m.say("process %d is not recorded: %d others are", pid, maxDetails)
		return
	}
	m.details[pid] = true
	m.work.Go(func() {
		if err := m.o.Detail(ctx, a); err != nil {
			m.say("the recording that an alarm began: %v", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.details, pid)
	})
}
