// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinkHops is how many symbolic links the kernel follows in one path.
const maxLinkHops = 40

// TakePaths takes the given paths and their ancestors instead of a whole tree. The
// paths are resolved as a process would whose root directory is root: an absolute
// path and an absolute symlink target start there, and ".." stops there. The final
// name is not followed; a symlink in the middle becomes an entry, and the path goes
// on at its target, so the manifest names each object by its physical path.
//
// Content is taken of the files for whose path, as it stands in paths, hash returns
// true; nil means all. Paths that do not exist are left out, and no directory counts
// as fully listed.
func TakePaths(ctx context.Context, root string, paths []string, hash func(path string) bool,
	opt *TakeOptions) (*Manifest, error) {
	t, err := newTaker(ctx, root, opt)
	if err != nil {
		return nil, fmt.Errorf("state of paths in %s: %w", root, err)
	}
	defer t.close()
	r := &resolver{taker: t, dirs: newDirCache(t.root), seen: map[string]int{}, read: map[string]bool{}}
	defer r.dirs.close()
	if _, err := r.visit(".", false); err != nil {
		return nil, fmt.Errorf("state of paths in %s: %w", root, err)
	}
	// In order, neighbours share their directory, which stays open.
	for _, p := range slices.Sorted(slices.Values(paths)) {
		if err := r.resolve(p, hash == nil || hash(p)); err != nil {
			return nil, fmt.Errorf("state of paths in %s: %w", root, err)
		}
	}
	return t.finish(), nil
}

// resolver walks paths name by name and takes each prefix once.
type resolver struct {
	*taker
	dirs *dirCache
	seen map[string]int  // by physical path: index of its entry, -1 if there is none
	read map[string]bool // physical paths of files whose content was taken
}

// resolve takes one path and all that it passes through.
func (r *resolver) resolve(p string, readContent bool) error {
	at, hops := ".", 0
	rest := strings.Split(p, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			at = path.Dir(at) // exact, because at holds no symlinks; "." stays "."
			continue
		case strings.IndexByte(name, 0) >= 0:
			return nil // no such path can exist
		}
		here := join(at, name)
		last := len(rest) == 0 // "a/" asks for what a leads to, so it is not the last
		i, err := r.visit(here, last && readContent)
		if err != nil || i < 0 || last {
			return err
		}
		switch e := &r.m.Entries[i]; e.Type {
		case Dir:
			at = here
		case Symlink:
			if hops++; hops > maxLinkHops {
				return nil // the kernel says ELOOP: the path leads nowhere
			}
			if isAbs(e.Target) {
				at = "."
			}
			rest = append(strings.Split(e.Target, "/"), rest...)
		default:
			return nil // the path goes on below a file, so it does not exist
		}
	}
	return nil
}

// visit takes one physical path and returns the index of its entry, or -1.
func (r *resolver) visit(rel string, readContent bool) (int, error) {
	if i, ok := r.seen[rel]; ok && (i < 0 || !readContent || r.read[rel]) {
		return i, nil
	}
	dir, name := splitRelative(rel)
	fd, err := r.dirs.open(dir)
	if err != nil {
		r.seen[rel] = -1
		if gone(err) {
			return -1, nil
		}
		return -1, r.trouble(rel, "open its directory", err)
	}
	if err := r.known(fd); err != nil {
		return -1, r.trouble(rel, "find its file system", err)
	}
	var st unix.Stat_t
	switch err := lstatAt(fd, name, &st); {
	case err == nil:
	case gone(err) || err == unix.ENAMETOOLONG:
		r.seen[rel] = -1
		return -1, nil
	default:
		r.seen[rel] = -1
		return -1, r.trouble(rel, "look at it", err)
	}
	if i, ok := r.seen[rel]; ok { // taken before, but without the content
		r.read[rel] = true
		e := &r.m.Entries[i]
		if e.Type != File || r.fsys[e.Dev] != "" {
			return i, nil
		}
		kept := e.Known & KnownXattrs // the rest is found again
		err := r.readFile(fd, name, rel, e)
		e.Known |= kept
		return i, err
	}
	before := len(r.m.Entries)
	if err := r.entry(fd, name, rel, readContent); err != nil {
		return -1, err
	}
	if len(r.m.Entries) == before {
		r.seen[rel] = -1
		return -1, nil
	}
	r.seen[rel] = before
	r.read[rel] = readContent
	return before, nil
}

// known makes sure that the file system of a directory is known, so that nothing on a
// pseudo file system is opened.
func (r *resolver) known(dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	_, err := r.fileSystem(dir, uint64(st.Dev))
	return err
}
