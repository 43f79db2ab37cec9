// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"context"
	_ "embed"
	"encoding/json"
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
)

//go:embed src/apps.c
var appsSource []byte

//go:embed src/slowfs.c
var slowfsSource []byte

// Mode is a way to replay.
type Mode struct {
	Name  string
	About string
	flags []string
}

// Modes are the ways to replay, from the one that knows least of the application. Beside
// them there are two for each period with which nodes are held: "throttle P" knows only what
// that shows, "discover P" what the recording shows as well.
var Modes = []Mode{
	{"afap", "as fast as possible, in the recorded order where calls did not overlap", []string{"--order", "overlap", "--pace", "afap"}},
	{"think", "the same, with the computing between calls", []string{"--order", "overlap", "--pace", "think"}},
	{"resource", "in the order of threads and files, with the computing", []string{"--order", "resource", "--pace", "think"}},
	{"causal", "in the order of threads and files, and of what they waited for as wake-ups show, with the computing", causal},
	{"throttle", "the same, but what they waited for is found by holding nodes", causal},
}

var causal = []string{"--order", "causal", "--pace", "think"}

// Options of a study. Zero values are the defaults.
type Options struct {
	Iotape string // program; bin/iotape
	Dir    string // on the disk to measure; /var/tmp
	Memory string // where modelled devices keep their bytes; /dev/shm
	// Apps are names such as pseudosync, pseudosync/spin, make; nil: all.
	Apps   []string
	Syncs  []string // what barriers are made of: pipe, socket, futex, spin, mpi; nil: all
	Stores []string
	Modes  []string
	// Once are modes of the first turn only: what they tell is no matter of per cents.
	Once []string
	// Periods with which nodes are held; 1, 5, 10, 100, 1000. Sampling also holds only some
	// of the nodes, with the first of them.
	Periods  []int
	Sampling bool
	Rates    bool   // also measure bandwidth over time
	Traced   string // storage system to record on; disk
	Ranks    int    // processes; 4
	// Polling is how many of them those applications have that wait by looking: as many as
	// there are processors, and no more than Ranks. More would take the processors from each
	// other and from whoever makes storage slow.
	Polling int
	Scale   float64       // of all rounds; 1
	Think   time.Duration // computing before each block; 500 µs
	Repeat  int           // turns, of whose errors the median counts; 3
	Nodes   int           // of an application that are held at most; 8
	Held    []string      // applications whose nodes are held; nil: all
	// Budget is after how long nothing more is begun; 0: everything is.
	Budget time.Duration
	// Progress is told what is done next.
	Progress func(line string)
	// Partial is given what is known after each turn; it must not keep it.
	Partial func(r *Report)
}

func (o *Options) defaults() {
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	set(&o.Iotape, "bin/iotape")
	set(&o.Dir, "/var/tmp")
	set(&o.Memory, "/dev/shm")
	set(&o.Traced, "disk")
	if o.Nodes == 0 {
		o.Nodes = 8
	}
	if o.Periods == nil {
		o.Periods = []int{1, 5, 10, 100, 1000}
	}
	if o.Ranks == 0 {
		o.Ranks = 4
	}
	if o.Polling == 0 {
		o.Polling = min(o.Ranks, runtime.NumCPU())
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Think == 0 {
		o.Think = 500 * time.Microsecond
	}
	if o.Repeat == 0 {
		o.Repeat = 3
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Partial == nil {
		o.Partial = func(*Report) {}
	}
}

// check reports names that stand for nothing, and numbers that are none.
func (o *Options) check() error {
	var apps, stores []string
	for _, a := range Apps(o.Syncs) {
		apps = append(apps, a.Title(), a.Name)
	}
	for _, st := range Stores {
		stores = append(stores, st.Name)
	}
	modes := modeNames()
	for _, c := range []struct {
		what         string
		given, known []string
	}{
		{"way to wait", o.Syncs, Syncs}, {"application", append(slices.Clone(o.Apps), o.Held...), apps}, {"storage system", append(slices.Clone(o.Stores), o.Traced), stores}, {"way to replay", append(slices.Clone(o.Modes), o.Once...), modes},
	} {
		for _, name := range c.given {
			if !slices.Contains(c.known, name) {
				return fmt.Errorf("there is no %s %q; there are %s", c.what, name,
					strings.Join(slices.Compact(slices.Sorted(slices.Values(c.known))), ", "))
			}
		}
	}
	for _, p := range o.Periods {
		if p < 1 {
			return fmt.Errorf("a period is 1 or more, not %d", p)
		}
	}
	if o.Ranks < 1 || o.Polling < 1 || o.Repeat < 1 || o.Nodes < 1 || o.Scale <= 0 || o.Think < 0 || o.Budget < 0 {
		return errors.New("ranks, turns, nodes and the scale are above 0, times not below it")
	}
	return nil
}

// reportVersion is that of Report. Others cannot be read.
const reportVersion = 5

// Report is what a study found.
type Report struct {
	Version int               `json:"version"`
	Traced  string            `json:"traced"`
	Ranks   int               `json:"ranks"`
	Polling int               `json:"polling"` // ranks of those applications that wait by looking
	Scale   float64           `json:"scale"`
	Repeat  int               `json:"repeat"`
	Rows    []*Row            `json:"rows"`
	Skipped map[string]string `json:"skipped"` // storage systems and applications that could not be had, and why
	LeftOut []string          `json:"left_out,omitempty"`
	// Interrupted says that somebody ended the study.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Read reads a report that was written as JSON.
func Read(b []byte) (*Report, error) {
	r := new(Report)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, err
	}
	if r.Version != reportVersion {
		return nil, fmt.Errorf("a report of version %d; this is for version %d", r.Version, reportVersion)
	}
	return r, nil
}

// Row is one application on one storage system.
type Row struct {
	App    string             `json:"app"`
	Store  string             `json:"store"`
	AppNS  int64              `json:"application_ns"` // median of the turns
	Error  map[string]float64 `json:"error"`          // by mode: the median of the turns' errors
	Least  map[string]float64 `json:"least"`          // by mode, the least and the largest of them
	Most   map[string]float64 `json:"most"`
	Failed map[string]string  `json:"failed"` // by mode: why there is no figure, of all turns or some
	Does   *Does              `json:"does,omitempty"`
	Notes  []*Notes           `json:"notes"` // how the annotations were made
	Rates  map[string]rate    `json:"rates,omitempty"`
	Turns  []Turn             `json:"turns"`
}

// study is one run.
type study struct {
	o            Options
	begun        time.Time
	work         string
	apps, slowfs string // programs
	mpi, noMPI   string // likewise, and why there is none
	loops        int64  // of computing, for Options.Think
	stores       map[string]*mounted
	report       *Report
}

// Run makes a study. If ctx is cancelled what is under way is ended, and what there is so
// far is the result.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	o.defaults()
	s := &study{o: o, begun: time.Now(), stores: map[string]*mounted{}}
	asked := ctx
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Budget > 0 { // what is under way then has a little time to end, and the rest of a minute is for cleaning up
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Budget+40*time.Second)
		defer cancel()
	}
	adopt()
	if s.work, err = os.MkdirTemp(o.Dir, "accuracy-*"); err != nil {
		return nil, err
	}
	if s.work, err = filepath.EvalSymlinks(s.work); err == nil {
		err = os.Chmod(s.work, 0o755) // a database's server has another user
	}
	if err != nil {
		return nil, err
	}
	s.o.Dir = s.work
	defer func() {
		s.sweep()
		for _, m := range s.stores {
			err = errors.Join(err, m.close())
		}
		err = errors.Join(err, os.RemoveAll(s.work))
	}()
	if err := s.tools(ctx); err != nil {
		return nil, err
	}
	s.report = &Report{Version: reportVersion, Traced: o.Traced, Ranks: o.Ranks, Polling: o.Polling, Scale: o.Scale,
		Repeat: o.Repeat, Skipped: map[string]string{}}
	for i := range Stores {
		if st := &Stores[i]; picked(o.Stores, st.Name) || st.Name == o.Traced {
			m, err := st.open(ctx, s)
			if err != nil {
				s.report.Skipped[st.Name] = err.Error()
				continue
			}
			s.stores[st.Name] = m
		}
	}
	if s.stores[o.Traced] == nil {
		return nil, fmt.Errorf("nothing can be recorded on %s: %s", o.Traced, s.report.Skipped[o.Traced])
	}
	var apps []App
	for _, app := range Apps(o.Syncs) {
		if !picked(o.Apps, app.Name) && !picked(o.Apps, app.Title()) {
			continue
		}
		if err := s.ready(ctx, app); err != nil {
			s.skip(ctx, app.Title(), err)
			continue
		}
		apps = append(apps, app)
	}
	s.all(ctx, apps)
	s.report.Rows = slices.DeleteFunc(s.report.Rows, func(r *Row) bool { return len(r.Turns) == 0 })
	s.report.Interrupted = asked.Err() != nil
	return s.report, nil
}

// skip says why there is no figure, unless the study is at its end: then that is the reason.
func (s *study) skip(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		s.report.Skipped[what] = err.Error()
	}
}

func picked(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

// tools builds the programs, and finds out how fast the processor is.
func (s *study) tools(ctx context.Context) (err error) {
	if _, err := exec.LookPath(s.o.Iotape); err != nil {
		return fmt.Errorf("the program to measure: %w", err)
	}
	if err := os.WriteFile(s.filter(), []byte(ownCalls()), 0o644); err != nil {
		return err
	}
	if s.slowfs, err = compile(ctx, s.work, "slowfs", slowfsSource, "-pthread"); err != nil {
		return err
	}
	if s.apps, err = compile(ctx, s.work, "apps", appsSource); err != nil {
		return err
	}
	source := s.apps + ".c"
	mpi := filepath.Join(s.work, "apps-mpi")
	if out, err := exec.CommandContext(ctx, "mpicc", "-DMPI", "-O2", "-o", mpi, source).CombinedOutput(); err != nil {
		s.noMPI = fmt.Sprintf("mpicc: %v: %.200s", err, out)
	} else {
		s.mpi = mpi
	}
	out, err := exec.CommandContext(ctx, s.apps, "calibrate").Output()
	if err != nil {
		return err
	}
	perUS, err := number(out)
	s.loops = perUS * s.o.Think.Microseconds()
	return err
}

// compile makes a program of its source.
func compile(ctx context.Context, dir, name string, source []byte, flags ...string) (string, error) {
	program := filepath.Join(dir, name)
	if err := os.WriteFile(program+".c", source, 0o644); err != nil {
		return "", err
	}
	args := append([]string{"-O2", "-Wall", "-o", program, program + ".c"}, flags...)
	if out, err := exec.CommandContext(ctx, "gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %.1000s", err, out)
	}
	return program, nil
}

// over reports whether no more measurements are to begin.
func (s *study) over(ctx context.Context) bool {
	return ctx.Err() != nil || s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget
}

// number reads the one number that a command wrote.
func number(b []byte) (int64, error) {
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}
