// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// TestLocksOfProcesses: a process keeps what it locked by fcntl until it loses a descriptor
// of the file: another process is refused until then, and not from then on.
func TestLocksOfProcesses(t *testing.T) {
	const all = event.ShareFiles | event.ShareFS | event.ShareVM | event.ShareThread
	call := func(op event.Op, args ...uint64) event.Event {
		ev := event.Event{Op: op}
		copy(ev.Args[:], args)
		return ev
	}
	ends := func(tid uint32) event.Event { return event.Event{Kind: event.Exited, PID: 1, TID: tid} }
	by := func(tid uint32, ev event.Event) event.Event {
		ev.PID, ev.TID = 1, tid
		return ev
	}
	for _, c := range []struct {
		name        string
		flags       uint64 // of the open
		keeps, ends []event.Event
	}{
		{"its first thread is not its last", 0, []event.Event{ends(1)}, []event.Event{ends(2)}},
		{"its first thread is its last", 0, []event.Event{ends(2)}, []event.Event{ends(1)}},
		{"it executes", 0, []event.Event{ends(2), call(event.OpExecve, 0x1000)}, []event.Event{ends(1)}},
		{"its second thread executes", 0, []event.Event{ends(1), by(2, call(event.OpExecve, 0x1000))},
			[]event.Event{ends(1)}},
		{"close-on-exec", syscall.O_CLOEXEC, []event.Event{ends(2)}, []event.Event{call(event.OpExecve, 0x1000)}},
		{"another descriptor of the file is closed", 0,
			[]event.Event{{Op: event.OpDup2, Args: [6]uint64{3, 7}, Ret: 7}}, []event.Event{call(event.OpClose, 7)}},
		{"the number is of another", 0, nil, []event.Event{{Op: event.OpDup2, Args: [6]uint64{4, 3}, Ret: 3}}},
		{"a range is closed", 0, []event.Event{call(event.OpCloseRange, 4, 9)},
			[]event.Event{call(event.OpCloseRange, 3, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Open(4, "other", event.OpenCreat|2)
			s.Open(3, "f", event.OpenCreat|2|c.flags)
			lock := func(pid uint32, errno syscall.Errno) {
				flock := make([]byte, 32)
				binary.LittleEndian.PutUint16(flock, syscall.F_WRLCK)
				ev := event.Event{PID: pid, TID: pid, Op: event.OpFcntl, Errno: errno,
					Args:  [6]uint64{3, syscall.F_SETLK, 0x1000},
					Files: []event.File{{FD: 3, Known: true, Mode: syscall.S_IFREG | 0o644, Ino: s.Ino}},
					Bufs:  []event.Buf{{Arg: 2, Kind: event.KindStruct, Len: 32, Inline: flock}}}
				if errno != 0 {
					ev.Ret = -1
				}
				s.Add(ev)
			}
			s.Add(event.Event{Kind: event.Forked, Child: 9, Ret: 9})
			s.Add(event.Event{Kind: event.Forked, Child: 2, Ret: 1, Args: [6]uint64{all}})
			lock(1, 0)
			for _, ev := range c.keeps {
				s.Add(ev)
			}
			lock(9, syscall.EAGAIN)
			for _, ev := range c.ends {
				s.Add(ev)
			}
			lock(9, 0)
			rep, err := Run(t.Context(), s.Close(), &Options{
				Into: filepath.Join(t.TempDir(), "into"), Checks: CheckAll,
			})
			if err != nil || !rep.OK() || rep.Unexplained > 0 {
				t.Errorf("%v, %+v", err, rep)
			}
		})
	}
}
