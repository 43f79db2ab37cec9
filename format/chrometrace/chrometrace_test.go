// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/formattest"
)

// document is the JSON as the format's description has it.
type document struct {
	DisplayTimeUnit string            `json:"displayTimeUnit"`
	OtherData       map[string]string `json:"otherData"`
	TraceEvents     []traceEvent      `json:"traceEvents"`
}

type traceEvent struct {
	Ph   string         `json:"ph"`
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	PID  *int64         `json:"pid"`
	TID  *int64         `json:"tid"`
	TS   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	ID   int64          `json:"id"`
	BP   string         `json:"bp"`
	S    string         `json:"s"`
	Args map[string]any `json:"args"`
}

func parse(t *testing.T, data []byte) *document {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var doc document
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

func TestExport(t *testing.T) {
	tape := formattest.Pipeline(t)
	var b bytes.Buffer
	done, err := Export(t.Context(), &b, tape)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Left) > 0 {
		t.Errorf("left out %v", done.Left)
	}
	const golden = "testdata/pipeline.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}

	doc := parse(t, b.Bytes())
	type span struct{ begin, end float64 }
	spans := map[int64][]span{} // by thread
	for i, e := range doc.TraceEvents {
		fail := func(what string) { t.Errorf("event %d, %+v: %s", i, e, what) }
		if e.Name == "" || e.PID == nil || e.TID == nil {
			fail("every event has a name, a process and a thread")
			continue
		}
		if e.Ph != "M" && e.TS == nil {
			fail("every event but metadata has a time")
		}
		if e.Ph == "X" {
			if e.Dur == nil {
				fail("no duration")
				continue
			}
			spans[*e.TID] = append(spans[*e.TID], span{*e.TS, *e.TS + *e.Dur})
		}
	}
	// Arrows have both ends, and end within slices or at marks of their thread.
	ends := map[int64][]string{}
	for _, e := range doc.TraceEvents {
		if e.Ph == "s" || e.Ph == "f" {
			ends[e.ID] = append(ends[e.ID], e.Ph)
			if !slices.ContainsFunc(spans[*e.TID], func(s span) bool { return s.begin <= *e.TS && *e.TS <= s.end }) {
				t.Errorf("arrow %d is in no slice", e.ID)
			}
		}
	}
	for id, l := range ends {
		if slices.Sort(l); !slices.Equal(l, []string{"f", "s"}) {
			t.Errorf("arrow %d has %q", id, l)
		}
	}
	if len(ends) != 4 {
		t.Errorf("%d arrows, want 4: fork, two writes, one wake-up", len(ends))
	}

	calls := map[string]int{}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call {
			calls[fmt.Sprintf("%s %d.%03d", ev.Spec().Name, (ev.Enter-tape.Manifest().FirstNS)/1000,
				(ev.Enter-tape.Manifest().FirstNS)%1000)]++
		}
	}
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" || e.Ph == "b" {
			calls[fmt.Sprintf("%s %.3f", e.Name, *e.TS)]--
		}
	}
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	if len(calls) > 0 {
		t.Errorf("in one of tape and trace only: %v", calls)
	}
}

func TestSeveralHosts(t *testing.T) {
	tape := formattest.Hosts(t, "a", "b")
	var b bytes.Buffer
	if _, err := Export(t.Context(), &b, tape); err != nil {
		t.Fatal(err)
	}
	names := map[int64]string{}
	for _, e := range parse(t, b.Bytes()).TraceEvents {
		if e.Name == "process_name" {
			names[*e.PID] = e.Args["name"].(string)
		}
	}
	if d := cmp.Diff(map[int64]string{1: "a: sync", 1 + hostPIDs: "b: sync"}, names); d != "" {
		t.Error(d)
	}
}
