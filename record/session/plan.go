// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/redact"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Plan says what to record, how, and where to. The zero value of each field is its default;
// Capture names the target: a command, processes, a control group or the whole machine.
type Plan struct {
	Capture  capture.Options
	Backends []Backend       // tried in this order; nil: Backends
	Filter   *predicate.Expr // what the tape has; nil: all calls
	Duration time.Duration   // of a recording of what runs already; 0: to its end
	Until    context.Context // ends the recording, too; nil: nothing else does

	Tape       string          // its name; "" is Name with the time
	Snapshots  []string        // directories whose state is stored before the first event
	Seal       When            // "" is SealAfter
	KeepStream bool            // beside the tape
	Index      sealing.Indexer // of tapes that are not small; nil: nobody
	Owner      *Owner          // of the command and the tape; nil: the user of this process

	Pipe *chain.Spec // layers that the stream passes through; nil: it is written as it is
	To   string      // where the stream goes instead of a tape (package sink); "": nowhere else

	Flight *Flight // not nil: record into memory
	Rotate *Rotate // not nil: record to several tapes, one after the other

	// Watch, if set, is given the recording while it is made. It makes the recorder's delays short, and is for
	// recordings that are not into memory.
	Watch  Watch
	Unkept bool // nothing is kept of the recording but what Watch makes of it

	// StackFilter is which calls have a stack (Capture.Stacks); nil: all.
	StackFilter *predicate.Expr
	// Redact masks what looks secret before it is written, nil: nothing.
	Redact *redact.Patterns

	MaxBytes uint64 // of the recording's stream, about; 0: as many as it makes

	// HoldMax is how long programs wait for a recorder that does not go on, because it was stopped or because
	// its output accepts nothing: then they go on, and what is lost is counted. 0 is DefaultHoldMax, less than
	// 0 for ever.
	HoldMax time.Duration
	// ReaderHolds says that programs wait for whoever reads what Watch makes, and for the output, as long as
	// that takes.
	ReaderHolds bool

	// Signals gives the signals that reach this process while it records (SIGINT, SIGQUIT,
	// SIGTERM, SIGHUP) to the recorded command, or has them end the recording of what runs
	// already. Afterwards a second SIGINT, or any of the others, stops sealing. The context
	// of Record does not end the recording then.
	Signals bool

	Program  string           // name and version of the recording program; "" is "iotape"
	Reporter sealing.Reporter // nil: sealing.Silent
	Messages *os.File         // that the Reporter writes to, see sealing.Job
	Stdout   *os.File         // To "-"; nil is os.Stdout

	// Of the target; Resolve sets what is empty.
	Name   string // what the tape is called after
	Target string // what is recorded, if it is not a command

	// Await is a systemd unit that is recorded from its next start on, if it does not run. It stands in place of
	// Capture's control group.
	Await string

	awaited string // the control group that is empty until the unit starts; "" if it runs
}

// When is when a recording is made a tape.
type When string

// The times.
const (
	SealAfter When = "after" // the target has ended
	SealLive  When = "live"  // while it runs, too
	SealNever When = "never" // by another program later
)

// ParseWhen checks a time's name.
func ParseWhen(s string) (When, error) {
	switch w := When(s); w {
	case SealAfter, SealLive, SealNever:
		return w, nil
	}
	return "", fmt.Errorf("--seal %s: it is live, after or never", s)
}

// Resolve makes the target and the back ends definite, or says what is wrong with them. It
// changes nothing outside the plan; Record calls it.
func (p *Plan) Resolve() error {
	if p.Backends == nil {
		p.Backends = Backends()
	}
	o := &p.Capture
	if err := p.checkTarget(); err != nil {
		return err
	}
	name, target := "", ""
	switch {
	case len(o.PIDs) > 0:
		pids := make([]string, len(o.PIDs))
		for i, pid := range o.PIDs {
			pids[i] = strconv.Itoa(pid)
		}
		name, target = "pid-"+pids[0], "process "+strings.Join(pids, ", ")
	case o.Cgroup != "":
		dir, err := FindCgroup(o.Cgroup)
		if err != nil {
			return err
		}
		o.Cgroup, name, target = dir, filepath.Base(dir), "control group "+dir
	case o.All:
		name, target = "all", "the whole machine"
		if o.Overflow == "" {
			o.Overflow = capture.OverflowDrop // whoever is held could be who the recorder needs
		}
	case len(o.Command) > 0:
		name = strings.TrimLeft(filepath.Base(o.Command[0]), ".")
	}
	if o.Overflow == "" {
		o.Overflow = capture.OverflowBlock
	}
	if p.Name == "" {
		p.Name = name
	}
	if p.Target == "" {
		p.Target = target
	}
	return p.checkBackends()
}

// checkBackends leaves only eBPF where no other back end can record what is wanted.
func (p *Plan) checkBackends() error {
	o, needs := &p.Capture, ""
	switch {
	case (o.Running() || p.Await != "") && len(o.PIDs) == 0:
		needs = "--cgroup, --unit, --container and --all need"
	case o.BlockRequests:
		needs = "--block-requests needs"
	case o.Wakeups:
		needs = "--wakeups needs"
	default:
		return nil
	}
	i := slices.IndexFunc(p.Backends, func(b Backend) bool { return b.Name() == "ebpf" })
	if i < 0 {
		return errors.New(needs + " eBPF")
	}
	p.Backends = p.Backends[i : i+1]
	return nil
}

func (p *Plan) checkTarget() error {
	o, given := &p.Capture, 0
	for _, is := range []bool{len(o.Command) > 0, len(o.PIDs) > 0, o.Cgroup != "" || p.Await != "", o.All} {
		if is {
			given++
		}
	}
	switch {
	case given == 0 && p.Target == "": // a mount has none of them
		return errors.New("say what to record: a command, --pid, --cgroup, --unit, --container or --all")
	case given > 1:
		return errors.New("only one of a command, --pid, --cgroup, --unit, --container and --all can be recorded")
	case p.Duration < 0:
		return fmt.Errorf("duration %s is less than nothing", p.Duration)
	}
	return nil
}

// Check resolves the plan and makes the tape's name definite, or says what is wrong. It
// changes nothing outside the plan; Record calls it.
func (p *Plan) Check() error {
	if err := p.Resolve(); err != nil {
		return err
	}
	if err := cmp.Or(running.CheckProc(), p.checkRedact()); err != nil {
		return err
	}
	if len(p.Capture.Command) > 0 {
		if _, err := exec.LookPath(p.Capture.Command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
			return newCommandError(p.Capture.Command[0], err)
		}
	}
	if !p.Unkept {
		if err := p.CheckTape(); err != nil {
			return err
		}
	}
	for i, dir := range p.Snapshots {
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
		p.Snapshots[i] = abs
	}
	return nil
}

// CheckTape makes the tape's name definite, and sees to it that it is free.
func (p *Plan) CheckTape() error {
	if p.Tape == "" {
		name := strings.Map(func(r rune) rune {
			if r <= ' ' || r == '/' || r == 0x7f {
				return '-'
			}
			return r
		}, p.Name)
		p.Tape = name + time.Now().Format("-20060102-150405") + ".tape"
	}
	p.Tape = strings.TrimRight(p.Tape, "/")
	if p.Tape == "" {
		return errors.New("the tape cannot be the root directory")
	}
	const rename = "choose another name, or remove it"
	if err := sealing.MustNotExist(p.Tape, rename); err != nil {
		return err
	}
	if p.KeepStream && p.Seal != SealNever {
		if err := sealing.MustNotExist(p.keptStream(), rename); err != nil {
			return err
		}
	}
	return sealing.CheckWork(p.partial())
}

// partial is the directory of the recording while it is made.
func (p *Plan) partial() string { return p.Tape + sealing.PartialSuffix }

// keptStream is where KeepStream leaves the stream.
func (p *Plan) keptStream() string { return streamBeside(p.Tape) }

func streamBeside(tape string) string { return sealing.TrimTape(tape) + ".stream" }

// Context is the recording's, which is made with o: it ends Duration after o.Started was called,
// and until then takes as long as setting up takes. It changes o.Started. The Duration of a unit that is awaited
// begins with the unit.
func (p *Plan) Context(o *capture.Options) (context.Context, context.CancelFunc) {
	ctx := p.Until
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	if p.Duration > 0 {
		started := o.Started
		o.Started = func(pid int) {
			go func() {
				awaitProcess(ctx, p.awaited)
				time.AfterFunc(p.Duration, cancel)
			}()
			if started != nil {
				started(pid)
			}
		}
	}
	return ctx, cancel
}

// Head describes the recording for the beginning of its stream.
func (p *Plan) Head(b *Backend) *trace.Head {
	h := &trace.Head{
		Program: p.program(), Arch: runtime.GOARCH, Backend: b.Name(), Command: p.Capture.Command, Target: p.Target,
		UID: os.Getuid(), GID: os.Getgid(), Content: p.Capture.Content.String(), Overflow: string(p.Capture.Overflow),
		Shards: b.Shards(&p.Capture), Ops: len(event.Specs()), BlockRequests: p.Capture.BlockRequests,
	}
	if p.Filter != nil {
		h.Filter = p.Filter.String()
	}
	h.Stacks = p.headStacks()
	p.markRedacted(h)
	if o := p.Capture.Credential; o != nil {
		h.UID, h.GID = int(o.Uid), int(o.Gid)
	}
	capture.DescribeHost(h)
	return h
}

func (p *Plan) program() string {
	if p.Program == "" {
		return "iotape"
	}
	return p.Program
}

func (p *Plan) reporter() sealing.Reporter {
	return sealing.OrSilent(p.Reporter)
}

func (p *Plan) note(format string, args ...any) { p.reporter().Note(fmt.Sprintf(format, args...)) }

// indexFrom is of how many events on a recording is indexed at once. To index a smaller one takes longer
// than to seal it, but not longer than a person who queries it first notices.
const indexFrom = 20_000

// job plans the sealing of a stream that was recorded to a tape.
func (p *Plan) job(tape string) *sealing.Job {
	work := tape + sealing.PartialSuffix
	j := &sealing.Job{
		Stream: filepath.Join(work, sealing.StreamName), Before: filepath.Join(work, sealing.BeforeName),
		Work: work, Out: tape,
		Index: p.Index, IndexFrom: indexFrom, Program: p.program(), Reporter: p.Reporter, Messages: p.Messages,
	}
	if p.Pipe != nil {
		j.Keys = &p.Pipe.Keys
	}
	if p.KeepStream {
		j.StreamTo = streamBeside(tape)
	}
	return j
}

// unsealed says how a recording is sealed that was left as it is.
func (p *Plan) unsealed() string {
	keys := ""
	if p.Pipe != nil && p.Pipe.Encrypted {
		keys += " --identity FILE"
	}
	if p.Pipe != nil && len(p.Pipe.Keys.Checksum) > 0 {
		keys += " --key FILE"
	}
	return fmt.Sprintf("to seal it: iotape seal --final%s %s", keys, p.partial())
}

// kept adds to an error of sealing what can be done about it.
func kept(err error, what, partial string) error {
	return hint.With(err, "%s; to seal it later: iotape seal %s", what, partial)
}
