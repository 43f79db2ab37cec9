// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/iotape/iotape/event"

// tally counts what passes by. Distinct things are remembered in sets; a small
// cache in front of each takes the repetitions.
type tally struct {
	counts      Counts
	hosts       uint64 // highest host + 1
	first, last int64

	threads, processes map[hostID]struct{}
	files              map[fileID]struct{}
	lastThread         hostID
	recent             [64]fileID
}

type hostID struct{ host, id uint32 }

type fileID struct {
	dev, ino uint64
	host     uint32
	used     bool
}

func (t *tally) init() {
	t.threads, t.processes = make(map[hostID]struct{}), make(map[hostID]struct{})
	t.files = make(map[fileID]struct{})
}

func (t *tally) add(ev *event.Event) {
	if t.counts.Events == 0 {
		t.first, t.last = ev.Enter, ev.Exit
	}
	t.first, t.last = min(t.first, ev.Enter), max(t.last, ev.Exit)
	t.hosts = max(t.hosts, uint64(ev.Host)+1)
	t.counts.Events++
	if ev.Kind == event.Call {
		t.counts.Calls++
	}
	if thread := (hostID{ev.Host, ev.TID}); thread != t.lastThread && ev.Kind <= event.Exited {
		t.lastThread = thread
		t.threads[thread] = struct{}{}
		t.processes[hostID{ev.Host, ev.PID}] = struct{}{}
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		if !f.Known {
			continue
		}
		id := fileID{f.Dev, f.Ino, ev.Host, true}
		if slot := &t.recent[(f.Ino^f.Dev)%uint64(len(t.recent))]; *slot != id {
			*slot = id
			t.files[id] = struct{}{}
		}
	}
}

func (t *tally) total() Counts {
	c := t.counts
	c.Threads, c.Processes, c.Files = uint64(len(t.threads)), uint64(len(t.processes)), uint64(len(t.files))
	return c
}
