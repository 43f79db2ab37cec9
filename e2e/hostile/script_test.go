// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
)

// scripted writes the script of a tape, whose events may contradict each other, and compiles it.
func scripted(ctx context.Context, tape *trace.Tape, dir string) error {
	text := filepath.Join(dir, "same.script")
	if _, err := script.Write(ctx, tape, script.Tree{}, text); err != nil {
		return err
	}
	again, err := script.Open(ctx, text, "test")
	if err != nil {
		return err
	}
	return again.Close()
}

// sameEvents compares the events of a tape with those of its script.
func sameEvents(t *testing.T, tape *trace.Tape, dir string) {
	t.Helper()
	var initial script.Tree
	if sk, err := initialtree.OfTape(t.Context(), tape); err == nil { // else the events contradict each other
		initial = script.Tree{Entries: sk.Entries(), Content: sk.Content}
	}
	text := filepath.Join(dir, "same.script")
	if _, err := script.Write(t.Context(), tape, initial, text); err != nil {
		t.Fatal(err)
	}
	again, err := script.Open(t.Context(), text, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	formattest.SameEvents(t, tape, again, true)
}

// TestScriptSame writes a script of each sample and of the tapes of tests: what it compiles to has the same events.
func TestScriptSame(t *testing.T) {
	for name, sample := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tape := tape(t, name, filepath.Join(dir, "input"+filepath.Ext(name)), sample)
			if tape == nil {
				t.Fatal("the sample is not read")
			}
			defer tape.Close()
			if len(tape.Manifest().Hosts) > 1 {
				return // a script is of one
			}
			sameEvents(t, tape, dir)
		})
	}
	tapes := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		// The sample of package trace was never recorded: its descriptors have names that no event gave them.
		if err == nil && d.IsDir() && strings.HasSuffix(path, ".tape") && strings.Contains(path, "testdata") &&
			!strings.Contains(path, "trace/testdata") {
			tapes++
			t.Run(path, func(t *testing.T) {
				tape, err := trace.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer tape.Close()
				sameEvents(t, tape, t.TempDir())
			})
			return fs.SkipDir
		}
		return err
	})
	if err != nil || tapes < 4 {
		t.Errorf("%d tapes, want 4 or more; %v", tapes, err)
	}
}
