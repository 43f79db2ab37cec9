// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bpfPrograms are the sources of eBPF objects, with the folders that clang looks for their
// headers in (gen.go beside them).
var bpfPrograms = []struct {
	source string
	dirs   []string
}{
	{"record/capture/ebpf/bpf/iotape.c", []string{"record/capture/ebpf/bpf", "record/internal/bpf/include"}},
	{"record/capture/ebpf/bpf/stack.c", []string{"record/capture/ebpf/bpf", "record/internal/bpf/include"}},
	{"record/count/bpf/count.c", []string{"record/count/bpf", "record/internal/bpf/include"}},
	{"record/internal/bpf/include/shared.c", []string{"record/internal/bpf/include"}},
}

// TestBPFHeaders holds the C sources of eBPF programs to an order: headers declare, and
// include what they need before any code, without circles; programs are in .c files.
func TestBPFHeaders(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range bpfPrograms {
		g := &includes{root: "../..", dirs: p.dirs, files: map[string]string{}}
		for _, b := range g.check(p.source) {
			t.Error(b)
		}
		for name := range g.files {
			seen[name] = true
		}
	}
	for _, p := range bpfPrograms {
		all, err := filepath.Glob(filepath.Join("../..", filepath.Dir(p.source), "*.[ch]"))
		if err != nil || len(all) == 0 {
			t.Fatalf("no sources beside %s, error %v", p.source, err)
		}
		for _, path := range all {
			if name, _ := filepath.Rel("../..", path); !seen[name] {
				t.Errorf("%s is part of no program in bpfPrograms", name)
			}
		}
	}
}

// includes is the graph of what one program includes.
type includes struct {
	root  string
	dirs  []string
	files map[string]string // their text, without comments
	path  []string          // from the program to the file being read
	found []string          // what breaks the rules
}

func (g *includes) check(source string) []string {
	g.visit(source)
	return g.found
}

func (g *includes) complain(name, format string, args ...any) {
	g.found = append(g.found, name+" "+fmt.Sprintf(format, args...))
}

var (
	cComment   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	cInclude   = regexp.MustCompile(`^#include\s+"([^"]+)"`)
	cPreamble  = regexp.MustCompile(`^(#include\s.*|#pragma once)?$`)
	cProgram   = regexp.MustCompile(`(?m)^SEC\("(?:tp_btf|iter|syscall|fentry|fexit|kprobe|tracepoint|raw_tp)`)
	cPrototype = regexp.MustCompile(`(?m)^([a-z_][a-z0-9_ *]*\b[a-z0-9_]+\([^;{}]*\))\s*;$`)
	cAllowed   = regexp.MustCompile(`^(extern|typedef) |^_Static_assert|__attribute__`) // of these
)

// visit reads a file and what it includes.
func (g *includes) visit(name string) {
	if i := slices.Index(g.path, name); i >= 0 {
		g.complain(name, "includes itself: %s", strings.Join(append(slices.Clone(g.path[i:]), name), " → "))
		return
	}
	if _, ok := g.files[name]; ok {
		return
	}
	b, err := os.ReadFile(filepath.Join(g.root, name))
	if err != nil {
		g.complain(name, "cannot be read: %v", err)
		return
	}
	text := cComment.ReplaceAllString(string(b), "")
	g.files[name] = text
	if strings.HasSuffix(name, ".h") {
		if !strings.Contains(text, "#pragma once") {
			g.complain(name, "has no #pragma once")
		}
		if cProgram.MatchString(text) {
			g.complain(name, "defines a program: programs are in .c files")
		}
	}
	for _, m := range cPrototype.FindAllStringSubmatch(text, -1) {
		if !cAllowed.MatchString(m[1]) {
			g.complain(name, "declares %q before its definition: include the header that has it", m[1])
		}
	}
	g.path = append(g.path, name)
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		m := cInclude.FindStringSubmatch(line)
		if strings.HasPrefix(line, "#include") && code {
			g.complain(name, "has %s after code", line)
		}
		code = code || !cPreamble.MatchString(line)
		if m == nil {
			continue
		}
		if header := g.find(name, m[1]); header == "" {
			g.complain(name, "includes %q, which is in none of %q", m[1], g.dirs)
		} else {
			g.visit(header)
		}
	}
	g.path = g.path[:len(g.path)-1]
}

// find returns the file that a directive means, "" if there is none.
func (g *includes) find(from, header string) string {
	for _, dir := range append([]string{filepath.Dir(from)}, g.dirs...) {
		name := filepath.Join(dir, header)
		if _, err := os.Stat(filepath.Join(g.root, name)); err == nil {
			return name
		}
	}
	return ""
}

// TestBPFHeaderRules breaks each rule in a tree of its own.
func TestBPFHeaderRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"in order", map[string]string{
			"p.c": "/* a */\n#include \"a.h\"\n#include <linux/bpf.h>\nSEC(\"tp_btf/x\")\nint x(void) { return f(); }\n",
			"a.h": "#pragma once\n\n#include \"b.h\" /* for g */\nextern int k(void) __ksym;\n" +
				"static int f(void) { return g(); }\n",
			"b.h": "#pragma once\nstatic int g(void) { return 1; }\n",
		}, nil},
		{"circle", map[string]string{
			"p.c": "#include \"a.h\"\n", "a.h": "#pragma once\n#include \"b.h\"\n", "b.h": "#pragma once\n#include \"a.h\"\n",
		}, []string{"a.h includes itself: a.h → b.h → a.h"}},
		{"after code", map[string]string{
			"p.c": "#include \"a.h\"\nint n;\n#include \"b.h\"\n", "a.h": "#pragma once\n", "b.h": "#pragma once\n",
		}, []string{`p.c has #include "b.h" after code`}},
		{"program in a header", map[string]string{
			"p.c": "#include \"a.h\"\n", "a.h": "#pragma once\nSEC(\"iter/task\")\nint x(void *c) { return 0; }\n",
		}, []string{"a.h defines a program: programs are in .c files"}},
		{"forward declaration", map[string]string{
			"p.c": "int f(struct work *w,\n      int n);\n",
		}, []string{
			`p.c declares "int f(struct work *w,\n      int n)" before its definition: include the header that has it`,
		}},
		{"nothing there, and twice", map[string]string{
			"p.c": "#include \"no.h\"\n#include \"a.h\"\n", "a.h": "int a;\n",
		}, []string{`p.c includes "no.h", which is in none of ["."]`, "a.h has no #pragma once"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range slices.Sorted(maps.Keys(c.files)) {
				if err := os.WriteFile(filepath.Join(root, name), []byte(c.files[name]), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			g := &includes{root: root, dirs: []string{"."}, files: map[string]string{}}
			if got := g.check("p.c"); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
