// SPDX-License-Identifier: Apache-2.0

package catlog

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
)

func TestGoldens(t *testing.T) {
	for _, name := range []string{"catbpf.log", "example.json", "falcon.txt", "network.json", "storage.json",
		"zookeeper.log"} {
		t.Run(name, func(t *testing.T) {
			tapes, done := formattest.Import(t, &Format, filepath.Join("testdata", name))
			var b strings.Builder
			for _, host := range slices.Sorted(maps.Keys(tapes)) {
				b.WriteString("host " + host + "\n" + formattest.Text(t, tapes[host]))
			}
			for what := range done.Left {
				b.WriteString("left out: " + what + "\n")
			}
			formattest.Golden(t, filepath.Join("testdata", name+".golden"), b.String())
		})
	}
}

// objects decodes a log with all digits of its numbers.
func objects(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for o := format.NewObjects(f); ; {
		obj, err := o.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			continue
		}
		list = append(list, decode(t, obj.Text))
	}
}

func decode(t *testing.T, text []byte) (m map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// notes returns the notes of tapes, in no particular order.
func notes(t *testing.T, tapes map[string]*trace.Tape) (list []map[string]any, calls int) {
	t.Helper()
	for _, tape := range tapes {
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			switch ev.Kind {
			case event.Call:
				calls++
			case event.NoteMark:
				text, err := tape.Content(&ev.Bufs[0], nil)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, decode(t, text)["catlog"].(map[string]any))
			}
		}
	}
	return list, calls
}

// samples returns logs; the published ones, which are not kept with the source, too if
// they are there.
func samples(t *testing.T) []string {
	list, err := filepath.Glob("testdata/*.[jlt]*")
	if err != nil || len(list) == 0 {
		t.Fatal("no samples")
	}
	list = slices.DeleteFunc(list, func(s string) bool { return strings.HasSuffix(s, ".golden") })
	for _, name := range []string{"CAT-hdfs-copyFromLocal-normal.json", "CAT-tf_shuffle_on_train.json",
		"testEventTrace.txt", "zktrace_full.log", "zktrace_full_ordered.log"} {
		path := filepath.Join("../../../shared/eventlogs", name)
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}

// TestNothingIsLost wants what analyses of the solved logs need back from the tapes,
// digit by digit.
func TestNothingIsLost(t *testing.T) {
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tapes, done := formattest.Import(t, &Format, path)
			source := objects(t, path)
			if int(done.Records) != len(source) {
				t.Fatalf("%d records of %d", done.Records, len(source))
			}
			got, calls := notes(t, tapes)
			if calls == 0 {
				t.Error("no calls")
			}
			keys := []string{"id", "order", "dependency", "dependencies", "data_similarities", "message", "socket",
				"src", "src_port", "dst", "dst_port", "loc", "variable", "counter"}
			have := map[string]int{}
			key := func(m map[string]any) string {
				k := map[string]any{}
				for _, name := range keys {
					if v, ok := m[name]; ok {
						k[name] = v
					}
				}
				if d, ok := m["data"].(map[string]any); ok && d["signature"] != nil {
					k["signature"] = d["signature"]
				}
				if len(k) == 0 {
					return ""
				}
				b, err := json.Marshal(k)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			for _, n := range got {
				have[key(n)]++
			}
			for _, s := range source {
				k := key(s)
				if k == "" {
					continue
				}
				if have[k]--; have[k] < 0 {
					t.Fatalf("lost: %s", k)
				}
			}
		})
	}
}

func TestSignaturesKeepAllBits(t *testing.T) {
	tapes, _ := formattest.Import(t, &Format, "testdata/catbpf.log")
	list, _ := notes(t, tapes)
	for _, n := range list {
		if d, ok := n["data"].(map[string]any); ok && d["signature"] != nil {
			want := []any{json.Number("18446744073709551615"), json.Number("9007199254740993")}
			if got := d["signature"].([]any)[:2]; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			return
		}
	}
	t.Error("no signature")
}

func FuzzRead(f *testing.F) {
	list, _ := filepath.Glob("testdata/*.[jlt]*")
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4<<10)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		done, err := formattest.Read(t, Read, b)
		if err != nil && done.Records > 0 {
			t.Errorf("%d records, and %v", done.Records, err)
		}
	})
}
