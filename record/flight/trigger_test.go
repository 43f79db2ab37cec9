// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

func TestParseTrigger(t *testing.T) {
	for text, want := range map[string]Trigger{
		"errno=EIO":                    {Errno: syscall.EIO},
		"op=fsync":                     {Op: event.OpFsync},
		"slow=50ms":                    {Slow: 50 * time.Millisecond},
		"op=pwrite64,errno=ENOSPC":     {Op: event.OpPwrite64, Errno: syscall.ENOSPC},
		"slow=1s,op=fdatasync":         {Op: event.OpFdatasync, Slow: time.Second},
		"":                             {},
		"errno=":                       {},
		"errno=5":                      {},
		"errno=eio":                    {},
		"op=nothing":                   {},
		"op=syscall":                   {},
		"slow=50":                      {},
		"slow=-1s":                     {},
		"slow":                         {},
		"exit=0":                       {},
		"errno=EIO,":                   {},
		"errno=EIO op=fsync":           {},
		"op=fsync,slow=1ms,comm=mysql": {},
	} {
		got, err := ParseTrigger(text)
		if (err != nil) != (want == Trigger{}) || err == nil && got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// What makes a trigger go off, told by records as back ends write them.
func TestTriggers(t *testing.T) {
	call := func(op event.Op, ret int64, took time.Duration, mode uint32) *trace.Record {
		r := &trace.Record{Type: trace.RecCall, Op: uint16(op), PID: 1, TID: 2, Enter: 1000,
			Exit: 1000 + uint64(took), Ret: ret}
		if mode != 0 {
			r.Objects = []trace.Object{{Mode: mode}}
		}
		return r
	}
	delayed := call(event.OpWrite, -5, 60e6, unix.S_IFIFO)
	delayed.Flags, delayed.DelayBefore = trace.CallDelays, unix.S_IFREG
	cut := call(event.OpRead, 0, time.Hour, unix.S_IFREG)
	cut.Flags = trace.CallInterrupted
	exit := func(pid, tid uint32, status int64) *trace.Record {
		return &trace.Record{Type: trace.RecExit, PID: pid, TID: tid, Ret: status}
	}
	const slow, eio = "slow=50ms", "errno=EIO"
	for _, tt := range []struct {
		name    string
		trigger string
		r       *trace.Record
		want    string // of the reason; "" is no trigger
	}{
		{"error", eio, call(event.OpWrite, -5, 1, unix.S_IFREG), "write by thread 2 failed with EIO"},
		{"another error", eio, call(event.OpWrite, -28, 1, unix.S_IFREG), ""},
		{"success", eio, call(event.OpWrite, 5, 1, unix.S_IFREG), ""},
		{"another operation", "op=read," + eio, call(event.OpWrite, -5, 1, unix.S_IFREG), ""},
		{"operation", "op=fsync", call(event.OpFsync, 0, 1, unix.S_IFREG), "fsync by thread 2 after 1ns"},
		{"slow", slow, call(event.OpFsync, 0, 60e6, unix.S_IFREG), "fsync by thread 2 after 60ms"},
		{"fast", slow, call(event.OpFsync, 0, 40e6, unix.S_IFREG), ""},
		{"slow name", slow, call(event.OpUnlink, 0, 60e6, 0), "unlink"},
		{"a pipe waits", slow, call(event.OpRead, 1, 60e6, unix.S_IFIFO), ""},
		{"a pipe waits, and for a processor", slow, delayed, ""},
		{"an error of who waited for a processor", eio, delayed, "write by thread 2 failed with EIO"},
		{"a terminal waits", slow, call(event.OpRead, 1, 60e6, unix.S_IFCHR), ""},
		{"a poll waits", slow, call(event.OpPoll, 1, 60e6, 0), ""},
		{"a poll that is asked for", slow + ",op=poll", call(event.OpPoll, 1, 60e6, 0), "poll"},
		{"a call without return", slow, cut, ""},
		{"a crash", eio, exit(4, 4, int64(syscall.SIGSEGV)|0x80), "process 4 was ended by SIGSEGV"},
		{"of a thread, with its process to come", eio, exit(4, 5, int64(syscall.SIGSEGV)), ""},
		{"killed", eio, exit(4, 4, int64(syscall.SIGKILL)), ""},
		{"the reader of a pipe has gone", eio, exit(4, 4, int64(syscall.SIGPIPE)), ""},
		{"exit", eio, exit(4, 4, 1<<8), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trigger, err := ParseTrigger(tt.trigger)
			if err != nil {
				t.Fatal(err)
			}
			var got []Cause
			r, err := start(&Options{Bytes: 1 << 20, Triggers: []Trigger{trigger},
				Triggered: func(c Cause) { got = append(got, c) }})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			f := &trace.Frame{Kind: trace.FrameRecords}
			for range 2 {
				if err := r.WriteFrame(f, trace.AppendRecord(nil, tt.r)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.want == "" {
				if len(got) != 0 || r.Ignored() != 0 {
					t.Errorf("triggered: %+v, %d ignored", got, r.Ignored())
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0].Reason, tt.want) ||
				got[0].Crash != (tt.r.Type == trace.RecExit) || r.Ignored() != 1 {
				t.Fatalf("triggered: %+v, %d ignored, want one: %s", got, r.Ignored(), tt.want)
			}
			r.Arm(got[0].Crash)
			if err := r.WriteFrame(f, trace.AppendRecord(nil, tt.r)); err != nil || len(got) != 2 {
				t.Errorf("armed again: %+v, %v", got, err)
			}
		})
	}
}

// Triggers read the fixed part of records by themselves: any bytes will do.
func FuzzReadCall(f *testing.F) {
	f.Add((&trace.Record{Type: trace.RecCall, Op: 2, Objects: []trace.Object{{Mode: 1}}}).Append(nil))
	f.Add((&trace.Record{Type: trace.RecExit, Ret: 11}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := readCall(b)
		var r trace.Record
		if !ok || r.Decode(b) != nil {
			return
		}
		if r.Type != c.typ || r.PID != c.pid || r.TID != c.tid || r.Ret != c.ret || r.Exit != c.exit ||
			r.Type == trace.RecCall && r.Enter != c.enter {
			t.Errorf("%+v read as %+v", r, c)
		}
		if len(r.Objects) > 0 && r.Objects[0].Mode != c.mode {
			t.Errorf("mode %o read as %o", r.Objects[0].Mode, c.mode)
		}
		c.matches([]Trigger{{Slow: 1}, {Errno: 5}})
		_ = c.reason()
	})
}
