// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/format/tapes"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSamples reads the foreign files in testdata, as a user does, and compares what
// was left out, and the events, with golden files.
func TestSamples(t *testing.T) {
	list, err := filepath.Glob("testdata/*")
	if err != nil || len(list) == 0 {
		t.Fatal("no samples", err)
	}
	for _, path := range list {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := read(t, path)
			golden := path + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("go test -update, and look at the difference to %s; it is now:\n%s", golden, got)
			}
		})
	}
}

// read says what is in a foreign file.
func read(t *testing.T, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	streams, done, err := all.Read(context.Background(), f, nil, dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %d records\n", done.Records)
	for _, what := range slices.Sorted(maps.Keys(done.Left)) {
		fmt.Fprintf(&out, "# left out: %d %s\n", done.Left[what], what)
	}
	for i, s := range streams {
		name := filepath.Join(dir, fmt.Sprint(i, ".tape"))
		tw, err := trace.CreateTape(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := tapes.Hosts(t.Context(), []string{s}, tw, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.Close(m); err != nil {
			t.Fatal(err)
		}
		tape, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		h := tape.Host(0)
		fmt.Fprintf(&out, "# host %q, backend %q, command %q\n", h.Host, h.Backend, h.Command)
		p := stracetext.New(&stracetext.Options{Clock: stracetext.Unix, Hosts: tape.Manifest().Hosts})
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			out.Write(p.Append(nil, ev))
		}
	}
	return out.Bytes()
}
