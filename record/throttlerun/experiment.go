// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/causal/throttle/hosts"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/team"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// Options say what is run, and how often.
type Options struct {
	Plan     session.Plan  // of the run that is recorded: its command and tape
	Nodes    string        // which nodes are held: "all", a number, or names with commas
	Period   int           // each Period-th call of a node is held
	Budget   time.Duration // for everything
	Each     time.Duration // for a run
	Hold     time.Duration // a call is held no longer
	Patience time.Duration // a node is stuck when it is so much over twice its time
	Runs     string        // directory that keeps the runs; "" keeps none
	Prepare  string        // shell command before each run; "" is none
	Scope    throttle.Scope
	Alone    bool // store only what holding nodes showed
	Suggest  bool // run nothing, and say what to hold next
	Team     team.Options
}

// Outcome is what came of it.
type Outcome struct {
	Result  *throttle.Result
	Summary *causal.Summary
	Next    *throttle.Suggestion
	Runs    []*throttle.Run // the first one is that in which no node was held
	Failed  []string        // runs of which there is nothing, and why
}

// Whole reports whether the runs agreed, and none of them failed.
func (o *Outcome) Whole() bool { return len(o.Result.Differ)+len(o.Result.GaveUp)+len(o.Failed) == 0 }

// experiment is one Run.
type experiment struct {
	Options
	peers    *hosts.Team // nil: all runs here
	deadline time.Time
	reserve  time.Duration // that merging may take

	serial string
	known  []*throttle.Run // as Outcome.Runs
	failed []string
}

// Run records an application, runs it again once for each of its nodes with that node
// held, and stores what was found as the annotations of the tape.
func Run(ctx context.Context, o *Options) (*Outcome, error) {
	e := &experiment{Options: *o}
	e.Plan.Reporter = sealing.OrSilent(e.Plan.Reporter)
	e.Plan.Signals = true
	return e.run(ctx)
}

func (e *experiment) note(format string, args ...any) {
	e.Plan.Reporter.Note(fmt.Sprintf(format, args...))
}

func (e *experiment) run(ctx context.Context) (*Outcome, error) {
	e.deadline = time.Now().Add(e.Budget)
	// Those whose parents have ended are to be found when a run is ended.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if len(e.Team.Names) > 0 && !e.Suggest {
		e.Team.Wait = min(team.Silence, e.Budget)
		var err error
		if e.peers, err = hosts.New(&e.Team); err != nil {
			return nil, hint.With(fmt.Errorf("--hosts: %w", err), helpHint)
		}
		defer e.peers.Close()
	}
	// The command's runs have the terminal's signals, see internal/ptracer.
	tape, err := e.tape(ctx)
	if err != nil {
		return nil, err
	}
	defer tape.Close()
	if err := e.keep(); err != nil {
		return nil, err
	}
	if err := e.quiet(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	first, err := throttle.Merge(e.within(tape.Events()), &e.Scope, e.Team.Names, e.known[:1], e.Alone)
	if err != nil {
		return nil, err
	}
	const passes = 4 // that the end takes, about, of what this one did
	e.reserve = passes * time.Since(began)
	if len(first.Nodes) == 0 {
		return nil, errors.New(
			"no thread made an I/O call that counts: there is nobody to hold (--under says on which files)")
	}
	names, err := e.pick(first)
	if err != nil {
		return nil, hint.With(err, helpHint)
	}
	for i, name := range names {
		if e.left() <= 0 {
			e.failed = append(e.failed,
				fmt.Sprintf("no time was left to hold node %s (--budget)", strings.Join(names[i:], ", ")))
			break
		}
		if err := e.hold(ctx, name, fmt.Sprintf("run %d of %d", i+1, len(names))); err != nil {
			return nil, err
		}
	}
	if err := e.others(); err != nil {
		return nil, err
	}
	return e.merge(tape)
}

// helpHint is the hint of an error in the options.
const helpHint = "iotape discover --help"

// pick returns the nodes that are to be held.
func (e *experiment) pick(first *throttle.Result) ([]string, error) {
	if e.Suggest {
		return nil, nil
	}
	var names []string
	byCalls := slices.Clone(first.Nodes)
	slices.SortStableFunc(byCalls, func(a, b throttle.NodeResult) int { return b.Calls - a.Calls })
	n, err := strconv.Atoi(e.Nodes)
	switch {
	case e.Nodes == "all":
		n = len(byCalls)
	case err != nil:
		for name := range strings.SplitSeq(strings.TrimSuffix(e.Nodes, ","), ",") {
			known := slices.ContainsFunc(first.Nodes, func(n throttle.NodeResult) bool { return n.Name == name })
			if !known {
				return nil, fmt.Errorf("--nodes %s: there is no node %q; there are %s", e.Nodes, name, nodeNames(first))
			}
			names = append(names, name)
		}
		return names, nil
	}
	for _, node := range byCalls[:min(n, len(byCalls))] {
		names = append(names, node.Name)
	}
	return names, nil
}

func nodeNames(r *throttle.Result) string {
	const most = 20
	var names []string
	for i, n := range r.Nodes {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// merge stores what all runs say, and sums it up.
func (e *experiment) merge(t *trace.Tape) (*Outcome, error) {
	res, err := throttle.Merge(e.within(t.Events()), &e.Scope, e.Team.Names, e.known, e.Alone)
	if err != nil {
		return nil, err
	}
	notes, sum, err := causal.AnnotateWith(e.within(t.Events()), &res.Evidence)
	if err != nil {
		return nil, err
	}
	if !e.Suggest {
		if err := notes.Write(t); err != nil {
			return nil, err
		}
	}
	next := throttle.Suggest(res, e.known, sum)
	return &Outcome{Result: res, Summary: sum, Next: next, Runs: e.known, Failed: e.failed}, nil
}

// left is how long the next run may take.
func (e *experiment) left() time.Duration {
	return min(e.Each, time.Until(e.deadline)-e.reserve)
}

// within passes on events until the time is over.
func (e *experiment) within(events iter.Seq2[*event.Event, error]) iter.Seq2[*event.Event, error] {
	const often = 1 << 12 // events between two looks at the clock
	return func(yield func(*event.Event, error) bool) {
		n := 0
		for ev, err := range events {
			if n++; n%often == 0 && time.Now().After(e.deadline) {
				yield(nil, fmt.Errorf("after %v what was found was not put together yet (--budget)", e.Budget))
				return
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}
