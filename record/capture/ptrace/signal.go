// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// signal records a signal that is about to be delivered, and lets it through.
func (r *Recorder) signal(t *ptracer.Tracee, sig syscall.Signal, info *ptracer.Siginfo) ptracer.Verdict {
	if r.over || info.Signo != int32(sig) { // it was killed while it was looked at
		return ptracer.Deliver
	}
	th := r.of(t)
	at := t.Seen
	if th.inUse { // it came before the call began, or the call's return is still to be told
		at = max(at, th.call.enter)
	}
	data := bytes.Clone(info.Bytes()[:event.SiginfoBytes])
	r.out.put(&trace.Record{
		Type: trace.RecSignal, PID: uint32(t.PID), TID: th.tid, Exit: at,
		Flags:  uint32(actionOf(t.PID, t.TID, int(sig))),
		Pieces: []trace.Piece{{Len: event.SiginfoBytes, Data: data}},
	})
	return ptracer.Deliver
}

// actionOf returns what becomes of a signal to a thread, which is stopped before its delivery.
func actionOf(pid, tid, sig int) event.SignalAction {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return event.SignalUnknown // killed
	}
	has := func(name string) bool {
		set, _ := strconv.ParseUint(string(running.Field(status, name)), 16, 64)
		return sig > 0 && sig <= 64 && set>>(sig-1)&1 != 0
	}
	switch {
	case has("SigCgt:"):
		return event.SignalHandled
	case has("SigIgn:"):
		return event.SignalIgnored
	}
	return event.DefaultAction(sig)
}
