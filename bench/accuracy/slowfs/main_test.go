package main

import (
	"testing"
	"time"
)

// TestDevice checks when requests are done: one arm seeks and does one after the other,
// many do them side by side; flushes cost what there is to flush.
func TestDevice(t *testing.T) {
	const ms = time.Millisecond
	const read, write, flush = 0, 1, 2
	type request struct {
		do, file int
		off, n   int64
		at, done time.Duration
	}
	for _, c := range []struct {
		name     string
		device   *device
		requests []request
	}{
		{"one arm", &device{seek: 3 * ms, transfer: ms, arms: make([]arm, 1)}, []request{
			{read, 1, 0, unit, 0, 4 * ms},
			{read, 1, unit, unit, 4 * ms, 5 * ms},       // goes on where the arm is
			{read, 2, 2 * unit, unit, 4 * ms, 9 * ms},   // waits for it, and seeks
			{read, 2, 0, 2 * unit, 20 * ms, 25 * ms},    // the arm was free; seeks back
			{read, 2, 2 * unit, unit, 20 * ms, 26 * ms}, // goes on
		}},
		{"two channels", &device{seek: ms, transfer: ms, arms: make([]arm, 2)}, []request{
			{write, 1, 0, unit, 0, 2 * ms},
			{write, 1, unit, unit, 0, 2 * ms},
			{write, 1, 2 * unit, unit, 0, 4 * ms},
			{flush, 1, 0, 0, 4 * ms, 5 * ms},
		}},
		{"flushes", &device{seek: 3 * ms, transfer: ms, arms: make([]arm, 1)}, []request{
			{flush, 1, 0, 0, 0, 0}, // nothing was written
			{write, 1, 0, unit, 0, 4 * ms},
			{flush, 2, 0, 0, 4 * ms, 4 * ms},        // of another file
			{flush, 1, 0, 0, 4 * ms, 7 * ms},        // a seek
			{flush, 1, 0, 0, 5 * ms, 7 * ms},        // relies on the one under way
			{flush, 1, 0, 0, 8 * ms, 8 * ms},        // nothing was written since
			{write, 1, unit, unit, 8 * ms, 12 * ms}, // the arm is elsewhere
			{write, 1, 2 * unit, unit, 12 * ms, 13 * ms},
			{flush, 1, 0, 0, 13 * ms, 16 * ms}, // of both
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[int]*content{1: {}, 2: {}}
			for i, r := range c.requests {
				var got time.Duration
				if r.do == flush {
					got = c.device.flushed(r.at, files[r.file])
				} else {
					got = c.device.transferred(r.at, files[r.file], r.off, r.n, r.do == write)
				}
				if got != r.done {
					t.Errorf("request %d is done at %v, want %v", i, got, r.done)
				}
			}
		})
	}
}
