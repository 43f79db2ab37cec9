// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Notes are annotations of the application's tape, made in one way.
type Notes struct {
	Mode    string  `json:"mode"`
	Period  int     `json:"period,omitempty"` // with which nodes were held; 0: there is more in them than that
	Held    int     `json:"held,omitempty"`   // how many of Nodes
	Nodes   int     `json:"nodes,omitempty"`
	TraceNS int64   `json:"trace_ns"` // of all runs that were made for them
	Times   float64 `json:"times"`    // the same, as a multiple of the application's run
	Found   int     `json:"found"`    // dependencies
	Differ  int     `json:"differ"`   // nodes whose runs differed
	data    []byte
}

// discovered is what iotape discover --json says, as far as it is used here.
type discovered struct {
	Found  int      `json:"found"`
	Differ []string `json:"differ"`
	Nodes  []struct {
		Name  string `json:"name"`
		Calls int    `json:"calls"`
	} `json:"nodes"`
	Runs []struct {
		Held    string `json:"held"`
		Elapsed int64  `json:"elapsed_ns"`
	} `json:"runs"`
}

// held lists the nodes that were held.
func (d *discovered) held() (names []string) {
	for _, r := range d.Runs {
		if r.Held != "" {
			names = append(names, r.Held)
		}
	}
	return names
}

// runLimit is how long one run with a node held may take.
const runLimit = 3 * time.Minute

// throttle holds the nodes of an application, with each period, and then takes only some of
// the runs.
func (s *study) throttle(ctx context.Context, m *mounted, app App, tape string) ([]*Notes, error) {
	base := filepath.Join(s.work, "runs")
	defer os.RemoveAll(base)
	var list []*Notes
	for _, period := range s.o.Periods {
		dir := filepath.Join(base, strconv.Itoa(period))
		if err := copyQuiet(base, dir); err != nil {
			return list, err
		}
		if s.over(ctx) {
			s.report.LeftOut = append(s.report.LeftOut,
				fmt.Sprintf("holding nodes of %s with period %d", app.Title(), period))
			continue
		}
		both, err := s.discovered(ctx, m, app, tape, dir, period)
		if err != nil {
			return list, err
		}
		list = append(list, both)
		d, err := s.discover(ctx, m, app, tape, dir, strconv.Itoa(s.o.Nodes), period, "--alone")
		if err != nil {
			return list, err
		}
		n, err := s.notes(tape, fmt.Sprintf("throttle %d", period), d)
		if err != nil {
			return list, err
		}
		held := d.held()
		n.Period, n.Nodes, n.Held = period, len(held), len(held)
		list = append(list, n)
		if period != s.o.Periods[0] || !s.o.Sampling {
			continue
		}
		for k := 1; k < len(held); k++ {
			some := filepath.Join(base, "some")
			if err := takeSome(dir, some, held[:k]); err != nil {
				return list, err
			}
			part, err := s.discover(ctx, m, app, tape, some, held[0], period, "--alone")
			if err != nil {
				return list, err
			}
			n, err := s.notes(tape, fmt.Sprintf("throttle %d, %d of %d nodes", period, k, len(held)), part)
			if err != nil {
				return list, err
			}
			n.Period, n.Nodes, n.Held = period, len(held), k
			list = append(list, n)
		}
	}
	return list, nil
}

// discovered holds all nodes, and takes what that shows together with what the recording
// itself does.
func (s *study) discovered(ctx context.Context, m *mounted, app App, tape, runs string, period int) (*Notes, error) {
	d, err := s.discover(ctx, m, app, tape, runs, strconv.Itoa(s.o.Nodes), period)
	if err != nil {
		return nil, err
	}
	return s.notes(tape, discoverMode(period), d)
}

// discoverMode is the mode of a replay that knows what discover finds.
func discoverMode(period int) string { return fmt.Sprintf("discover %d", period) }

// copyQuiet begins a directory of runs with the one in which nobody was held, which is the
// same for all.
func copyQuiet(base, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	found, _ := filepath.Glob(filepath.Join(base, "*", "quiet.json"))
	if len(found) == 0 {
		return nil
	}
	return os.Link(found[0], filepath.Join(dir, "quiet.json"))
}

// takeSome makes a directory of the runs of some nodes.
func takeSome(from, to string, nodes []string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	patterns := []string{"quiet.json"}
	for _, name := range nodes {
		patterns = append(patterns, "node-"+strings.ReplaceAll(name, "/", "_")+"-*.json")
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(from, p))
		for _, f := range found {
			if err := os.Link(f, filepath.Join(to, filepath.Base(f))); err != nil {
				return err
			}
		}
	}
	return nil
}

// discover runs iotape discover.
func (s *study) discover(ctx context.Context, m *mounted, app App, tape, runs, nodes string, period int,
	flags ...string) (*discovered, error) {
	dir := filepath.Join(m.dir, "app")
	args := append([]string{s.o.Iotape, "discover", "-o", tape, "--runs", runs, "--json", "--nodes", nodes,
		"--period", strconv.Itoa(period),
		"--under", dir, "--budget", runLimit.String(), "--prepare", s.prepare(app, dir)}, flags...)
	args = append(args, "--")
	out, err := s.command(ctx, m, append(args, s.arguments(app, dir)...)...)
	var d discovered
	if bad := json.Unmarshal(out, &d); bad != nil {
		if err == nil {
			err = bad
		}
		return nil, fmt.Errorf("discover: %w", err)
	}
	return &d, nil // status 1 says that runs differed: so does the report
}

// notes takes the annotations that a tape has now.
func (s *study) notes(tape, mode string, d *discovered) (*Notes, error) {
	b, err := os.ReadFile(filepath.Join(tape, "annotations"))
	n := &Notes{Mode: mode, data: b}
	if d != nil {
		n.Found, n.Differ = d.Found, len(d.Differ)
		for _, r := range d.Runs {
			n.TraceNS += r.Elapsed
		}
	}
	return n, err
}

// use gives a tape other annotations.
func (n *Notes) use(tape string) error {
	return os.WriteFile(filepath.Join(tape, "annotations"), n.data, 0o644)
}

// rate is bytes over time.
type rate struct {
	BinNS int64   `json:"bin_ns"`
	Bytes []int64 `json:"bytes"`
}
