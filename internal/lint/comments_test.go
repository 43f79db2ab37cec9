// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestComments reports comments of functions and types that begin with another name: what is
// left behind when something is renamed.
func TestComments(t *testing.T) {
	for _, l := range packages(t) {
		if !l.ours() {
			continue
		}
		for _, name := range slices.Concat(l.GoFiles, l.CgoFiles) {
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, filepath.Join(l.Dir, name), nil,
				parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			if ast.IsGenerated(f) {
				continue
			}
			for _, stale := range staleComments(f) {
				t.Errorf("%s: the comment of %s begins with %q", set.Position(stale.Pos()),
					stale.Name, firstWord(stale.doc))
			}
		}
	}
}

// commented is a declared name with its comment.
type commented struct {
	*ast.Ident
	doc *ast.CommentGroup
}

// staleComments returns the functions and types whose comments begin with another name.
func staleComments(f *ast.File) (stale []commented) {
	look := func(name *ast.Ident, doc *ast.CommentGroup) {
		if first := firstWord(doc); first != "" && first != name.Name {
			stale = append(stale, commented{name, doc})
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			look(d.Name, d.Doc)
		case *ast.GenDecl:
			if d.Tok == token.TYPE && len(d.Specs) == 1 {
				look(d.Specs[0].(*ast.TypeSpec).Name, d.Doc)
			}
		}
	}
	return stale
}

// firstWord returns the first word of a comment behind an article, "" if there is none.
func firstWord(doc *ast.CommentGroup) string {
	words := strings.Fields(doc.Text())
	if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return strings.TrimRight(words[0], ":,.;")
}

func TestStaleComments(t *testing.T) {
	const source = `package p

// A good is named.
type good struct{}

// bad was renamed.
type renamed struct{}

// do does it.
func do() {}

// Old does it.
func renamedToo() {}

func bare() {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range staleComments(f) {
		got = append(got, s.Name)
	}
	if want := []string{"renamed", "renamedToo"}; !slices.Equal(got, want) {
		t.Errorf("stale comments of %q, want %q", got, want)
	}
}
