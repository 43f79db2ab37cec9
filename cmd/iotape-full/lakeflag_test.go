// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/store/lake"
	"github.com/iotape/iotape/trace"
)

// A tape of a newer version is refused, and no lake is made for it.
func TestLakeRefusesNewerTapes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new.tape")
	if err := os.CopyFS(dir, os.DirFS("../../store/testdata/job.tape")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, trace.ManifestName)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(b), `"version": `, `"version": 9`, 1)
	if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	where := filepath.Join(t.TempDir(), "lake")
	l, err := lake.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := addTapeToLake(t.Context(), nil, l, dir, ""); !errors.Is(err, trace.ErrNewer) {
		t.Errorf("%v, want ErrNewer", err)
	}
	if _, err := os.Stat(where); !os.IsNotExist(err) {
		t.Errorf("a lake was made: %v", err)
	}
}
