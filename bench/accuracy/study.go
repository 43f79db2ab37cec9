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
	"slices"
	"time"
)

//go:embed src/apps.c
var appsSource []byte

// Mode is a way to replay.
type Mode struct {
	Name  string
	About string
	flags []string
}

// Modes are the ways to replay, from the one that knows least of the application. Beside
// them there is one for each period with which nodes are held, "throttle P".
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
	Syncs  []string // what barriers are made of: pipe, socket, futex, spin, mpi; pipe, spin and mpi
	Stores []string
	Modes  []string
	// Periods with which nodes are held; 1, 5, 10, 100, 1000. Sampling also holds only some
	// of the nodes, with the first of them.
	Periods  []int
	Sampling bool
	Rates    bool          // also measure bandwidth over time
	Traced   string        // storage system to record on; disk
	Ranks    int           // processes; 4
	Scale    float64       // of all rounds; 1
	Think    time.Duration // computing before each block; 500 µs
	Repeat   int           // runs, of which the median counts; 3
	Nodes    int           // of an application that are held at most; 8
	// Budget is after how long nothing more is begun; 0: everything is.
	Budget time.Duration
	// Progress is told what is done next.
	Progress func(line string)
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
	if o.Syncs == nil {
		o.Syncs = []string{"pipe", "spin", "mpi"}
	}
	if o.Nodes == 0 {
		o.Nodes = 8
	}
	if o.Periods == nil {
		o.Periods = []int{1, 5, 10, 100, 1000}
	}
	if o.Ranks == 0 {
		o.Ranks = 4
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
}

// Report is what a study found.
type Report struct {
	Version int               `json:"version"`
	Traced  string            `json:"traced"`
	Ranks   int               `json:"ranks"`
	Scale   float64           `json:"scale"`
	Repeat  int               `json:"repeat"`
	Rows    []Row             `json:"rows"`
	Skipped map[string]string `json:"skipped"` // storage systems and applications that could not be had, and why
	LeftOut []string          `json:"left_out,omitempty"`
}

// Row is one application on one storage system.
type Row struct {
	App       string             `json:"app"`
	Store     string             `json:"store"`
	AppNS     int64              `json:"application_ns"`
	ReplayNS  map[string]int64   `json:"replay_ns"` // by mode
	Error     map[string]float64 `json:"error"`     // by mode: (replay - application) / application
	Failed    map[string]string  `json:"failed"`    // by mode: why there is no figure
	Notes     []*Notes           `json:"notes"`     // how the annotations were made
	Rates     map[string]rate    `json:"rates,omitempty"`
	samplesNS []int64
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
}

// Run makes a study.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	o.defaults()
	s := &study{o: o, begun: time.Now(), stores: map[string]*mounted{}}
	if o.Budget > 0 { // what is under way then has a little time to end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Budget+time.Minute)
		defer cancel()
	}
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
	defer os.RemoveAll(s.work)
	defer func() {
		for _, m := range s.stores {
			err = errors.Join(err, m.close())
		}
	}()
	if err := s.tools(ctx); err != nil {
		return nil, err
	}
	r := &Report{Version: 2, Traced: o.Traced, Ranks: o.Ranks, Scale: o.Scale, Repeat: o.Repeat, Skipped: map[string]string{}}
	for i := range Stores {
		if st := &Stores[i]; picked(o.Stores, st.Name) || st.Name == o.Traced {
			m, err := st.open(ctx, s)
			if err != nil {
				r.Skipped[st.Name] = err.Error()
				continue
			}
			s.stores[st.Name] = m
		}
	}
	if s.stores[o.Traced] == nil {
		return nil, fmt.Errorf("nothing can be recorded on %s: %s", o.Traced, r.Skipped[o.Traced])
	}
	for _, app := range Apps(o.Syncs) {
		if !picked(o.Apps, app.Name) && !picked(o.Apps, app.Title()) {
			continue
		}
		if s.over() {
			r.LeftOut = append(r.LeftOut, app.Title())
			continue
		}
		if err := s.ready(ctx, app); err != nil {
			r.Skipped[app.Title()] = err.Error()
			continue
		}
		rows, err := s.app(ctx, r, app)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Skipped[app.Title()] = err.Error()
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

func picked(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

// tools builds the programs, and finds out how fast the processor is.
func (s *study) tools(ctx context.Context) error {
	source := filepath.Join(s.work, "apps.c")
	if err := os.WriteFile(source, appsSource, 0o644); err != nil {
		return err
	}
	s.apps, s.slowfs = filepath.Join(s.work, "apps"), filepath.Join(s.work, "slowfs")
	for _, args := range [][]string{{"gcc", "-O2", "-o", s.apps, source}, {"go", "build", "-o", s.slowfs, "iotape/bench/accuracy/slowfs"}} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
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

// app measures one application.
func (s *study) app(ctx context.Context, rep *Report, app App) (rows []Row, err error) {
	traced := s.stores[s.o.Traced]
	tape, err := s.record(ctx, traced, app, app.Name)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tape)
	free := mounted{}
	if _, err := free.command(ctx, s.o.Iotape, "annotate", tape); err != nil {
		return nil, err
	}
	wakeups, err := s.notes(tape, "causal", nil)
	if err != nil {
		return nil, err
	}
	notes := []*Notes{wakeups}
	if picked(s.o.Modes, "throttle") {
		s.o.Progress(app.Title() + ": holding nodes")
		more, err := s.throttle(ctx, traced, app, tape)
		if notes = append(notes, more...); err != nil {
			rep.Skipped[app.Title()+", holding nodes"] = err.Error()
		}
	}
	for _, st := range Stores {
		m := s.stores[st.Name]
		if m == nil {
			continue
		}
		if s.over() {
			rep.LeftOut = append(rep.LeftOut, app.Title()+" on "+st.Name)
			continue
		}
		row, err := s.on(ctx, m, st.Name, app, tape, notes)
		if err != nil {
			rep.Skipped[app.Title()+" on "+st.Name] = err.Error()
			continue
		}
		rows = append(rows, *row)
	}
	if len(rows) > 0 && rows[0].Store == s.o.Traced {
		wakeups.TraceNS = rows[0].AppNS // it takes one run
		for _, n := range notes {
			n.Times = float64(n.TraceNS) / float64(rows[0].AppNS)
		}
	}
	return rows, nil
}

// on measures an application on a storage system, and its replays.
func (s *study) on(ctx context.Context, m *mounted, store string, app App, tape string, notes []*Notes) (*Row, error) {
	row := &Row{App: app.Title(), Store: store, ReplayNS: map[string]int64{}, Error: map[string]float64{}, Failed: map[string]string{}, Notes: notes}
	replays := map[string][]int64{}
	one := func(name string, flags []string) {
		if row.Failed[name] != "" {
			return
		}
		r, err := s.replay(ctx, m, tape, flags)
		if err != nil {
			row.Failed[name] = err.Error()
			return
		}
		replays[name] = append(replays[name], r.Timing.ReplayedNS)
		if s.o.Rates {
			if row.Rates == nil {
				row.Rates = map[string]rate{}
			}
			row.Rates[name] = r.Replayed
		}
	}
	for n := range s.o.Repeat { // by turns, so that a drift of the machine meets all alike
		s.o.Progress(fmt.Sprintf("%s on %s, %d of %d", app.Title(), store, n+1, s.o.Repeat))
		ns, err := s.run(ctx, m, app)
		if err != nil {
			return nil, err
		}
		row.samplesNS = append(row.samplesNS, ns)
		for _, mode := range Modes[:3] {
			if picked(s.o.Modes, mode.Name) {
				one(mode.Name, mode.flags)
			}
		}
		for _, n := range notes {
			if n.Mode == "causal" && !picked(s.o.Modes, "causal") {
				continue
			}
			if err := n.use(tape); err != nil {
				return nil, err
			}
			one(n.Mode, causal)
		}
	}
	row.AppNS = median(row.samplesNS)
	for name, list := range replays {
		if row.Failed[name] == "" {
			row.ReplayNS[name] = median(list)
			row.Error[name] = float64(row.ReplayNS[name]-row.AppNS) / float64(row.AppNS)
		}
	}
	if s.o.Rates {
		r, err := s.bandwidth(ctx, m, app)
		if err != nil {
			return nil, err
		}
		row.Rates["application"] = r
	}
	return row, nil
}

func median(list []int64) int64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// run runs the application and returns how many ns it took, as it says itself or, of a
// program or with MPI, from its beginning to its end.
func (s *study) run(ctx context.Context, m *mounted, app App) (int64, error) {
	dir := filepath.Join(m.dir, "app")
	defer os.RemoveAll(dir)
	if err := s.prepared(ctx, app, dir); err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := m.command(ctx, s.arguments(app, dir)...)
	took := time.Since(began)
	if err != nil || app.own != nil || app.Sync == "mpi" {
		return took.Nanoseconds(), err
	}
	return number(out)
}

// prepared makes an application's files anew, without the limit of a storage system: this
// is not measured.
func (s *study) prepared(ctx context.Context, app App, dir string) error {
	free := mounted{}
	_, err := free.command(ctx, "sh", "-c", s.prepare(app, dir))
	return err
}

// record makes a tape of the application.
func (s *study) record(ctx context.Context, m *mounted, app App, name string) (tape string, err error) {
	dir := filepath.Join(m.dir, "app")
	defer os.RemoveAll(dir)
	if err := s.prepared(ctx, app, dir); err != nil {
		return "", err
	}
	s.o.Progress(app.Title() + ": recording")
	tape = filepath.Join(s.work, name+".tape")
	args := append([]string{s.o.Iotape, "record", "--wakeups", "--no-index", "-o", tape, "--"}, s.arguments(app, dir)...)
	_, err = m.command(ctx, args...)
	return tape, err
}

// replayed is what a replay reports, as far as it is used here.
type replayed struct {
	Timing struct {
		ReplayedNS int64 `json:"replayed_ns"`
	} `json:"timing"`
	Recorded rate `json:"recorded_rate"`
	Replayed rate `json:"replayed_rate"`
}

// replay replays a tape.
func (s *study) replay(ctx context.Context, m *mounted, tape string, flags []string) (r replayed, err error) {
	into := filepath.Join(m.dir, "replay")
	defer os.RemoveAll(into)
	args := append([]string{s.o.Iotape, "replay", tape, "--into", into, "--json"}, flags...)
	out, err := m.command(ctx, args...)
	if bad := json.Unmarshal(out, &r); bad != nil {
		if err == nil {
			err = fmt.Errorf("report of the replay: %w", bad)
		}
		return r, err
	}
	// Some calls of large programs come out otherwise elsewhere, and that is status 1: what
	// is measured here is the time.
	if r.Timing.ReplayedNS <= 0 {
		return r, errors.New("the replay does not say how long it took")
	}
	return r, nil
}
