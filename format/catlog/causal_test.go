// SPDX-License-Identifier: Apache-2.0

package catlog

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/formattest"
)

// TestCausalAgreesWithFalcon compares what package causal proves of the log that Falcon
// published with Falcon's own answer, which is in the notes.
func TestCausalAgreesWithFalcon(t *testing.T) {
	path := "../../../shared/eventlogs/zktrace_full_ordered.log"
	if _, err := os.Stat(path); err != nil {
		t.Skip("skipped: the published sample is not kept with the source")
	}
	tapes, _ := formattest.Import(t, &Format, path)
	type solved struct {
		kind, dependency string
	}
	b := causal.NewBuilder()
	ids := map[int]string{} // of events by index: that of a call is in the note behind it
	answers := map[string]solved{}
	index := 0
	for host, name := range slices.Sorted(maps.Keys(tapes)) {
		last := map[uint32]int{} // by thread
		for ev, err := range tapes[name].Events() {
			if err != nil {
				t.Fatal(err)
			}
			ev.Host = uint32(host)
			b.Add(ev)
			switch ev.Kind {
			case event.Call:
				last[ev.TID] = index
			case event.NoteMark:
				text, err := tapes[name].Content(&ev.Bufs[0], nil)
				if err != nil {
					t.Fatal(err)
				}
				var n Note
				if err := json.Unmarshal(text, &n); err != nil {
					t.Fatal(err)
				}
				id := n.CatLog.digits("id")
				kind, _ := n.CatLog.text("type")
				dependency, _ := n.CatLog.text("dependency")
				answers[id] = solved{kind, dependency}
				ids[index] = id
				if call, ok := last[ev.TID]; ok {
					ids[call] = id
					delete(last, ev.TID)
				}
			}
			index++
		}
	}
	same, other, more := 0, 0, 0
	for i, before := range b.Before() {
		a := answers[ids[i]]
		var from []string
		for _, e := range before {
			if e.Why == causal.Bytes {
				from = append(from, ids[e.From])
			}
		}
		switch {
		case a.kind != "RCV" || len(from) == 0:
		case slices.Contains(from, a.dependency):
			same++
		case a.dependency == "":
			more++
		default:
			other++
			t.Logf("RCV %s: Falcon says %s, the bytes say %v", ids[i], a.dependency, from)
		}
	}
	t.Logf("%d the same, %d other, %d that Falcon has not", same, other, more)
	if same == 0 || other > 0 {
		t.Errorf("%d answers are Falcon's, %d are not", same, other)
	}
}
