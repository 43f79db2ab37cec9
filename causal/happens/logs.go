// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"encoding/json"
	"slices"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
)

// logs is what imported logs say beyond calls, for the constraints of Falcon's model
// (Neves, Machado and Pereira, DSN 2018) that no call shows.
type logs struct {
	b      *causal.Builder
	after  map[uint64]bool // threads whose last event was a call: a note behind it is its
	first  map[uint64]int  // first event of each thread
	last   map[uint64]int  // last one
	forks  []joining
	joins  []joining
	shared []shared
	closed map[string][]shared // CLOSEs, by the connection
	shuts  []shared
}

type joining struct {
	event int
	child uint64
}

// shared is an event on something that threads share.
type shared struct {
	event  int
	thread uint64
	kind   string
	name   string
	wall   int64
}

func newLogs(b *causal.Builder) *logs {
	return &logs{b: b, after: map[uint64]bool{}, first: map[uint64]int{}, last: map[uint64]int{},
		closed: map[string][]shared{}}
}

func threadKey(host, tid uint32) uint64 { return uint64(host)<<32 | uint64(tid) }

// note is what counts of an imported note.
type note struct {
	CatLog struct {
		Type     string          `json:"type"`
		Variable json.RawMessage `json:"variable"`
	} `json:"catlog"`
}

// see takes the next event and reports whether it is one of the log's own, and not a part
// of the one before.
func (l *logs) see(i int, ev *event.Event) (counts bool) {
	t := threadKey(ev.Host, ev.TID)
	if _, ok := l.first[t]; !ok {
		l.first[t] = i
	}
	l.last[t] = i
	switch ev.Kind {
	case event.Call:
		l.after[t] = true
		f := ev.FileArg(0)
		switch {
		case ev.Op == event.OpClone && ev.OK() && ev.Ret > 0:
			l.forks = append(l.forks, joining{i, threadKey(ev.Host, uint32(ev.Ret))})
		case ev.Op == event.OpWait4 && ev.OK() && ev.Ret > 0:
			l.joins = append(l.joins, joining{i, threadKey(ev.Host, uint32(ev.Ret))})
		case ev.Op == event.OpClose && f != nil:
			l.closed[connection(f.Path)] = append(l.closed[connection(f.Path)], shared{event: i, thread: t})
		case ev.Op == event.OpShutdown && f != nil:
			l.shuts = append(l.shuts, shared{event: i, thread: t, name: connection(f.Path)})
		}
		return true
	case event.NoteMark:
		var n note
		if len(ev.Bufs) == 0 || json.Unmarshal(ev.Bufs[0].Inline, &n) != nil {
			return true
		}
		if l.after[t] && isCall(n.CatLog.Type) {
			l.after[t] = false
			return false
		}
		switch n.CatLog.Type {
		case "LOCK", "UNLOCK", "WAIT", "NOTIFY", "NOTIFYALL":
			l.shared = append(l.shared, shared{event: i, thread: t, kind: n.CatLog.Type,
				name: string(n.CatLog.Variable)})
		}
		return true
	}
	return false
}

// isCall reports whether events of a type are calls of the tape, with a note behind.
func isCall(kind string) bool {
	switch kind {
	case "SND", "RCV", "CONNECT", "ACCEPT", "CLOSE", "SHUTDOWN", "RD", "WR", "FSYNC", "OPEN", "CREATE", "JOIN", "END":
		return true
	}
	return false
}

// connection returns what both ends' names of a connection have in common.
func connection(name string) string {
	from, to, ok := cutConnection(name)
	if ok && from > to {
		return to + " " + from
	}
	return from + " " + to
}

func cutConnection(name string) (from, to string, ok bool) {
	for i := 0; i+1 < len(name); i++ {
		if name[i] == ':' && name[i+1] == '[' && name[len(name)-1] == ']' {
			inner := name[i+2 : len(name)-1]
			for k := 0; k+1 < len(inner); k++ {
				if inner[k] == '-' && inner[k+1] == '>' {
					return inner[:k], inner[k+2:], true
				}
			}
		}
	}
	return name, "", false
}

// finish adds the edges.
func (l *logs) finish(o *Order) {
	for _, f := range l.forks {
		if first, ok := l.first[f.child]; ok {
			l.b.Edge(first, f.event, causal.Fork)
		}
	}
	for _, j := range l.joins {
		if last, ok := l.last[j.child]; ok && last != j.event {
			l.b.Edge(j.event, last, causal.Wait)
		}
	}
	for _, s := range l.shuts {
		for _, c := range l.closed[s.name] {
			if c.thread != s.thread {
				l.b.Edge(s.event, c.event, causal.Connect)
			}
		}
	}
	for i := range l.shared {
		l.shared[i].wall = o.enter[l.shared[i].event]
	}
	slices.SortStableFunc(l.shared, func(a, b shared) int { return int(min(max(a.wall-b.wall, -1), 1)) })
	l.locks()
	l.notifications()
}

// locks orders those on one variable as the log has them: a lock comes after the unlock
// before it, of whichever thread. What a thread locks again that it has, counts once.
func (l *logs) locks() {
	type held struct {
		thread uint64
		depth  int
		unlock int // event, -1: none yet
	}
	state := map[string]*held{}
	for _, s := range l.shared {
		h := state[s.name]
		if h == nil {
			h = &held{unlock: -1}
			state[s.name] = h
		}
		switch s.kind {
		case "LOCK":
			if h.depth > 0 && h.thread == s.thread {
				h.depth++
				continue
			}
			if h.unlock >= 0 {
				l.b.Edge(s.event, h.unlock, causal.Lock)
			}
			h.thread, h.depth = s.thread, 1
		case "UNLOCK":
			if h.depth > 1 && h.thread == s.thread {
				h.depth--
				continue
			}
			h.depth, h.unlock = 0, s.event
		}
	}
}

// notifications gives each WAIT one of the notifications before it in the log; a NOTIFY
// serves one.
func (l *logs) notifications() {
	free := map[string][]shared{}
	for _, s := range l.shared {
		switch s.kind {
		case "NOTIFY", "NOTIFYALL":
			free[s.name] = append(free[s.name], s)
		case "WAIT":
			q := free[s.name]
			at := slices.IndexFunc(q, func(n shared) bool { return n.thread != s.thread })
			if at < 0 {
				continue
			}
			l.b.Edge(s.event, q[at].event, causal.Wake)
			if q[at].kind == "NOTIFY" {
				free[s.name] = slices.Delete(q, at, at+1)
			}
		}
	}
}
