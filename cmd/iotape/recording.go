package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// recordPlan is what to record, how, and where to.
type recordPlan struct {
	out        string // the tape; "" is derived from the command
	capture    capture.Options
	backend    []backend // to be tried in this order
	snapshots  []string
	keepStream bool
	seal       sealWhen
	index      bool
	flight     *flightPlan     // not nil: record into memory
	filter     *predicate.Expr // nil: all
	owner      *owner          // of the command and the tape; nil: who runs iotape
	pipe       *chain.Spec     // that the stream passes through; nil: it is written as it is
	to         string          // where the stream goes instead of a tape; "": nowhere else

	name     string          // what the tape is called after
	target   string          // what is recorded, if not a command
	duration time.Duration   // 0 is to the end
	until    context.Context // ends the recording, too; nil is nothing
}

// While a recording is made it is in OUT.partial:
//
//	stream       the recording itself
//	before.tape  the state of the snapshot directories, a tape without events
//	hold         room on the disk, see spaceGuard
//	tape         what is being sealed; renamed to OUT at the end
const (
	partialSuffix = ".partial"
	streamName    = "stream"
	beforeName    = "before.tape"
	holdName      = "hold"
	sealingName   = "tape"
)

// check makes the plan definite, or says what is wrong with it. It changes nothing.
func (p *recordPlan) check() error {
	if len(p.capture.Command) > 0 {
		if _, err := exec.LookPath(p.capture.Command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
			return commandError(p.capture.Command[0], err)
		}
	}
	if p.out == "" {
		name := strings.Map(func(r rune) rune {
			if r <= ' ' || r == '/' || r == 0x7f {
				return '-'
			}
			return r
		}, p.name)
		p.out = name + time.Now().Format("-20060102-150405") + ".tape"
	}
	p.out = strings.TrimRight(p.out, "/")
	if p.out == "" {
		return errors.New("the tape cannot be the root directory")
	}
	if err := mustNotExist(p.out, "choose another name with -o, or remove it"); err != nil {
		return err
	}
	if p.keepStream && p.seal != sealNever {
		if err := mustNotExist(trimTape(p.out)+".stream", "choose another name with -o, or remove it"); err != nil {
			return err
		}
	}
	partial := p.out + partialSuffix
	if err := mustNotExist(partial, fmt.Sprintf("it is a recording that was not sealed: iotape repair %s, or remove it", partial)); err != nil {
		return err
	}
	for i, dir := range p.snapshots {
		abs, err := filepath.Abs(dir)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if fi, err := os.Stat(abs); err != nil || !fi.IsDir() {
			return fmt.Errorf("snapshot %s: not a directory", dir)
		}
		p.snapshots[i] = abs
	}
	return nil
}

func mustNotExist(path, hint string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return withHint(fmt.Errorf("%s exists", path), "%s", hint)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// commandError gives a command that cannot be run the status that a shell does.
func commandError(name string, err error) error {
	var path *os.PathError
	var look *exec.Error
	switch {
	case errors.As(err, &look):
		err = look.Err
	case errors.As(err, &path):
		err = path.Err
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &statusError{exitNoFile, fmt.Errorf("%s: command not found", name)}
	}
	return &statusError{exitNoExec, fmt.Errorf("%s: cannot be executed: %w", name, err)}
}

// record runs the plan.
func record(ctx context.Context, c *console, p *recordPlan) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	if p.flight != nil {
		return fly(c, p)
	}
	if p.to != "" {
		return recordTo(ctx, c, p)
	}
	partial := p.out + partialSuffix
	if err := os.Mkdir(partial, 0o777); err != nil {
		return err
	}
	started := false
	defer func() {
		if !started {
			os.RemoveAll(partial)
		}
		p.owner.give(partial, p.out, trimTape(p.out)+".stream")
	}()
	if len(p.snapshots) > 0 {
		if err := snapshot(ctx, c, filepath.Join(partial, beforeName), p.snapshots); err != nil {
			return err
		}
	}
	// From here on signals are the command's; see package internal/ptracer.
	sig := catchSignals()
	defer sig.stop()
	s := sealing{stream: filepath.Join(partial, streamName), before: filepath.Join(partial, beforeName), work: partial, out: p.out, final: true, index: p.index}
	if p.pipe != nil {
		s.keys = &p.pipe.Keys
	}
	if p.keepStream {
		s.streamTo = trimTape(p.out) + ".stream"
	}
	live := live{sealing: &s}
	defer live.abandon()
	p.capture.Started = func(int) {
		started = true
		if p.seal == sealLive {
			live.start()
		}
	}
	p.capture.Note = func(line string) { c.say("%s", line) }
	res, err := capturing(c, p, partial)
	var never *statusError // it was not executed
	started = (started || res != nil) && !errors.As(err, &never)
	if err != nil {
		if started {
			return withHint(err, "what was recorded is kept: iotape seal %s", partial)
		}
		return err
	}
	if res.WriteErr != nil {
		c.say("the recording is not whole: %v", res.WriteErr)
		live.abandon() // the stream's end was written anew
	}
	if p.seal == sealNever {
		c.say("%s recorded; to seal it: iotape seal --final%s %s", report.Bytes(uint64(dirBytes(partial))), keysFor(p.pipe), partial)
		return commandStatus(res)
	}
	done, err := s.sealed(sig.context(), c, &live)
	if errors.Is(err, errNothingFits) {
		c.say("%v", err)
		return errors.Join(os.RemoveAll(partial), commandStatus(res))
	}
	if err != nil {
		return withHint(err, "the recording is kept; to seal it later: iotape seal %s", partial)
	}
	if n := done.stats.Refused; n > 0 {
		c.say("%s: recorded programs have iotape for their tracer, and there can be only one", report.Plural(n, "request to trace a program was refused", "requests to trace programs were refused"))
	}
	c.say("%s", done.line(res))
	return commandStatus(res)
}

// commandStatus turns the command's end into iotape's.
func commandStatus(res *capture.Result) error {
	switch {
	case res.Signal != 0:
		return &statusError{Status: 128 + res.Signal}
	case res.ExitStatus != 0:
		return &statusError{Status: res.ExitStatus}
	}
	return nil
}

// capturing records with the first back end that can, and ends the stream.
func capturing(c *console, p *recordPlan, partial string) (*capture.Result, error) {
	guard, err := guardStream(partial)
	if err != nil {
		return nil, err
	}
	defer guard.f.Close()
	defer guard.release()
	f, out := guard.f, newOutput(p.pipe, guard)
	return anyBackend(c, p, func(b *backend) (*capture.Result, error) { return capturingWith(b, p, out) }, func() error {
		out.abort()
		guard.written, guard.next, guard.err = 0, 0, nil
		_, err := f.Seek(0, 0)
		return errors.Join(err, f.Truncate(0))
	})
}

// guardStream makes the stream of a recording in its directory.
func guardStream(partial string) (*spaceGuard, error) {
	f, err := os.OpenFile(filepath.Join(partial, streamName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	guard := (*spaceGuard)(nil)
	if err = claim(f); err == nil {
		guard, err = newSpaceGuard(f, filepath.Join(partial, holdName))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return guard, nil
}

// anyBackend records with the first back end that can. Before it tries another one it
// calls again.
func anyBackend(c *console, p *recordPlan, record func(*backend) (*capture.Result, error), again func() error) (*capture.Result, error) {
	for i := range p.backend {
		last := i == len(p.backend)-1
		res, err := record(&p.backend[i])
		if err == nil || res != nil {
			return res, err
		}
		var unsupported *capture.UnsupportedError
		if last || !errors.As(err, &unsupported) {
			if len(p.capture.Command) == 0 {
				return nil, err
			}
			return nil, runError(p.capture.Command[0], err)
		}
		c.say("recording with %s: %v", p.backend[i+1].Name(), err)
		if err := again(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no way to record")
}

// runError tells a command that could not be executed from a recorder that failed.
func runError(name string, err error) error {
	var path *os.PathError
	var look *exec.Error
	if errors.As(err, &look) || errors.As(err, &path) && strings.HasPrefix(path.Op, "exec") {
		return commandError(name, err)
	}
	return err
}

func capturingWith(b *backend, p *recordPlan, out *output) (*capture.Result, error) {
	var id [8]byte
	rand.Read(id[:])
	sw, err := trace.NewStreamWriter(out.writer(), binary.LittleEndian.Uint64(id[:]), p.head(b))
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.context()
	defer cancel()
	res, err := b.Run(ctx, &p.capture, sw)
	if err != nil {
		return nil, err
	}
	writeErr, err := out.end(sw, endOf(res))
	if res.WriteErr == nil {
		res.WriteErr = writeErr
	}
	return res, err
}

// endOf describes the end of a recording.
func endOf(res *capture.Result) *trace.End {
	clock, wall := capture.Clocks()
	return &trace.End{Lost: res.Lost, ExitStatus: res.ExitStatus, Signal: res.Signal, ClockNS: clock, WallNS: wall}
}

// head describes the recording.
func (p *recordPlan) head(b *backend) *trace.Head {
	h := &trace.Head{
		Program: program(), Arch: runtime.GOARCH, Backend: b.Name(), Command: p.capture.Command, Target: p.target,
		UID: os.Getuid(), GID: os.Getgid(), Content: p.capture.Content.String(), Overflow: string(p.capture.Overflow),
		Shards: b.shards(&p.capture), Ops: len(event.Specs()),
	}
	if p.filter != nil {
		h.Filter = p.filter.String()
	}
	if o := p.capture.Credential; o != nil {
		h.UID, h.GID = int(o.Uid), int(o.Gid)
	}
	capture.DescribeHost(h)
	return h
}

// program is the name and version that goes into recordings.
func program() string { return "iotape " + version() }

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(len(s.Value), 12)]
		}
	}
	if v == "" {
		return "devel"
	}
	return strings.Trim(v, "()")
}

// line is the summary of a recording.
func (d *sealed) line(res *capture.Result) string {
	lost := "lost 0"
	if d.stats.Lost > 0 {
		lost = "LOST " + report.Count(d.stats.Lost)
	}
	took := "sealed in " + report.Duration(d.took.Nanoseconds())
	if d.index > 0 {
		took += ", indexed in " + report.Duration(d.index.Nanoseconds())
	}
	if p := d.picked; p != nil {
		return fmt.Sprintf("%s events fit the filter, %s with them of %s that were recorded, %s; %s to %s (%s)",
			report.Count(p.Picked), report.Count(p.Context), report.Count(d.stats.Events), lost, took, d.out, report.Bytes(uint64(d.size)))
	}
	return fmt.Sprintf("%s events, %s of content, %s; %s to %s (%s)",
		report.Count(d.stats.Events), report.Bytes(uint64(max(d.stats.Bytes, 0))), lost, took, d.out, report.Bytes(uint64(d.size)))
}
