// SPDX-License-Identifier: Apache-2.0

// Command spdx checks that every hand-written source file names its licence in its first
// line, and adds the line with -fix:
//
//	go run ./internal/lint/spdx [-fix] [DIRECTORY]
//
// It prints the files that lack the line and exits with status 1 if there are any. In a
// script the line follows the "#!" line. Generated files, and what is below folders named
// testdata, are left alone.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The kernel lets only programs under a GPL-compatible licence call the helpers that ours
// need, so the eBPF sources have a licence of their own.
const (
	licence    = "Apache-2.0"
	licenceBPF = "GPL-2.0-only OR BSD-2-Clause"
)

// foldersBPF have the sources of eBPF programs.
var foldersBPF = []string{"record/capture/ebpf/bpf/", "record/count/bpf/", "record/internal/bpf/include/"}

func main() {
	fix := flag.Bool("fix", false, "add the lines that are missing")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	missing, err := find(dir, *fix)
	for _, name := range missing {
		fmt.Println(name)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "spdx:", err)
		os.Exit(2)
	case len(missing) > 0 && !*fix:
		os.Exit(1)
	}
}

// find returns the source files below dir whose first line does not name their licence, and
// adds it to them if fix is set.
func find(dir string, fix bool) ([]string, error) {
	var missing []string
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		full := withLine(name, text)
		if bytes.Equal(full, text) {
			return nil
		}
		missing = append(missing, name)
		if !fix {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), full, info.Mode())
	})
	return missing, err
}

// skipped says whether a folder holds no source files of ours.
func skipped(name string) bool {
	base := path.Base(name)
	return base == "testdata" || base == "node_modules" || name == "bin" || name == "dist" || name == ".git" ||
		strings.HasSuffix(base, ".tape")
}

var (
	generated = regexp.MustCompile(`(?m)^(//|/\*) Code generated .* DO NOT EDIT\.( \*/)?$`)
	stated    = regexp.MustCompile(`^(//|#|/\*) SPDX-License-Identifier: `)
)

// withLine returns a file's text with its licence in the first line, and the text itself if
// it has it, or needs none.
func withLine(name string, text []byte) []byte {
	open, end := comment(name, text)
	if open == "" || generated.Match(text) {
		return text
	}
	var first []byte
	if bytes.HasPrefix(text, []byte("#!")) {
		n := bytes.IndexByte(text, '\n') + 1
		first, text = text[:n:n], text[n:]
	}
	id := licence
	if slices.ContainsFunc(foldersBPF, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
		id = licenceBPF
	}
	line := []byte(open + " SPDX-License-Identifier: " + id + end + "\n")
	// A line that names another licence is replaced.
	if old, rest, _ := bytes.Cut(text, []byte("\n")); stated.Match(old) {
		return bytes.Join([][]byte{first, line, rest}, nil)
	}
	if path.Ext(name) == ".go" || path.Ext(name) == ".s" {
		// Without the empty line it would be part of the package's documentation.
		line = append(line, '\n')
	}
	return bytes.Join([][]byte{first, line, text}, nil)
}

// comment returns how a comment of one line begins and ends in a source file, "" in others.
func comment(name string, text []byte) (open, end string) {
	switch path.Ext(name) {
	case ".go", ".s", ".c", ".h", ".js":
		return "//", ""
	case ".css":
		return "/*", " */"
	case ".sh", ".py":
		return "#", ""
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("sh")) {
		return "#", ""
	}
	return "", ""
}
