// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestCutOff has a reader find the end of a file before what was written there.
func TestCutOff(t *testing.T) {
	long := strings.Repeat("0123456789", 20)
	write := func(at int64) call {
		return call{op: event.OpPwrite64, tid: 1, at: at, file: "/f", content: long}
	}
	end := func(at, offset int64) call {
		return call{op: event.OpPread64, tid: 1, at: at, file: "/f", offset: offset, n: 4096}
	}
	for _, c := range []struct {
		name   string
		calls  []call
		expect string
	}{
		{"read to its end", []call{write(1), end(2, 200)}, "wrong == 0"},
		{"shorter", []call{write(1), end(2, 100), end(3, 100)}, "truncated == 1 and wrong == 1"},
		{"empty", []call{write(1), end(2, 0)}, "truncated == 1 and wrong == 1"},
		{"cut off", []call{write(1), {op: event.OpFtruncate, tid: 1, at: 2, file: "/f", n: 100}, end(3, 100)},
			"wrong == 0"},
		{"before the write", []call{end(1, 0), write(2)}, "wrong == 0"},
		{"removed", []call{write(1), {op: event.OpUnlink, tid: 1, at: 2, file: "/f"}, end(3, 0)}, "wrong == 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &maker{t: t}
			m.tape("a", 0, true, c.calls...)
			expect(t, load(t, nil, m.names...), nil, c.expect)
		})
	}
}
