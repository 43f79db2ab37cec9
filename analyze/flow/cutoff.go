// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"strings"
)

// fileEnd is a read that found the end of a file.
type fileEnd struct {
	event  uint32 // position in the order
	object uint32
	at     int64
	before int // moves that are before it in causal order
}

// fileSize is the size that a file got by writes, and the move that made it so.
type fileSize struct {
	end int64
	by  uint32
}

// grow notes that move i wrote to a file up to a position.
func (w *finder) grow(object, i uint32, end int64) {
	if end >= w.sizes[object].end {
		w.sizes[object] = fileSize{end, i}
	}
}

// shrink notes that a file was cut off.
func (w *finder) shrink(object uint32, end int64) {
	if x, ok := w.sizes[object]; ok && x.end > end {
		w.sizes[object] = fileSize{end, x.by}
	}
}

// cutOff takes the reads that found the end of a file before move i: what was written behind that
// end is gone, and no call cut it off.
func (w *finder) cutOff(i int) {
	f := w.f
	for ; w.ended < len(f.ends) && f.ends[w.ended].before <= i; w.ended++ {
		e := &f.ends[w.ended]
		o := &f.objects[e.object]
		x, ok := w.sizes[e.object]
		if !ok || o.vague || strings.HasPrefix(o.Name, "/proc/") || strings.HasPrefix(o.Name, "/sys/") {
			continue // a file of the kernel is not what was written to it
		}
		by, size := x.by, x.end
		if size-e.at < smallest || f.order.Exit(int(f.moves[by].event)) > f.order.Wall(int(e.event)) {
			continue
		}
		delete(w.sizes, e.object) // once is enough
		l := f.order.Line(int(e.event))
		p := &f.procs[f.process[l]]
		f.add(Finding{Problem: Truncated, Moves: []int{int(by)}, Bytes: size - e.at,
			Text: fmt.Sprintf("%s%s[%d] found the end of %s at %d (event %s), although %s had written up to %d",
				f.HostPrefix(p.Host), p.Comm, p.PID, f.name(o), e.at, f.EventName(int(e.event)), f.who(int(by)), size),
			Confidence: High,
			Decide:     "whether a program that was not recorded cut the file off or replaced it"})
	}
}
