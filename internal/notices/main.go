// SPDX-License-Identifier: Apache-2.0

// Command notices writes the licences of all that others wrote and that is linked into the
// programs under cmd/, as their authors ask:
//
//	go run ./internal/notices >THIRD_PARTY_NOTICES
//
// The Go modules are those of `go list -deps`, and their texts are read from the module
// cache. What is not a Go module is in native.txt.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// native.txt holds the notices of what is not a Go module: DuckDB's libraries and libbpf's headers.
//
//go:embed native.txt
var native string

// platforms are those that releases are built for: a module may be linked on one of them only.
var platforms = []string{"amd64", "arm64"}

func main() {
	if err := write(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// module is a Go module that is linked into a program.
type module struct {
	Path, Version, Dir string
	Main               bool
	packages           map[string]bool // their directories: copied code has a licence beside it
}

// write writes the notices of the programs of the main module in dir.
func write(w io.Writer, dir string) error {
	mods, err := modules(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "iotape and iotape-agent contain software of others. This file has the notices and licences")
	fmt.Fprintln(w, "that its authors ask to be given along. internal/notices writes it; do not edit it.")
	fmt.Fprintln(w, "\nGo modules and the Go standard library, in the order of their names:")
	for _, m := range mods {
		fmt.Fprintln(w, "  "+m.name())
	}
	fmt.Fprintln(w, "\nNot Go modules: see the end of this file.")
	texts, err := texts(mods)
	if err != nil {
		return err
	}
	for _, t := range texts {
		rule(w)
		fmt.Fprintf(w, "%s\n\n", strings.Join(t.of, "\n"))
		fmt.Fprintf(w, "%s\n", t.text)
	}
	rule(w)
	_, err = io.WriteString(w, native)
	return err
}

func rule(w io.Writer) { fmt.Fprintf(w, "\n%s\n", strings.Repeat("=", 80)) }

func (m *module) name() string { return strings.TrimSpace(m.Path + " " + m.Version) }

// modules returns what the programs are linked with on any of the platforms, by name.
func modules(dir string) ([]*module, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	std := strings.TrimSpace(string(root))
	mods := []*module{{Path: "Go standard library", Dir: std, packages: map[string]bool{std: true}}}
	found := map[string]*module{}
	for _, arch := range platforms {
		// With the tag the bindings name no library of DuckDB's. The libraries are large, differ
		// between the platforms, and are in native.txt.
		cmd := exec.Command("go", "list", "-deps", "-tags", "duckdb_use_lib", "-json=Dir,Module", "./cmd/...")
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", arch, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Dir    string
				Module *module
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = p.Module
				m.packages = map[string]bool{m.Dir: true}
				found[m.Path] = m
			}
			for d := p.Dir; d != m.Dir && strings.HasPrefix(d, m.Dir); d = filepath.Dir(d) {
				m.packages[d] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		mods = append(mods, found[path])
	}
	return mods, nil
}

// notice is a text, and the modules that have it.
type notice struct {
	of   []string
	text string
}

// texts returns the licences and notices of modules, each text once.
func texts(mods []*module) ([]*notice, error) {
	var all []*notice
	known := map[string]*notice{}
	for _, m := range mods {
		var found bool
		for _, dir := range slices.Sorted(maps.Keys(m.packages)) {
			files, err := licences(dir)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name(), err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				found = true
				s := strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), " \n")
				if known[s] == nil {
					known[s] = &notice{text: s}
					all = append(all, known[s])
				}
				known[s].of = append(known[s].of, fmt.Sprintf("%s (%s)", m.name(), strings.TrimPrefix(file, m.Dir+"/")))
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no licence in %s", m.name(), m.Dir)
		}
	}
	return all, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// licences returns the files of a directory that are licences by their names.
func licences(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if licenceFile.MatchString(e.Name()) && e.Type().IsRegular() && filepath.Ext(e.Name()) != ".go" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}
