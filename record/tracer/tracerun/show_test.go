// SPDX-License-Identifier: Apache-2.0

package tracerun_test

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/tracer/control"
	"github.com/iotape/iotape/record/tracer/tracerun"
)

func TestPick(t *testing.T) {
	a := &control.Remote{Info: control.Info{PID: 12, Name: "a"}}
	b := &control.Remote{Info: control.Info{PID: 13, Name: "b"}}
	both := []*control.Remote{a, b}
	for _, run := range []string{"b", "13"} {
		if got, err := tracerun.Pick(both, run); got != b || err != nil {
			t.Errorf("Pick(%s) = %v, %v; want b", run, got, err)
		}
	}
	if got, err := tracerun.Pick(both, ""); err == nil || hint.Of(err) != "choose one with --run" {
		t.Errorf("Pick of two = %v, %v; want a hint to --run", got, err)
	}
	const want = "no iotape run is called c; there are: a (12), b (13)"
	if got, err := tracerun.Pick(both, "c"); err == nil || err.Error() != want {
		t.Errorf("Pick(c) = %v, %v; want %s", got, err, want)
	}
	if got, err := tracerun.Pick(nil, ""); err == nil {
		t.Errorf("Pick of none = %v", got)
	}
}

func TestWriteList(t *testing.T) {
	list := []control.Info{{PID: 12, Name: "a", Tracers: []control.TracerStatus{
		{Name: "writes", State: "recording", Bytes: 2048, Lost: 1, Output: "w.tape", Filter: "op = write"},
		{Name: "all", State: "stopped", Output: "a.tape"},
	}}}
	var b strings.Builder
	if err := tracerun.WriteList(&b, list); err != nil {
		t.Fatal(err)
	}
	const want = `RUN  PID  TRACER  STATE      BYTES     LOST  OUTPUT  FILTER
a    12   writes  recording  2.00 KiB  1     w.tape  op = write
a    12   all     stopped    0 B       0     a.tape  (all)
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}
