// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// logLines is text whose lines are alike.
func logLines(r *rand.Rand, k int) []byte {
	var b strings.Builder
	for n := 800 + r.IntN(1500); b.Len() < n; {
		fmt.Fprintf(&b, "level=info request=%d status=%d user=u%d served\n", r.IntN(1e6), 200+r.IntN(9), k)
	}
	return []byte(b.String())
}

// chunks divides a message: each chunk has its length in front, and an empty one is the end.
func chunks(message []byte, size int) (list [][]byte) {
	for at := 0; ; at += size {
		part := message[min(at, len(message)):min(at+size, len(message))]
		list = append(list, append(binary.BigEndian.AppendUint32(nil, uint32(len(part))), part...))
		if len(part) == 0 {
			return list
		}
	}
}

// TestDividedAnew has a server receive messages in chunks and send them in chunks of another size, as it
// should and not. It reads a chunk's length alone, or all that there is.
func TestDividedAnew(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		want  flow.Problem // "": none
		spoil func(give [][]byte)
	}{
		"clean":     {spoil: func([][]byte) {}},
		"changed":   {flow.Changed, func(g [][]byte) { g[6][len(g[6])/2] ^= 0x20 }},
		"lost":      {flow.Lost, func(g [][]byte) { g[6] = nil }},
		"truncated": {flow.Truncated, func(g [][]byte) { g[6] = g[6][:len(g[6])*2/3] }},
		"the end is missing": {spoil: func(g [][]byte) {
			clear(g[len(g)-3:])
		}},
		"a filter":           {spoil: func(g [][]byte) { g[2], g[5], g[6], g[9], g[12] = nil, nil, nil, nil, nil }},
		"bytes of its own":   {spoil: func(g [][]byte) { g[6] = append([]byte(strings.Repeat("own words; ", 9)), g[6]...) }},
		"another of its own": {spoil: func(g [][]byte) { g[6] = noise(rand.New(rand.NewPCG(9, 9)), len(g[6])) }},
	}
	kinds := map[string]func(*rand.Rand, int) []byte{"random": values["random"], "log lines": logLines}
	for kind, value := range kinds {
		for name, c := range faults {
			for _, apart := range []bool{true, false} {
				for _, out := range []int{150, 400, 550, 3000} {
					t.Run(fmt.Sprintf("%s/%s/lengths apart %t/to %d", kind, name, apart, out), func(t *testing.T) {
						t.Parallel()
						r := rand.New(rand.NewPCG(uint64(out), 1))
						var in, give [][]byte
						for k := range 16 {
							in = append(in, value(r, k))
							give = append(give, append([]byte(nil), in[k]...))
						}
						c.spoil(give)
						m := &maker{t: t}
						m.tape("b", 0, true, divided(in, give, apart, out)...)
						f := load(t, nil, m.names...)
						checkProblem(t, f, c.want, -1, nil)
					})
				}
			}
		}
	}
}

// divided is the calls of a server that receives messages in chunks of 400 bytes, and gives something out
// after each one in chunks of another size.
func divided(in, give [][]byte, apart bool, size int) []call {
	list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB},
		{op: event.OpConnect, tid: 1, at: 2, file: toC, open: 6}}
	at := int64(3)
	add := func(op event.Op, file string, open event.OpenID, content []byte) {
		if len(content) > 0 {
			list = append(list, call{op: op, tid: 1, at: at, file: file, open: open, content: string(content)})
			at++
		}
	}
	for i, message := range in {
		var all []byte
		for _, chunk := range chunks(message, 400) {
			if apart {
				add(event.OpRecvfrom, fromB, 0, chunk[:4])
				add(event.OpRecvfrom, fromB, 0, chunk[4:])
			}
			all = append(all, chunk...)
		}
		if !apart {
			add(event.OpRecvfrom, fromB, 0, all)
		}
		if give[i] == nil {
			continue
		}
		for _, chunk := range chunks(give[i], size) {
			add(event.OpSendto, toC, 6, chunk)
		}
	}
	return list
}
