// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// cluster are the hosts of TestPairing, in the order of their addresses from .2 on.
var cluster = []string{"client", "primary", "replica1", "replica2"}

// TestPairing records a client, a server and two replicas on hosts of their own, where nothing goes
// wrong. Whatever the order of the tapes, the clocks and the names of the hosts, connections are
// paired as they were made: nothing is found to be wrong, and always the same.
func TestPairing(t *testing.T) {
	testenv.Short(t, "it records many pairs of programs")
	t.Parallel()
	testenv.NeedRoot(t)
	for _, p := range []string{"gcc", "ip"} {
		testenv.NeedProgram(t, p)
	}
	prog := filepath.Join(t.TempDir(), "replicas")
	if b, err := exec.Command("gcc", "-O1", "-o", prog, "testdata/replicas.c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	net := namespaces(t, "iotape-p1", "iotape-p2", "iotape-p3", "iotape-p4")
	net = strings.TrimSuffix(net, "1")
	backends := append(backendsWithoutRights(), "ebpf")
	for i, backend := range backends {
		for _, where := range []string{"own", "any"} { // what servers listen at
			if where == "own" && i > 0 {
				continue
			}
			t.Run(backend+" "+where, func(t *testing.T) {
				e := &env{dir: t.TempDir(), iotape: testenv.Iotape(t)}
				e.recordCluster(t, prog, backend, net, where == "any")
				e.pairs(t)
			})
		}
	}
}

// recordCluster records the hosts, each into a tape of its name.
func (e *env) recordCluster(t *testing.T, prog, backend, net string, wild bool) {
	t.Helper()
	const port = "5000"
	ip := func(host int) string { return net + strconv.Itoa(host+2) }
	at := func(host int) string {
		if wild {
			return "0.0.0.0"
		}
		return ip(host)
	}
	commands := [][]string{
		{"client", port, ip(1), ip(1), ip(2), ip(3)},
		{"serve", at(1), port, "primary.db", "2", ip(2), ip(3)},
		{"serve", at(2), port, "replica1.db", "2"},
		{"serve", at(3), port, "replica2.db", "2"},
	}
	var wait sync.WaitGroup
	for host, args := range commands {
		cmd := exec.Command("ip", append([]string{"netns", "exec", "iotape-p" + strconv.Itoa(host+1), e.iotape,
			"record", "--backend", backend, "-o", cluster[host] + ".tape", "--", prog}, args...)...)
		cmd.Dir = e.dir
		wait.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", cluster[host], err, out)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// pairs loads the tapes in several orders, as they are and changed in several ways.
func (e *env) pairs(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		name   string
		tapes  func(name string) string
		change func(host int, h *trace.Host)
		same   bool // what is found, too
	}{
		{"as recorded", nil, func(int, *trace.Host) {}, true},
		{"of different machines", nil, func(host int, h *trace.Host) {
			h.Host, h.BootID = cluster[host], cluster[host]
		}, true},
		{"with clocks hours apart", nil, func(host int, h *trace.Host) {
			h.Host, h.BootID = cluster[host], cluster[host]
			h.WallNS += int64(host%3-1) * 5 * 3600e9
		}, true},
		{"with one name", nil, func(host int, h *trace.Host) { h.Host, h.BootID = "node", cluster[host] }, false},
		{"without addresses", func(name string) string { return e.withoutEnds(t, name) },
			func(host int, h *trace.Host) {
				h.Host, h.BootID, h.Addresses = cluster[host], cluster[host], nil
			}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tapes []*trace.Tape
			for host, name := range cluster {
				dir := filepath.Join(e.dir, name+".tape")
				if c.tapes != nil {
					dir = c.tapes(name)
				}
				tape, err := trace.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tape.Close() })
				c.change(host, &tape.Manifest().Hosts[0])
				tapes = append(tapes, tape)
			}
			first := ""
			for n, order := range someOrders(len(tapes)) {
				list := make([]*trace.Tape, len(tapes))
				for i, k := range order {
					list[i] = tapes[k]
				}
				got := findings(t, list, order)
				if n == 0 {
					first = got
				} else if c.same && got != first {
					t.Errorf("tapes in the order %v:\n%s\nwant, as in the order 0 1 2 3:\n%s", order, got, first)
				}
			}
		})
	}
}

// findings returns what flow finds in tapes, in one text; nothing may be wrong.
func findings(t *testing.T, tapes []*trace.Tape, order []int) string {
	t.Helper()
	f, err := flow.Load(t.Context(), tapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, x := range f.Findings() {
		lines = append(lines, fmt.Sprintf("%s: %s", x.Problem, x.Text))
		if x.Problem.Wrong() {
			t.Errorf("tapes in the order %v: %s: %s, want nothing that is wrong", order, x.Problem, x.Text)
		}
	}
	if s := f.Stats(); s.Contradictions > 0 {
		t.Errorf("tapes in the order %v: %d contradictions, want none", order, s.Contradictions)
	}
	paired := map[*flow.Object]bool{}
	for i := range f.Len() {
		if o := f.Move(i).Object; o.Kind == flow.Stream && strings.Contains(o.Name, ":5000") && !o.OneSided {
			paired[o] = true
		}
	}
	if want := 2 * 6; len(paired) != want {
		t.Errorf("tapes in the order %v: %d streams have both sides, want %d of 6 connections", order, len(paired),
			want)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// someOrders returns n things as given, turned by each number, and backwards. All orders of made-up tapes
// are tried by TestOrderOfTapes (analyze/flow): loading these takes too long for that.
func someOrders(n int) (some [][]int) {
	for first := range n {
		var order []int
		for i := range n {
			order = append(order, (first+i)%n)
		}
		some = append(some, order)
	}
	backwards := slices.Clone(some[0])
	slices.Reverse(backwards)
	return append(some, backwards)
}

// withoutEnds copies a tape as earlier versions recorded it: the names of sockets do not say their
// ends, and the head no addresses. It returns the copy's name.
func (e *env) withoutEnds(t *testing.T, name string) string {
	t.Helper()
	from, err := trace.Open(filepath.Join(e.dir, name+".tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	dir := filepath.Join(t.TempDir(), name+".tape")
	to, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Abort()
	content := trace.NewCopier(from, to)
	for ev, err := range from.Events() {
		if err != nil {
			t.Fatal(err)
		}
		for i := range ev.Files {
			if f := &ev.Files[i]; strings.Contains(f.Path, ":[") && !strings.HasPrefix(f.Path, "pipe:") {
				f.Path, f.Real = fmt.Sprintf("socket:[%d]", f.Ino), ""
			}
		}
		if err := content.Content(ev); err != nil {
			t.Fatal(err)
		}
		if err := to.Write(ev); err != nil {
			t.Fatal(err)
		}
	}
	m := from.Manifest()
	hosts := slices.Clone(m.Hosts)
	hosts[0].Addresses = nil
	if err := to.Close(&trace.Manifest{Program: m.Program, Hosts: hosts}); err != nil {
		t.Fatal(err)
	}
	return dir
}
