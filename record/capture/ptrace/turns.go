// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// turns lets the threads that move a position in one file, or its end back, do it one
// after the other. The kernel does so anyway, but where a call began can only be told
// from where the position is afterwards, and only while nobody else moves it on; and
// which of an append, a seek to the end and a truncation came first not at all, where
// they overlap. Regular files do not make a call wait for another, so turns cannot block.
type turns map[fileID]*turn

type fileID struct {
	dev uint32
	ino uint64
}

// turn is a file with a thread in a call on it, and the threads that are held at
// the entry of theirs.
type turn struct {
	file    fileID
	owner   *thread
	waiting []*thread
}

// takesTurns reports whether a call uses or moves a file's position, or its end.
func takesTurns(op event.Op) bool {
	switch op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev, event.OpLseek, event.OpFtruncate:
		return true
	}
	return false
}

// file returns the regular file of a call's descriptor, zero if it is none.
func (r *Recorder) file(th *thread) fileID {
	o, ok := r.proc.object(th.t.TID, int(int32(th.call.args[0])), 0)
	if !ok || o.Mode&unix.S_IFMT != unix.S_IFREG {
		return fileID{}
	}
	return fileID{o.Dev, o.Ino}
}

// take gives a thread the file's turn, or holds it until it has it.
func (ts turns) take(th *thread, file fileID) {
	if file.ino == 0 {
		return
	}
	t := ts[file]
	if t == nil {
		t = &turn{file: file, owner: th}
		ts[file] = t
	} else {
		t.waiting = append(t.waiting, th)
		th.t.Hold()
	}
	th.turn = t
}

// pass ends a thread's turn and lets the next one in, which it returns, nil if there is
// none. Its call begins now.
func (ts turns) pass(th *thread) (next *thread) {
	t := th.turn
	if t == nil {
		return nil
	}
	th.turn = nil
	if t.owner != th { // ended while it waited
		for i, w := range t.waiting {
			if w == th {
				t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
				break
			}
		}
		return nil
	}
	for len(t.waiting) > 0 {
		next = t.waiting[0]
		t.waiting = t.waiting[1:]
		if !next.t.Held() {
			next.turn = nil // killed; its end is still to be reported
			continue
		}
		t.owner = next
		next.call.enter = now()
		next.t.Resume()
		return next
	}
	delete(ts, t.file)
	return nil
}
