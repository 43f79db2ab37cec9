// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/team"
)

// Team launches the parts of an application on its hosts, run after run.
type Team struct{ hub *team.Hub }

// New checks the options; Command and Helper are not needed. The Team is to be closed.
func New(o *team.Options) (*Team, error) {
	mine := *o
	mine.Command, mine.Helper = "discover-host", "tracer"
	for i, name := range mine.Names {
		if slices.Contains(mine.Names[:i], name) {
			return nil, fmt.Errorf("host %s is named twice: nodes are told apart by the names", name)
		}
	}
	hub, err := team.New(&mine)
	if err != nil {
		return nil, err
	}
	return &Team{hub}, nil
}

// Close forgets a secret that New made up.
func (t *Team) Close() error { return t.hub.Close() }

// Names are the hosts.
func (t *Team) Names() []string { return t.hub.Names() }

// Argv is a command as a host is to run it: {host} stands for its name.
func Argv(command []string, host string) []string {
	argv := slices.Clone(command)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{host}", host)
	}
	return argv
}

// part is a member with its part of a run.
type part struct {
	*team.Member
	ahead, slack time.Duration
	state        throttle.State
	answer       []byte
}

// heard is what a member said.
type heard struct {
	from *part
	kind byte
	b    []byte
	err  error
}

// begin gathers the members, compares clocks, and gives each its task.
func (t *Team) begin(ctx context.Context, cancel context.CancelCauseFunc, task func(host string) *Task) (parts []*part,
	said chan heard, end func(), err error) {
	members, end, err := t.hub.Gather(ctx, cancel)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, m := range members {
		p := &part{Member: m}
		if err := p.clock(); err != nil {
			end()
			return nil, nil, nil, p.failed(ctx, err)
		}
		parts = append(parts, p)
	}
	said = make(chan heard)
	for _, p := range parts {
		if err := send(p.Wire, kindTask, task(p.Name)); err != nil {
			end()
			return nil, nil, nil, p.failed(ctx, err)
		}
		go func() {
			for {
				kind, b, err := p.Receive()
				select {
				case said <- heard{p, kind, b, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
	}
	return parts, said, end, nil
}

// failed says what went wrong with a member. Once ctx has ended its connection is closed, and
// the cause of that is what went wrong.
func (p *part) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		err = fmt.Errorf("nothing was heard of it for %v", team.Silence)
	case strings.HasSuffix(err.Error(), "EOF"):
		err = errors.New("it ended without a report")
	}
	return fmt.Errorf("host %s: %w", p.Name, err)
}

// clock compares a member's clock with the hub's: of several readings that counts whose way
// was the shortest. On one machine they are the same.
func (p *part) clock() error {
	const readings = 8
	for i := range readings {
		from := read()
		if err := p.Send(kindClock, nil); err != nil {
			return err
		}
		kind, b, err := p.Receive()
		var r reading
		if err != nil {
			return err
		}
		if kind != kindClock || json.Unmarshal(b, &r) != nil {
			return errNonsense
		}
		if r.Boot == from.Boot && r.Boot != "" {
			p.ahead, p.slack = 0, 0
			return nil
		}
		half := time.Duration(read().NS-from.NS) / 2
		if i == 0 || half < p.slack {
			p.ahead, p.slack = time.Duration(from.NS-r.NS)+half, half
		}
	}
	return nil
}

var errNonsense = errors.New("it said something that makes no sense")

// late is how much longer than a part's own bound its answer may take.
const late = time.Minute

// collect hears the members until all have answered. State, if it is not nil, is called
// for what they say meanwhile, and tick from time to time.
func collect(ctx context.Context, parts []*part, said chan heard, budget time.Duration, other func(*heard) error,
	tick func()) error {
	over := time.NewTimer(budget + late)
	defer over.Stop()
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	for {
		var missing []string
		for _, p := range parts {
			if p.answer == nil {
				missing = append(missing, p.Name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return fmt.Errorf("host %s: no report within %v", strings.Join(missing, ", "), budget+late)
		case <-often.C:
			tick()
		case h := <-said:
			switch {
			case h.from.answer != nil:
			case h.err != nil:
				return h.from.failed(ctx, h.err)
			case h.kind == kindFail:
				return fmt.Errorf("host %s: %s", h.from.Name, h.b)
			case h.kind == kindAnswer:
				h.from.answer = h.b
				tick()
			default:
				if err := other(&h); err != nil {
					return h.from.failed(ctx, err)
				}
			}
		}
	}
}

// Tape is a host's part of a recording.
type Tape struct {
	Host, Dir string
	// Ahead is what is to be added to times of the tape for this host's clock.
	Ahead time.Duration
}

// Record records the parts of a run, of which task says what each is, and puts their tapes
// below a directory.
func (t *Team) Record(ctx context.Context, dir string, budget time.Duration, task func(host string) *Task) ([]Tape,
	error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts, said, end, err := t.begin(ctx, cancel, task)
	if err != nil {
		return nil, err
	}
	defer end()
	var tapes []Tape
	where := map[*part]string{}
	for i, p := range parts {
		where[p] = filepath.Join(dir, fmt.Sprintf("%d.tape", i+1))
		if err := os.MkdirAll(where[p], 0o777); err != nil {
			return nil, err
		}
		tapes = append(tapes, Tape{p.Name, where[p], p.ahead})
	}
	err = collect(ctx, parts, said, budget, func(h *heard) error {
		if h.kind != kindFile {
			return errNonsense
		}
		return takePiece(where[h.from], h.b)
	}, func() {})
	if err != nil {
		cancel(err)
		return nil, err
	}
	return tapes, nil
}

// Watch is throttle.Watch on all hosts. The names of nodes are those of all hosts.
func (t *Team) Watch(ctx context.Context, o *throttle.Options, dir string) (*throttle.Run, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	holder, node := throttle.HostOf(o.Hold)
	parts, said, end, err := t.begin(ctx, cancel, func(host string) *Task {
		task := &Task{
			Argv: Argv(o.Command.Argv, host), Dir: dir, Scope: o.Scope, Serial: o.Serial,
			Period: o.Period, Patience: o.Patience, Most: o.Most, Budget: o.Budget,
		}
		if host == holder {
			task.Hold = node
		}
		for _, r := range o.Known {
			task.Known = append(task.Known, r.Part(host))
		}
		return task
	})
	if err != nil {
		return nil, err
	}
	defer end()
	j := &judge{parts: parts, most: cmp.Or(o.Most, throttle.DefaultMost)}
	if err := collect(ctx, parts, said, o.Budget, j.hear, j.tick); err != nil {
		cancel(err)
		return nil, err
	}
	var list []throttle.Host
	for _, p := range parts {
		r := new(throttle.Run)
		if err := json.Unmarshal(p.answer, r); err != nil {
			return nil, p.failed(ctx, errNonsense)
		}
		list = append(list, throttle.Host{Name: p.Name, Run: r, Ahead: p.ahead, Slack: p.slack})
	}
	r := throttle.Join(list, o.Hold)
	r.Command = o.Command.Argv
	return r, nil
}
