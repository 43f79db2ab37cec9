// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestCurrent holds THIRD_PARTY_NOTICES to what the programs are linked with.
func TestCurrent(t *testing.T) {
	testenv.DependOnModule(t)
	got, err := os.ReadFile("../../THIRD_PARTY_NOTICES")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := write(&want, "../.."); err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("THIRD_PARTY_NOTICES is not current (got %d bytes, want %d): make generate", len(got), want.Len())
	}
}

// TestNativeVersion holds native.txt to the version of DuckDB in go.mod, which the bindings
// encode: v0.10505.0 is DuckDB 1.5.5.
func TestNativeVersion(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/duckdb/duckdb-go-bindings").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.TrimSpace(string(out)), "v0.105"
	if !strings.HasPrefix(got, want) || !strings.Contains(native, "DuckDB 1.5 ") {
		t.Errorf("the bindings of DuckDB are %s, want %s…, as native.txt is of DuckDB 1.5: "+
			"look at DuckDB's folder third_party, and mend both", got, want)
	}
}

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a/LICENSE.txt", "free\r\n")
	write("b/COPYING", "free\n")
	write("b/copied/LICENSE-MIT", "also free\n")
	write("b/copied/license.go", "package copied")
	write("c/README", "no licence\n")
	mod := func(name string, packages ...string) *module {
		m := &module{Path: name, Version: "v1", Dir: filepath.Join(dir, name), packages: map[string]bool{}}
		for _, p := range packages {
			m.packages[filepath.Join(m.Dir, p)] = true
		}
		return m
	}
	got, err := texts([]*module{mod("a", ""), mod("b", "", "copied")})
	if err != nil || len(got) != 2 {
		t.Fatalf("got %d texts, %v, want 2", len(got), err)
	}
	for i, want := range []notice{
		{[]string{"a v1 (LICENSE.txt)", "b v1 (COPYING)"}, "free"},
		{[]string{"b v1 (copied/LICENSE-MIT)"}, "also free"},
	} {
		if got[i].text != want.text || strings.Join(got[i].of, ", ") != strings.Join(want.of, ", ") {
			t.Errorf("text %d: got %q, want %q", i, *got[i], want)
		}
	}
	if _, err := texts([]*module{mod("c", "")}); err == nil || !strings.Contains(err.Error(), "c v1 has no licence") {
		t.Errorf("a module without a licence: got %v, want an error that names it", err)
	}
}
