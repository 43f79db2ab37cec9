// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/replay/verify"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// Run replays a tape into a directory. The Report says whether everything agreed;
// an error means that it could not be run.
func Run(ctx context.Context, t *trace.Tape, o *Options) (*Report, error) {
	p, err := prepare(ctx, t, o)
	if err != nil {
		return nil, err
	}
	x, err := p.begin(ctx, p.into, 1)
	if err != nil {
		return nil, err
	}
	defer x.private.restore()
	if o.Abort && len(x.made.Problems) > 0 {
		rep := result.New()
		rep.InitialEntries, rep.Problems, rep.LeftOff = x.made.Entries, x.made.Problems, x.made.LeftOff
		rep.Aborted = true
		return rep, nil
	}
	if err := x.calls(ctx, func(now execute.Progress) {
		p.different(now.Different)
		p.progress("replay", now.Done, p.events)
	}); err != nil {
		return x.answer.Report, err
	}
	return x.answer.Report, x.compare(ctx)
}

// prepared is what all targets of a replay have in common.
type prepared struct {
	tape     *trace.Tape
	o        *Options
	layout   eventsource.Layout
	into     string // absolute
	events   uint64
	initial  *initialtree.Tree
	final    *tree.Manifest // nil if the tape has none
	progress func(phase string, done, total uint64)
	// different gets how many results differ so far.
	different func(n uint64)
}

// prepare makes the directory, and finds the trees.
func prepare(ctx context.Context, t *trace.Tape, o *Options) (*prepared, error) {
	p := &prepared{tape: t, o: o, events: t.Manifest().Counts.Events, progress: o.Progress, different: o.Different}
	if p.different == nil {
		p.different = func(uint64) {}
	}
	if p.progress == nil {
		p.progress = func(string, uint64, uint64) {}
	}
	var err error
	if p.layout, err = o.layout(t); err != nil {
		return nil, err
	}
	if p.into, err = prepareTarget(o.Into, o.Force); err != nil {
		return nil, err
	}
	p.progress("plan", 0, p.events)
	p.initial, p.final, err = infer(ctx, t, p.layout)
	return p, err
}

// layout returns where the replay puts what was recorded, and whose it is then.
func (o *Options) layout(t *trace.Tape) (eventsource.Layout, error) {
	l, err := eventsource.NewLayout(t, o.Renames, o.Shared)
	if err != nil {
		return nil, err
	}
	owners := eventsource.Owners{Users: o.Users, Groups: o.Groups}
	if uid := os.Geteuid(); uid != 0 {
		owners.Only = &eventsource.Only{UID: uint32(uid), GID: uint32(os.Getegid())}
	}
	l.SetOwners(owners)
	return l, nil
}

// target is a directory into which a tape is replayed.
type target struct {
	*prepared
	into    string
	private *privateTarget
	made    *Restored
	config  *execute.Config
	answer  *execute.Answer // of calls; never nil after it
}

// begin makes the initial tree in a directory, one of several. The caller calls private.restore.
func (p *prepared) begin(ctx context.Context, into string, several int) (x *target, err error) {
	x = &target{prepared: p, into: into}
	most, err := p.o.maxBytes(p.initial, into, several)
	if err != nil {
		return nil, err
	}
	private, err := openPrivate(into)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			private.restore()
		}
	}()
	x.private = private
	if x.made, err = makeInitialTree(ctx, p.initial, into, p.o.PrivilegedFiles); err != nil {
		return nil, err
	}
	x.config = p.o.config(p.tape, p.layout, p.initial, into)
	x.config.Limits = p.o.limits(most, into)
	x.config.Limits.Memory /= int64(several)
	x.config.KeepTimes = several > 1
	if x.config.Pace != PaceAFAP && x.made.Entries > 0 {
		if err = syncTarget(into); err != nil {
			return nil, err
		}
	}
	x.private.beginCalls()
	x.config.Group, x.config.Target = x.private.group, x.private.inode()
	return x, nil
}

// calls makes the calls. The target is open to others afterwards.
func (x *target) calls(ctx context.Context, progress func(execute.Progress)) (err error) {
	start := time.Now()
	if x.answer, err = x.o.execute(ctx, x.config, progress); err != nil {
		return err
	}
	rep := x.answer.Report
	rep.ElapsedNS, rep.Machines = time.Since(start).Nanoseconds(), x.layout.Machines()
	slices.SortFunc(rep.Kinds, func(a, b Kind) int { return cmp.Compare(a.Seq, b.Seq) })
	rep.InitialEntries, rep.Problems = x.made.Entries, append(rep.Problems, x.made.Problems...)
	rep.LeftOff.Add(x.made.LeftOff)
	rep.Confinement.Add(x.private.confinement())
	x.private.restore()
	return nil
}

// compare compares what the calls left with what the recording left, if that is asked for.
func (x *target) compare(ctx context.Context) error {
	rep := x.answer.Report
	if x.o.Checks&CheckTree == 0 || x.final == nil || rep.Aborted {
		return nil
	}
	x.progress("compare", x.events, x.events)
	trees := verify.Trees{
		Into: x.into, Final: x.final, Initial: x.initial, Tainted: effect.NewRanges(x.answer.Tainted), Tape: x.tape,
		Privileged: x.o.PrivilegedFiles,
	}
	if err := trees.Compare(ctx, rep); err != nil {
		return fmt.Errorf("compare the trees: %w", err)
	}
	return nil
}
