// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/iotape/iotape/causal"
)

// Suggestion says what to do next for a replay that takes as long as the application.
type Suggestion struct {
	Node    string `json:"node"` // to hold; "": none
	Period  int    `json:"period"`
	TakesNS int64  `json:"takes_ns"` // about
	Why     string `json:"why"`
}

func (s *Suggestion) String() string {
	if s.Node == "" {
		return s.Why
	}
	name := s.Node
	if _, err := strconv.Atoi(name); err == nil {
		name += "," // a number alone says how many
	}
	return fmt.Sprintf("--nodes %s --period %d, about %v: %s", name, s.Period,
		time.Duration(s.TakesNS).Round(time.Millisecond), s.Why)
}

// enough is how far from all of a run what is explained of it may be: storage systems are
// not steadier.
const enough = 0.03

// Suggest says what to hold next. Its rules, the first that fits:
//
//   - nothing, if the annotations explain how long the run took;
//   - a node that was not held yet, the one that made the most calls;
//   - more of the calls of the node whose holds found the most, each.
func Suggest(r *Result, runs []*Run, s *causal.Summary) *Suggestion {
	share := float64(s.ExplainedNS) / float64(max(s.ElapsedNS, 1))
	held, holds, heldNS := 0, 0, int64(0)
	for _, n := range r.Nodes {
		if n.Period > 0 {
			held++
		}
		holds += n.Holds
		heldNS += n.HeldNS
	}
	explained := fmt.Sprintf("the annotations explain %.0f %% of the run", 100*share)
	if held > 0 && math.Abs(share-1) <= enough {
		return &Suggestion{Why: "nothing: " + explained}
	}
	takes := func(n *NodeResult, period int) int64 {
		each := int64(4 * DefaultPatience)
		if holds > 0 {
			each = heldNS / int64(holds)
		}
		return runs[0].Elapsed + each*int64((n.Calls+period-1)/period)
	}
	var best *NodeResult
	period := 1
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Period > 0 {
			period = max(period, n.Period)
		} else if best == nil || n.Calls > best.Calls {
			best = n
		}
	}
	if best != nil {
		why := explained + ", and it was not held yet"
		if n := len(r.Barriers); n > 0 && 2*n > holds {
			why += "; the nodes stand at barriers, so each shows when it is the last"
		}
		return &Suggestion{best.Name, period, takes(best, period), why}
	}
	const finer = 5
	most := -1.0
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Period < 2 || n.Holds == 0 {
			continue
		}
		if each := float64(n.WaitedFor) / float64(n.Holds); each > most {
			best, most = n, each
		}
	}
	if best == nil {
		return &Suggestion{Why: "nothing: each call of each node was held; " + explained}
	}
	period = max(1, best.Period/finer)
	return &Suggestion{best.Name, period, takes(best, period),
		fmt.Sprintf("%s; of its calls only each %dth was held, and that found %.1f waits each", explained, best.Period,
			most)}
}
