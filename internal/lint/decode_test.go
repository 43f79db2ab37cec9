// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
