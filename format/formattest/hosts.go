// SPDX-License-Identifier: Apache-2.0

package formattest

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Hosts returns a tape of several hosts, each booted once, with two calls on each.
func Hosts(t testing.TB, names ...string) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hosts.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m := &trace.Manifest{Program: "test"}
	for i, n := range names {
		m.Hosts = append(m.Hosts, trace.Host{Head: trace.Head{Host: n, Arch: "amd64", BootID: strconv.Itoa(i),
			ClockNS: 100, WallNS: 1e18}})
	}
	for call := range 2 {
		for i := range names {
			at := int64(1000*(call+1) + i)
			ev := &event.Event{Op: event.OpSync, Host: uint32(i), PID: 1, TID: 1, Comm: "sync", Enter: at,
				Exit: at + 10, Offset: -1, Count: -1}
			if err := tw.Write(ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}
