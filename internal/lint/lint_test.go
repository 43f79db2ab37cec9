// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/iotape/iotape/internal/testenv"
)

const maxLines = 900

// listed is a package as the go command describes it.
type listed struct {
	ImportPath, Name, Dir, Doc                                   string
	Standard                                                     bool
	Imports, Deps                                                []string
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

func (l *listed) ours() bool { return (&pkg{path: l.ImportPath}).ours() }

// list asks once for all. Packages that do not compile are listed too: that is
// the compiler's to say.
var list = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps",
		"-json=ImportPath,Name,Dir,Doc,Standard,Imports,Deps,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles",
		module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var all []listed
	for dec := json.NewDecoder(out); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, cmd.Wait()
})

func packages(t *testing.T) []listed {
	t.Helper()
	testenv.DependOnModule(t)
	all, err := list()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}

func TestImports(t *testing.T) {
	pkgs := make(map[string]*pkg)
	for _, l := range packages(t) {
		pkgs[l.ImportPath] = &pkg{path: l.ImportPath, standard: l.Standard, imports: l.Imports, deps: l.Deps}
	}
	if pkgs[module+"/event"] == nil {
		t.Fatal("go list does not know the package event: these tests see nothing")
	}
	for _, b := range slices.Concat(check(pkgs), checkFloors(pkgs)) {
		t.Error(b)
	}
	testRuleNames(t, pkgs)
}

// testRuleNames finds rules that hold nobody: of packages that there are no longer.
func testRuleNames(t *testing.T, pkgs map[string]*pkg) {
	var ours []*pkg
	for _, p := range pkgs {
		if p.ours() {
			ours = append(ours, p)
		}
	}
	for _, r := range rules {
		for _, pattern := range slices.Concat(r.of, r.only, r.never) {
			if strings.Contains(pattern, ":") {
				continue
			}
			if !slices.ContainsFunc(ours, func(p *pkg) bool { return match(p.name(), []string{pattern}) }) {
				t.Errorf("a rule names %q, and there is no such package (%s)", pattern, r.why)
			}
		}
	}
}

// TestFloors breaks the order of floors in packages that there are not.
func TestFloors(t *testing.T) {
	for _, c := range []struct{ from, imports, want string }{
		{"seal", "trace", ""},
		{"seal/x", "seal", ""},
		{"cmd/iotape", "internal/term", ""},
		{"trace", "seal", "trace imports seal: seal is not on a floor below trace"},
		{"event", "tree", "event imports tree: tree is not on a floor below event"},
		{"garage", "event", "garage: its folder is on no floor (internal/lint/rules.go)"},
	} {
		from, to := module+"/"+c.from, module+"/"+c.imports
		got := strings.Join(checkFloors(map[string]*pkg{from: {path: from, imports: []string{to}}, to: {path: to}}),
			"; ")
		if got != c.want {
			t.Errorf("%s that imports %s: got %q, want %q", c.from, c.imports, got, c.want)
		}
	}
}

// TestAgent holds the agent to what a static program can be.
func TestAgent(t *testing.T) {
	all := packages(t)
	for _, agent := range all {
		if agent.ImportPath != module+"/cmd/iotape-agent" {
			continue
		}
		for _, l := range all {
			if !l.Standard && len(l.CgoFiles) > 0 && slices.Contains(agent.Deps, l.ImportPath) {
				t.Errorf("cmd/iotape-agent reaches %s, which needs cgo", l.ImportPath)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, l := range packages(t) {
		if l.ours() && (slices.Contains(badNames, l.Name) || slices.Contains(badNames, path.Base(l.ImportPath))) {
			t.Errorf("%s: a package is named for what it is about", l.ImportPath)
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, l := range packages(t) {
		files := slices.Concat(l.GoFiles, l.CgoFiles)
		switch {
		case !l.ours() || len(files) == 0:
		case l.Doc == "":
			t.Errorf("%s has no package comment", l.ImportPath)
		case len(files) > 1 && l.Name != "main" && !slices.Contains(files, "doc.go"):
			t.Errorf("%s has several files and no doc.go", l.ImportPath)
		}
	}
}

// TestStableAPI holds docs/library.md, which lists the packages whose API is stable, to the
// packages' comments: each of the others says that its own is not.
func TestStableAPI(t *testing.T) {
	const notice = "The API of this package is not stable; docs/library.md lists the packages whose API is."
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	stable := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `("+regexp.QuoteMeta(module)+
		"/[a-z/]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		stable[m[1]] = false
	}
	if len(stable) == 0 {
		t.Fatal("docs/library.md lists no package")
	}
	for _, l := range packages(t) {
		if !l.ours() || l.Name == "main" || len(l.GoFiles)+len(l.CgoFiles) == 0 ||
			slices.Contains(strings.Split(l.ImportPath, "/"), "internal") {
			continue
		}
		says := strings.Contains(strings.ReplaceAll(docOf(t, &l), "\n", " "), notice)
		if _, ok := stable[l.ImportPath]; ok {
			stable[l.ImportPath] = true
		} else if !says {
			t.Errorf("%s is not in docs/library.md, and its package comment lacks the line %q", l.ImportPath, notice)
			continue
		}
		if stable[l.ImportPath] && says {
			t.Errorf("%s is in docs/library.md, and its package comment says that it is not stable", l.ImportPath)
		}
	}
	for path, found := range stable {
		if !found {
			t.Errorf("docs/library.md lists %s, which there is not", path)
		}
	}
}

// docOf returns a package's comment, of which the go command gives the first sentence alone.
func docOf(t *testing.T, l *listed) string {
	var doc strings.Builder
	for _, name := range slices.Concat(l.GoFiles, l.CgoFiles) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(l.Dir, name), nil,
			parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
		} else {
			doc.WriteString(f.Doc.Text())
		}
	}
	return doc.String()
}

// TestArchitecture holds ARCHITECTURE.md to the tree: what it names is there, each folder at
// the top is named, and folders stand on the floors of the rules.
func TestArchitecture(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, path := range pathsIn(page) {
		named[strings.TrimSuffix(path, "/")] = true
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", path, err)
		}
	}
	var got, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d+ \\| `[a-z0-9]+)/` \\|").FindAllStringSubmatch(string(page),
		-1) {
		got = append(got, m[1])
	}
	for i, folders := range slices.Backward(floors) {
		for _, folder := range folders {
			want = append(want, fmt.Sprintf("%d | `%s", i, folder))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("ARCHITECTURE.md has the floors and folders %q, want %q as in rules.go", got, want)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" &&
			e.Name() != "dist" && !named[e.Name()] {
			t.Errorf("ARCHITECTURE.md does not name the folder `%s/`", e.Name())
		}
	}
}

// pathsIn returns what a page writes as paths of files and folders.
func pathsIn(page []byte) (paths []string) {
	for _, m := range regexp.MustCompile("`([a-zA-Z][a-zA-Z0-9_./-]*/[a-zA-Z0-9_./-]*)`").FindAllStringSubmatch(
		string(page), -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// TestContributing checks that the check-lists of CONTRIBUTING.md name files that there are.
// A capital stands for what the reader chooses, as in format/NAME/.
func TestContributing(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range pathsIn(page) {
		top, _, _ := strings.Cut(path, "/")
		if _, err := os.Stat(filepath.Join("../..", top)); err != nil || strings.ContainsFunc(path, unicode.IsUpper) {
			continue // of another module or folder
		}
		checked++
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", path, err)
		}
	}
	if checked == 0 {
		t.Error("CONTRIBUTING.md names no files")
	}
}

func TestFileLengths(t *testing.T) {
	for _, l := range packages(t) {
		if !l.ours() {
			continue
		}
		for _, f := range slices.Concat(l.GoFiles, l.CgoFiles, l.IgnoredGoFiles, l.TestGoFiles, l.XTestGoFiles) {
			name := filepath.Join(l.Dir, f)
			lines, generated, err := measure(name)
			if err != nil {
				t.Error(err)
			} else if lines > maxLines && !generated {
				t.Errorf("%s/%s has %d lines, more than %d: it is about more than one thing",
					l.ImportPath, f, lines, maxLines)
			}
		}
	}
}

var generatedLine = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)

func measure(name string) (lines int, generated bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		lines++
		generated = generated || generatedLine.MatchString(sc.Text())
	}
	return lines, generated, sc.Err()
}

// TestCheck breaks rules in packages that there are not.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, from, imports, reaches string // reaches: through imports
		want                         string // "" for allowed
	}{
		{"stdlib", "event", "fmt", "", ""},
		{"event and a library", "event", "golang.org/x/sys/unix", "", "event imports other:golang.org/x/sys/unix"},
		{"event and ours", "event", "github.com/iotape/iotape/pipe", "", "event imports pipe"},
		{"generator of event", "event/gen", "golang.org/x/sys/unix", "", ""},
		{"trace and event", "trace", "github.com/iotape/iotape/event", "", ""},
		{"trace and internal", "trace", "github.com/iotape/iotape/internal/vfs", "", ""},
		{"trace and codec", "trace", "github.com/klauspost/compress/zstd", "", ""},
		{"trace and tree", "trace", "github.com/iotape/iotape/tree", "", "trace imports tree"},
		{"trace and more of tree", "trace", "github.com/iotape/iotape/internal/x", "github.com/iotape/iotape/tree", ""},
		{"pipe and event", "pipe", "github.com/iotape/iotape/internal/x", "github.com/iotape/iotape/event", "pipe imports event"},
		{"pure and os", "model/posix", "os", "", "model/posix imports std:os"},
		{"pure and os below", "model/similar/lsh", "os/exec", "", "model/similar/lsh imports std:os/exec"},
		{"pure and net", "causal", "net/http", "", "causal imports std:net/http"},
		{"pure and errno", "model/posix", "syscall", "os", ""},
		{"throttle is not pure", "causal/throttle", "os", "", ""},
		{"capture and seal", "record/capture/ptrace", "github.com/iotape/iotape/trace", "github.com/iotape/iotape/seal", "record/capture/ptrace imports seal"},
		{"capture and posix", "record/capture", "github.com/iotape/iotape/model/posix", "", "record/capture imports model/posix"},
		{"recording and analysis", "record/flight", "github.com/iotape/iotape/analyze/report", "", "record/flight imports analyze/report"},
		{"counting and recording", "record/count", "github.com/iotape/iotape/record/capture/ebpf", "", "record/count imports record/capture/ebpf"},
		{"replay and capture", "replay/exec", "github.com/iotape/iotape/record/capture/ebpf", "", "replay/exec imports record/capture/ebpf"},
		{"store and DuckDB", "store", "github.com/duckdb/duckdb-go/v2", "", ""},
		{"seal and DuckDB", "seal", "github.com/iotape/iotape/store", "github.com/duckdb/duckdb-go/v2", ""},
		{"seal and DuckDB itself", "seal", "github.com/duckdb/duckdb-go/v2", "", "seal imports other:github.com/duckdb/duckdb-go/v2"},
		{"command", "cmd/iotape", "github.com/iotape/iotape/seal", "", ""},
		{"library and command", "seal", "github.com/iotape/iotape/cmd/iotape", "", "seal imports cmd/iotape"},
		{"similar names", "replayer", "github.com/iotape/iotape/record/capture", "", ""},
		{"test package", "seal", "github.com/iotape/iotape/internal/testenv", "", "seal imports internal/testenv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pkg{path: module + "/" + c.from, imports: []string{c.imports}, deps: []string{c.imports}}
			pkgs := map[string]*pkg{p.path: p}
			for _, path := range []string{c.imports, c.reaches} {
				if path != "" {
					first, _, _ := strings.Cut(path, "/")
					pkgs[path] = &pkg{path: path, standard: !strings.Contains(first, ".")}
				}
			}
			if c.reaches != "" {
				p.deps = append(p.deps, c.reaches)
			}
			got := check(pkgs)
			if c.want == "" && len(got) > 0 || c.want != "" &&
				(len(got) != 1 || !strings.HasPrefix(got[0], c.want+": ")) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
