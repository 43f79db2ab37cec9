// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/iotape/iotape/causal/throttle"
)

// judge decides when a call that is held on one host goes on.
type judge struct {
	parts  []*part
	most   time.Duration
	epoch  uint64
	holder *part // nil: no call is held
	hold   int   // of the holder's holds, which
	since  time.Time
	asking bool
	said   map[*part]bool // who has answered, since all were asked
	sent   bool           // the call was released
	sentAt time.Time
}

// again is after what time a call that should go on, and of which nothing is heard, is
// judged anew.
const again = 2 * time.Second

// hear takes what a member says.
func (j *judge) hear(h *heard) error {
	var s throttle.State
	if h.kind != kindState || json.Unmarshal(h.b, &s) != nil {
		return errNonsense
	}
	p := h.from
	p.state = s
	switch {
	case s.Hold > 0 && (j.holder != p || s.Hold != j.hold):
		j.holder, j.hold, j.since = p, s.Hold, time.Now()
		j.look()
	case s.Hold == 0 && j.holder == p:
		j.rest()
	case j.holder != nil && (s.Moved || j.sent && p == j.holder):
		// Somebody goes on; or the holder found that, and released nothing.
		j.look()
	case j.holder != nil && j.asking && s.Asked && s.Epoch == j.epoch:
		if !s.Free {
			j.asking = false
			break
		}
		j.said[p] = true
	}
	j.tick()
	return nil
}

// look has all count anew.
func (j *judge) look() {
	j.epoch++
	j.asking, j.sent = false, false
	j.tell(&throttle.Order{Look: true, Epoch: j.epoch})
}

func (j *judge) rest() {
	j.holder, j.asking, j.sent = nil, false, false
	j.tell(&throttle.Order{Rest: true})
}

// tell sends an order to all who are not done. Who cannot be told is heard of by its reader.
func (j *judge) tell(o *throttle.Order) {
	for _, p := range j.parts {
		if p.answer == nil {
			_ = send(p.Wire, kindOrder, o)
		}
	}
}

// tick does what is due.
func (j *judge) tick() {
	if j.holder != nil && j.holder.answer != nil {
		j.rest()
	}
	if j.holder == nil || j.sent && time.Since(j.sentAt) < again {
		return
	}
	if j.sent { // it was not released, and nothing moved: ask anew
		j.look()
		return
	}
	free, on, asked := true, "", true
	for _, p := range j.parts {
		if p.answer != nil {
			continue
		}
		if !p.state.Free || p.state.Epoch != j.epoch {
			if free = false; on == "" && p.state.On != "" {
				on = throttle.OnHost(p.Name, p.state.On)
			}
		}
		asked = asked && j.said[p]
	}
	switch {
	case time.Since(j.since) > j.most:
		if on == "" {
			on = throttle.Others
		}
		j.release(on)
	case free && !j.asking:
		j.asking, j.said = true, map[*part]bool{}
		j.tell(&throttle.Order{Ask: true})
	case free && asked:
		j.release("")
	}
}

// release lets the call go on; gaveUp as in throttle.Hold.
func (j *judge) release(gaveUp string) {
	next := map[string]int{}
	for _, p := range j.parts {
		if p == j.holder || p.answer != nil {
			continue
		}
		named := map[string]int{}
		for name, call := range p.state.Next {
			named[throttle.OnHost(p.Name, name)] = call
		}
		maps.Copy(next, named)
	}
	j.sent, j.sentAt = true, time.Now()
	_ = send(j.holder.Wire, kindOrder, &throttle.Order{Release: j.hold, Next: next, Until: gaveUp})
}
