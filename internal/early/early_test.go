// SPDX-License-Identifier: Apache-2.0

package early

import (
	"reflect"
	"syscall"
	"testing"
)

func TestOrder(t *testing.T) {
	for _, want := range []*Order{
		{Path: "/bin/true", Argv: []string{"true"}, Env: []string{}},
		{Path: "a\x00b", Argv: []string{"", "x"}, Env: []string{"A=1", "B="},
			Filter:     []Filter{{Code: 0x15, Jt: 255, Jf: 1, K: 1 << 31}, {Code: 6, K: 0x7fff0000}},
			Credential: &syscall.Credential{Uid: 65534, Gid: 1<<32 - 2, Groups: []uint32{1, 100}}},
	} {
		b := want.Encode()
		got, ok := decodeOrder(b[4:])
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %+v, %v; want %+v", got, ok, want)
		}
		for n := range b[4:] { // cut off anywhere
			if _, ok := decodeOrder(b[4 : 4+n]); ok {
				t.Errorf("%d of %d bytes are an order", n, len(b)-4)
			}
		}
	}
}

func TestReport(t *testing.T) {
	want := Report{Op: "exec", Errno: syscall.ENOENT}
	if got, ok := DecodeReport(want.Encode()); !ok || got != want {
		t.Errorf("decoded %+v, %v; want %+v", got, ok, want)
	}
	if _, ok := DecodeReport(nil); ok {
		t.Error("nothing is a report")
	}
}

func TestStatus(t *testing.T) {
	status := []byte("Name:\tx\nState:\tT (stopped)\nSigPnd:\t0000000000040000\nShdPnd:\t0000000000000000\n")
	if !isStopped(status) {
		t.Error("State: T is not stopped")
	}
	if !IsPending(status, syscall.SIGSTOP) || IsPending(status, syscall.SIGCONT) {
		t.Error("of SIGSTOP and SIGCONT not SIGSTOP alone is pending")
	}
	stat := []byte("7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2\n")
	if got := startTicks(stat); got != 4242 {
		t.Errorf("startTicks = %d, want 4242", got)
	}
}
