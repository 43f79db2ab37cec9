// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Run is what one run of the application showed.
type Run struct {
	Version int      `json:"version"`
	Serial  string   `json:"serial"` // of the recorded run that it belongs to
	Command []string `json:"command"`
	Held    string   `json:"held,omitempty"`   // node; "": nobody
	Period  int      `json:"period,omitempty"` // each such call of it
	Nodes   []*Node  `json:"nodes"`            // by name
	Holds   []Hold   `json:"holds,omitempty"`
	// Slack is by how much times of different hosts may be wrong, ns.
	Slack   int64 `json:"clock_slack_ns,omitempty"`
	Elapsed int64 `json:"elapsed_ns"`
	Exit    int   `json:"exit_status"`
	Signal  int   `json:"signal,omitempty"`
	// Abandoned says why the run was ended before its end; what it showed until then is
	// true.
	Abandoned string `json:"abandoned,omitempty"`
}

const runVersion = 1

// Node is a thread that made I/O calls.
type Node struct {
	Name  string `json:"name"`
	Comm  string `json:"comm"`
	Calls []Call `json:"calls"`
	// What it did after its last call.
	TailCPU  int64 `json:"tail_cpu_ns"`
	TailIdle int64 `json:"tail_idle_ns"`
}

// Call is an I/O call. Times are ns.
type Call struct {
	Op    string    `json:"op"`
	Shape [2]uint64 `json:"shape"` // bytes and offset, as far as the arguments say
	File  string    `json:"file"`
	Enter int64     `json:"enter"` // monotonic clock; after a hold
	Exit  int64     `json:"exit"`  // 0: not seen
	// Since the node's last call: computed, and neither computed nor waited for a
	// processor. Until the hold, if it was held.
	CPU  int64 `json:"cpu"`
	Idle int64 `json:"idle"`
}

func (c *Call) same(o *Call) bool { return c.Op == o.Op && c.Shape == o.Shape }

func (c *Call) String() string {
	s := fmt.Sprintf("%s(%s", c.Op, c.File)
	if c.Shape != [2]uint64{} {
		s += fmt.Sprintf(", %d, %d", c.Shape[0], c.Shape[1])
	}
	return s + ")"
}

// Hold is one call that was kept from beginning.
type Hold struct {
	Call int   `json:"call"`  // index into the held node's
	From int64 `json:"from"`  // when it was to begin
	Till int64 `json:"until"` // when it did
	// Next is, of each other node by its name, the call that it had not done yet. Nodes
	// that had ended are not in it.
	Next map[string]int `json:"next"`
	// Until is the node that was neither stuck nor at its end after the longest time that
	// a hold may take; "": all were.
	Until string `json:"gave_up_on,omitempty"`
}

// node returns a node by its name, nil if it made no call.
func (r *Run) node(name string) *Node {
	i, ok := slices.BinarySearchFunc(r.Nodes, name, func(n *Node, name string) int { return byName(n.Name, name) })
	if !ok {
		return nil
	}
	return r.Nodes[i]
}

// HeldFor returns how long calls were held in all.
func (r *Run) HeldFor() (d time.Duration) {
	for _, h := range r.Holds {
		d += time.Duration(h.Till - h.From)
	}
	return d
}

// Write writes the run as JSON.
func (r *Run) Write(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// ErrMixed is returned for a run that belongs to another recorded run.
var ErrMixed = errors.New("this run belongs to another recorded one")

// maxRunBytes bounds what is read of a run.
const maxRunBytes = 1 << 30

// ReadRun reads what Write wrote. Only what belongs to the recorded run with that serial
// is taken.
func ReadRun(from io.Reader, serial string) (*Run, error) {
	r := new(Run)
	if err := json.NewDecoder(io.LimitReader(from, maxRunBytes)).Decode(r); err != nil {
		return nil, fmt.Errorf("not a run of discover: %w", err)
	}
	switch {
	case r.Version != runVersion:
		return nil, fmt.Errorf("version %d, this program knows %d", r.Version, runVersion)
	case r.Serial != serial:
		return nil, ErrMixed
	}
	for i, n := range r.Nodes {
		if n == nil || len(n.Calls) == 0 || i > 0 && byName(r.Nodes[i-1].Name, n.Name) >= 0 {
			return nil, errors.New("not a run of discover: its nodes are not in order")
		}
	}
	for i, h := range r.Holds {
		wrong := h.Call < 0 || i > 0 && h.Call <= r.Holds[i-1].Call
		for _, next := range h.Next {
			wrong = wrong || next < 0
		}
		if wrong {
			return nil, errors.New("not a run of discover: its holds are not in order")
		}
	}
	return r, nil
}
