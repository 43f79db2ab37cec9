// SPDX-License-Identifier: Apache-2.0

package blkparse

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
)

// place is where a request begins.
type place struct {
	major, minor uint32
	sector       uint64
}

// request is one under way.
type request struct {
	pid     uint32
	start   uint64 // ns
	issued  bool
	op      event.Op
	sectors uint64
	untimed bool // it is not known when it began
}

// requests are those under way, by their places: several can be at one, in the order in
// which they came.
type requests struct {
	at map[place][]request
	n  int
}

// add takes a request, false if there are too many.
func (q *requests) add(at place, r request) bool {
	if q.n == maxPending {
		return false
	}
	q.at[at] = append(q.at[at], r)
	q.n++
	return true
}

// find returns the index of the oldest request of an operation at a place, -1 if there is none.
func (q *requests) find(at place, op event.Op, issued bool) int {
	return slices.IndexFunc(q.at[at], func(r request) bool { return r.op == op && r.issued == issued })
}

// take removes a request.
func (q *requests) take(at place, i int) request {
	list := q.at[at]
	r := list[i]
	if len(list) == 1 {
		delete(q.at, at)
	} else {
		q.at[at] = slices.Delete(list, i, i+1)
	}
	q.n--
	return r
}

// takeFor removes the request that is issued, or completed, for some sectors, and what was
// merged into it: requests that were queued right behind it.
func (q *requests) takeFor(at place, op event.Op, i int, sectors uint64) request {
	r := q.take(at, i)
	for end, next := at.sector+sectors, at.sector+r.sectors; next < end; {
		behind := place{at.major, at.minor, next}
		i := q.find(behind, op, false)
		if i < 0 {
			break
		}
		next += max(q.take(behind, i).sectors, 1)
	}
	return r
}

// issue notes that the driver got a request. known is false if its begin is not in the trace.
func (q *requests) issue(at place, now request) (known, ok bool) {
	if i := q.find(at, now.op, false); i >= 0 {
		now.pid, known = q.takeFor(at, now.op, i, now.sectors).pid, true
	}
	return known, q.add(at, now)
}

// complete returns the request of which some sectors are done, false if its begin is not in the
// trace. What is not done of it stays.
func (q *requests) complete(at place, op event.Op, sectors uint64) (r request, ok bool) {
	i := q.find(at, op, true)
	if i < 0 {
		i = q.find(at, op, false)
	}
	if i < 0 {
		return request{}, false
	}
	r = q.takeFor(at, op, i, sectors)
	if r.sectors > sectors && sectors > 0 {
		rest := r
		rest.sectors -= sectors
		q.add(place{at.major, at.minor, at.sector + sectors}, rest)
	}
	r.sectors = sectors
	return r, true
}

// split makes two requests of one.
func (q *requests) split(at place, op event.Op, second uint64) {
	i := q.find(at, op, false)
	if i < 0 || second <= at.sector || second-at.sector >= q.at[at][i].sectors {
		return
	}
	first := &q.at[at][i]
	rest := *first
	first.sectors = second - at.sector
	rest.sectors -= first.sectors
	q.add(place{at.major, at.minor, second}, rest)
}

// under is a request with its place.
type under struct {
	place
	request
}

// all returns what is under way, the oldest first.
func (q *requests) all() (all []under) {
	for at, list := range q.at {
		for _, r := range list {
			all = append(all, under{at, r})
		}
	}
	slices.SortStableFunc(all, func(a, b under) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.major, b.major), cmp.Compare(a.minor, b.minor),
			cmp.Compare(a.sector, b.sector), cmp.Compare(a.op, b.op))
	})
	return all
}
