// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FindCgroup returns the directory of a version 2 control group: a path, absolute or
// below the hierarchy's root, or the one group that has the text in its name.
// Containers and services have groups that are named after them (docker-ID.scope,
// libpod-ID.scope, NAME.service).
func FindCgroup(name string) (string, error) {
	root, err := CgroupRoot()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{name, filepath.Join(root, name)} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil || !filepath.IsAbs(dir) {
			continue
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(root, dir); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return "", fmt.Errorf("%s is not below %s, where the control groups of version 2 are", dir, root)
		}
		return dir, nil
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("no control group %s below %s", name, root)
	}
	var found []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.Contains(d.Name(), name):
			found = append(found, path)
			return fs.SkipDir // those below are in it
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fmt.Errorf("no control group has %q in its name", name)
	case len(found) > 1:
		return "", fmt.Errorf("%d control groups have %q in their names, such as %s and %s",
			len(found), name, found[0], found[1])
	}
	return found[0], nil
}

// CgroupRoot returns where the hierarchy of version 2 is mounted (cgroups(7)).
func CgroupRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(mounts) {
		if f := bytes.Fields(line); len(f) > 2 && string(f[2]) == "cgroup2" {
			return strings.NewReplacer(`\040`, " ", `\134`, `\`).Replace(string(f[1])), nil
		}
	}
	return "", errors.New("this machine has no control groups of version 2 (mount -t cgroup2)")
}
