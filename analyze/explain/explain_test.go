// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/explain"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
)

func TestWriteText(t *testing.T) {
	g, err := predicate.New("op = fsync and latency > 10ms", &predicate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := explain.New(g, func(event.Op) bool { return true })
	if !slices.Equal(e.Asked, []string{"fsync"}) || slices.Contains(e.Refused, "fsync") {
		t.Errorf("asked %v, refused %v; want fsync to be asked alone", e.Asked, e.Refused)
	}
	var b strings.Builder
	if err := e.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`filter     op = fsync and latency > 10ms
evaluated  op = fsync and latency >= 10.000001ms
record     leaves out %d operations; asks 1 operation when they return, in 1 step

node  decided  test                    cost   if so  if not
0     capture  op = fsync              1 ns       1  refuse
1     capture  latency >= 10.000001ms  2 ns  accept  refuse
`, len(e.Refused))
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}

func TestWriteFields(t *testing.T) {
	var b strings.Builder
	if err := explain.WriteFields(&b); err != nil {
		t.Fatal(err)
	}
	for _, f := range predicate.Fields() {
		if !strings.Contains("\n"+b.String(), "\n"+f.Name) {
			t.Errorf("the field %s is not listed in\n%s", f.Name, b.String())
		}
	}
}
