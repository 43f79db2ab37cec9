// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestAsks has one side send values that are alike, and read back some of them in other pieces. What
// a client sends is its own, however like an answer; a server that sends back what it received, with
// a byte changed, has changed it.
func TestAsks(t *testing.T) {
	for _, c := range []struct {
		name         string
		client, flip bool
		expect       string
	}{
		{"a client", true, false, "wrong == 0"},
		{"a server", false, false, "wrong == 0"},
		{"a server that changes a byte", false, true, "changed == 1 and wrong == 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 5))
			value := values["log line, repeated"]
			list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
			at := int64(2)
			add := func(op event.Op, content []byte) {
				list = append(list, call{op: op, tid: 1, at: at, file: fromB, content: string(content)})
				at++
			}
			for k := range 12 {
				v := value(r, k)
				if c.client {
					add(event.OpSendto, v)
					add(event.OpRecvfrom, v[:len(v)/3])
					add(event.OpRecvfrom, v[len(v)/3:])
					continue
				}
				add(event.OpRecvfrom, v)
				if k == 7 && c.flip {
					v[len(v)/2] ^= 0x20
				}
				add(event.OpSendto, v)
			}
			m := &maker{t: t}
			m.tape("b", 0, true, list...)
			expect(t, load(t, nil, m.names...), nil, c.expect)
		})
	}
}
