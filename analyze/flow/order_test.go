// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// TestOrderOfTapes has hosts with wrong clocks send each other messages, forward, store and read some of them,
// and make some of their own: what flow says does not depend on the order in which the tapes are given.
func TestOrderOfTapes(t *testing.T) {
	t.Parallel()
	const hosts = 4
	for seed := range uint64(40) {
		m := &maker{t: t}
		randomHosts(m, rand.New(rand.NewPCG(seed, 31)), hosts)
		want := ""
		for _, order := range permuted(hosts) {
			var names []string
			for _, i := range order {
				names = append(names, m.names[i])
			}
			got := verdicts(load(t, nil, names...), order)
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("seed %d, tapes in the order %v: got\n%s\nwant, as in the order %v:\n%s", seed, order, got,
					permuted(hosts)[0], want)
				break
			}
		}
	}
}

// randomHosts makes the tapes of hosts, of which some have the same clock and others one that is hours apart.
func randomHosts(m *maker, r *rand.Rand, hosts int) {
	known := [][]byte{noise(r, 200), noise(r, 1500), []byte(strings.Repeat("a line of a log: level=info\n", 20))}
	calls := make([][]call, hosts)
	for k := range 60 {
		from, to := r.IntN(hosts), r.IntN(hosts)
		content := known[r.IntN(len(known))]
		if r.IntN(3) == 0 {
			content = noise(r, 64+r.IntN(500))
			known = append(known, content)
		}
		at := int64(10 + k - r.IntN(3))
		add := func(host int, op event.Op, file string) {
			calls[host] = append(calls[host], call{op: op, tid: 1, at: at, file: file,
				open: event.OpenID(5 + len(file)), content: string(content)})
		}
		name := "/" + strings.Repeat("f", 1+r.IntN(3))
		switch {
		case from == to && k%2 == 0:
			add(from, event.OpPwrite64, name)
		case from == to:
			add(from, event.OpPread64, name)
		default:
			x := fmt.Sprintf("TCP:[10.0.0.%d:4%d00->10.0.0.%d:80]", from, to, to)
			y := fmt.Sprintf("TCP:[10.0.0.%d:80->10.0.0.%d:4%d00]", to, from, to)
			if !slices.ContainsFunc(calls[from], func(c call) bool { return c.file == x }) {
				calls[from] = append(calls[from], call{op: event.OpConnect, tid: 1, at: at, file: x,
					open: event.OpenID(5 + len(x))})
			}
			add(from, event.OpSendto, x)
			if r.IntN(8) > 0 {
				add(to, event.OpRecvfrom, y)
			}
		}
	}
	for host, list := range calls {
		ahead := []int64{0, 0, 5 * 3600_000, -3 * 3600_000}[r.IntN(4)]
		m.tape(fmt.Sprint("host", host), (100_000_000+ahead)*ms, true, list...)
	}
}

// verdicts returns all that a flow says, with the tapes' numbers as in the first order.
func verdicts(f *flow.Flow, order []int) string {
	var lines []string
	for _, x := range f.Findings() {
		s := fmt.Sprintf("%s %s %d %d %s %+v", x.Problem, x.Text, x.Count, x.Bytes, x.Confidence, x.Diff)
		for _, id := range x.Moves {
			tape, seq := f.Locate(f.Move(id).Event)
			s += fmt.Sprintf(" %d:%d", order[tape], seq)
		}
		lines = append(lines, s)
	}
	for _, n := range f.Numbers(nil) {
		lines = append(lines, fmt.Sprint(n.Name, "=", n.Value))
	}
	return strings.Join(append(lines, f.Notes()...), "\n")
}

// permuted returns all orders of n things.
func permuted(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permuted(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}
