// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/internal/bpf"
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
	found, err := cgroups(func(path string) bool { return strings.Contains(filepath.Base(path), name) })
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

// FindUnit returns the control group of a systemd unit, of the system or of a user, that runs. A name without an ending
// is that of a service.
func FindUnit(name string) (string, error) {
	name, err := unitName(name)
	if err != nil {
		return "", err
	}
	found, err := cgroups(func(path string) bool { return facts.Unit(path) == name })
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", hint.With(fmt.Errorf("no unit %s runs: no control group has its name", name),
			"--wait records its next start")
	case len(found) > 1:
		return "", hint.With(fmt.Errorf("%d units %s run, such as those in %s and %s", len(found), name, found[0],
			found[1]), "select one with --cgroup PATH")
	}
	return found[0], nil
}

func unitName(name string) (string, error) {
	if strings.ContainsAny(name, "/\x00") || strings.Trim(name, ".") == "" {
		return "", fmt.Errorf("%q is no name of a unit, such as ssh.service", name)
	}
	if filepath.Ext(name) == "" {
		name += ".service"
	}
	return name, nil
}

// awaitUnit returns the control group of a unit that runs or is to be started: it makes one where systemd will, if
// there is none.
func awaitUnit(name string) (dir string, made bool, err error) {
	if dir, err := FindUnit(name); err == nil {
		return dir, false, nil
	}
	if name, err = unitName(name); err != nil {
		return "", false, err
	}
	root, err := CgroupRoot()
	if err != nil {
		return "", false, err
	}
	parent := filepath.Join(root, sliceDir(sliceOf(name)))
	if _, err := os.Stat(parent); err != nil {
		return "", false, fmt.Errorf("wait for %s: systemd has no control group %s", name, parent)
	}
	dir = filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", false, fmt.Errorf("wait for %s: %w", name, err)
	}
	return dir, true, nil
}

// awaitProcess waits until a control group has a process, is gone, or ctx ends. It does not wait for "".
func awaitProcess(ctx context.Context, dir string) {
	if dir == "" {
		return
	}
	f, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return
	}
	defer f.Close()
	const look = 100 // milliseconds, for the end of ctx
	b := make([]byte, 256)
	for ctx.Err() == nil {
		n, err := f.ReadAt(b, 0)
		if err != nil && err != io.EOF || bytes.Contains(b[:n], []byte("populated 1")) {
			return
		}
		// The kernel says so when the file has changed since it was read (cgroups(7)).
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, look)
	}
}

// askPatience is how long other programs may take to answer.
const askPatience = 5 * time.Second

// sliceOf returns the slice that a unit belongs to: as systemd says, or else by its default (systemd.slice(5)).
func sliceOf(unit string) string {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "show", "--property", "Slice", "--value", "--", unit).Output()
	if s := strings.TrimSpace(string(out)); err == nil && strings.HasSuffix(s, ".slice") && !strings.Contains(s, "/") {
		return s
	}
	if prefix, _, template := strings.Cut(unit, "@"); template && !strings.Contains(prefix, "-") {
		return "system-" + prefix + ".slice"
	}
	return "system.slice"
}

// sliceDir returns where the control group of a slice is: a-b.slice in a.slice.
func sliceDir(slice string) string {
	dir, at := "", 0
	name := strings.TrimSuffix(slice, ".slice")
	for {
		i := strings.IndexByte(name[at:], '-')
		if i < 0 {
			return filepath.Join(dir, slice)
		}
		at += i
		dir = filepath.Join(dir, name[:at]+".slice")
		at++
	}
}

// cgroups returns the directories of the topmost control groups whose paths below the root fit.
func cgroups(fits func(path string) bool) (found []string, err error) {
	root, err := CgroupRoot()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case d.IsDir() && path != root && fits(strings.TrimPrefix(path, root)):
			found = append(found, path)
			return fs.SkipDir // those below are in it
		}
		return nil
	})
	return found, err
}

// CgroupRoot returns where the hierarchy of version 2 is mounted.
func CgroupRoot() (string, error) { return bpf.CgroupRoot() }
