// SPDX-License-Identifier: Apache-2.0

package all

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/iotape/iotape/format/straceread"
)

// Families groups files: those that strace -ff wrote in one run (NAME.PID) become one group,
// every other file is a group of its own. Groups are in the order of their first files.
func Families(paths []string) (groups [][]string) {
	at := map[string]int{}
	for _, path := range paths {
		name, _, ok := straceread.FamilyOf(path)
		ok = ok && isStrace(path)
		if i, known := at[name]; ok && known {
			groups[i] = append(groups[i], path)
			continue
		}
		if ok {
			at[name] = len(groups)
		}
		groups = append(groups, []string{path})
	}
	return groups
}

// IsFamily reports whether a directory has the files of one run of strace -ff, and nothing else
// that could be meant.
func IsFamily(dir string) bool {
	paths, err := family(dir)
	return err == nil && len(paths) > 0
}

// family returns the files of strace -ff in a directory: nil if there are none, and an error if
// they are of several runs.
func family(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if _, _, ok := straceread.FamilyOf(e.Name()); ok && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	groups := Families(paths)
	groups = slices.DeleteFunc(groups, func(g []string) bool { return !isStrace(g[0]) })
	switch len(groups) {
	case 0:
		return nil, nil
	case 1:
		return groups[0], nil
	}
	return nil, fmt.Errorf("%s has files of %d runs of strace -ff, such as %s and %s: name those of one",
		dir, len(groups), groups[0][0], groups[1][0])
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
