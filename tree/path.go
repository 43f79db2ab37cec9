// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"strings"
)

// MaxPathBytes bounds a path in a manifest. It is far above PATH_MAX, which limits
// one system call but not how deep a tree can be.
const MaxPathBytes = 64 << 10

// ValidPath reports why a path cannot stand in a manifest, or nil. A path is one or
// more names joined by single slashes, after one slash if it is absolute. No name is
// "." or "..", except that the root is called "." (or "/"). Any byte but NUL may
// occur.
func ValidPath(path string) error {
	switch {
	case path == "":
		return errors.New("is empty")
	case len(path) > MaxPathBytes:
		return errors.New("is too long")
	case strings.IndexByte(path, 0) >= 0:
		return errors.New("contains a zero byte")
	case path == "." || path == "/":
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch name {
		case "":
			return errors.New("contains an empty name")
		case ".", "..":
			return errors.New(`contains "` + name + `"`)
		}
	}
	return nil
}

// ComparePaths is the order of a manifest: the order of a depth-first walk whose
// names are sorted by bytes. All entries below a directory follow it directly, which
// plain byte order would not give ("a", "a-b", "a/b").
func ComparePaths(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == ".":
		return -1
	case b == ".":
		return 1
	}
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		switch {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}

// Parent returns the path of the directory that holds path, "" for a root.
func Parent(path string) string {
	if path == "." || path == "/" {
		return ""
	}
	switch i := strings.LastIndexByte(path, '/'); i {
	case -1:
		return "."
	case 0:
		return "/"
	default:
		return path[:i]
	}
}

// isAncestor reports whether path lies below dir.
func isAncestor(dir, path string) bool {
	switch dir {
	case ".":
		return path != "." && !isAbs(path)
	case "/":
		return path != "/" && isAbs(path)
	}
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

func isAbs(path string) bool { return path[0] == '/' }

// relative turns a valid manifest path into one relative to the root.
func relative(path string) string {
	if path == "/" {
		return "."
	}
	return strings.TrimPrefix(path, "/")
}

// splitRelative cuts a relative path into its directory and its last name. The root's
// name is ".", in itself, which every *at call understands.
func splitRelative(rel string) (dir, name string) {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i], rel[i+1:]
	}
	return ".", rel
}

// join puts a relative path under a prefix ("" is ".").
func join(prefix, rel string) string {
	switch {
	case prefix == "" || prefix == ".":
		return rel
	case rel == ".":
		return prefix
	case prefix == "/":
		return "/" + rel
	}
	return prefix + "/" + rel
}
