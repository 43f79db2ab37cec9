// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"testing"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// TestChangeFilter changes a head's filter several times: at each time the right one holds.
func TestChangeFilter(t *testing.T) {
	h := &trace.Head{Filter: "op = read or failed", ClockNS: 1000, WallNS: 1_700_000_000_000_000_000}
	for _, c := range []trace.FilterChange{{SinceNS: 2000, Filter: "op = write"}, {SinceNS: 3000, Filter: ""},
		{SinceNS: 4000, Filter: "uid = 1 or uid = 2"}} {
		h.ChangeFilter(&c)
	}
	g, err := predicate.New(h.Filter, &predicate.Options{Hosts: []predicate.Host{{WallNS: h.WallNS - h.ClockNS}}})
	if err != nil {
		t.Fatalf("%s: %v", h.Filter, err)
	}
	const want = `time < "2023-11-14T22:13:20.000003Z" and (time < "2023-11-14T22:13:20.000002Z" and (time < ` +
		`"2023-11-14T22:13:20.000001Z" and (op = read or failed) or ` +
		`time >= "2023-11-14T22:13:20.000001Z" and (op = write)) or time >= "2023-11-14T22:13:20.000002Z") or ` +
		`time >= "2023-11-14T22:13:20.000003Z" and (uid = 1 or uid = 2)`
	if h.Filter != want {
		t.Errorf("%s\nwant %s", h.Filter, want)
	}
	if g.Never() || g.Always() || len(g.Warnings()) > 0 {
		t.Error(g.Warnings())
	}
}

// TestFilterFrame has a change come back from a stream.
func TestFilterFrame(t *testing.T) {
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	c := &trace.FilterChange{SinceNS: 77, Filter: `name = "ä"`}
	if err := sw.ChangeFilter(c); err != nil {
		t.Fatal(err)
	}
	fr := trace.NewFrameReader(&b)
	if _, _, err := fr.Next(); err != nil {
		t.Fatal(err)
	}
	f, payload, err := fr.Next()
	if err != nil || f.Kind != trace.FrameFilter {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, err := trace.ReadFilterChange(payload); err != nil || *got != *c {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := trace.ReadFilterChange([]byte("{\"filter\":")); err == nil {
		t.Error("half an object is read")
	}
}
