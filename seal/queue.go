// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"container/heap"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// item is an event that waits for its place.
type item struct {
	ev      event.Event
	key     uint64 // ns; its place in the order
	arrival uint64
	base    int64         // file offset of its content, for cutting
	pending bool          // more content is to come
	before  bool          // an earlier event has its content
	entry   []trace.Piece // of its content, what was read at entry
	at      uint64        // where its record is, see Follower
	past    uint32        // trace.Object.Past of its file
}

// queue is a heap of items by key, then by arrival.
type queue struct{ h itemHeap }

func (q *queue) len() int      { return len(q.h) }
func (q *queue) top() *item    { return q.h[0] }
func (q *queue) push(it *item) { heap.Push(&q.h, it) }
func (q *queue) pop() *item    { return heap.Pop(&q.h).(*item) }

type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }
func (h itemHeap) Less(i, j int) bool {
	if h[i].key != h[j].key {
		return h[i].key < h[j].key
	}
	return h[i].arrival < h[j].arrival
}
func (h itemHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *itemHeap) Push(x any)   { *h = append(*h, x.(*item)) }
func (h *itemHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return it
}
