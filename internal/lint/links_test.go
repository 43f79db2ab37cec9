// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A link of Markdown, and a heading.
var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

// TestLinks finds links in the documents to files and headings that there are not.
func TestLinks(t *testing.T) {
	const root = "../.."
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		b, err := os.ReadFile(name)
		pages[filepath.Clean(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
				continue
			}
			links++
			target := filepath.Clean(name)
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which there is not", name, m[1])
			} else if page, ok := pages[target]; ok && anchor != "" && !anchors(page)[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], target)
			}
		}
	}
	if links == 0 {
		t.Error("the documents have no links: this test sees nothing")
	}
}

// anchors returns what the headings of a page are called in links, as GitHub makes it of them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || r > 127 && r != '→' && r != '–',
				r >= '0' && r <= '9', r >= 'a' && r <= 'z':
				b.WriteRune(r)
			}
		}
		found[b.String()] = true
	}
	return found
}
