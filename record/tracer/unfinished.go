// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// contentWithin is how long a tracer that is detached waits for the content of calls whose
// records it has. A thread stands still until its content is read, so that takes
// milliseconds; longer only if the capture does not get to run, or the content is lost.
const contentWithin = 5 * time.Second

// unfinished are the calls of a recording whose records have come, and some of whose
// content is still to come (trace.CallMore, trace.DataLast). A recording that is cut there
// would lack it, though nothing was lost.
type unfinished struct {
	calls map[callKey]struct{}
	last  map[uint32]uint64 // of these, a thread's own call, which ends before the next begins
}

func newUnfinished() unfinished {
	return unfinished{map[callKey]struct{}{}, map[uint32]uint64{}}
}

// see takes a frame of records. It looks at little of each, because it looks at all.
func (u *unfinished) see(payload []byte) {
	const enterEnd = 24 // docs/format.md, 1.2
	le := binary.LittleEndian
	for body, err := range trace.Records(payload) {
		if err != nil {
			return
		}
		if len(body) < enterEnd {
			continue
		}
		typ, flags := trace.RecordType(le.Uint16(body)), le.Uint32(body[12:])
		switch typ {
		case trace.RecCall:
			if len(u.calls) > 0 || flags&trace.CallMore != 0 {
				u.call(event.Op(le.Uint16(body[2:])), callKey{le.Uint32(body[8:]), le.Uint64(body[16:])},
					flags&trace.CallMore != 0)
			}
		case trace.RecData:
			if flags&trace.DataLast != 0 {
				u.done(callKey{le.Uint32(body[8:]), le.Uint64(body[16:])})
			}
		case trace.RecExit:
			u.endLast(le.Uint32(body[8:]))
		}
	}
}

func (u *unfinished) call(op event.Op, key callKey, more bool) {
	own := event.Number(event.AMD64, op) >= 0 || event.Number(event.ARM64, op) >= 0
	if own {
		u.endLast(key.tid)
	}
	if !more {
		return
	}
	if len(u.calls) >= maxUnfinished {
		*u = newUnfinished()
	}
	u.calls[key] = struct{}{}
	if own {
		u.last[key.tid] = key.enter
	}
}

func (u *unfinished) done(key callKey) {
	delete(u.calls, key)
	if u.last[key.tid] == key.enter {
		delete(u.last, key.tid)
	}
}

// endLast gives up what is still to come of a thread's own call: it was lost.
func (u *unfinished) endLast(tid uint32) {
	if enter, ok := u.last[tid]; ok {
		u.done(callKey{tid, enter})
	}
}

// closing is a tracer that is detached, and only gets the content of some calls any more.
type closing struct {
	calls map[callKey]struct{}
	done  chan struct{} // closed when it has all
}

// wants reports whether a record is what is waited for.
func (c *closing) wants(r *trace.Record) bool {
	if r == nil || r.Type != trace.RecData {
		return false
	}
	_, ok := c.calls[callKey{r.TID, r.Enter}]
	return ok
}

// settle ends the waiting when none of the calls is unfinished any more.
func (c *closing) settle(u *unfinished) {
	for key := range c.calls {
		if _, ok := u.calls[key]; ok {
			return
		}
	}
	c.end()
}

func (c *closing) end() {
	select {
	case <-c.done:
	default:
		close(c.done)
	}
}
