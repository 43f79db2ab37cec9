// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// Count counts an event of a tape. It returns false, and counts nothing, of what is no
// system call: marks, requests to io_uring and of Linux AIO, and what happened through
// mappings are not counted in the kernel either.
func (t *Table) Count(ev *event.Event) bool {
	if t.By&BySignal != 0 {
		return t.countSignal(ev)
	}
	if ev.Kind != event.Call || ev.Op != event.OpUnknown && !ev.Spec().IsCall() || ev.Flags&event.Synthetic != 0 {
		return false
	}
	c := t.row(t.placed(keyOf(ev, t.By), ev))
	c.Calls++
	if !returns(ev) {
		c.Unfinished++
		return true
	}
	if took, known := ev.Took(); known {
		ns := uint64(took)
		c.NS += ns
		c.MaxNS = max(c.MaxNS, ns)
		c.Latency[BucketOf(ns)]++
	} else {
		c.Untimed++
	}
	if ev.Errno != 0 {
		c.Failed++
	}
	moved := ev.Traffic()
	c.Read += uint64(moved.Read)
	c.Written += uint64(moved.Written)
	return true
}

// maxSignal is the highest signal (_NSIG, asm/signal.h).
const maxSignal = 64

// countSignal counts a signal that is delivered; one that ends the process counts as failed.
func (t *Table) countSignal(ev *event.Event) bool {
	sig, action := ev.Signal()
	if ev.Kind != event.Signalled || sig < 1 || sig > maxSignal {
		return false
	}
	c := t.row(t.placed(Key{UID: ev.UID, PID: ev.PID, Comm: ev.Comm, Signal: uint8(sig)}, ev))
	c.Calls++
	c.Untimed++
	if action == event.SignalTerminates || action == event.SignalDumps {
		c.Failed++
	}
	return true
}

// placed returns a key with the place of an event's process.
func (t *Table) placed(k Key, ev *event.Event) Key {
	if t.By&ByPlace != 0 && t.CgroupOf != nil {
		k.Place = t.place(t.CgroupOf(ev))
	}
	return k
}

// place returns the place of a control group, of which it keeps some.
func (t *Table) place(cgroup string) facts.Place {
	const most = 4096
	p, known := t.places[cgroup]
	if !known {
		if t.places == nil || len(t.places) >= most {
			t.places = map[string]facts.Place{}
		}
		p = facts.PlaceIn(cgroup)
		t.places[cgroup] = p
	}
	return p
}

func returns(ev *event.Event) bool {
	return ev.Flags&event.Interrupted == 0 && !ev.Spec().NoReturn
}

func keyOf(ev *event.Event, by By) Key {
	k := Key{Op: ev.Op, UID: ev.UID, PID: ev.PID, Comm: ev.Comm}
	if by&ByExtension != 0 {
		k.Ext = extensionOf(ev)
	}
	if by&(ByFile|ByDir) != 0 {
		if k.File = fileOf(ev); k.File != "" {
			k.Dir = k.File[:max(strings.LastIndexByte(k.File, '/'), 0)]
			if k.Dir == "" && k.File[0] == '/' {
				k.Dir = "/"
			}
		}
	}
	if took, known := ev.Took(); known && returns(ev) {
		k.Octave = Octave(uint64(took))
	}
	return k
}

// fileOf returns the name of the file that an event is about: of its descriptor, or else of its first path. It is
// the one that the kernel came to, so that a file has one row.
func fileOf(ev *event.Event) string {
	name := ""
	if f := ev.Subject(); f != nil {
		name = f.Reached()
	}
	if name == "" && len(ev.Paths) > 0 {
		name = cmp.Or(ev.Paths[0].Reached(), ev.Paths[0].Raw)
	}
	return strings.Clone(name[:min(len(name), MaxName)])
}

// extensionOf returns the extension of what an event is about: of the name that it has,
// or else of the name that its first descriptor was opened by.
func extensionOf(ev *event.Event) string {
	s := ev.Spec()
	if i := s.NameArg(); i >= 0 {
		if p := ev.PathArg(i); p != nil && p.Raw != "" {
			return Extension(p.Raw)
		}
	}
	if objects := s.Objects(); len(objects) > 0 {
		if f := ev.FileArg(objects[0]); f != nil {
			return Extension(f.Name())
		}
	}
	return ""
}

// Extension returns what stands behind the last dot of a name's last part; "" if there is
// no dot, nothing behind it, or more than MaxExtension bytes.
func Extension(name string) string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	ext := base[strings.LastIndexByte(base, '.')+1:]
	if len(ext) == len(base) || len(ext) > MaxExtension {
		return ""
	}
	return ext
}
