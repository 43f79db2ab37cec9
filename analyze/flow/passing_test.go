// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

const toC = "TCP:[10.0.0.2:5000->10.0.0.3:80]"

// passingOn is a server that receives messages and passes on what give makes of them: writes, each
// with the message that it comes after.
func passingOn(to string, messages []string, give [][]string) []call {
	list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
	op := event.OpSendto
	if to[0] == '/' {
		op = event.OpPwrite64
	} else {
		list = append(list, call{op: event.OpConnect, tid: 1, at: 2, file: to, open: 6})
	}
	at, offset := int64(3), int64(0)
	for i, m := range messages {
		list = append(list, call{op: event.OpRecvfrom, tid: 1, at: at, file: fromB, content: m})
		at++
		for _, g := range give[i] {
			list = append(list, call{op: op, tid: 1, at: at, file: to, open: 6, offset: offset, content: g})
			offset += int64(len(g))
			at++
		}
	}
	return list
}

// TestPassingOn has a server pass on twelve messages, in several forms, as it should and not.
func TestPassingOn(t *testing.T) {
	type fault struct {
		want  flow.Problem // "": none
		event int          // of the message that the finding has to name, among those received
		spoil func(give [][]string)
	}
	faults := map[string]fault{
		"clean":      {spoil: func([][]string) {}},
		"lost":       {flow.Lost, 4, func(g [][]string) { g[4] = nil }},
		"truncated":  {flow.Truncated, 5, func(g [][]string) { g[5] = []string{g[5][0][:len(g[5][0])*2/3]} }},
		"duplicated": {flow.Duplicated, 6, func(g [][]string) { g[6] = append(g[6], g[6]...) }},
		"reordered":  {flow.Reordered, -1, func(g [][]string) { g[7], g[8] = nil, append(slices.Clone(g[8]), g[7]...) }},
		"two pairs reordered": {flow.Reordered, -1, func(g [][]string) {
			g[2], g[3] = nil, append(slices.Clone(g[3]), g[2]...)
			g[7], g[8] = nil, append(slices.Clone(g[8]), g[7]...)
		}},
		"the end is missing": {spoil: func(g [][]string) { g[10], g[11] = nil, nil }},
		"a filter":           {spoil: func(g [][]string) { g[2], g[4], g[6], g[9] = nil, nil, nil, nil }},
		"one in another form": {spoil: func(g [][]string) {
			g[4] = []string{string(noise(rand.New(rand.NewPCG(9, 9)), len(g[4][0])/2))}
		}},
		"in parts": {spoil: func(g [][]string) { g[4] = []string{g[4][0][:100], g[4][0][100:]} }},
		"gathered": {spoil: func(g [][]string) { g[4], g[5] = nil, []string{g[4][0] + g[5][0]} }},
	}
	for kind, value := range values {
		for _, to := range []string{toC, "/store"} {
			for name, c := range faults {
				for header := range 2 {
					t.Run(fmt.Sprintf("%s/%s/%s/header %d", kind, to[:3], name, header), func(t *testing.T) {
						t.Parallel()
						r := rand.New(rand.NewPCG(7, 1))
						var messages []string
						var give [][]string
						for k := range 12 {
							v := string(value(r, k))
							messages = append(messages, v)
							if header > 0 {
								v = fmt.Sprintf("message %d of %d bytes\r\n\r\n", k, len(v)) + v
							}
							give = append(give, []string{v})
						}
						c.spoil(give)
						m := &maker{t: t}
						m.tape("b", 0, true, passingOn(to, messages, give)...)
						f := load(t, nil, m.names...)
						checkProblem(t, f, c.want, c.event, messages)
					})
				}
			}
		}
	}
}

// checkProblem fails the test unless there is one finding of a kind and none of another one that
// is wrong or about messages; if message is not negative, the finding has to begin with its receipt.
func checkProblem(t *testing.T, f *flow.Flow, want flow.Problem, message int, messages []string) {
	t.Helper()
	var got []string
	for _, x := range f.Findings() {
		if !x.Problem.Wrong() && x.Problem != flow.Reordered {
			continue
		}
		got = append(got, fmt.Sprintf("%s: %s", x.Problem, x.Text))
		if x.Problem != want || message < 0 {
			continue
		}
		b, err := f.Bytes(x.Moves[0])
		if err != nil {
			t.Fatal(err)
		}
		if f.Move(x.Moves[0]).Write || !bytes.Equal(b, []byte(messages[message])) {
			t.Errorf("the finding begins with event %d, want that of message %d", f.Move(x.Moves[0]).Event, message)
		}
		if x.Decide == "" || x.Confidence < flow.Medium {
			t.Errorf("confidence %s, to decide it %q: want both", x.Confidence, x.Decide)
		}
	}
	n := 0
	if want != "" {
		n = 1
	}
	if len(got) != n || n == 1 && got[0][:len(want)+1] != string(want)+":" {
		t.Errorf("findings %q, want %d %s", got, n, want)
	}
}
