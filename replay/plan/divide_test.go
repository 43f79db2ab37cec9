// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// A member of a team that is called as a host makes the calls of that host's processes.
func TestDivideByHost(t *testing.T) {
	tape := tapescript.TwoMachines(t, "a", "b").Close()
	layout, err := eventsource.NewLayout(tape, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for members, want := range map[string]string{"b a": "1 0", "a b": "0 1", "x b": "0 1", "b x": "1 0", "b": "0 0",
		"x y": "0 1"} {
		d, err := divide(tape, layout, strings.Fields(members))
		if err != nil {
			t.Fatal(err)
		}
		numbers, part := layout.Numbers(), [2]int{}
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			numbers.Event(ev)
			part[ev.Host] = d.member(ev)
		}
		if got := strconv.Itoa(part[0]) + " " + strconv.Itoa(part[1]); got != want {
			t.Errorf("of %s, a and b are done by %s, want %s", members, got, want)
		}
	}
}
