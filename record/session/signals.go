// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals collects the signals that are sent to this process while it records and seals.
type Signals struct {
	c       chan os.Signal
	ctx     context.Context
	cancel  context.CancelFunc
	quit    chan struct{}
	sealing chan chan<- struct{} // tells loop that sealing begins; it answers
}

// CatchSignals keeps signals from ending this process, until Stop: SIGINT, SIGQUIT, SIGTERM
// and SIGHUP, unless they are ignored. During the recording package internal/ptracer acts
// on them.
func CatchSignals() *Signals {
	return catchSignals(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
}

// signals catches signals if the plan wants that.
func (p *Plan) signals() *Signals {
	if !p.Signals {
		return catchSignals()
	}
	return CatchSignals()
}

func catchSignals(which ...os.Signal) *Signals {
	s := &Signals{c: make(chan os.Signal, 4), quit: make(chan struct{}), sealing: make(chan chan<- struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var take []os.Signal
	for _, sig := range which {
		if !signal.Ignored(sig) {
			take = append(take, sig)
		}
	}
	if len(take) > 0 {
		signal.Notify(s.c, take...)
	}
	go s.loop()
	return s
}

func (s *Signals) loop() {
	count, active := 0, false // active: signals mean this process
	for {
		select {
		case <-s.quit:
			return
		case begun := <-s.sealing:
			// What ended the recording may be here, too, and must not end the sealing.
			for ; len(s.c) > 0; count++ {
				<-s.c
			}
			active = true
			close(begun)
		case sig := <-s.c:
			// The first Ctrl-C may have been meant for the command, which ended
			// just before.
			if count++; active && (count > 1 || sig != os.Interrupt) {
				s.cancel()
			}
		}
	}
}

// Context returns the context of work that signals do not end before Sealing was called.
func (s *Signals) Context() context.Context { return s.ctx }

// Sealing returns the context of the sealing at the end: the second SIGINT ends it, and any
// SIGTERM or SIGHUP.
func (s *Signals) Sealing() context.Context {
	begun := make(chan struct{})
	select {
	case s.sealing <- begun:
		<-begun
	case <-s.quit:
	}
	return s.ctx
}

// Stop gives the signals their former meaning.
func (s *Signals) Stop() {
	signal.Stop(s.c)
	close(s.quit)
	s.cancel()
}

// SecondSignal returns a context that ends with a signal after the one that ended ctx. The
// caller calls the function in the end.
func SecondSignal(ctx context.Context) (context.Context, func()) {
	second, cancel := context.WithCancel(context.Background())
	ch := make(chan os.Signal, 1)
	go func() {
		select {
		case <-second.Done():
			return
		case <-ctx.Done():
		}
		signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		select {
		case <-second.Done():
		case <-ch:
			cancel()
		}
	}()
	return second, func() { cancel(); signal.Stop(ch) }
}
