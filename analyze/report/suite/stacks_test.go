// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestStacks computes the section of a tape of three calls from two places, one of them recursive.
func TestStacks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	frame := func(name string) event.Frame { return event.Frame{Module: "/bin/p", Function: name} }
	walk := &event.Stack{Frames: []event.Frame{frame("walk"), frame("walk"), frame("main<x>")}}
	flush := &event.Stack{Frames: []event.Frame{frame("flush"), frame("main<x>")}}
	for i, s := range []*event.Stack{walk, walk, flush, nil} {
		ev := event.Event{Kind: event.Call, Op: event.OpFsync, Comm: "p", PID: 7, TID: 7, Enter: int64(1000 * i),
			Exit: int64(1000*i + 100), Stack: s}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	p := collect(t, tape, nil)
	var page, text, object bytes.Buffer
	for _, err := range []error{p.HTML(&page, nil), p.Text(&text), p.JSON(&object)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got struct {
		Stacks struct {
			Calls, Without_Stack uint64
			Functions            []struct {
				Function string
				Calls    uint64
				Time_NS  uint64
			}
		}
	}
	if err := json.Unmarshal(object.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := got
	want.Stacks.Calls, want.Stacks.Without_Stack = 3, 1
	want.Stacks.Functions = append(want.Stacks.Functions[:0:0], want.Stacks.Functions...)
	for i, f := range []string{"main<x>", "walk", "flush"} {
		want.Stacks.Functions[i].Function = f
		want.Stacks.Functions[i].Calls = []uint64{3, 2, 1}[i]
		want.Stacks.Functions[i].Time_NS = []uint64{300, 200, 100}[i]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers, want - got +:\n%s", diff)
	}
	for _, s := range []string{"Time in calls, by stack", "main&lt;x&gt;: 300 ns, 100.0 %", "walk: 200 ns, 66.7 %"} {
		if !strings.Contains(page.String(), s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	if strings.Contains(page.String(), "Bytes moved, by stack") {
		t.Error("the page has a picture of bytes, of which none was moved")
	}
	if s := "100.0 %  p > main<x>\n    33.3 %  flush > fsync\n    66.7 %  walk > walk > fsync\n"; !strings.Contains(
		text.String(), s) {
		t.Errorf("the text lacks\n%s\nit is\n%s", s, text.String())
	}
	none := suite.Options{Sections: []string{"stacks"}}
	other, err := trace.Open("../../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	text.Reset()
	if err := collect(t, other, &none).Text(&text); err != nil || !strings.Contains(text.String(), "has no stacks") {
		t.Errorf("%v; the section of a tape without stacks is %q, want that it says so", err, text.String())
	}
}
