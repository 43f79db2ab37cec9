// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strconv"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// What strace writes in another way than the rest: clone's arguments have names, and
// calls that wait say behind their result what happened.

// clone's arguments in strace's order, which is that of their names. On arm64, tls
// stands before child_tid.
var (
	cloneLabels  = []string{"child_stack", "flags", "parent_tid", "tls", "child_tidptr"}
	cloneOnAMD64 = []int{1, 0, 2, 4, 3}
	cloneOnARM64 = []int{1, 0, 2, 3, 4}
)

func cloneOrder(op event.Op, a event.Arch) (order []int, labels []string) {
	switch {
	case op != event.OpClone:
		return nil, nil
	case a == event.ARM64:
		return cloneOnARM64, cloneLabels
	}
	return cloneOnAMD64, cloneLabels
}

// cloneLooksAt reports whether clone's flags say that it looks at argument i.
func cloneLooksAt(e *event.Event, i int, order []int) bool {
	const pidfd, parentSetTID, setTLS, childClearTID, childSetTID = 0x1000, 0x100000, 0x80000, 0x200000, 0x1000000
	flags := e.Args[0]
	switch i {
	case order[2]:
		return flags&(pidfd|parentSetTID) != 0
	case order[3]:
		return flags&setTLS != 0
	case order[4]:
		return flags&(childClearTID|childSetTID) != 0
	}
	return true
}

// What poll was asked, and what it answered.
var (
	pollAsked    = map[string]bool{"revents": true}
	pollAnswered = map[string]bool{"events": true}
)

// appendNote writes what a call that waits found.
func (p *Printer) appendNote(dst []byte, e *event.Event) []byte {
	timeout := 0
	start := len(dst)
	switch e.Op {
	case event.OpPoll, event.OpPpoll:
		if e.Ret > 0 {
			dst = p.appendPolled(dst, e)
		}
		timeout = 2
	case event.OpSelect, event.OpPselect6:
		if e.Ret > 0 {
			dst = p.appendSelected(dst, e)
		}
		timeout = 4
	case event.OpRecvmmsg:
		if e.Ret == 0 {
			return dst
		}
		timeout = 4
	case event.OpTime:
		dst = time.Unix(e.Ret, 0).In(p.o.Location).AppendFormat(append(dst, " ("...), "2006-01-02T15:04:05-0700")
		return append(dst, ')')
	default:
		return dst
	}
	if e.Ret == 0 {
		return append(dst, " (Timeout)"...)
	}
	if b := e.BufArg(timeout); b != nil && e.Op != event.OpPoll {
		a := e.Spec().Args[timeout]
		if v, ok := p.decode(e, &a, timeout, b); ok {
			dst = append(dst, separator(len(dst) == start)...)
			dst = append(dst, "left "...)
			dst = p.appendValue(dst, &v, &wording{})
		}
	}
	if len(dst) > start {
		dst = append(dst, ')')
	}
	return dst
}

func separator(first bool) string {
	if first {
		return " ("
	}
	return ", "
}

// appendPolled writes the descriptors on which something happened.
func (p *Printer) appendPolled(dst []byte, e *event.Event) []byte {
	b := e.BufArg(0)
	if b == nil {
		return dst
	}
	a := e.Spec().Args[0]
	v, ok := p.decode(e, &a, 0, b)
	if !ok {
		return dst
	}
	w := wording{entries: briefItems, skip: pollAnswered}
	dst = append(dst, " (["...)
	first := true
	for i := range v.Len() {
		f := v.At(i)
		if r, ok := f.Field("revents"); !ok || r.Num == 0 {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = p.appendValue(dst, &f, &w)
	}
	return append(dst, ']')
}

// appendSelected writes the descriptors that are ready.
func (p *Printer) appendSelected(dst []byte, e *event.Event) []byte {
	first := true
	for i, name := range [...]string{"in ", "out ", "except "} {
		b := e.BufArg(i + 1)
		if b == nil {
			continue
		}
		bits := p.content(b, maxStructs)
		if !anyBit(bits) {
			continue
		}
		dst = append(append(dst, separator(first)...), name...)
		first = false
		dst = p.appendValue(dst, &layout.Value{Kind: layout.Bits, Data: bits}, &wording{})
	}
	return dst
}

func anyBit(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return true
		}
	}
	return false
}

// appendNumbers writes decimal numbers, separated by commas.
func appendNumbers(dst []byte, list []int64) []byte {
	for i, n := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, n, 10)
	}
	return dst
}
