// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/internal/testenv"
)

// TestDevTools reads what is written with the engine of Chrome DevTools: it has the same calls of the same threads.
func TestDevTools(t *testing.T) {
	testenv.Short(t, "it runs Node.js")
	engine := filepath.Join(testenv.ModuleRoot(t), "bin", "trace-engine", "node_modules", "@paulirish", "trace_engine",
		"models", "trace", "trace.js")
	testenv.NeedFile(t, engine)
	testenv.NeedProgram(t, "node")
	var b bytes.Buffer
	if _, err := Export(t.Context(), &b, formattest.Pipeline(t)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var wrong bytes.Buffer
	cmd := exec.Command("node", "testdata/devtools.mjs", engine, file)
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, wrong.Bytes())
	}
	var read []struct {
		PID, TID int64
		Name     string
		Calls    []struct {
			Name    string
			TS, Dur float64
		}
	}
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	names := map[string]string{}
	for _, e := range parse(t, b.Bytes()).TraceEvents {
		switch {
		case e.Ph == "X":
			want = append(want, fmt.Sprintf("%d/%d %s %.3f %.3f", *e.PID, *e.TID, e.Name, *e.TS, *e.Dur))
		case e.Ph == "M" && e.Name == "thread_name":
			names[fmt.Sprintf("%d/%d", *e.PID, *e.TID)] = fmt.Sprint(e.Args["name"])
		}
	}
	for _, thread := range read {
		who := fmt.Sprintf("%d/%d", thread.PID, thread.TID)
		if len(thread.Calls) > 0 && thread.Name != names[who] {
			t.Errorf("thread %s is named %q, want %q", who, thread.Name, names[who])
		}
		for _, c := range thread.Calls {
			got = append(got, fmt.Sprintf("%s %s %.3f %.3f", who, c.Name, c.TS, c.Dur))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the engine reads %d calls, want %d\n%s", len(got), len(want), cmp.Diff(want, got))
	}
}
