// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fzipp/gocyclo"
)

// maxComplexity is the cyclomatic complexity that a function may have, tests apart.
const maxComplexity = 20

// maxColumns is how wide a line of code may be, a tab counting as tabColumns. Rows of tables
// and text in raw strings may be wider.
const maxColumns, tabColumns = 120, 4

// file is a parsed source file that was not generated.
type file struct {
	pkg  string // its package, without the module
	name string
	test bool
	set  *token.FileSet
	ast  *ast.File
	text []byte
}

// files parses the source of all packages.
func files(t *testing.T) (all []file) {
	t.Helper()
	for _, l := range packages(t) {
		if !l.ours() {
			continue
		}
		pkg := (&pkg{path: l.ImportPath}).name()
		for _, names := range []struct {
			list []string
			test bool
		}{{slices.Concat(l.GoFiles, l.CgoFiles, l.IgnoredGoFiles), false},
			{slices.Concat(l.TestGoFiles, l.XTestGoFiles), true}} {
			for _, name := range names.list {
				f := file{pkg: pkg, name: filepath.Join(pkg, name), test: names.test, set: token.NewFileSet()}
				var err error
				if f.text, err = os.ReadFile(filepath.Join(l.Dir, name)); err != nil {
					t.Fatal(err)
				}
				if f.ast, err = parser.ParseFile(f.set, f.name, f.text,
					parser.ParseComments|parser.SkipObjectResolution); err != nil {
					t.Fatal(err)
				}
				if !ast.IsGenerated(f.ast) {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

func TestComplexity(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, s := range gocyclo.AnalyzeASTFile(f.ast, f.set, nil) {
			if s.Complexity > maxComplexity {
				t.Errorf("%s: %s has cyclomatic complexity %d, more than %d", s.Pos, s.FuncName, s.Complexity,
					maxComplexity)
			}
		}
	}
}

func TestLineWidths(t *testing.T) {
	for _, f := range files(t) {
		for _, line := range wide(&f) {
			t.Errorf("%s:%d: more than %d columns", f.name, line, maxColumns)
		}
	}
}

// wide returns the numbers of the lines of code that are too wide.
func wide(f *file) (lines []int) {
	exempt := textLines(f)
	number := 0
	for line := range bytes.Lines(f.text) {
		number++
		line = bytes.TrimRight(line, "\n")
		columns := utf8.RuneCount(line) + bytes.Count(line, []byte("\t"))*(tabColumns-1)
		if columns > maxColumns && !exempt[number] && !bytes.HasPrefix(line, []byte("//go:")) {
			lines = append(lines, number)
		}
	}
	return lines
}

// textLines returns the lines that are rows of tables or text in raw strings. A table is the
// value of a variable of the package, or a literal of an array, a slice or a map.
func textLines(f *file) map[int]bool {
	exempt := map[int]bool{}
	mark := func(from, to token.Pos, after int, is bool) {
		for i := f.set.Position(from).Line + after; i <= f.set.Position(to).Line; i++ {
			exempt[i] = is
		}
	}
	for _, d := range f.ast.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
			mark(d.Pos(), d.End(), 1, true)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			switch n.Type.(type) {
			case *ast.ArrayType, *ast.MapType:
				mark(n.Lbrace, n.Rbrace, 1, true)
			}
		case *ast.FuncLit: // code in a table
			mark(n.Body.Lbrace, n.Body.Rbrace, 1, false)
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, "\n") {
				mark(n.Pos(), n.End(), 0, true)
			}
		}
		return true
	})
	return exempt
}

// TestWide measures lines of each kind.
func TestWide(t *testing.T) {
	long := strings.Repeat("x", maxColumns)
	source := "package p\n\n" +
		"// " + long + "\n" + // 3
		"var table = f(\n\t\"" + long + "\",\n)\n" +
		"//go:generate " + long + "\n" +
		"func f() {\n" +
		"\t_ = " + long + "\n" + // 9
		"\t_ = []string{\n\t\t\"" + long + "\",\n\t}\n" +
		"\t_ = []func(){func() {\n\t\t_ = " + long + "\n\t}}\n" + // 14
		"\t_ = `\n" + long + "`\n" +
		"\t_ = " + long[:maxColumns-tabColumns-4] + "\n" + // as wide as it may be
		"}\n"
	f := file{set: token.NewFileSet(), text: []byte(source)}
	var err error
	if f.ast, err = parser.ParseFile(f.set, "p.go", source,
		parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	if got, want := wide(&f), []int{3, 9, 14}; !slices.Equal(got, want) {
		t.Errorf("wide lines %v, want %v", got, want)
	}
}
