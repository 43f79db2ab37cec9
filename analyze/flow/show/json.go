// SPDX-License-Identifier: Apache-2.0

package show

import (
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/iotape/iotape/analyze/flow"
)

type moveJSON struct {
	ID      int    `json:"id"`
	Event   string `json:"event"`
	Host    string `json:"host"`
	PID     uint32 `json:"pid"`
	Command string `json:"command"`
	Call    string `json:"call"`
	Write   bool   `json:"write"`
	Object  string `json:"object"`
	Kind    string `json:"kind"`
	At      *int64 `json:"at"` // null if it is not known
	Bytes   int64  `json:"bytes"`
	Content uint32 `json:"content"` // equal content has one number; 0 if it is not known
}

type edgeJSON struct {
	From       int     `json:"from"`
	To         int     `json:"to"`
	Why        string  `json:"why"`
	Bytes      int64   `json:"bytes"`
	At         int64   `json:"at"`
	FromAt     int64   `json:"from_at"`
	Similarity float64 `json:"similarity"`
	Estimated  bool    `json:"estimated"`
	Changed    bool    `json:"changed"`
}

// Finding is a finding as --json has it.
type Finding struct {
	Kind   string    `json:"kind"`
	Wrong  bool      `json:"wrong"`
	Text   string    `json:"text"`
	Events []string  `json:"events"`
	Count  int       `json:"count"`
	Bytes  int64     `json:"bytes"`
	Diff   *diffJSON `json:"diff"`
	// How sure it is: low, medium or high; and what would decide it.
	Confidence string `json:"confidence"`
	Decide     string `json:"decide,omitempty"`
	// The way of the data as lines of text, of the first findings that are wrong.
	Story []string `json:"story,omitempty"`
}

type diffJSON struct {
	Differ int    `json:"differ"`
	Same   int    `json:"same"`
	At     int    `json:"at"`
	FromAt int    `json:"from_at"`
	Before string `json:"before_hex"`
	After  string `json:"after_hex"`
	First  int    `json:"first"` // within these
}

// Findings returns the findings of a flow, the heaviest first.
func Findings(f *flow.Flow) []Finding {
	list, told := []Finding{}, 0
	for _, x := range f.Findings() {
		j := Finding{Kind: string(x.Problem), Wrong: x.Problem.Wrong(), Text: x.Text, Events: []string{},
			Count: x.Count, Bytes: x.Bytes, Confidence: x.Confidence.String(), Decide: x.Decide}
		for _, id := range x.Moves {
			j.Events = append(j.Events, f.EventName(f.Move(id).Event))
		}
		if d := x.Diff; d != nil {
			j.Diff = &diffJSON{d.Differ, d.Same, d.First, d.FromFirst, hex.EncodeToString(d.Before),
				hex.EncodeToString(d.After), d.Context}
		}
		if j.Wrong && told < maxStories {
			told++
			j.Story = storyOf(f, &x)
		}
		list = append(list, j)
	}
	return list
}

// JSON writes everything as one object.
func JSON(w io.Writer, f *flow.Flow, p *flow.Path) error {
	v := struct {
		Version  int              `json:"version"`
		Numbers  map[string]int64 `json:"numbers"`
		Notes    []string         `json:"notes"`
		Moves    []moveJSON       `json:"moves"`
		Edges    []edgeJSON       `json:"edges"`
		More     bool             `json:"more"`
		Findings []Finding        `json:"findings"`
	}{Version: 1, Numbers: map[string]int64{}, Notes: append([]string{},
		f.Notes()...), Moves: []moveJSON{}, Edges: []edgeJSON{}}
	for _, n := range f.Numbers(p) {
		v.Numbers[n.Name] = n.Value
	}
	if p != nil {
		v.More = p.More
		for _, id := range p.Moves {
			m, err := moveOf(f, id)
			if err != nil {
				return err
			}
			v.Moves = append(v.Moves, m)
		}
		for _, e := range p.Edges {
			v.Edges = append(v.Edges, edgeJSON{e.From, e.To, e.Why.String(), e.Bytes, e.Off, e.FromOff, e.Similarity,
				e.Estimated, e.Changed})
		}
	}
	v.Findings = Findings(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func moveOf(f *flow.Flow, id int) (moveJSON, error) {
	m := f.Move(id)
	ev, err := f.Event(id)
	if err != nil {
		return moveJSON{}, err
	}
	v := moveJSON{ID: id, Event: f.EventName(m.Event), Host: f.Order().Hosts()[m.Process.Host].Host, PID: m.Process.PID,
		Command: m.Process.Comm, Call: ev.Spec().Name,
		Write: m.Write, Object: m.Object.Name, Kind: m.Object.Kind.String(), Bytes: m.Bytes, Content: uint32(m.Content)}
	if m.At >= 0 {
		v.At = &m.At
	}
	return v, nil
}
