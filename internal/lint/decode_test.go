// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// looksAtFiles are the folders that look at files of this machine, whose modes are not those of events.
var looksAtFiles = []string{"record/", "tree", "internal/", "replay/execute"}

// openFlag is the name of a constant for a flag of open(2).
var openFlag = regexp.MustCompile(`(?i)^o_?(creat|excl|trunc|append|direct|tmpfile|cloexec)$`)

// TestDecodedOnce holds the types of files and the flags of open(2) to the constants of package event.
func TestDecodedOnce(t *testing.T) {
	const mask = 0o170000
	for _, f := range files(t) {
		if f.test || f.pkg == "event" || strings.HasPrefix(f.pkg, "event/") {
			continue
		}
		at := func(n ast.Node) token.Position { return f.set.Position(n.Pos()) }
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if v, err := strconv.ParseUint(n.Value, 0, 64); n.Kind == token.INT && err == nil && v == mask {
					t.Errorf("%s: %s is the mask of file types: use event.FileType", at(n), n.Value)
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "S_IFMT" && !belongs(f.pkg, looksAtFiles) {
					t.Errorf("%s: S_IFMT: use event.FileType", at(n))
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if openFlag.MatchString(name.Name) && i < len(n.Values) && isNumber(n.Values[i]) {
						t.Errorf("%s: %s is a flag of open: use the one of package event", at(n), name.Name)
					}
				}
			}
			return true
		})
	}
}

// belongs reports whether a package is in one of the folders.
func belongs(pkg string, folders []string) bool {
	for _, dir := range folders {
		if strings.HasPrefix(pkg+"/", strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// isNumber reports whether an expression is a number.
func isNumber(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}

// listsOperations are the folders that name the calls of one effect for another reason than what they do.
var listsOperations = []string{
	"event",           // says what calls do
	"format",          // other tools' names and arguments of calls
	"record/capture",  // calls of the kernel, by number
	"record/internal", // the same
	"causal/throttle", // the same, of calls that are held
	"transform/anon",  // what the bytes of arguments mean
	"replay/effect",   // which calls other tools left out, by name
	"bench",           // workloads
}

// TestEffectsOnce holds lists of calls that do the same to event.Effect: a new call is added there, and nowhere else.
func TestEffectsOnce(t *testing.T) {
	byName := map[string]event.Op{}
	for _, s := range event.Specs() {
		byName["Op"+strings.ReplaceAll(strings.ToLower(s.Name), "_", "")] = s.Op
	}
	effectOf := func(e ast.Expr) event.Effect {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(sel.Sel.Name, "Op") {
			return event.EffectNone
		}
		return byName["Op"+strings.ToLower(sel.Sel.Name[2:])].Effect()
	}
	for _, f := range files(t) {
		if f.test || belongs(f.pkg, listsOperations) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var list []ast.Expr
			switch n := n.(type) {
			case *ast.CaseClause:
				list = n.List
			case *ast.CompositeLit:
				list = n.Elts
			case *ast.BinaryExpr:
				list = alternatives(n)
			}
			seen := map[event.Effect]bool{}
			for _, e := range list {
				effect := effectOf(e)
				if effect != event.EffectNone && seen[effect] {
					t.Errorf("%s: a list of calls that do the same: use event.Effect", f.set.Position(n.Pos()))
					break
				}
				seen[effect] = true
			}
			return true
		})
	}
}

// alternatives returns what the comparisons of a condition compare with: of a == X || b == Y, X and Y.
func alternatives(n *ast.BinaryExpr) (list []ast.Expr) {
	switch n.Op {
	case token.EQL, token.NEQ:
		return []ast.Expr{n.Y}
	case token.LOR, token.LAND:
		for _, e := range []ast.Expr{n.X, n.Y} {
			if p, ok := e.(*ast.ParenExpr); ok {
				e = p.X
			}
			if b, ok := e.(*ast.BinaryExpr); ok {
				list = append(list, alternatives(b)...)
			}
		}
	}
	return list
}
