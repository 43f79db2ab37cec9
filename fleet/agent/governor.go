// SPDX-License-Identifier: Apache-2.0

package agent

import "time"

// governor keeps the agent within its share of the processors, one level at a time.
// It is pure: it is told what was used when.
type governor struct {
	limit    Share // 0: no limit
	ceiling  Level // what the configuration asks for
	level    Level
	over     time.Duration // for how long it has been above the limit
	under    time.Duration // … well below
	patience time.Duration // that under has to reach
	since    time.Duration // the last step up; large if there was none
}

const (
	overFor     = 5 * time.Second
	minPatience = time.Minute
	maxPatience = 16 * time.Minute
)

func newGovernor(limit Share, ceiling Level) *governor {
	return &governor{limit: limit, ceiling: ceiling, level: ceiling, patience: minPatience, since: maxPatience}
}

// used tells of an interval, and of the processor time in it; it returns whether the
// level has changed. Starting to record again costs processor time by itself: so a
// level that could not be kept is tried less often.
func (g *governor) used(cpu, elapsed time.Duration) bool {
	if g.limit == 0 || elapsed <= 0 {
		return false
	}
	g.since += elapsed
	switch share := Share(cpu) / Share(elapsed); {
	case share > g.limit:
		g.over, g.under = g.over+elapsed, 0
	case share < g.limit/2:
		g.over, g.under = 0, g.under+elapsed
	default:
		g.over, g.under = 0, 0
	}
	switch {
	case g.over >= overFor && g.level < lowest:
		if g.since < g.patience {
			g.patience = min(2*g.patience, maxPatience)
		}
		g.level++
	case g.under >= g.patience && g.level > g.ceiling:
		g.level--
		g.since = 0
	default:
		if g.since > 2*maxPatience {
			g.patience = minPatience
		}
		return false
	}
	g.over, g.under = 0, 0
	return true
}
