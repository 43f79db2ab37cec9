// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Turn is one measurement of an application on a storage system: it is recorded where it
// always is, runs on the storage system, is replayed there, and runs once more, one right
// after the other. So what a turn compares was done by a machine of about the same speed.
type Turn struct {
	AppNS    int64            `json:"application_ns"` // mean of RunsNS
	RunsNS   []int64          `json:"runs_ns"`        // before the replays, and after them
	ReplayNS map[string]int64 `json:"replay_ns"`      // by mode
	Recorded *Work            `json:"recorded,omitempty"`
	There    *Work            `json:"there,omitempty"`
}

// again stands among the modes for the application's second run, against its first: what
// would tell its time better than a replay can.
const again = "again"

// ran notes a run of the application.
func (t *Turn) ran(ns int64) {
	t.RunsNS, t.AppNS = append(t.RunsNS, ns), 0
	for _, ns := range t.RunsNS {
		t.AppNS += ns / int64(len(t.RunsNS))
	}
}

// errorOf is the error of a mode.
func (t *Turn) errorOf(mode string) (float64, bool) {
	ns, ok := t.ReplayNS[mode]
	if mode == again {
		if ok = len(t.RunsNS) > 1; ok {
			ns = t.AppNS + t.RunsNS[1] - t.RunsNS[0]
		}
	}
	return float64(ns-t.AppNS) / float64(t.AppNS), ok && t.AppNS > 0
}

// all makes all turns: of every application on every storage system the first, then of
// every one the second and so on, so that a change of the machine meets all alike. What
// takes many runs comes last: holding nodes.
func (s *study) all(ctx context.Context, apps []App) {
	held := slices.DeleteFunc(slices.Clone(apps), func(app App) bool {
		return !picked(s.o.Modes, "throttle") || !picked(s.o.Held, app.Name) && !picked(s.o.Held, app.Title())
	})
	if slices.ContainsFunc(Modes, func(m Mode) bool { return m.Name != "throttle" && picked(s.o.Modes, m.Name) }) {
		missed := map[string]int{}
		var titles []string
		for n := range s.o.Repeat {
			for _, app := range apps {
				for _, st := range Stores {
					title := app.Title() + " on " + st.Name
					if s.stores[st.Name] == nil || s.report.Skipped[title] != "" ||
						s.report.Skipped[app.Title()] != "" {
						continue
					}
					if s.over(ctx) {
						if missed[title]++; missed[title] == 1 {
							titles = append(titles, title)
						}
						continue
					}
					s.o.Progress(fmt.Sprintf("%s, turn %d of %d", title, n+1, s.o.Repeat))
					if err := s.turn(ctx, app, st.Name); err != nil {
						s.skip(ctx, title, err)
					}
					s.o.Partial(s.report)
				}
			}
		}
		for _, title := range titles {
			s.report.LeftOut = append(s.report.LeftOut, left(title, missed[title], s.o.Repeat))
		}
	}
	// What no wake-up shows first: that is what holding is for.
	slices.SortStableFunc(held, func(a, b App) int { return cmp.Compare(b2i(a.visible()), b2i(b.visible())) })
	for _, app := range held {
		if s.report.Skipped[app.Title()] != "" {
			continue
		}
		if s.over(ctx) {
			s.report.LeftOut = append(s.report.LeftOut, "holding nodes of "+app.Title())
			continue
		}
		s.held(ctx, app)
		s.o.Partial(s.report)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func left(title string, missed, of int) string {
	if missed == of {
		return title
	}
	return fmt.Sprintf("%d of %d turns of %s", missed, of, title)
}

// held measures an application by what holding its nodes shows. They are held once, which
// takes long, so all turns replay one recording.
func (s *study) held(ctx context.Context, app App) {
	what := app.Title() + ", holding nodes"
	s.o.Progress(what)
	traced := s.stores[s.o.Traced]
	tape, err := s.record(ctx, traced, app, app.Name+"-held")
	defer os.RemoveAll(tape)
	if err != nil {
		s.skip(ctx, what, err)
		return
	}
	began := time.Now()
	notes, err := s.throttle(ctx, traced, app, tape)
	if err != nil {
		s.skip(ctx, what, err)
	}
	s.o.Progress(fmt.Sprintf("%s: took %v", what, time.Since(began).Round(time.Second)))
	for n := range s.o.Repeat {
		for _, st := range Stores {
			m := s.stores[st.Name]
			if m == nil || len(notes) == 0 {
				continue
			}
			// The first turn has the time that is left for what is under way: without it, the
			// nodes were held for nothing.
			if ctx.Err() != nil || n > 0 && s.over(ctx) {
				s.report.LeftOut = append(s.report.LeftOut,
					fmt.Sprintf("holding nodes of %s on %s, turn %d", app.Title(), st.Name, n+1))
				continue
			}
			s.o.Progress(fmt.Sprintf("%s on %s, turn %d of %d, nodes held", app.Title(), st.Name, n+1, s.o.Repeat))
			row := s.row(app, st.Name)
			if n == 0 {
				row.Notes = append(row.Notes, notes...)
			}
			t := Turn{ReplayNS: map[string]int64{}}
			if err := s.run(ctx, m, app, &t); err != nil {
				s.skip(ctx, what+" on "+st.Name, err)
				continue
			}
			for _, n := range notes {
				if err := n.use(tape); err != nil {
					row.fail(ctx, n.Mode, err)
					continue
				}
				s.replayed(ctx, row, &t, m, tape, n.Mode, causal)
			}
			if err := s.run(ctx, m, app, &t); err != nil {
				s.skip(ctx, what+" on "+st.Name, err)
				continue
			}
			if ctx.Err() != nil {
				continue
			}
			row.add(t)
			if st.Name == s.o.Traced {
				for _, n := range notes {
					n.Times = float64(n.TraceNS) / float64(row.AppNS)
				}
			}
		}
	}
}

// row returns what is known of an application on a storage system.
func (s *study) row(app App, store string) *Row {
	rank := func(r *Row) int { return slices.IndexFunc(Stores, func(st Store) bool { return st.Name == r.Store }) }
	for _, r := range s.report.Rows {
		if r.App == app.Title() && r.Store == store {
			return r
		}
	}
	r := &Row{App: app.Title(), Store: store, Error: map[string]float64{}, Least: map[string]float64{},
		Most: map[string]float64{}, Failed: map[string]string{}}
	at := len(s.report.Rows) // beside the same application's
	for i, o := range s.report.Rows {
		if o.App == r.App && rank(o) < rank(r) {
			at = i + 1
		}
	}
	s.report.Rows = slices.Insert(s.report.Rows, at, r)
	return r
}

// turn makes one turn in all modes but those of held nodes.
func (s *study) turn(ctx context.Context, app App, store string) error {
	m, traced := s.stores[store], s.stores[s.o.Traced]
	tape, err := s.record(ctx, traced, app, app.Name)
	defer os.RemoveAll(tape)
	if err != nil {
		return err
	}
	recorded, err := counted(tape, filepath.Join(traced.dir, "app"))
	if err != nil {
		return err
	}
	if _, err := s.command(ctx, &mounted{}, s.o.Iotape, "annotate", tape); err != nil {
		return err
	}
	t := Turn{ReplayNS: map[string]int64{}, Recorded: &recorded.work}
	if err := s.run(ctx, m, app, &t); err != nil {
		return err
	}
	row := s.row(app, store)
	for _, mode := range slices.Backward(Modes[:4]) { // the one that matters most right after the application
		if picked(s.o.Modes, mode.Name) && (len(row.Turns) == 0 || !slices.Contains(s.o.Once, mode.Name)) {
			s.replayed(ctx, row, &t, m, tape, mode.Name, mode.flags)
		}
	}
	if err := s.run(ctx, m, app, &t); err != nil {
		return err
	}
	// What it does here has to be recorded, too, in a run of its own: recording takes time.
	there, err := s.worked(ctx, m, app)
	if err == nil {
		t.There = &there.work
		if s.o.Rates && len(row.Turns) == 0 && row.Rates != nil {
			row.Rates["application"] = there.rate()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err() // a part of a turn is none
	}
	if len(row.Turns) == 0 && picked(s.o.Modes, "causal") {
		row.Notes = append(row.Notes, &Notes{Mode: "causal", TraceNS: t.AppNS, Times: 1}) // it takes one run
	}
	row.add(t)
	return err
}

// worked records an application where it is to be compared, and counts what it does.
func (s *study) worked(ctx context.Context, m *mounted, app App) (*worker, error) {
	tape, err := s.record(ctx, m, app, app.Name+"-there")
	defer os.RemoveAll(tape)
	if err != nil {
		return nil, err
	}
	return counted(tape, filepath.Join(m.dir, "app"))
}

// replayed adds the replay in one mode to a turn.
func (s *study) replayed(ctx context.Context, row *Row, t *Turn, m *mounted, tape, mode string, flags []string) {
	r, err := s.replay(ctx, m, tape, flags)
	if err != nil {
		row.fail(ctx, mode, err)
		return
	}
	t.ReplayNS[mode] = r.Timing.ReplayedNS
	if s.o.Rates && row.Rates[mode].BinNS == 0 {
		if row.Rates == nil {
			row.Rates = map[string]rate{}
		}
		row.Rates[mode] = r.Replayed
	}
}

// fail says why a mode has no figure.
func (r *Row) fail(ctx context.Context, mode string, err error) {
	if ctx.Err() == nil {
		r.Failed[mode] = err.Error()
	}
}

// add adds a turn and sums up anew.
func (r *Row) add(t Turn) {
	r.Turns = append(r.Turns, t)
	var took []int64
	byMode := map[string][]float64{}
	for _, t := range r.Turns {
		took = append(took, t.AppNS)
		for _, mode := range append(slices.Collect(maps.Keys(t.ReplayNS)), again) {
			if e, ok := t.errorOf(mode); ok {
				byMode[mode] = append(byMode[mode], e)
			}
		}
	}
	r.AppNS = median(took)
	for mode, list := range byMode {
		r.Error[mode], r.Least[mode], r.Most[mode] = median(list), slices.Min(list), slices.Max(list)
	}
	r.Does = does(r.Turns)
}

// median is the middle one, of an even number the mean of the two in the middle.
func median[T int64 | float64](list []T) T {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	if n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[n/2]
}

// run runs the application and adds to a turn how many ns it took, as it says itself or,
// of a program or with MPI, from its beginning to its end.
func (s *study) run(ctx context.Context, m *mounted, app App, t *Turn) error {
	dir := filepath.Join(m.dir, "app")
	defer os.RemoveAll(dir)
	if err := s.prepared(ctx, app, dir); err != nil {
		return err
	}
	began := time.Now()
	out, err := s.command(ctx, m, s.arguments(app, dir)...)
	took := time.Since(began).Nanoseconds()
	if err == nil && app.own == nil && app.Sync != "mpi" {
		took, err = number(out)
	}
	if err == nil {
		t.ran(took)
	}
	return err
}

// prepared makes an application's files anew, without the limit of a storage system: this
// is not measured.
func (s *study) prepared(ctx context.Context, app App, dir string) error {
	_, err := s.command(ctx, &mounted{}, "sh", "-c", s.prepare(app, dir))
	return err
}

// system is what programs are loaded from, and what is no storage.
var system = []string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/run"}

// ownCalls is the filter of what is recorded. The application has the system's files from
// the page cache wherever it runs; a replay would make them anew on the storage system to
// be measured, and read them from there.
func ownCalls() string {
	var paths []string
	for _, dir := range system {
		paths = append(paths, "path under "+dir)
	}
	return "not (class in {data, descriptor, meta, namespace, memory} and (" + strings.Join(paths, " or ") + "))"
}

func (s *study) filter() string { return filepath.Join(s.work, "filter") }

// record makes a tape of the application.
func (s *study) record(ctx context.Context, m *mounted, app App, name string) (tape string, err error) {
	dir := filepath.Join(m.dir, "app")
	defer os.RemoveAll(dir)
	tape = filepath.Join(s.work, name+".tape")
	if err := s.prepared(ctx, app, dir); err != nil {
		return tape, err
	}
	args := append([]string{s.o.Iotape, "record", "--wakeups", "--mmap", "off", "--no-index", "--filter-file",
		s.filter(), "-o", tape, "--"}, s.arguments(app, dir)...)
	_, err = s.command(ctx, m, args...)
	return tape, err
}

// replayReport is what a replay reports, as far as it is used here.
type replayReport struct {
	Timing struct {
		ReplayedNS int64 `json:"replayed_ns"`
	} `json:"timing"`
	Replayed rate `json:"replayed_rate"`
}

// replay replays a tape.
func (s *study) replay(ctx context.Context, m *mounted, tape string, flags []string) (r replayReport, err error) {
	into := filepath.Join(m.dir, "replay")
	defer os.RemoveAll(into)
	args := append([]string{s.o.Iotape, "replay", tape, "--into", into, "--json"}, flags...)
	out, err := s.command(ctx, m, args...)
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

// command runs a command on a storage system and returns what it wrote. What it leaves
// behind when it fails is ended.
func (s *study) command(ctx context.Context, m *mounted, args ...string) ([]byte, error) {
	out, err := m.command(ctx, args...)
	if err != nil {
		s.sweep()
	}
	return out, err
}
