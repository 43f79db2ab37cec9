// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every module that go.mod requires directly stands in docs/dependencies.md, with its version, and
// no other.
func TestDependenciesAreDocumented(t *testing.T) {
	read := func(name string) []string {
		b, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(b), "\n")
	}
	want := map[string]string{}
	for _, line := range read("go.mod") {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "\t") && len(words) == 2 { // an indirect one has a comment
			want[words[0]] = words[1]
		}
	}
	if len(want) < 10 {
		t.Fatalf("go.mod requires %d modules: it is not read right", len(want))
	}
	got := map[string]string{}
	for _, line := range read("docs/dependencies.md") {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.TrimSpace(cells[1]) == "module" || strings.HasPrefix(cells[1], "-") {
			continue
		}
		name := strings.TrimSpace(cells[1])
		got[name] = strings.TrimSpace(cells[2])
		for i, what := range []string{3: "licence", 4: "purpose", 5: "answer whether it could go"} {
			if what != "" && strings.TrimSpace(cells[i]) == "" {
				t.Errorf("docs/dependencies.md has no %s of %s", what, name)
			}
		}
	}
	for name, version := range want {
		if got[name] != version {
			t.Errorf("docs/dependencies.md has version %q of %s, and go.mod %s", got[name], name, version)
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("docs/dependencies.md has %s, which go.mod does not require directly", name)
		}
	}
}
