// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/tree"
)

// maxReplayed bounds a file that --replay reads, and maxRate the steps of its curves.
const (
	maxReplayed = 256 << 20
	maxRate     = 1 << 20
)

// ReadPage reads what iotape replay --json or iotape compare --json wrote, as a page.
func ReadPage(name string) (*page.Page, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxReplayed+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxReplayed {
		return nil, fmt.Errorf("%s is larger than a report of a replay can be", name)
	}
	c, err := parseReplayed(b)
	if err != nil {
		return nil, hint.With(fmt.Errorf("%s: %w", name, err),
			"--replay takes what iotape replay --json or iotape compare --json printed")
	}
	c.Title = name
	return c.Page(), nil
}

func parseReplayed(b []byte) (*compare.Comparison, error) {
	var v struct {
		Targets *struct { // of compare
			Recorded compare.Side     `json:"recorded"`
			Targets  []compare.Target `json:"targets"`
		} `json:"targets"`
		Timing *json.RawMessage `json:"timing"` // of replay
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	c := &compare.Comparison{}
	switch {
	case v.Targets != nil:
		c.Recorded, c.Targets = v.Targets.Recorded, v.Targets.Targets
	case v.Timing != nil:
		var r struct {
			replay.Report
			Tree []struct {
				Path, Field, Expected, Got string
			} `json:"tree"`
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, err
		}
		for _, d := range r.Tree {
			r.Report.Tree = append(r.Report.Tree,
				tree.Difference{Path: d.Path, Field: d.Field, Want: d.Expected, Got: d.Got})
		}
		run, recorded := reported(&r.Report, r.TreePaths > 0)
		c.Recorded, c.Targets = recorded, []compare.Target{{Name: "replayed", Runs: []compare.Run{run}}}
	default:
		return nil, errors.New("it is no report of a replay")
	}
	sides := []*compare.Side{&c.Recorded}
	for i := range c.Targets {
		for k := range c.Targets[i].Runs {
			sides = append(sides, &c.Targets[i].Runs[k].Side)
		}
	}
	for _, s := range sides {
		if r := s.Rate; r != nil && (r.BinNS < 0 || len(r.Bytes) > maxRate || r.BinNS > 1<<62/maxRate) {
			return nil, errors.New("its curves over time cannot be")
		}
	}
	return c, nil
}
