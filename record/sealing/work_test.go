// SPDX-License-Identifier: Apache-2.0

package sealing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/sealing"
)

// TestReserve checks what is done with the directory of an earlier run: what a killed run
// left goes; a recording, work under way and files of others stay.
func TestReserve(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  []string // in the directory, "/" at the end for directories
		err    string   // what the error says, "" for none
		advice string   // what its hint says
	}{
		{"nothing", nil, "", ""},
		{"an empty directory", []string{"./"}, "", ""},
		{"a tape that was not finished", []string{"tape/", "tape/events"}, "", ""},
		{"streams of an import", []string{"host-0.stream", "host-1.stream", "unsorted123", "unsorted-index9", "tape/"}, "", ""},
		{"snapshots before a recording", []string{"before.tape/", "before.tape/manifest.json"}, "", ""},
		{"a recording", []string{"stream", "before.tape/"}, "exists", "iotape repair"},
		{"files of somebody", []string{"tape/", "thesis.tex"}, "thesis.tex", "choose another name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "x.tape.partial")
			for _, name := range tt.files {
				path := filepath.Join(work, name)
				if strings.HasSuffix(name, "/") {
					if err := os.MkdirAll(path, 0o777); err != nil {
						t.Fatal(err)
					}
					continue
				}
				made := os.MkdirAll(filepath.Dir(path), 0o777)
				if err := errors.Join(made, os.WriteFile(path, nil, 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			before := list(t, work)
			lock, err := sealing.Reserve(work)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(hint.Of(err), tt.advice) {
					t.Errorf("error %v, hint %q; want %q and %q", err, hint.Of(err), tt.err, tt.advice)
				}
				if after := list(t, work); after != before {
					t.Errorf("the directory has %s; want what it had: %s", after, before)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			if after := list(t, work); after != "" {
				t.Errorf("the directory has %s; want nothing", after)
			}
			if _, err := sealing.Reserve(work); err == nil || !strings.Contains(err.Error(), "another iotape") {
				t.Errorf("reserved twice: %v; want an error about another iotape", err)
			}
		})
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
