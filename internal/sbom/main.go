// SPDX-License-Identifier: Apache-2.0

// Command sbom writes what programs are made of, as a bill of materials in CycloneDX 1.6:
//
//	go run ./internal/sbom bin/iotape bin/iotape-full bin/iotape-agent >bin/iotape.cdx.json
//
// It reads the build information that the Go linker leaves in each program (go version -m),
// so it lists what is linked, and not what go.mod mentions. The same programs give the same
// bytes.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no program is given; make build makes bin/iotape, bin/iotape-full and bin/iotape-agent")
	}
	b := newBill()
	for _, file := range files {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w; make build makes it", file, err)
		}
		if err := b.add(filepath.Base(file), file, info); err != nil {
			return err
		}
	}
	return b.write(w)
}

// bill is a document, with the parts of the specification that are used
// (cyclonedx.org/docs/1.6/json).
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref  string   `json:"ref"`
	Uses []string `json:"dependsOn,omitempty"`
}

func newBill() *bill {
	return &bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{component{Type: "application",
		Ref: "iotape", Name: "iotape"}}}
}

// add adds a program, and what it is made of.
func (b *bill) add(name, file string, info *debug.BuildInfo) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	program := component{Type: "application", Ref: "program:" + name, Name: name,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOARCH", "GOOS", "CGO_ENABLED", "vcs.revision", "vcs.modified":
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	d := dependency{Ref: program.Ref}
	for _, c := range componentsOf(info) {
		d.Uses = append(d.Uses, c.Ref)
		if !slices.ContainsFunc(b.Components, func(o component) bool { return o.Ref == c.Ref }) {
			b.Components = append(b.Components, c)
		}
	}
	slices.Sort(d.Uses)
	b.Components = append(b.Components, program)
	b.Dependencies = append(b.Dependencies, d)
	return nil
}

// componentsOf returns the libraries of a program.
func componentsOf(info *debug.BuildInfo) []component {
	list := []component{library("std", strings.TrimPrefix(firstWord(info.GoVersion), "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, library(m.Path, m.Version, m.Sum))
		if v := duckDB(m.Path, m.Version); v != "" {
			purl := "pkg:github/duckdb/duckdb@v" + v
			list = append(list, component{Type: "library", Ref: purl, Name: "duckdb", Version: "v" + v, PURL: purl})
		}
	}
	return list
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func library(path, version, sum string) component {
	purl := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// encoded is a version of DuckDB in one of its module: 1.5.5 is v0.10505.0.
var encoded = regexp.MustCompile(`^v0\.(\d+)(\d\d)(\d\d)\.\d+$`)

// duckDB returns the version of DuckDB whose library a module brings along, "" if it brings none.
func duckDB(path, version string) string {
	n := encoded.FindStringSubmatch(version)
	if n == nil || !strings.HasPrefix(path, "github.com/duckdb/duckdb-go-bindings/lib/linux-") {
		return ""
	}
	number := func(s string) string { return cmp.Or(strings.TrimLeft(s, "0"), "0") }
	return number(n[1]) + "." + number(n[2]) + "." + number(n[3])
}

func (b *bill) write(w io.Writer) error {
	slices.SortFunc(b.Components, func(x, y component) int { return cmp.Compare(x.Ref, y.Ref) })
	root := dependency{Ref: b.Metadata.Component.Ref}
	for _, d := range b.Dependencies {
		root.Uses = append(root.Uses, d.Ref)
	}
	b.Dependencies = append(b.Dependencies, root)
	plain, err := json.Marshal(b)
	if err != nil {
		return err
	}
	b.Serial = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, plain).String()
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(b)
}
