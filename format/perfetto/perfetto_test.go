// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/timeline"
	"github.com/iotape/iotape/trace"
)

// schemas are those to decode with: what this package writes and, where it is at hand,
// all of Perfetto's.
func schemas(t *testing.T, f func(t *testing.T, proto string)) {
	t.Run("subset", func(t *testing.T) { f(t, "testdata/subset.proto") })
	t.Run("perfetto", func(t *testing.T) {
		proto := os.Getenv("IOTAPE_PERFETTO_PROTO")
		if proto == "" {
			t.Skip("IOTAPE_PERFETTO_PROTO does not name a copy of Perfetto's " +
				"protos/perfetto/trace/perfetto_trace.proto")
		}
		f(t, proto)
	})
}

func export(t *testing.T, tape *trace.Tape) []byte {
	t.Helper()
	var b bytes.Buffer
	done, err := Export(t.Context(), &b, tape)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Left) > 0 || done.Records != tape.Manifest().Counts.Calls {
		t.Errorf("%d records of %d calls, left out %v", done.Records, tape.Manifest().Counts.Calls, done.Left)
	}
	return b.Bytes()
}

func TestExport(t *testing.T) {
	tape := formattest.Pipeline(t)
	data := export(t, tape)
	schemas(t, func(t *testing.T, proto string) {
		root := decode(t, proto, data)
		v := view(t, root)

		// Every call is a slice, with its times, result and path.
		var want, got []string
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == event.Call {
				result := fmt.Sprintf("result=%d", ev.Ret)
				if ev.Errno != 0 {
					result = "errno=" + event.ErrnoName(ev.Errno)
				}
				want = append(want, fmt.Sprintf("%d-%d [%d] %s (%s) %q %s event=%d", ev.Enter, ev.Exit, ev.TID,
					ev.Spec().Name, ev.Spec().Class,
					strings.ToValidUTF8(ev.Name(), "\uFFFD"), result, ev.Seq))
			}
		}
		for _, s := range v.slices {
			w := strings.Fields(s)
			tid := w[1][strings.LastIndexByte(w[1], '['):]
			if w[2] == "uring_fsync" { // on a lane, whose name is that of its thread's
				tid = "[10]"
			}
			path := ""
			if p, ok := strings.CutPrefix(w[4], "path="); ok {
				path = p
			}
			got = append(got, fmt.Sprintf("%s %s %s %s %q %s %s", w[0], tid, w[2], w[3], path, w[len(w)-2],
				w[len(w)-1]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Error("slices (-tape +trace):", d)
		}

		wantArrows := []string{
			"sh[10]/sh[10] clone@1200 -> cat[11]/cat[11] close@1300",
			"sh[10]/sh[10] write@1600 -> cat[11]/cat[11] received@1640",
			"sh[10]/sh[10] write@1600 -> cat[11]/cat[11] woken@1620",
			"sh[10]/sh[10] write@1700 -> cat[11]/cat[11] read@1800",
		}
		slices.Sort(v.arrows)
		for i := range v.arrows { // where the process was named before it became another program
			v.arrows[i] = strings.ReplaceAll(v.arrows[i], "sh[11]", "cat[11]")
		}
		if d := cmp.Diff(wantArrows, v.arrows); d != "" {
			t.Error("arrows:", d)
		}
		wantCounters := map[string]int64{"sh[10]/bytes written": 11, "cat[11]/bytes read": 4107, "sh[10]/open files": 0}
		if d := cmp.Diff(wantCounters, v.counters); d != "" {
			t.Error("counters:", d)
		}
		if d := cmp.Diff(map[string]string{"10": "1", "11": "10"}, v.parents); d != "" {
			t.Error("parents:", d)
		}
		if !slices.Contains(v.marks, "1860 recording events lost (mark) events=7") {
			t.Errorf("the loss is not among the marks %q", v.marks)
		}
		snapshot := root.parts["packet"][0].part("clock_snapshot")
		if c := snapshot.parts["clocks"]; len(c) != 2 || c[0].num("clock_id") != clockMonotonic ||
			c[0].num("timestamp") != 500 ||
			c[1].num("clock_id") != clockRealtime || c[1].num("timestamp") != 1_700_000_000_000_000_500 {
			t.Errorf("clock snapshot is %v", c)
		}
	})
}

// TestInterning runs the writer past its limit of strings: readers are told to forget,
// and every name is still right.
func TestInterning(t *testing.T) {
	var b bytes.Buffer
	w := &writer{out: &b}
	if err := w.start(&trace.Host{}, 0, "h"); err != nil {
		t.Fatal(err)
	}
	p := &timeline.Process{ID: 1, PID: 1, Name: "p"}
	track := &timeline.Track{ID: 2, Process: p, TID: 1}
	if err := w.Process(p); err != nil {
		t.Fatal(err)
	}
	if err := w.Track(track); err != nil {
		t.Fatal(err)
	}
	const n = maxStrings + 100
	long := strings.Repeat("x", maxInterned+1)
	for i := range int64(n) {
		path := fmt.Sprint("/file", i)
		if i == n-1 {
			path = long
		}
		s := &timeline.Slice{Track: track, Begin: i, End: i, Name: "open", Class: "descriptor",
			Args: []timeline.Arg{{Name: "path", Text: path}}}
		if err := w.Slice(s); err != nil {
			t.Fatal(err)
		}
		if len(w.in.numbers) > maxStrings+10 {
			t.Fatalf("%d strings are held", len(w.in.numbers))
		}
	}
	v := view(t, decode(t, "testdata/subset.proto", b.Bytes()))
	for i, s := range v.slices {
		want := fmt.Sprintf("%d-%d p[1]/[1] open (descriptor) path=/file%d", i, i, i)
		if i == n-1 {
			want = fmt.Sprintf("%d-%d p[1]/[1] open (descriptor) path=%s", i, i, long)
		}
		if s != want {
			t.Fatalf("slice %d is %q, want %q", i, s, want)
		}
	}
	if len(v.slices) != n {
		t.Errorf("%d slices, want %d", len(v.slices), n)
	}
}

func TestSeveralHosts(t *testing.T) {
	tape := formattest.Hosts(t, "mill", "mill", "data base/2")
	data := export(t, tape)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	uuids := map[string]string{}
	for _, f := range z.File {
		names = append(names, f.Name)
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, ".json") {
			if !bytes.HasPrefix(content, []byte(`{"perfetto_manifest"`)) {
				t.Errorf("a manifest that begins with %.30q is not recognised", content)
			}
			var m manifest
			if err := json.Unmarshal(content, &m); err != nil {
				t.Fatal(err)
			}
			want := []manifestFile{
				{"0-mill.pftrace", manifestMachine{"mill"}}, {"1-mill.pftrace", manifestMachine{"mill (2)"}}, {"2-data_base_2.pftrace", manifestMachine{"data base/2"}},
			}
			if d := cmp.Diff(want, m.Manifest.Files); d != "" {
				t.Error(d)
			}
			continue
		}
		root := decode(t, "testdata/subset.proto", content)
		if v := view(t, root); len(v.slices) != 2 {
			t.Errorf("%s has slices %q", f.Name, v.slices)
		}
		for _, p := range root.parts["packet"] {
			if d := p.part("track_descriptor"); d != nil {
				id := d.first("uuid")
				if other := uuids[id]; other != "" && other != f.Name {
					t.Errorf("track %s is in %s and in %s", id, other, f.Name)
				}
				uuids[id] = f.Name
			}
		}
	}
	if d := cmp.Diff([]string{"perfetto_manifest.json", "0-mill.pftrace", "1-mill.pftrace", "2-data_base_2.pftrace"},
		names); d != "" {
		t.Error(d)
	}
}
