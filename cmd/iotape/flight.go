package main

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/trace"
)

// flightPlan is what a flight recorder keeps, and when it writes that out.
type flightPlan struct {
	options flight.Options
	onExit  bool // the command failed
	onEnd   bool
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

// newFlightPlan reads --last and --dump-on; nil if neither is given.
func newFlightPlan(last string, dumpOn []string) (*flightPlan, error) {
	if last == "" {
		if len(dumpOn) > 0 {
			return nil, errors.New("--dump-on goes with --last")
		}
		return nil, nil
	}
	p := &flightPlan{}
	for item := range strings.SplitSeq(last, ",") {
		var size sizeFlag
		if d, err := time.ParseDuration(item); err == nil && d > 0 && p.options.Age == 0 {
			p.options.Age = d
		} else if size.Set(item) == nil && size > 0 && p.options.Bytes == 0 {
			p.options.Bytes = int64(size)
		} else {
			return nil, fmt.Errorf("last %q is neither a time such as 30s, nor a size such as 512M, nor both with a comma", last)
		}
	}
	if b := p.options.Bytes; b != 0 && b < flight.MinBytes {
		return nil, fmt.Errorf("last %s: a flight recorder keeps %s or more", last, report.Bytes(flight.MinBytes))
	}
	for _, on := range dumpOn {
		switch on {
		case "exit!=0":
			p.onExit = true
		case "end":
			p.onEnd = true
		default:
			t, err := flight.ParseTrigger(on)
			if err != nil {
				return nil, fmt.Errorf("dump-on %s: %w", on, err)
			}
			p.options.Triggers = append(p.options.Triggers, t)
		}
	}
	return p, nil
}

// flying is one flight recording under way.
type flying struct {
	c     *console
	quiet *console // without progress: the terminal is the command's
	p     *recordPlan
	rec   *flight.Recorder
	sig   *signals

	requests chan dumpRequest
	ended    chan struct{} // closed when the recording is over

	mu        sync.Mutex
	tapes     []string
	calls     uint64 // that the last dump has
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

// fly records into memory.
func fly(c *console, p *recordPlan) error {
	if len(p.snapshots) > 0 {
		return usageError{errors.New("--snapshot is the state before the first event, which --last does not keep")}
	}
	f := &flying{c: c, p: p, sig: catchSignals(), requests: make(chan dumpRequest, 4), ended: make(chan struct{})}
	defer f.sig.stop()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	f.quiet = &console{in: c.in, out: c.out, err: null}
	p.flight.options.Triggered = f.trigger
	if f.rec, err = flight.New(&p.flight.options); err != nil {
		return err
	}
	defer f.rec.Close()
	if p.capture.RingBytes == 0 {
		// What waits in the kernel comes on top; less of it makes finer frames, too.
		p.capture.RingBytes = int(min(max(cmp.Or(p.flight.options.Bytes, flight.DefaultBytes)/8, 8<<20), 128<<20))
	}

	var worker sync.WaitGroup
	worker.Go(f.work)
	stop := f.listen()
	res, err := anyBackend(c, p, f.recordWith, func() error { return nil })
	close(f.ended)
	stop()
	ctx := f.sig.context() // from here on signals mean us
	if err == nil {
		f.atEnd(res)
	}
	close(f.requests)
	worker.Wait()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("sealing was stopped")
	}
	f.sum(res)
	return commandStatus(res)
}

// recordWith records with one back end.
func (f *flying) recordWith(b *backend) (*capture.Result, error) {
	var id [8]byte
	rand.Read(id[:])
	sw, err := trace.NewStreamWriterTo(f.rec, binary.LittleEndian.Uint64(id[:]), f.p.head(b))
	if err != nil {
		return nil, err
	}
	ctx, cancel := f.p.context()
	defer cancel()
	f.p.capture.Note = func(line string) { f.c.say("%s", line) }
	res, err := b.Run(ctx, &f.p.capture, sw)
	if err != nil {
		return nil, err
	}
	clock, wall := capture.Clocks()
	err = sw.Close(&trace.End{Lost: 0, ExitStatus: res.ExitStatus, Signal: res.Signal, ClockNS: clock, WallNS: wall})
	if res.WriteErr == nil {
		res.WriteErr = err
	}
	return res, nil
}

// listen takes requests by signal and by iotape dump, until stop is called.
func (f *flying) listen() (stop func()) {
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
		f.c.say("only SIGUSR1 to process %d makes a dump: %v", os.Getpid(), err)
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

func (f *flying) info() flight.Info {
	held, back := f.rec.Held()
	dir, _ := os.Getwd()
	f.mu.Lock()
	defer f.mu.Unlock()
	return flight.Info{
		PID: os.Getpid(), Name: trimTape(filepath.Base(f.p.out)), Command: f.p.capture.Command, Dir: dir,
		Bytes: held, BackNS: back.Nanoseconds(), Dumps: len(f.tapes),
	}
}

// trigger is told by the recorder, which it must not hold up.
func (f *flying) trigger(c flight.Cause) {
	select {
	case f.requests <- dumpRequest{reason: c.Reason, cause: &c}:
	default: // dumps are under way that have it, or nearly
		f.rearmLater(c.Crash)
	}
}

func (f *flying) rearmLater(crash bool) {
	time.AfterFunc(rearm, func() { f.rec.Arm(crash) })
}

// work makes the dumps, one after the other. It is a goroutine.
func (f *flying) work() {
	for q := range f.requests {
		if q.atEnd && len(f.tapes) > 0 && f.calls == f.rec.Calls() {
			continue
		}
		if q.cause != nil {
			f.settle(q.cause.Crash)
		}
		tape, err := f.dump(q.reason)
		if err != nil {
			f.c.say("no dump (%s): %v", q.reason, err)
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
			f.c.say("that was the last of %d dumps that are made by themselves", maxTriggered)
		}
	}
}

func (f *flying) settle(crash bool) {
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
func (f *flying) dump(reason string) (string, error) {
	out, partial, err := f.place()
	if err != nil {
		return "", err
	}
	defer f.p.owner.give(partial, out, trimTape(out)+".stream")
	stream := filepath.Join(partial, streamName)
	d, err := f.write(stream, reason)
	if err != nil {
		os.RemoveAll(partial)
		return "", err
	}
	s := sealing{stream: stream, work: partial, out: out, final: d.Ended}
	if f.p.keepStream {
		s.streamTo = trimTape(out) + ".stream"
	}
	done, err := s.run(f.sig.ctx, f.quiet)
	if err != nil {
		return "", withHint(err, "what was in memory is kept; to seal it later: iotape seal %s", partial)
	}
	f.c.say("%s: the last %s, %s events, %s of content; %s (%s)", reason, report.Duration(d.Back.Nanoseconds()),
		report.Count(done.stats.Events), report.Bytes(uint64(max(done.stats.Bytes, 0))), out, report.Bytes(uint64(done.size)))
	f.mu.Lock()
	f.tapes, f.calls = append(f.tapes, out), d.Calls
	f.mu.Unlock()
	return filepath.Abs(out)
}

// place makes the directory of the next dump, with the first number that is free.
func (f *flying) place() (out, partial string, err error) {
	for n := 1; ; n++ {
		out = fmt.Sprintf("%s-%d.tape", trimTape(f.p.out), n)
		if _, err := os.Lstat(out); err == nil {
			continue
		}
		partial = out + partialSuffix
		if err := os.Mkdir(partial, 0o777); err == nil || !errors.Is(err, fs.ErrExist) {
			return out, partial, err
		}
	}
}

func (f *flying) write(name, reason string) (*flight.Dump, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var id [8]byte
	rand.Read(id[:])
	w := bufio.NewWriterSize(file, 256<<10)
	d, err := f.rec.Dump(w, binary.LittleEndian.Uint64(id[:]), reason)
	return d, errors.Join(err, w.Flush(), file.Close())
}

// atEnd asks for a dump if the command's end is a reason for one.
func (f *flying) atEnd(res *capture.Result) {
	reason := ""
	switch sig := syscall.Signal(res.Signal); {
	case res.Signal != 0 && !slices.Contains([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}, sig):
		reason = "the command was ended by " + unix.SignalName(sig)
	case f.p.flight.onExit && (res.ExitStatus != 0 || res.Signal != 0):
		reason = fmt.Sprintf("the command ended with status %d", res.ExitStatus)
		if res.Signal != 0 {
			reason = "the command was ended by " + unix.SignalName(sig)
		}
	case f.p.flight.onEnd:
		reason = "the command ended"
	}
	if reason != "" {
		f.requests <- dumpRequest{reason: reason, atEnd: true}
	}
}

// sum says what came of it.
func (f *flying) sum(res *capture.Result) {
	if res.WriteErr != nil {
		f.c.say("the recording is not whole: %v", res.WriteErr)
	}
	kept, back := f.rec.Held()
	text := fmt.Sprintf("%s calls, lost %s", report.Count(res.Events), report.Count(res.Lost))
	if n := len(f.tapes); n > 0 {
		text += fmt.Sprintf("; dumps: %s", strings.Join(f.tapes, " "))
	} else {
		text += fmt.Sprintf("; nothing asked for a dump, so nothing is written (the last %s, %s were kept)", report.Duration(back.Nanoseconds()), report.Bytes(uint64(kept)))
	}
	if n := f.rec.Ignored(); n > 0 {
		text += fmt.Sprintf("; %s more triggers within %s of a dump", report.Count(n), rearm)
	}
	f.c.say("%s", text)
}
