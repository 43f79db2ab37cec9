// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"cmp"
	"encoding/binary"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/spanindex"
)

// Limits of what is told apart in one tape.
const (
	maxLanes = 16 << 10 // beyond, threads share the last
	maxPlace = 1000     // losses, and notes
)

// lane is a thread from its first event to its last. A number that is used again is
// another lane.
type lane struct {
	Host  uint32 `json:"host,omitempty"`
	PID   uint32 `json:"pid"`
	TID   uint32 `json:"tid"`
	PPID  uint32 `json:"ppid,omitempty"`
	Comm  string `json:"comm,omitempty"` // the last one
	First uint64 `json:"first"`          // event
}

// place is a moment of a recording: a loss, or a note.
type place struct {
	At   int64  `json:"at"` // ns
	Host uint32 `json:"host,omitempty"`
	Seq  uint64 `json:"seq"`
	Text string `json:"text,omitempty"`
	Lost int64  `json:"lost,omitempty"` // events
}

// contents is what the index's extra bytes say: JSON, so that it can grow.
type contents struct {
	Version int     `json:"version"`
	Tape    string  `json:"tape"` // whose it is
	Lanes   []lane  `json:"lanes"`
	Places  []place `json:"places,omitempty"`
	Events  uint64  `json:"events"`            // that could be read
	Damaged uint64  `json:"damaged,omitempty"` // blocks that could not
	Others  bool    `json:"others,omitempty"`  // the last lane is of all threads beyond the limit
}

// indexVersion is that of lanes and of what spans mean.
const indexVersion = 1

type threadKey struct{ host, tid uint32 }

// laner tells threads apart.
type laner struct {
	contents
	now map[threadKey]int // lanes of threads that live
}

// lane returns the lane of an event.
func (l *laner) lane(ev *event.Event) int {
	key := threadKey{ev.Host, ev.TID}
	i, ok := l.now[key]
	if !ok {
		switch {
		case len(l.Lanes) < maxLanes:
			l.Lanes = append(l.Lanes, lane{Host: ev.Host, PID: ev.PID, TID: ev.TID, PPID: ev.PPID, First: ev.Seq})
		case !l.Others:
			l.Others = true
			l.Lanes = append(l.Lanes, lane{First: ev.Seq})
		}
		i = len(l.Lanes) - 1
		if !l.Others {
			l.now[key] = i
		}
	}
	if x := &l.Lanes[i]; !l.Others || i < maxLanes {
		x.Comm, x.PPID = cmp.Or(ev.Comm, x.Comm), cmp.Or(x.PPID, ev.PPID)
	}
	return i
}

// see takes an event and says what it is on which lane; ok is false if it is no span.
func (l *laner) see(ev *event.Event, number *contentNumber) (i int, s spanindex.Span, ok bool) {
	l.Events++
	key := threadKey{ev.Host, ev.TID}
	switch ev.Kind {
	case event.LossMark:
		l.place(place{At: ev.Exit, Host: ev.Host, Seq: ev.Seq, Lost: int64(ev.Loss().Records)})
		return 0, s, false
	case event.NoteMark:
		text := ""
		if len(ev.Bufs) > 0 {
			text = string(ev.Bufs[0].Inline)
		}
		l.place(place{At: ev.Exit, Host: ev.Host, Seq: ev.Seq, Text: text})
	case event.Forked:
		delete(l.now, threadKey{ev.Host, ev.Child})
	case event.Exited:
		delete(l.now, key)
		return 0, s, false
	}
	if ev.Kind != event.Call {
		return 0, s, false
	}
	io := ev.Traffic()
	s = spanindex.Span{From: ev.Enter, To: max(ev.Exit, ev.Enter), ID: ev.Seq, Kind: uint8(report.WorkOf(ev, &io)),
		Failed: ev.Errno != 0, Bytes: uint64(max(io.Bytes(), 0))}
	if s.Untimed = ev.Flags&event.Untimed != 0; s.Untimed {
		s.To = s.From // Exit is for the order alone
	}
	if s.Bytes > 0 {
		s.Content = number.of(ev)
	}
	return l.lane(ev), s, true
}

func (l *laner) place(p place) {
	if len(l.Places) < maxPlace {
		l.Places = append(l.Places, p)
	}
}

// contentNumber gives content a number which is the same for what begins with the same
// piece, in every tape.
type contentNumber struct {
	hashes *trace.HashReader
	last   uint64 // chunk
	number uint32
}

func (c *contentNumber) of(ev *event.Event) uint32 {
	b := contentBuf(ev)
	switch {
	case b == nil:
	case len(b.Inline) > 0:
		h := blake3.Sum256(b.Inline)
		return fold(&h)
	case len(b.Refs) > 0 && b.Refs[0].Chunk != 0:
		r := &b.Refs[0]
		if r.Chunk != c.last {
			h, err := c.hashes.Hash(r.Chunk)
			if err != nil {
				return 0
			}
			c.last, c.number = r.Chunk, fold(&h)
		}
		return max(c.number^r.Off, 1)
	}
	return 0
}

func fold(h *[32]byte) uint32 { return max(binary.LittleEndian.Uint32(h[:]), 1) }

// contentBuf returns the memory of an event that holds what it moved, nil if there is
// none.
func contentBuf(ev *event.Event) *event.Buf {
	spec := ev.Spec()
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; spec.IsContent(int(b.Arg)) && b.Len > 0 {
			return b
		}
	}
	return nil
}
