package main

import (
	"testing"
	"time"
)

// TestDevice checks when requests are done: one arm seeks and does one after the other,
// many do them side by side.
func TestDevice(t *testing.T) {
	const ms = time.Millisecond
	type request struct {
		inode    uint64
		off, n   int64
		at, done time.Duration
	}
	for _, c := range []struct {
		name     string
		device   *device
		requests []request
	}{
		{"one arm", &device{seek: 3 * ms, transfer: ms, arms: make([]arm, 1)}, []request{
			{1, 0, unit, 0, 4 * ms},
			{1, unit, unit, 4 * ms, 5 * ms},       // goes on where the arm is
			{2, 2 * unit, unit, 4 * ms, 9 * ms},   // waits for it, and seeks
			{2, 0, 2 * unit, 20 * ms, 25 * ms},    // the arm was free; seeks back
			{2, 2 * unit, unit, 20 * ms, 26 * ms}, // goes on
		}},
		{"two channels", &device{seek: ms, transfer: ms, arms: make([]arm, 2)}, []request{
			{1, 0, unit, 0, 2 * ms},
			{1, unit, unit, 0, 2 * ms},
			{1, 2 * unit, unit, 0, 4 * ms},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			for i, r := range c.requests {
				if got := c.device.schedule(begin.Add(r.at), r.inode, r.off, r.n).Sub(begin); got != r.done {
					t.Errorf("request %d is done at %v, want %v", i, got, r.done)
				}
			}
		})
	}
}
