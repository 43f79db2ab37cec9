// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// options are for runs that take no time.
func options(t *testing.T) *Options {
	return &Options{Iotape: testenv.Iotape(t), Bin: t.TempDir(), Dir: t.TempDir(), Memory: t.TempDir(), Rounds: 2,
		SlowRounds: 1, Scale: 0.001, NoSync: true}
}

// TestRun measures a loop for real: alone, with full content, beside a recorder,
// and with the slow ways of which there is one everywhere.
func TestRun(t *testing.T) {
	testenv.Short(t, "it measures all ways to record")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc", "strace")
	o := options(t)
	o.Workloads = []string{"writeloop"}
	o.Ways = []string{"full", "attached", "ptrace", "strace"}
	if testing.Short() {
		o.Ways = []string{"full", "ptrace", "strace"}
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Failures(); len(f) > 0 || len(r.LeftOut) > 0 {
		t.Fatalf("failed: %q, left out: %v", f, r.LeftOut)
	}
	for _, c := range []struct {
		way     string
		slow    bool
		samples int
		events  float64 // at least
	}{
		{"untraced", false, 2, 0},
		{"full", false, 2, 2000},
		{"attached", false, 2, 1}, // of the idle process
		{"untraced", true, 1, 0},
		{"ptrace", true, 1, 20},
		{"strace", true, 1, 0},
	} {
		if c.way == "attached" && testing.Short() {
			continue
		}
		s := r.find("writeloop", c.way, c.slow)
		if s == nil || len(s.Samples) != c.samples {
			t.Errorf("%s: %+v, want %d samples", c.way, s, c.samples)
			continue
		}
		if s.Elapsed.Min <= 0 || s.Ratio.Median <= 0 {
			t.Errorf("%s: took %v s, ratio %v", c.way, s.Elapsed.Min, s.Ratio.Median)
		}
		if s.Events.Min < c.events || c.events > 0 &&
			(s.Tape.Min <= 0 || s.Stream.Min <= 0 || s.Start.Min <= 0 || s.After.Min <= 0) {
			t.Errorf("%s: events %v, stream %v, tape %v, sealing %v", c.way, s.Events, s.Stream, s.Tape, s.After)
		}
	}
	if s := r.find("writeloop", "attached", false); s != nil && s.Events.Max >= 2000 {
		t.Errorf("attached recorded %v events: it followed the command", s.Events.Max)
	}
	for _, dir := range []string{o.Dir, o.Memory} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind in %s: %v %v", dir, left, err)
		}
	}
}

// once makes one run of a job.
func once(t *testing.T, way *Way, of func(tools *tools, dir string) *job) Sample {
	t.Helper()
	testenv.NeedProgram(t, "gcc")
	o, err := options(t).fill()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: o.Dir, mem: o.Memory, noSync: true}
	if p.tools, err = makeTools(t.Context(), filepath.Join(o.Dir, "tools"), o); err != nil {
		t.Fatal(err)
	}
	w := &Workload{job: func(tools *tools, dir string, _ int) *job { return of(tools, dir) }}
	s, err := p.once(t.Context(), &group{workload: w}, way)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestService measures a client while the server is recorded, and not the client.
func TestService(t *testing.T) {
	testenv.Short(t, "it records a service several times")
	ways, err := pick([]string{"untraced", "ptrace"}, Ways(), func(w *Way) string { return w.Name }, "way")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		t.Run(way.Name, func(t *testing.T) {
			s := once(t, way, func(tools *tools, dir string) *job {
				stop := filepath.Join(dir, "stop")
				return &job{
					argv: []string{"sh", "-c", "touch ready; until test -e stop; do sleep 0.01; done"},
					service: &service{
						ready: func(context.Context) bool {
							_, err := os.Stat(filepath.Join(dir, "ready"))
							return err == nil
						},
						client: []string{filepath.Join(tools.dir, "writeloop"), filepath.Join(dir, "file"), "50000"},
						stop:   func() error { return os.WriteFile(stop, nil, 0o644) },
					},
				}
			})
			if s.Failed != "" || s.ElapsedNS <= 0 {
				t.Fatalf("sample is %+v", s)
			}
			if way.tape && (s.Events == 0 || s.Events >= 50000) {
				t.Errorf("%d events: of the server there are some, and the client makes 50,000 calls", s.Events)
			}
		})
	}
}

// TestServiceEnds: a server that ends by itself is a run that failed, not one that
// is waited for.
func TestServiceEnds(t *testing.T) {
	s := once(t, untraced, func(*tools, string) *job {
		return &job{argv: []string{"sh", "-c", "echo no room >&2; exit 1"}, service: &service{
			ready:  func(context.Context) bool { return false },
			client: []string{"true"},
			stop:   func() error { return nil },
		}}
	})
	if !strings.Contains(s.Failed, "the server has ended") || !strings.Contains(s.Failed, "no room") {
		t.Errorf("failed with %q", s.Failed)
	}
}

// TestFailedRun: a command that fails has no time, and its last words are kept.
func TestFailedRun(t *testing.T) {
	for _, c := range []struct {
		name, want string
		argv       []string
	}{
		{"status", "no good", []string{"sh", "-c", "echo no good >&2; exit 3"}},
		{"signal", "137", []string{"sh", "-c", "kill -9 $$"}},
		{"not there", "no-such-program", []string{"no-such-program"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := once(t, untraced, func(*tools, string) *job { return &job{argv: c.argv} })
			if !strings.Contains(s.Failed, c.want) {
				t.Errorf("failed with %q, want %q in it", s.Failed, c.want)
			}
			if s.ElapsedNS != 0 {
				t.Errorf("a failed run took %d ns", s.ElapsedNS)
			}
		})
	}
}

// TestInterrupted: what was measured before the end is still there.
func TestInterrupted(t *testing.T) {
	testenv.NeedProgram(t, "gcc")
	o := options(t)
	o.Workloads, o.Ways, o.Rounds = []string{"writeloop"}, []string{"untraced"}, 1_000_000
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	o.Progress = func(string) {
		if runs++; runs == 3 {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	if err == nil || r == nil {
		t.Fatalf("report %v, error %v", r, err)
	}
	if s := r.find("writeloop", "untraced", false); s == nil || len(s.Samples) != 3 || s.Elapsed.Median <= 0 {
		t.Errorf("series is %+v, want the 3 runs before the interrupt", s)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Rounds: -1}, {SlowRounds: -1}, {Scale: -1}, {Dir: "a b"}} {
		if _, err := o.fill(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
