// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// runLimit ends a run that hangs.
const runLimit = 15 * time.Minute

// A Sample is one run.
type Sample struct {
	Round     int   `json:"round"`
	ElapsedNS int64 `json:"elapsed_ns"` // of the command
	// CPU time of the command and its children; 0 for a server, whose it is not known.
	UserNS int64 `json:"user_ns"`
	SysNS  int64 `json:"sys_ns"`

	RecorderNS int64 `json:"recorder_ns,omitempty"` // CPU time of the recorder while the command ran, to 10 ms
	// From the recorder's start to the command's; not known of a server.
	StartNS     int64  `json:"start_ns,omitempty"`
	AfterNS     int64  `json:"after_ns,omitempty"`     // from the command's end to the recorder's: iotape seals
	Events      uint64 `json:"events,omitempty"`       // in the tape
	Lost        uint64 `json:"lost,omitempty"`         // as the tape or the tracer says
	StreamBytes int64  `json:"stream_bytes,omitempty"` // what was written during the run
	TapeBytes   int64  `json:"tape_bytes,omitempty"`
	Calls       int    `json:"calls,omitempty"` // that the command made, if known beforehand

	Failed string `json:"failed,omitempty"` // why it does not count
}

// A place is where runs are made: always the same directories, made anew.
type place struct {
	tools  *tools
	dir    string // on the disk
	mem    string // in memory
	noSync bool   // see Options
}

// run runs a workload once in one way. The error is about the machinery; what goes
// wrong with the run itself is in the Sample.
func (p *place) run(ctx context.Context, g *group, way *Way, template string) (Sample, error) {
	data, out, notes := filepath.Join(p.dir, "data"), filepath.Join(p.dir, "out"), filepath.Join(p.dir, "notes")
	if g.workload.memory {
		data = filepath.Join(p.mem, "data")
	}
	if way.memory {
		out = filepath.Join(p.mem, "out")
	}
	for _, d := range []string{data, out, notes} {
		if err := os.RemoveAll(d); err != nil {
			return Sample{}, err
		}
	}
	defer os.RemoveAll(out)
	defer os.RemoveAll(data)
	if err := run(ctx, p.dir, "cp", "-a", template, data); err != nil {
		return Sample{}, err
	}
	for _, d := range []string{out, notes} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return Sample{}, err
		}
	}
	if !p.noSync {
		unix.Sync() // what was written until now is not this run's
	}

	a := attempt{tools: p.tools, way: way, job: g.workload.job(p.tools, data, g.size),
		data: data, out: out, notes: notes}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	return a.run(ctx), nil
}

// An attempt is one run of one command.
type attempt struct {
	tools *tools
	way   *Way
	job   *job
	data  string // the command's directory
	out   string // for what the recorder writes
	notes string // for what the timer measured and the programs said
}

func (a *attempt) run(ctx context.Context) Sample {
	s := Sample{Calls: a.job.calls}
	if err := a.measure(ctx, &s); err != nil {
		s.Failed = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return s
}

func (a *attempt) measure(ctx context.Context, s *Sample) error {
	var err error
	began := monotonic()
	switch {
	case a.job.service != nil:
		err = a.withService(ctx, a.job.service)
	case a.way.beside:
		err = a.withIdle(ctx)
	default:
		err = a.recorded(ctx, a.timed(0, a.job.argv)).Run()
	}
	ended := monotonic()
	if err != nil {
		return a.explain(err)
	}
	start, end, err := a.readTimes(s)
	if err != nil {
		return err
	}
	if a.way.kind == baseline {
		s.RecorderNS = 0
		return nil
	}
	s.AfterNS = ended - end
	if a.job.service == nil {
		s.StartNS = start - began
	}
	return a.inspect(ctx, s)
}

// withService records a server while the timed client uses it.
func (a *attempt) withService(ctx context.Context, sv *service) error {
	rec := a.recorded(ctx, a.job.argv)
	if err := rec.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	var recErr error
	go func() { recErr = rec.Wait(); close(ended) }()
	err := sv.await(ctx, ended)
	if err == nil {
		err = a.command(ctx, a.timed(rec.Process.Pid, sv.client)).Run()
	}
	if stop := sv.stop(); stop != nil {
		err = errors.Join(err, stop, rec.Process.Signal(syscall.SIGTERM))
	}
	<-ended
	return errors.Join(err, recErr)
}

// withIdle runs the command beside a recorder that records a process which does
// nothing. That it says back what it is told shows that it is being recorded.
func (a *attempt) withIdle(ctx context.Context) error {
	rec := a.recorded(ctx, []string{"cat"})
	in, err := rec.StdinPipe()
	if err != nil {
		return err
	}
	echo, err := rec.StdoutPipe()
	if err != nil {
		return err
	}
	if err := rec.Start(); err != nil {
		return err
	}
	const word = "x\n"
	_, ioErr := io.WriteString(in, word)
	if ioErr == nil {
		_, ioErr = io.ReadFull(echo, make([]byte, len(word)))
	}
	if ioErr == nil {
		err = a.command(ctx, a.timed(rec.Process.Pid, a.job.argv)).Run()
	}
	in.Close()
	// That it said nothing is explained by how it ended, if by anything.
	return or(errors.Join(err, rec.Wait()), ioErr)
}

// timed returns the command line that times argv, with the CPU time of pid.
func (a *attempt) timed(pid int, argv []string) []string {
	return append([]string{a.tools.timer(), filepath.Join(a.notes, "times"), filepath.Join(a.notes, "command.log"),
		fmt.Sprint(pid)}, argv...)
}

// recorded returns the command that records argv.
func (a *attempt) recorded(ctx context.Context, argv []string) *exec.Cmd {
	if a.way.wrap != nil {
		argv = a.way.wrap(a.tools, a.out, argv)
	}
	return a.command(ctx, argv)
}

// command returns a command whose output goes to a file, but for the standard
// output, which the caller may take.
func (a *attempt) command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = a.data, environment(a.data, a.job.env)
	log, err := os.OpenFile(filepath.Join(a.notes, "recorder.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		cmd.Err = err
		return cmd
	}
	context.AfterFunc(ctx, func() { log.Close() }) // the run's context ends with the run
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// explain adds to an error what the programs said last.
func (a *attempt) explain(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	for _, name := range []string{"recorder.log", "command.log"} {
		if b, readErr := os.ReadFile(filepath.Join(a.notes, name)); readErr == nil && len(bytes.TrimSpace(b)) > 0 {
			return fmt.Errorf("%w: %s", err, lastLine(b))
		}
	}
	return err
}

// readTimes reads what the timer wrote and returns when the command started and
// ended.
func (a *attempt) readTimes(s *Sample) (start, end int64, err error) {
	b, err := os.ReadFile(filepath.Join(a.notes, "times"))
	if err != nil {
		return 0, 0, fmt.Errorf("the command was not timed: %w", err)
	}
	var user, sys, ticks, tick int64
	var status int
	if _, err := fmt.Sscan(string(b), &start, &end, &user, &sys, &ticks, &tick, &status); err != nil || tick <= 0 {
		return 0, 0, fmt.Errorf("the timer wrote %q", b)
	}
	if status != 0 {
		return 0, 0, fmt.Errorf("the command ended with wait status %#x", status)
	}
	s.ElapsedNS = end - start
	if a.job.service == nil { // else they are the client's
		s.UserNS, s.SysNS = user*1000, sys*1000
	}
	s.RecorderNS = ticks * (1_000_000_000 / tick)
	return start, end, nil
}

// inspect looks at what the recorder wrote.
func (a *attempt) inspect(ctx context.Context, s *Sample) (err error) {
	if !a.way.tape {
		if s.StreamBytes, err = size(a.out); err != nil || a.way.lost == nil {
			return err
		}
		s.Lost, err = a.way.lost(ctx, a.out)
		return err
	}
	name := filepath.Join(a.out, tapeName)
	t, err := trace.Open(name)
	if err != nil {
		return err
	}
	defer t.Close()
	m := t.Manifest()
	s.Events = m.Counts.Events
	why := ""
	for _, l := range m.Losses {
		s.Lost += l.Records
		why += fmt.Sprintf("; %d: %s", l.Records, l.Reason)
	}
	if s.TapeBytes, err = size(name); err != nil {
		return err
	}
	if s.StreamBytes, err = size(filepath.Join(a.out, streamName)); err != nil {
		return err
	}
	switch {
	case s.Lost > 0:
		return fmt.Errorf("lost %d records%s", s.Lost, why)
	case m.Incomplete:
		return fmt.Errorf("the tape is incomplete: %s", m.Reason)
	case s.Events == 0:
		return errors.New("nothing was recorded")
	}
	return nil
}

// size returns the bytes of a file, or of all files in a directory.
func size(path string) (bytes int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			bytes += fi.Size()
		}
		return err
	})
	return bytes, err
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail: the clock exists
	return t.Nano()
}
