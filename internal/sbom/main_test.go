// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "iotape")
	if err := os.WriteFile(file, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	info := &debug.BuildInfo{GoVersion: "go1.26.8 X:something", Deps: []*debug.Module{
		{Path: "github.com/Some/Lib/v2", Version: "v2.0.0+incompatible", Sum: "h1:abc="},
		{Path: "github.com/duckdb/duckdb-go-bindings/lib/linux-amd64", Version: "v0.10505.0"},
		{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v1.1.0"}},
	}, Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "amd64"}, {Key: "-ldflags", Value: "secret"}}}
	var texts [2]bytes.Buffer
	for i := range texts {
		b := newBill()
		if err := b.add("iotape", file, info); err != nil {
			t.Fatal(err)
		}
		if err := b.write(&texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() {
		t.Error("the same program gives other bytes the second time")
	}
	var b bill
	if err := json.Unmarshal(texts[0].Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	refs := map[string]component{}
	for _, c := range b.Components {
		refs[c.Ref] = c
	}
	for _, want := range []string{"pkg:golang/std@1.26.8", "pkg:golang/github.com/some/lib/v2@v2.0.0%2Bincompatible",
		"pkg:github/duckdb/duckdb@v1.5.5", "pkg:golang/example.com/new@v1.1.0", "program:iotape"} {
		if refs[want].Name == "" {
			t.Errorf("%s is missing in %s", want, texts[0].String())
		}
	}
	if len(refs) != 6 || len(refs) != len(b.Components) {
		t.Errorf("%d components with %d references, want 6", len(b.Components), len(refs))
	}
	for _, d := range b.Dependencies { // every reference leads somewhere
		for _, use := range d.Uses {
			if _, ok := refs[use]; !ok {
				t.Errorf("%s depends on %s, which is not listed", d.Ref, use)
			}
		}
	}
	if !strings.HasPrefix(b.Serial, "urn:uuid:") || strings.Contains(texts[0].String(), "secret") {
		t.Errorf("serial %q, or settings that are not to be told", b.Serial)
	}
}

// A real program has what go.mod says of this one.
func TestThisProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := run(&b, []string{exe}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"pkg:golang/github.com/google/uuid@v`) {
		t.Errorf("the module of UUIDs, which the program uses, is missing: %s", b.String())
	}
	for _, files := range [][]string{nil, {"main.go"}, {"no such file"}} {
		if err := run(&b, files); err == nil || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%q: %v, want what makes programs", files, err)
		}
	}
}
