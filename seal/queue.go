package seal

import (
	"container/heap"

	"iotape/event"
)

// item is an event that waits for its place.
type item struct {
	ev      event.Event
	key     uint64 // ns; its place in the order
	arrival uint64
	base    int64 // file offset of its content, for cutting
	pending bool  // more content is to come
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

// overlapWindow is how many events after one are looked at for an overlapping
// call on the same file. Each thread has at most one call in progress, so this
// covers as many threads that write one file at once.
const overlapWindow = 64

// orderAppends puts overlapping calls that moved one file's position, or appended
// to it, into the order of the offsets that they got: that is the order in which
// the kernel did them, whichever hook ran first.
func orderAppends(batch []*item) {
	for i := 0; i < len(batch); i++ {
		if !movesPosition(&batch[i].ev) {
			continue
		}
		first := i
		for j := i + 1; j < len(batch) && j < i+overlapWindow; j++ {
			a, b := &batch[first].ev, &batch[j].ev
			if movesPosition(b) && b.Enter < batch[i].ev.Exit && sameFile(a, b) && b.Offset < a.Offset {
				first = j
			}
		}
		if first != i {
			it := batch[first]
			copy(batch[i+1:first+1], batch[i:first])
			batch[i] = it
			// One order for all that follows: it takes the place's time.
			it.key = batch[i+1].key
		}
	}
}

// movesPosition reports whether a successful call wrote or read at a position that
// it found, rather than at one that it named.
func movesPosition(ev *event.Event) bool {
	switch ev.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return ev.OK() && ev.Offset >= 0
	}
	return false
}

func sameFile(a, b *event.Event) bool {
	f, g := a.FileArg(0), b.FileArg(0)
	return f != nil && g != nil && f.Ino == g.Ino && f.Dev == g.Dev && a.TID != b.TID
}
