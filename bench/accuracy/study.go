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
	"strconv"
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

// Modes are the ways to replay, from the one that knows least of the application.
var Modes = []Mode{
	{"afap", "as fast as possible, in the recorded order where calls did not overlap", []string{"--order", "overlap", "--pace", "afap"}},
	{"think", "the same, with the computing between calls", []string{"--order", "overlap", "--pace", "think"}},
	{"resource", "in the order of threads and files, with the computing", []string{"--order", "resource", "--pace", "think"}},
	{"causal", "in the order of threads and files, and of what they waited for, with the computing", []string{"--order", "causal", "--pace", "think"}},
}

// App is an application.
type App struct {
	Name   string
	rounds int // at scale 1
}

// Apps are the applications, see src/apps.c.
var Apps = []App{{"pseudo", 256}, {"pseudosync", 128}, {"pseudosyncdat", 96}, {"fitness", 256}, {"quake", 256}}

// Options of a study. Zero values are the defaults.
type Options struct {
	Iotape string // program; bin/iotape
	Dir    string // on the disk to measure; /var/tmp
	Memory string // where modelled devices keep their bytes; /dev/shm
	Apps   []string
	Stores []string
	Modes  []string
	Traced string        // storage system to record on; disk
	Sync   string        // what barriers are made of: pipe, socket, futex or spin; pipe
	Ranks  int           // processes; 4
	Scale  float64       // of all rounds; 1
	Think  time.Duration // computing before each block; 500 µs
	Repeat int           // runs, of which the median counts; 3
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
	set(&o.Sync, "pipe")
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
	Sync    string            `json:"sync"`
	Ranks   int               `json:"ranks"`
	Rows    []Row             `json:"rows"`
	Skipped map[string]string `json:"skipped"` // storage systems that could not be made, and why
}

// Row is one application on one storage system.
type Row struct {
	App       string             `json:"app"`
	Store     string             `json:"store"`
	AppNS     int64              `json:"application_ns"`
	ReplayNS  map[string]int64   `json:"replay_ns"` // by mode
	Error     map[string]float64 `json:"error"`     // by mode: (replay - application) / application
	Failed    map[string]string  `json:"failed"`    // by mode: why there is no figure
	samplesNS []int64
}

// study is one run.
type study struct {
	o            Options
	work         string
	apps, slowfs string // programs
	loops        int64  // of computing, for Options.Think
	stores       map[string]*mounted
}

// Run makes a study.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	o.defaults()
	s := &study{o: o, stores: map[string]*mounted{}}
	if s.work, err = os.MkdirTemp(o.Dir, "accuracy-*"); err != nil {
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
	r := &Report{Version: 1, Traced: o.Traced, Sync: o.Sync, Ranks: o.Ranks, Skipped: map[string]string{}}
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
	for _, app := range Apps {
		if picked(o.Apps, app.Name) {
			rows, err := s.app(ctx, app)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", app.Name, err)
			}
			r.Rows = append(r.Rows, rows...)
		}
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
	out, err := exec.CommandContext(ctx, s.apps, "calibrate").Output()
	if err != nil {
		return err
	}
	perUS, err := number(out)
	s.loops = perUS * s.o.Think.Microseconds()
	return err
}

// app measures one application.
func (s *study) app(ctx context.Context, app App) ([]Row, error) {
	tape, err := s.record(ctx, app)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tape)
	var rows []Row
	for _, st := range Stores {
		m := s.stores[st.Name]
		if m == nil {
			continue
		}
		row := Row{App: app.Name, Store: st.Name, ReplayNS: map[string]int64{}, Error: map[string]float64{}, Failed: map[string]string{}}
		replays := map[string][]int64{}
		for n := range s.o.Repeat { // by turns, so that a drift of the machine meets all alike
			s.o.Progress(fmt.Sprintf("%s on %s, %d of %d", app.Name, st.Name, n+1, s.o.Repeat))
			ns, err := s.run(ctx, m, app)
			if err != nil {
				return nil, err
			}
			row.samplesNS = append(row.samplesNS, ns)
			for _, mode := range Modes {
				if !picked(s.o.Modes, mode.Name) || row.Failed[mode.Name] != "" {
					continue
				}
				ns, err := s.replay(ctx, m, tape, mode)
				if err != nil {
					row.Failed[mode.Name] = err.Error()
					continue
				}
				replays[mode.Name] = append(replays[mode.Name], ns)
			}
		}
		row.AppNS = median(row.samplesNS)
		for name, list := range replays {
			if row.Failed[name] == "" {
				row.ReplayNS[name] = median(list)
				row.Error[name] = float64(row.ReplayNS[name]-row.AppNS) / float64(row.AppNS)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func median(list []int64) int64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func (s *study) size(app App) (ranks, rounds string) {
	return strconv.Itoa(s.o.Ranks), strconv.Itoa(max(1, int(float64(app.rounds)*s.o.Scale)))
}

// prepare makes the application's files anew and returns their directory.
func (s *study) prepare(ctx context.Context, m *mounted, app App) (string, error) {
	dir := filepath.Join(m.dir, "app")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	ranks, rounds := s.size(app)
	free := mounted{} // without its limit: this is not measured
	_, err := free.command(ctx, s.apps, "prepare", app.Name, dir, ranks, rounds)
	return dir, err
}

// arguments are those of the application.
func (s *study) arguments(app App, dir string) []string {
	ranks, rounds := s.size(app)
	return []string{s.apps, app.Name, s.o.Sync, dir, ranks, rounds, strconv.FormatInt(s.loops, 10)}
}

// run runs the application and returns how many ns it says that it took.
func (s *study) run(ctx context.Context, m *mounted, app App) (int64, error) {
	dir, err := s.prepare(ctx, m, app)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	out, err := m.command(ctx, s.arguments(app, dir)...)
	if err != nil {
		return 0, err
	}
	return number(out)
}

// record makes an annotated tape of the application.
func (s *study) record(ctx context.Context, app App) (tape string, err error) {
	m := s.stores[s.o.Traced]
	dir, err := s.prepare(ctx, m, app)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s.o.Progress(app.Name + ": recording")
	tape = filepath.Join(s.work, app.Name+".tape")
	args := append([]string{s.o.Iotape, "record", "--wakeups", "--no-index", "-o", tape, "--"}, s.arguments(app, dir)...)
	if _, err := m.command(ctx, args...); err != nil {
		return "", err
	}
	free := mounted{}
	_, err = free.command(ctx, s.o.Iotape, "annotate", tape)
	return tape, err
}

// replay replays a tape and returns how many ns its calls took from the first to the last.
func (s *study) replay(ctx context.Context, m *mounted, tape string, mode Mode) (int64, error) {
	into := filepath.Join(m.dir, "replay")
	defer os.RemoveAll(into)
	args := append([]string{s.o.Iotape, "replay", tape, "--into", into, "--json"}, mode.flags...)
	out, err := m.command(ctx, args...)
	if err != nil {
		return 0, err
	}
	var report struct {
		Timing struct {
			ReplayedNS int64 `json:"replayed_ns"`
		} `json:"timing"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return 0, fmt.Errorf("report of the replay: %w", err)
	}
	if report.Timing.ReplayedNS <= 0 {
		return 0, errors.New("the replay does not say how long it took")
	}
	return report.Timing.ReplayedNS, nil
}
