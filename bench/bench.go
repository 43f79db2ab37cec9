// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what to measure. The zero value of a field means its default.
type Options struct {
	Iotape string // program to measure; bin/iotape
	Bin    string // directory with what scripts/setup.sh --bench makes; bin
	// Dir is a directory on the disk to measure on, and Memory one in a tmpfs.
	// Each run makes one of its own in them. They are /var/tmp and /dev/shm, and
	// must not have spaces in their names.
	Dir, Memory string

	Workloads []string // names; all
	Ways      []string // names; all. The untraced one is always among them

	Rounds     int     // 5
	SlowRounds int     // of the slow ways; 3
	Scale      float64 // of the sizes; 1

	// NoSync does not wait for the disk before each run: for a trial. What other
	// runs and programs wrote is then written during this one.
	NoSync bool

	// Progress, if not nil, is told each thing that is done, in a line.
	Progress func(line string)
}

func (o *Options) fill() (*Options, error) {
	f := *o
	f.Iotape = or(f.Iotape, "bin/iotape")
	f.Bin = or(f.Bin, "bin")
	f.Dir = or(f.Dir, "/var/tmp")
	f.Memory = or(f.Memory, "/dev/shm")
	f.Rounds = or(f.Rounds, 5)
	f.SlowRounds = or(f.SlowRounds, 3)
	f.Scale = or(f.Scale, 1)
	switch {
	case f.Rounds < 1 || f.SlowRounds < 1:
		return nil, errors.New("there must be at least one round")
	case !(f.Scale > 0 && f.Scale <= 1000):
		return nil, fmt.Errorf("scale %v is not between 0 and 1000", f.Scale)
	case strings.ContainsAny(f.Dir+f.Memory, " \t\n"):
		return nil, errors.New("a directory to measure in has a space in its name")
	}
	if f.Progress == nil {
		f.Progress = func(string) {}
	}
	return &f, nil
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Run measures. Workloads and ways that cannot run on this machine are left out,
// and the report says why. The report is valid also beside an error, with what was
// measured until then.
func Run(ctx context.Context, options *Options) (*Report, error) {
	o, err := options.fill()
	if err != nil {
		return nil, err
	}
	workloads, err := pick(o.Workloads, Workloads(), func(w *Workload) string { return w.Name }, "workload")
	if err != nil {
		return nil, err
	}
	ways, err := pick(o.Ways, Ways(), func(w *Way) string { return w.Name }, "way")
	if err != nil {
		return nil, err
	}
	if len(o.Ways) == 0 {
		ways = slices.DeleteFunc(ways, func(w *Way) bool { return w.kind == layered })
	}
	p := &place{noSync: o.NoSync}
	for _, d := range []struct {
		in  string
		dir *string
	}{{o.Dir, &p.dir}, {o.Memory, &p.mem}} {
		if *d.dir, err = os.MkdirTemp(d.in, "iotape-bench-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(*d.dir)
		// The database's user must be able to go through it.
		if err := os.Chmod(*d.dir, 0o755); err != nil {
			return nil, err
		}
	}
	tools := filepath.Join(p.dir, "tools")
	if p.tools, err = makeTools(ctx, tools, o); err != nil {
		return nil, fmt.Errorf("make the benchmark's tools: %w", err)
	}

	r := newReport(ctx, o, p)
	workloads = slices.DeleteFunc(workloads, func(w *Workload) bool { return r.leaveOut(w.Name, w.absent(p.tools)) })
	ways = slices.DeleteFunc(ways, func(w *Way) bool { return r.leaveOut(w.Name, p.probe(ctx, w)) })
	for _, l := range r.LeftOut {
		o.Progress("left out: " + l.Name + ": " + l.Why)
	}
	for _, g := range plan(workloads, ways, o) {
		if err := p.measure(ctx, &g, r, o); err != nil {
			return r, fmt.Errorf("%s: %w", g.workload.Name, err)
		}
	}
	return r, nil
}

// pick returns the members of all that are named, in the order of all; all of them
// if no name is given.
func pick[T any](names []string, all []T, name func(T) string, what string) ([]T, error) {
	for _, n := range names {
		if !slices.ContainsFunc(all, func(t T) bool { return name(t) == n }) {
			return nil, fmt.Errorf("no %s is called %q", what, n)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t T) bool { return !slices.Contains(names, name(t)) }), nil
}

// probe says why a way cannot be used here; "" if it can.
func (p *place) probe(ctx context.Context, way *Way) string {
	w := &Workload{job: func(*tools, string, int) *job { return &job{argv: []string{"/bin/true"}} }}
	s, err := p.once(ctx, &group{workload: w}, way)
	if err != nil {
		return err.Error()
	}
	return s.Failed
}

// once is run with a template that is empty.
func (p *place) once(ctx context.Context, g *group, way *Way) (Sample, error) {
	template := filepath.Join(p.dir, "empty")
	if err := os.MkdirAll(template, 0o755); err != nil {
		return Sample{}, err
	}
	return p.run(ctx, g, way, template)
}

// measure makes all runs of a group and adds them to the report.
func (p *place) measure(ctx context.Context, g *group, r *Report, o *Options) error {
	template := filepath.Join(p.dir, "template")
	if err := os.RemoveAll(template); err != nil {
		return err
	}
	if err := os.Mkdir(template, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(template)
	if g.workload.prepare != nil {
		if err := g.workload.prepare(ctx, p.tools, template, g.size); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	series := make(map[*Way]*Series, len(g.ways))
	for _, way := range g.ways {
		series[way] = r.add(g, way)
	}
	defer r.summarize()
	for round := range g.rounds {
		for _, way := range g.order(round) {
			s, err := p.run(ctx, g, way, template)
			if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			s.Round = round
			series[way].Samples = append(series[way].Samples, s)
			o.Progress(fmt.Sprintf("%s, round %d of %d, %s: %s", g.workload.title(g.size), round+1,
				g.rounds, way.Name, s.line()))
		}
	}
	return nil
}
