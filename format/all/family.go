// SPDX-License-Identifier: Apache-2.0

package all

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/format/straceread"
)

// Families groups files: those that strace -ff wrote in one run (NAME.PID) become one group,
// every other file is a group of its own. Groups are in the order of their first files, and the
// first file of a group decides whether it is of strace.
func Families(paths []string) (groups [][]string) {
	type family struct {
		strace bool
		at     int
	}
	known := map[string]family{}
	for _, path := range paths {
		name, _, ok := straceread.FamilyOf(path)
		f, seen := known[name]
		if ok && !seen {
			f = family{isStrace(path), len(groups)}
			known[name] = f
		}
		if ok && seen && f.strace {
			groups[f.at] = append(groups[f.at], path)
			continue
		}
		groups = append(groups, []string{path})
	}
	return groups
}

// IsFamily reports whether path is a directory with files that strace -ff wrote, or a pattern of their names
// (dir/trace.*).
func IsFamily(path string) bool {
	files, err := family(path)
	return len(files) > 0 || errors.Is(err, errSeveralRuns)
}

// errSeveralRuns says that it is not clear which files are meant.
var errSeveralRuns = errors.New("files of several runs of strace -ff: name those of one")

// family returns the files of strace -ff in a directory, or those that a pattern fits: nil if there are none,
// and an error if they are of several runs.
func family(dir string) ([]string, error) {
	pattern := dir
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return nil, nil
		}
		pattern = filepath.Join(literally(dir), "*")
	} else if !strings.ContainsAny(dir, "*?[") {
		return nil, err
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	runs := map[string][]string{} // by name
	for _, path := range paths {
		name, _, ok := straceread.FamilyOf(path)
		if st, err := os.Lstat(path); ok && err == nil && st.Mode().IsRegular() {
			runs[name] = append(runs[name], path)
		}
	}
	// A process that made no call leaves a file that says nothing of its format.
	maps.DeleteFunc(runs, func(_ string, files []string) bool { return !slices.ContainsFunc(files, isStrace) })
	names := slices.Sorted(maps.Keys(runs))
	if len(names) > 1 {
		return nil, fmt.Errorf("%s has, such as %s and %s, %w", dir, names[0], names[1], errSeveralRuns)
	}
	if len(names) == 0 {
		return nil, nil
	}
	return runs[names[0]], nil
}

// literally returns a pattern that fits a name only.
func literally(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func isStrace(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	found, err := Identify(f)
	return err == nil && found == &straceread.Format
}

// OpenFamily is Open for the files that strace -ff wrote in one run: it joins them.
func OpenFamily(ctx context.Context, paths []string, dir string) (*os.File, error) {
	out, err := os.CreateTemp(dir, "joined-*.strace")
	if err != nil {
		return nil, err
	}
	if err = straceread.Join(ctx, out, paths); err == nil {
		_, err = out.Seek(0, 0)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}
