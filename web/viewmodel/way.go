// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/report"
)

// Limits of the ways of content.
const (
	mostWayEvents = 1 << 20 // of all tapes: of more, iotape flow tells
	maxWay        = 100     // events of each list
)

// Way is where the content of an event came from and went to, as iotape flow tells it.
type Way struct {
	From []Step `json:"from"` // in causal order
	To   []Step `json:"to"`
	Same []Step `json:"same"` // events with the same content: replicas and peers
	More bool   `json:"more"` // lists are longer
	Why  string `json:"why"`  // why nothing is known; "" if something is
}

// Step is an event of a way.
type Step struct {
	EventRef
	Why     string `json:"why"` // how it is related to the one before; in From, to the one behind
	Write   bool   `json:"write"`
	Bytes   int64  `json:"bytes"`
	Where   string `json:"where"` // file or connection
	Who     string `json:"who"`
	Row     int    `json:"row"` // -1: it is on none
	Changed bool   `json:"changed"`
}

// way is the flow of the tapes' data, found when it is first asked for.
type way struct {
	start sync.Once
	done  chan struct{}
	stop  func()
	mu    sync.Mutex // of flow, which looks things up as it is asked
	flow  *flow.Flow
	err   error
}

// load begins to find the flow; done is closed at its end. It goes on when who asked has left.
func (s *Scene) load() {
	w := &s.way
	w.start.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		w.stop, w.done = stop, make(chan struct{})
		tapes := s.traces()
		go func() {
			defer close(w.done)
			w.flow, w.err = flow.Load(ctx, tapes, nil)
		}()
	})
}

// close ends what load began, and keeps it from beginning.
func (w *way) close() {
	w.start.Do(func() {})
	if w.stop != nil {
		w.stop()
		<-w.done
	}
}

// Way finds where the content of an event came from, where it went, and who else had the same.
func (s *Scene) Way(ctx context.Context, tape int, seq uint64) (*Way, error) {
	out := &Way{From: []Step{}, To: []Step{}, Same: []Step{}}
	if _, err := s.read(tape, seq); err != nil {
		return nil, err
	}
	total := uint64(0)
	for _, t := range s.tapes {
		total += t.Manifest().Counts.Events
	}
	if total > mostWayEvents {
		out.Why = fmt.Sprintf("%s are too many for this page: iotape flow --from %d:%d tells it",
			report.Plural(total, "event", "events"), tape+1, seq)
		return out, nil
	}
	w := &s.way
	s.load()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.done:
	}
	if w.err != nil {
		return nil, fmt.Errorf("flow: %w", w.err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ids, err := w.flow.Select(fmt.Sprintf("%d:%d", tape+1, seq))
	if err != nil {
		out.Why = "it moved no content that can be followed"
		return out, nil
	}
	back, err := w.flow.Path(ctx, nil, ids)
	if err != nil {
		return nil, err
	}
	ahead, err := w.flow.Path(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out.More = back.More || ahead.More
	s.steps(out, &out.From, w.flow, back, ids, func(e *flow.Edge) int { return e.From })
	s.steps(out, &out.To, w.flow, ahead, ids, func(e *flow.Edge) int { return e.To })
	same := &flow.Path{Moves: w.flow.Same(ids)}
	s.steps(out, &out.Same, w.flow, same, ids, nil)
	return out, nil
}

// steps lists the moves of a path but those that were asked for. end is the end of an edge at which a move
// stands of which the edge says how it is related.
func (s *Scene) steps(out *Way, list *[]Step, f *flow.Flow, p *flow.Path, asked []int, end func(*flow.Edge) int) {
	edges := map[int]*flow.Edge{}
	for i := range p.Edges {
		e := &p.Edges[i]
		if k := end(e); edges[k] == nil {
			edges[k] = e
		}
	}
	for _, id := range p.Moves {
		if slices.Contains(asked, id) {
			continue
		}
		if len(*list) == maxWay {
			out.More = true
			return
		}
		m := f.Move(id)
		tape, seq := f.Locate(m.Event)
		ev, err := s.read(tape, seq)
		if err != nil {
			continue // damaged
		}
		x := Step{EventRef: s.ref(tape, ev), Write: m.Write, Bytes: m.Bytes, Where: f.ObjectName(m.Object),
			Who: fmt.Sprintf("%s%s[%d]", f.HostPrefix(m.Process.Host), m.Process.Comm, m.Process.PID), Why: "the same"}
		x.Row = -1
		if l, ok := s.tapes[tape].laneOf(ev); ok && l < s.tapes[tape].index.Lines() {
			x.Row = s.tapes[tape].rows[l]
		}
		if e := edges[id]; e != nil {
			x.Why, x.Changed = e.Why.String(), e.Changed
		}
		*list = append(*list, x)
	}
}
