// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"
)

// TestOrder: each round has every way once, and over as many rounds as there are
// ways each is in every position once.
func TestOrder(t *testing.T) {
	g := group{ways: Ways()[:4], rounds: 4}
	at := map[string]map[int]bool{}
	for round := range g.rounds {
		order := g.order(round)
		if len(order) != len(g.ways) {
			t.Fatalf("round %d has %d runs, want %d", round, len(order), len(g.ways))
		}
		for i, w := range order {
			if at[w.Name] == nil {
				at[w.Name] = map[int]bool{}
			}
			at[w.Name][i] = true
		}
	}
	for _, w := range g.ways {
		if len(at[w.Name]) != len(g.ways) {
			t.Errorf("%s is only ever at %v", w.Name, at[w.Name])
		}
	}
}

func TestPlan(t *testing.T) {
	names := func(g group) (names []string) {
		for _, w := range g.ways {
			names = append(names, w.Name)
		}
		return names
	}
	whole := &Workload{Name: "whole", size: 1000, slowSize: 10}
	parts := &Workload{Name: "parts", size: 2000, slowSize: 20, stages: true}
	o := &Options{Rounds: 5, SlowRounds: 3, Scale: 0.5}
	for _, c := range []struct {
		name string
		of   *Workload
		ways []string
		want [][]string // of each group
	}{
		{"all kinds", whole, []string{"untraced", "full", "attached", "strace"}, [][]string{{"untraced", "full"}, {"untraced", "strace"}}},
		{"in parts", parts, []string{"full", "attached"}, [][]string{{"untraced", "full", "attached"}}},
		{"only slow", whole, []string{"strace"}, [][]string{{"untraced", "strace"}}},
		{"only untraced", whole, []string{"untraced"}, [][]string{{"untraced"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways, err := pick(c.ways, Ways(), func(w *Way) string { return w.Name }, "way")
			if err != nil {
				t.Fatal(err)
			}
			groups := plan([]*Workload{c.of}, ways, o)
			if len(groups) != len(c.want) {
				t.Fatalf("%d groups, want %d", len(groups), len(c.want))
			}
			for i, g := range groups {
				if got := names(g); !slices.Equal(got, c.want[i]) {
					t.Errorf("group %d has %v, want %v", i, got, c.want[i])
				}
				size, rounds := c.of.size/2, 5
				if g.slow {
					size, rounds = c.of.slowSize/2, 3
				}
				if g.size != size || g.rounds != rounds {
					t.Errorf("group %d has size %d and %d rounds, want %d and %d", i, g.size, g.rounds, size, rounds)
				}
			}
		})
	}
}

func TestPickUnknown(t *testing.T) {
	if _, err := pick([]string{"untraced", "magic"}, Ways(), func(w *Way) string { return w.Name }, "way"); err == nil {
		t.Error("a way of no such name was picked")
	}
}

// TestScaledNeverZero: at any scale a workload still does something.
func TestScaledNeverZero(t *testing.T) {
	for _, w := range Workloads() {
		if scaled(w.slowSize, 1e-9) < 1 {
			t.Errorf("%s does nothing", w.Name)
		}
	}
}
