// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

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

// hostRoot is the number of the root of the hierarchy. In a cgroup namespace another group is shown as the root.
const hostRoot = 1

// Cgroups calls f with the number and the path, below the hierarchy's root, of each control group of version 2
// but the root. It does nothing where the whole hierarchy is not to be seen.
func Cgroups(f func(id uint64, path string)) error {
	root, err := CgroupRoot()
	if err != nil {
		return nil //nolint:nilerr // a machine without them has none
	}
	if id, err := CgroupID(root); err != nil || id != hostRoot {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV):
			return nil // removed meanwhile
		case err != nil:
			return err
		case !d.IsDir() || path == root:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // removed meanwhile
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			f(st.Ino, strings.TrimPrefix(path, root))
		}
		return nil
	})
}
