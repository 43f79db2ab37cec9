// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Flight is what a flight recorder keeps, and when it writes that out.
type Flight struct {
	Options flight.Options
	OnExit  bool // a dump is made when the command has failed
	OnEnd   bool // and when it has ended
}

const (
	// settleCall is how long after a call that matches a dump is made, so that what
	// happened at the same moment is in it; settleCrash after a crash, unless the
	// recording ends sooner.
	settleCall  = 20 * time.Millisecond
	settleCrash = 250 * time.Millisecond
	// rearm is how long after a dump that a trigger asked for the next may be made,
	// and maxTriggered how many of them there are.
	rearm        = 10 * time.Second
	maxTriggered = 16
)

// flightRun is one flight recording under way.
type flightRun struct {
	p     *Plan
	quiet sealing.Reporter // without progress: the terminal is the command's
	rec   *flight.Recorder
	sig   *Signals

	requests chan dumpRequest
	ended    chan struct{} // closed when the recording is over

	mu        sync.Mutex
	tapes     []string
	calls     uint64 // that the last dump has
	final     bool   // the last dump was made after the recording's end: it has the state of the files
	triggered int
}

// dumpRequest asks for a dump; answer may be nil.
type dumpRequest struct {
	reason string
	cause  *flight.Cause // of an automatic one
	atEnd  bool          // only if no dump has all of it already
	answer chan<- dumpAnswer
}

type dumpAnswer struct {
	tape string
	err  error
}

// recordFlight records into memory.
func recordFlight(p *Plan) (*Result, error) {
	if err := p.CheckFlight(); err != nil {
		return nil, err
	}
	f := &flightRun{p: p, quiet: sealing.Quiet(p.reporter()), sig: p.signals(), requests: make(chan dumpRequest, 4),
		ended: make(chan struct{})}
	defer f.sig.Stop()
	var err error
	p.Flight.Options.Triggered = f.trigger
	if f.rec, err = flight.New(&p.Flight.Options); err != nil {
		return nil, err
	}
	defer f.rec.Close()
	p.Capture.Sizes = true // what was written before the part that is kept shows in nothing else
	if p.Capture.RingBytes == 0 {
		// What waits in the kernel comes on top; less of it makes finer frames, too.
		p.Capture.RingBytes = int(min(max(cmp.Or(p.Flight.Options.Bytes, flight.DefaultBytes)/8, 8<<20), 128<<20))
	}

	var worker sync.WaitGroup
	worker.Go(f.work)
	stop := f.listen()
	res, err := p.AnyBackend(f.recordWith, func() error { return nil })
	close(f.ended)
	stop()
	ctx := f.sig.Sealing() // from here on signals mean us
	if err == nil {
		f.atEnd(res)
	}
	close(f.requests)
	worker.Wait()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, sealing.ErrStopped
	}
	f.sum(res)
	return &Result{Capture: res, Dumps: f.tapes}, nil
}

// recordWith records with one back end.
func (f *flightRun) recordWith(b *Backend) (*capture.Result, error) {
	f.p.Capture.Keep = append(slices.Clip(f.p.Capture.Keep), syscall.SIGUSR1) // see listen
	masking, said := f.p.redacted(f.rec, f.p.note)
	defer said()
	sw, err := trace.NewStreamWriterTo(masking, trace.NewStreamID(), f.p.Head(b))
	if err != nil {
		return nil, err
	}
	done := f.p.takeNotes(sw, new(atomic.Int64))
	res, err := f.p.run(b, sw)
	done()
	if err != nil {
		return nil, err
	}
	end := EndOf(res)
	end.Lost = 0 // the frames say it
	err = sw.Close(end)
	if res.WriteErr == nil {
		res.WriteErr = err
	}
	return res, nil
}

// listen takes requests by signal and by iotape dump, until stop is called.
func (f *flightRun) listen() (stop func()) {
	usr := make(chan os.Signal, 1)
	signal.Notify(usr, syscall.SIGUSR1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range usr {
			f.requests <- dumpRequest{reason: "SIGUSR1"}
		}
	})
	control, err := flight.Listen(f.info, func() (string, error) {
		answer := make(chan dumpAnswer, 1)
		f.requests <- dumpRequest{reason: "iotape dump", answer: answer}
		a := <-answer
		return a.tape, a.err
	})
	if err != nil {
		f.p.note("only SIGUSR1 to process %d makes a dump: %v", os.Getpid(), err)
	}
	return func() {
		if control != nil {
			_ = control.Close()
		}
		signal.Stop(usr)
		close(usr)
		wg.Wait()
	}
}

func (f *flightRun) info() flight.Info {
	held, back := f.rec.Held()
	dir, _ := os.Getwd()
	f.mu.Lock()
	defer f.mu.Unlock()
	return flight.Info{
		PID: os.Getpid(), Name: sealing.TrimTape(filepath.Base(f.p.Tape)), Command: f.p.Capture.Command, Dir: dir,
		Bytes: held, BackNS: back.Nanoseconds(), Dumps: len(f.tapes),
	}
}

// trigger is told by the recorder, which it must not hold up.
func (f *flightRun) trigger(c flight.Cause) {
	select {
	case f.requests <- dumpRequest{reason: c.Reason, cause: &c}:
	default: // dumps are under way that have it, or nearly
		f.rearmLater(c.Crash)
	}
}

func (f *flightRun) rearmLater(crash bool) {
	time.AfterFunc(rearm, func() { f.rec.Arm(crash) })
}

// work makes the dumps, one after the other. It is a goroutine.
func (f *flightRun) work() {
	for q := range f.requests {
		if q.atEnd && len(f.tapes) > 0 && f.calls == f.rec.Calls() && f.final {
			continue
		}
		if q.cause != nil {
			f.settle(q.cause.Crash)
		}
		tape, err := f.dump(q.reason)
		if err != nil {
			f.p.note("no dump (%s): %v", q.reason, err)
		}
		if q.answer != nil {
			q.answer <- dumpAnswer{tape, err}
		}
		if q.cause == nil {
			continue
		}
		if f.triggered++; f.triggered < maxTriggered {
			f.rearmLater(q.cause.Crash)
		} else {
			f.p.note("that was the last of %d dumps that are made by themselves", maxTriggered)
		}
	}
}

func (f *flightRun) settle(crash bool) {
	if !crash {
		time.Sleep(settleCall)
		return
	}
	select {
	case <-f.ended:
	case <-time.After(settleCrash):
	}
}

// dump writes and seals what is in memory, and returns the tape's absolute path.
func (f *flightRun) dump(reason string) (string, error) {
	out, partial, err := f.place()
	if err != nil {
		return "", err
	}
	defer f.p.Owner.Give(partial, out, streamBeside(out))
	job := f.p.job(out)
	d, err := f.write(job.Stream, reason)
	if err != nil {
		os.RemoveAll(partial)
		return "", err
	}
	job.Here, job.Final, job.Index, job.Reporter = true, d.Ended, nil, f.quiet
	done, err := job.Run(f.sig.Context())
	if err != nil {
		return "", kept(err, "what was in memory is kept", partial)
	}
	f.p.note("%s: the last %s, %s events, %s of content; %s (%s)", reason, report.Duration(d.Back.Nanoseconds()),
		report.Count(done.Stats.Events), report.Bytes(uint64(max(done.Stats.Bytes, 0))), out,
		report.Bytes(uint64(done.Size)))
	f.mu.Lock()
	f.tapes, f.calls, f.final = append(f.tapes, out), d.Calls, d.Ended
	f.mu.Unlock()
	return filepath.Abs(out)
}

// place makes the directory of the next dump, with the first number that is free.
func (f *flightRun) place() (out, partial string, err error) {
	for n := 1; ; n++ {
		out = fmt.Sprintf("%s-%d.tape", sealing.TrimTape(f.p.Tape), n)
		if _, err := os.Lstat(out); err == nil {
			continue
		}
		partial = out + sealing.PartialSuffix
		if err := os.Mkdir(partial, 0o777); err == nil || !errors.Is(err, fs.ErrExist) {
			return out, partial, err
		}
	}
}

func (f *flightRun) write(name, reason string) (*flight.Dump, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 256<<10)
	d, err := f.rec.Dump(w, trace.NewStreamID(), reason)
	return d, errors.Join(err, w.Flush(), file.Close())
}

// atEnd asks for a dump if the command's end is a reason for one.
func (f *flightRun) atEnd(res *capture.Result) {
	reason := ""
	switch sig := syscall.Signal(res.Signal); {
	case res.Signal != 0 && !slices.Contains([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}, sig):
		reason = "the command was ended by " + unix.SignalName(sig)
	case f.p.Flight.OnExit && (res.ExitStatus != 0 || res.Signal != 0):
		reason = fmt.Sprintf("the command ended with status %d", res.ExitStatus)
		if res.Signal != 0 {
			reason = "the command was ended by " + unix.SignalName(sig)
		}
	case f.p.Flight.OnEnd:
		reason = "the command ended"
	}
	if reason != "" {
		f.requests <- dumpRequest{reason: reason, atEnd: true}
	}
}

// sum says what came of it.
func (f *flightRun) sum(res *capture.Result) {
	if res.WriteErr != nil {
		f.p.note("the recording is not whole: %v", res.WriteErr)
	}
	kept, back := f.rec.Held()
	text := fmt.Sprintf("%s calls, lost %s", report.Count(res.Events), report.Count(res.Lost))
	if n := len(f.tapes); n > 0 {
		text += fmt.Sprintf("; dumps: %s", strings.Join(f.tapes, " "))
	} else {
		text += fmt.Sprintf("; nothing asked for a dump, so nothing is written (the last %s, %s were kept)",
			report.Duration(back.Nanoseconds()), report.Bytes(uint64(kept)))
	}
	if n := f.rec.Ignored(); n > 0 {
		text += fmt.Sprintf("; %s more triggers within %s of a dump", report.Count(n), rearm)
	}
	f.p.note("%s", text)
}
