package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/trace"
)

// Team makes the calls of a replay in several processes, on one host or on many that have
// the same file system: each is a member, and makes the calls of some recorded processes.
//
// All members plan the whole replay, and in the same way; so each knows which of its tasks
// the others wait for, and tells them when those are done. They have no common clock.
type Team interface {
	// Run has each member do its part, by RunPart with this configuration and a Link
	// that carries what a member writes to all others, and returns what they answered.
	Run(ctx context.Context, config []byte) (answers []Answer, err error)
	// Size is how many members there are.
	Size() int
}

// Answer is what came of the part of a member.
type Answer struct {
	Member string // for the user
	Data   []byte
}

// Part says which member of how many one is.
type Part struct {
	Index   int
	Members []string // their names
	// Link leads to the other members: a socket, on which records of RecordBytes are
	// sent and received. A Ready that a member sends is answered with a Go once all
	// members have sent one; all other records go to all others.
	Link *os.File `json:"-"`
}

// RunPart does the part of a member.
func RunPart(ctx context.Context, config []byte, part Part) ([]byte, error) {
	var c confined
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("the team's configuration: %w", err)
	}
	if part.Index < 0 || part.Index >= len(part.Members) || part.Link == nil {
		return nil, fmt.Errorf("part %d of %d", part.Index, len(part.Members))
	}
	c.Part = &part
	m, err := runConfined(ctx, &c, nil, func(uint64) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// runTeam is runConfined by a team.
func runTeam(ctx context.Context, team Team, c *confined) (*message, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return new(message), err
	}
	answers, err := team.Run(ctx, config)
	if err != nil {
		return new(message), err
	}
	all := &message{Report: newReport()}
	for _, a := range answers {
		var m message
		if err := json.Unmarshal(a.Data, &m); err != nil {
			return new(message), fmt.Errorf("%s: its report: %w", a.Member, err)
		}
		if m.Report == nil || m.Report.Timing == nil {
			return new(message), fmt.Errorf("%s: %w", a.Member, errors.New("it ended without a report"))
		}
		all.join(&m, a.Member)
	}
	all.Report.Timing.ReplayedNS = max(all.Report.Timing.ReplayedNS-all.Began, 0)
	return all, nil
}

// join adds the answer of a member. Until all have been added, Timing.ReplayedNS is when
// the last call was done, from the common beginning.
func (m *message) join(o *message, member string) {
	r, part := m.Report, o.Report
	first := r.Timing == nil
	if first {
		r.Timing = &Timing{Pace: part.Timing.Pace, Speed: part.Timing.Speed}
	}
	t := r.Timing
	if part.Replayed > 0 {
		end := o.Began + part.Timing.ReplayedNS
		if len(r.Members) == 0 || m.Began == 0 || o.Began < m.Began {
			m.Began = o.Began
		}
		t.ReplayedNS = max(t.ReplayedNS, end)
	}
	t.RecordedNS = max(t.RecordedNS, part.Timing.RecordedNS)
	t.LagMaxNS, t.Lagging = max(t.LagMaxNS, part.Timing.LagMaxNS), t.Lagging+part.Timing.Lagging
	r.Members = append(r.Members, Member{Name: member, Replayed: part.Replayed, Different: part.Different, ReplayedNS: part.Timing.ReplayedNS, Ops: part.Ops})
	r.Events += part.Events
	r.Replayed += part.Replayed
	r.Emulated += part.Emulated
	r.Skipped += part.Skipped
	r.Different += part.Different
	r.Following += part.Following
	r.Unexplained += part.Unexplained
	r.Uncompared += part.Uncompared
	r.Aborted = r.Aborted || part.Aborted
	r.Problems = append(r.Problems, part.Problems...)
	if part.First != nil && (r.First == nil || part.First.Seq < r.First.Seq) {
		r.First = part.First
	}
	r.Mismatches = append(r.Mismatches, part.Mismatches...)
	slices.SortFunc(r.Mismatches, func(a, b Mismatch) int { return int(a.Seq) - int(b.Seq) })
	r.Mismatches = r.Mismatches[:min(len(r.Mismatches), MaxMismatches)]
	for _, k := range part.Kinds {
		i, ok := r.kinds[k.like()]
		if !ok {
			i = len(r.Kinds)
			r.kinds[k.like()] = i
			r.Kinds = append(r.Kinds, Kind{Mismatch: k.Mismatch})
		}
		r.Kinds[i].Count += k.Count
	}
	m.Made = append(m.Made, o.Made...)
}

// join makes this the replay of a part, if there is one.
func (r *runner) join(t *trace.Tape, layout eventsource.Layout, p *Part) (err error) {
	if p == nil {
		return nil
	}
	r.part = p.Index
	if r.planner.division, err = divide(t, layout, p.Members); err != nil {
		return err
	}
	r.link = newLink(p.Link)
	r.link.run(r.stop)
	return nil
}

// elsewhere notes a task of another member of the team: when it is done, that member will
// say so, and what it waits for here, it is told of.
func (r *runner) elsewhere(l *lane, t *task) {
	r.link.planned(l, t.ref.Pos, t.at)
	for _, d := range t.deps {
		if o := r.lanes[d.Slot]; o.here {
			o.tells(r.link, d.Pos)
		}
	}
	for _, d := range t.awaits {
		if o := r.lanes[d.ref.Slot]; o.here {
			o.tells(r.link, d.ref.Pos)
		}
	}
	if t.setsDir != 0 {
		dir := ""
		if len(t.ev.Paths) > 0 {
			dir = t.ev.Paths[0].Abs
		} else if len(t.ev.Files) > 0 {
			dir = t.ev.Files[0].Path
		}
		r.dirs.Store(t.setsDir, dir)
	}
}
