// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestStale has a server store two versions of a value, and answer requests.
func TestStale(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	one, two, other := string(noise(r, 700)), string(noise(r, 700)), string(noise(r, 700))
	const head = "HTTP/1.1 200 OK\r\n\r\n"
	type step struct {
		op      string // put, get, send, store
		content string
	}
	for _, c := range []struct {
		name   string
		steps  []step
		expect string
	}{
		{"new", []step{{"put", one}, {"get", one}, {"put", two}, {"get", two}}, "wrong == 0"},
		{"old", []step{{"put", one}, {"get", one}, {"put", two}, {"get", one}}, "stale == 1 and wrong == 1"},
		{"old, behind a header", []step{{"put", one}, {"get", head + one}, {"put", two}, {"get", head + one}},
			"stale == 1 and wrong == 1"},
		{"old, after the new one", []step{{"put", one}, {"put", two}, {"get", two}, {"get", one}},
			"stale == 1 and wrong == 1"},
		{"put back", []step{{"put", one}, {"get", one}, {"put", two}, {"put", one}, {"get", one}}, "wrong == 0"},
		{"no request", []step{{"put", one}, {"get", one}, {"put", two}, {"send", one}}, "wrong == 0"},
		{"acknowledgements", []step{{"get", other}, {"put", one}, {"put", two}, {"get", one}, {"get", two}},
			"wrong == 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
			at := int64(2)
			add := func(op event.Op, file, content string) {
				list = append(list, call{op: op, tid: 1, at: at, file: file, content: content})
				at++
			}
			for _, s := range c.steps {
				switch s.op {
				case "put":
					add(event.OpRecvfrom, fromB, s.content)
					add(event.OpPwrite64, "/store", s.content)
					add(event.OpSendto, fromB, "stored")
				case "get":
					add(event.OpRecvfrom, fromB, "get the value")
					add(event.OpSendto, fromB, s.content)
				case "send":
					add(event.OpRecvfrom, fromB, "something else")
					add(event.OpSendto, fromB, s.content)
				}
			}
			m := &maker{t: t}
			m.tape("b", 0, true, list...)
			expect(t, load(t, nil, m.names...), nil, c.expect)
		})
	}
}
