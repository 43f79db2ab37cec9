// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// TestAnswersOfServers has a client ask three servers for the same values. Its tape alone shows which
// server answers otherwise than the others.
func TestAnswersOfServers(t *testing.T) {
	t.Parallel()
	spoil := func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		want   int
		answer func(server, key int, value []byte) []byte
	}{
		"alike": {0, func(_, _ int, v []byte) []byte { return v }},
		"one of the second": {1, func(s, k int, v []byte) []byte {
			if s == 1 && k == 5 {
				return spoil(v)
			}
			return v
		}},
		"two of the first": {2, func(s, k int, v []byte) []byte {
			if s == 0 && (k == 5 || k == 11) {
				return spoil(v)
			}
			return v
		}},
		"each its own": {0, func(s, _ int, v []byte) []byte { return append(v, fmt.Sprintf("server %d", s)...) }},
		"one is of another kind": {0, func(s, k int, v []byte) []byte {
			if s == 2 && k%2 == 0 {
				return spoil(v)
			}
			return v
		}},
		"a shorter answer": {0, func(s, k int, v []byte) []byte {
			if s == 2 && k == 4 {
				return []byte(strings.Repeat("not found ", 7))
			}
			return v
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []call
			at := int64(1)
			for s := range 3 {
				file := fmt.Sprintf("TCP:[10.0.0.1:%d->10.0.0.%d:80]", 4000+s, 2+s)
				open := event.OpenID(10 + s)
				list = append(list, call{op: event.OpConnect, tid: 1, at: at, file: file, open: open})
				for k := range 16 {
					value := noise(rand.New(rand.NewPCG(uint64(k), 7)), 200+k)
					answer := c.answer(s, k, value)
					list = append(list,
						call{op: event.OpSendto, tid: 1, at: at + 1, file: file, open: open,
							content: fmt.Sprintf("get value %d", k)},
						call{op: event.OpRecvfrom, tid: 1, at: at + 2, file: file, open: open,
							content: fmt.Sprintf("%d bytes", len(answer))},
						call{op: event.OpRecvfrom, tid: 1, at: at + 3, file: file, open: open, content: string(answer)})
					at += 3
				}
				at++
			}
			m := &maker{t: t}
			m.tape("client", 0, true, list...)
			f := load(t, nil, m.names...)
			expect(t, f, nil, fmt.Sprintf("differing == %d and wrong == %d", c.want, c.want))
			for _, x := range f.Findings()[:c.want] {
				server := map[string]string{"one of the second": "10.0.0.3:80", "two of the first": "10.0.0.2:80"}[name]
				if x.Problem != flow.Differing || !strings.HasPrefix(x.Text, server+" answered") || x.Decide == "" {
					t.Errorf("got %q, want that %s differs, and what decides it", x.Text, server)
				}
			}
		})
	}
}
