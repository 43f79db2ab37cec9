// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// Manifests that try to get out of the root, or to confuse. Each must be refused
// before anything is made.
func TestRestoreHostileManifest(t *testing.T) {
	dir := func(p string) Entry { return Entry{Path: p, Type: Dir} }
	file := func(p string) Entry { return Entry{Path: p, Type: File, Known: KnownLinks} }
	sym := func(p, to string) Entry { return Entry{Path: p, Type: Symlink, Target: to} }
	link := func(p, to string) Entry { return Entry{Path: p, Type: File, Known: KnownLinks, Link: to} }
	tests := []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"dot dot", []Entry{file("../victim/x")}, `contains ".."`},
		{"dot dot inside", []Entry{dir("a"), file("a/../../victim/x")}, `contains ".."`},
		{"absolute with dot dot", []Entry{file("/../victim/x")}, `contains ".."`},
		{"empty name", []Entry{file("a//b")}, "empty name"},
		{"trailing slash", []Entry{file("a/")}, "empty name"},
		{"dot inside", []Entry{file("a/./b")}, `contains "."`},
		{"zero byte", []Entry{file("a\x00b")}, "zero byte"},
		{"mixed", []Entry{dir("."), file("/a")}, "mixed"},
		{"through a symlink", []Entry{sym("a", "../victim"), file("a/x")}, "lies below"},
		{"through a symlink, far", []Entry{sym("a", "../victim"), file("a/b/c/x")}, "lies below"},
		{"below a file", []Entry{file("a"), file("a/x")}, "lies below"},
		{"symlink as root", []Entry{sym(".", "../victim")}, "root is a symlink"},
		{"twice", []Entry{sym("a", "../victim"), dir("a")}, "twice"},
		{"unsorted", []Entry{file("b"), file("a")}, "order"},
		{"unsorted in the slash", []Entry{dir("a"), dir("a-b"), file("a/b")}, "order"},
		{"link outside", []Entry{link("a", "../victim/x")}, "not before it"},
		{"link forward", []Entry{link("a", "b"), file("b")}, "not before it"},
		{"link to a link", []Entry{file("a"), link("b", "a"), link("c", "b")}, "link itself"},
		{"link to a directory", []Entry{dir("a"), link("b", "a")}, "directory"},
		{"link to itself", []Entry{link("a", "a")}, "not before it"},
		{"empty target", []Entry{sym("a", "")}, "target"},
		{"set-id beyond the mode", []Entry{{Path: "a", Type: File, Known: KnownMode, Mode: 0o100644}}, "mode"},
		{"negative size", []Entry{{Path: "a", Type: File, Known: KnownSize, Size: -1}}, "size"},
		{"chunk beyond the end", []Entry{{Path: "a", Type: File, Known: KnownSize, Size: 5, Chunks: []Chunk{{0, 6, 0}}}}, "beyond the end"},
		{"chunk wraps", []Entry{{Path: "a", Type: File, Chunks: []Chunk{{1<<63 - 2, 6, 0}}}}, "beyond the end"},
		{"chunks overlap", []Entry{{Path: "a", Type: File, Chunks: []Chunk{{0, 6, 0}, {5, 1, 0}}}}, "before 6"},
		{"type", []Entry{{Path: "a", Type: 'x'}}, "type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := t.TempDir()
			must(t, os.Mkdir(filepath.Join(base, "victim"), 0o755))
			root := filepath.Join(base, "root")
			report, err := Restore(t.Context(), &Manifest{Entries: test.entries}, root, (&memory{}).get, nil)
			wantError(t, err, test.want)
			if report != nil {
				t.Error("an error and a report")
			}
			if list, _ := filepath.Glob(base + "/*/*"); list != nil {
				t.Errorf("made %q", list)
			}
		})
	}
}

// A root that is not empty and in which somebody laid traps.
func TestRestoreHostileRoot(t *testing.T) {
	tests := []struct {
		name  string
		trap  string // a symlink with this name leads to the victim
		to    string
		entry Entry
		want  string
	}{
		{"directory is a symlink", "a", "victim", Entry{Path: "a", Type: Dir}, "exists"},
		{"parent is a symlink", "a", "victim", Entry{Path: "a/x", Type: File}, "not a plain directory"},
		{"grandparent is a symlink", "a", "victim", Entry{Path: "a/b/x", Type: File}, "not a plain directory"},
		{"file is a symlink", "a", "victim/x", Entry{Path: "a", Type: File}, "exists"},
		{"fifo is a symlink", "a", "victim/x", Entry{Path: "a", Type: FIFO}, "exists"},
		{"absolute path", "a", "victim", Entry{Path: "/a/x", Type: File}, "not a plain directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := t.TempDir()
			must(t, os.Mkdir(filepath.Join(base, "victim"), 0o700))
			must(t, os.Mkdir(filepath.Join(base, "root"), 0o755))
			must(t, os.Symlink(filepath.Join(base, test.to), filepath.Join(base, "root", test.trap)))
			before := take(t, filepath.Join(base, "victim"), nil)
			e := test.entry
			e.Known, e.Mode = KnownMode, 0o777
			_, err := Restore(t.Context(), &Manifest{Entries: []Entry{e}}, filepath.Join(base, "root"), nil, nil)
			wantError(t, err, test.want)
			wantSame(t, before, take(t, filepath.Join(base, "victim"), nil))
		})
	}
	t.Run("parent is a magic link", func(t *testing.T) {
		m := &Manifest{Entries: []Entry{{Path: "self/cwd/x", Type: File}}}
		_, err := Restore(t.Context(), m, "/proc", nil, nil)
		wantError(t, err, "not a plain directory")
	})
}

// An absolute manifest goes under the root, and what it does not know gets defaults
// whatever the umask is.
func TestRestoreSkeleton(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "kept"), 0o700))
	must(t, os.Chmod(filepath.Join(root, "kept"), 0o750))
	m := &Manifest{Entries: []Entry{
		{Path: "/a/b/c", Type: File, Known: KnownSize, Size: 10000, Chunks: []Chunk{{5, 3, 0}, {8, 2, 1}, {9000, 3, 0}}},
		{Path: "/a/d", Type: Dir},
		{Path: "/a/e", Type: FIFO},
		{Path: "/kept", Type: Dir},
		{Path: "/kept/f", Type: File},
	}}
	mem := &memory{chunks: [][]byte{[]byte("abc"), []byte("de")}}
	_, err := Restore(t.Context(), m, root, mem.get, nil)
	must(t, err)
	got := take(t, root, &TakeOptions{Prefix: "/"})
	modes := map[string]uint32{"/a": 0o755, "/a/b": 0o755, "/a/b/c": 0o644, "/a/d": 0o755, "/a/e": 0o644,
		"/kept": 0o750, "/kept/f": 0o644}
	for path, mode := range modes {
		if e := got.Lookup(path); e == nil || e.Mode != mode {
			t.Errorf("%s: want mode %o, got %+v", path, mode, e)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "a/b/c"))
	must(t, err)
	want := make([]byte, 10000)
	copy(want[5:], "abcde")
	copy(want[9000:], "abc")
	if string(data) != string(want) {
		t.Error("content differs")
	}
}

func TestRestoreErrors(t *testing.T) {
	chunk := func(n uint32) *Manifest {
		return &Manifest{Entries: []Entry{{Path: "a", Type: File, Known: KnownSize,
			Size: 9, Chunks: []Chunk{{0, n, 0}}}}}
	}
	mem := &memory{chunks: [][]byte{[]byte("abc")}}
	broken := func(uint64) ([]byte, error) { return nil, errors.New("disk gone") }
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		m       *Manifest
		content func(uint64) ([]byte, error)
		want    string
	}{
		{"wrong length", t.Context(), chunk(4), mem.get, `file "a": content 0 has 3 bytes, the manifest says 4`},
		{"no content", t.Context(), chunk(3), nil, "nothing to get it from"},
		{"broken store", t.Context(), chunk(3), broken, "get content 0: disk gone"},
		{"stopped", stopped, chunk(3), mem.get, "canceled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report, err := Restore(test.ctx, test.m, t.TempDir(), test.content, nil)
			wantError(t, err, test.want)
			if report != nil {
				t.Error("an error and a report")
			}
		})
	}
}

func TestRestoreReportsProblemsOnce(t *testing.T) {
	attrs := map[string][]byte{"nonsense.a": {1}, "nonsense.b": {1}, "user.ok": {1}}
	long := strings.Repeat("l", 300)
	m := &Manifest{Entries: []Entry{
		{Path: "a", Type: File, Known: KnownXattrs, Xattrs: attrs},
		{Path: "b", Type: File, Known: KnownXattrs, Xattrs: attrs},
		{Path: "huge", Type: File, Known: KnownSize | KnownLinks, Nlink: 2, Size: 1<<63 - 1},
		{Path: "huge2", Type: File, Known: KnownSize | KnownLinks, Nlink: 2, Size: 1<<63 - 1, Link: "huge"},
		{Path: long, Type: Dir},
		{Path: long + "/below", Type: File},
		{Path: long + "m", Type: File},
		{Path: "n", Type: CharDev, Known: KnownLinks, Rdev: 259},
		{Path: "n2", Type: CharDev, Known: KnownLinks, Rdev: 259, Link: "n"},
	}}
	report, err := Restore(t.Context(), m, t.TempDir(), nil, &RestoreOptions{NoDevices: true})
	must(t, err)
	var got []string
	for _, p := range report.Problems {
		got = append(got, p.String())
	}
	want := `xattr nonsense: operation not supported ("a" and 3 more)` + "\n" +
		`file of this size: file too large ("huge")` + "\n" +
		`name of this length: file name too long ("` + long[:200] + `"… and 1 more)` + "\n" +
		`character device: left out as asked ("n")`
	if strings.Join(got, "\n") != want {
		t.Errorf("got %q", got)
	}
}

// Inherited access lists and set-id bits must not change what the manifest says.
func TestRestoreInheritedACL(t *testing.T) {
	root := t.TempDir()
	// version 2; user::rwx, user:1234:rwx, group::r-x, mask::rwx, other::---
	acl := []byte("\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\xd2\x04\x00\x00" +
		"\x04\x00\x05\x00\xff\xff\xff\xff" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	if err := unix.Setxattr(root, "system.posix_acl_default", acl, 0); err != nil {
		t.Skipf("skipped: no access lists on this file system: %v", err)
	}
	all := KnownMode | KnownXattrs
	m := &Manifest{Entries: []Entry{
		{Path: "d", Type: Dir, Known: all, Mode: 0o2750, Xattrs: map[string][]byte{"system.posix_acl_default": acl}},
		{Path: "d/f", Type: File, Known: all, Mode: 0o640},
		{Path: "f", Type: File, Known: all, Mode: 0o604},
	}}
	_, err := Restore(t.Context(), m, root, nil, nil)
	must(t, err)
	wantSame(t, m, take(t, root, nil))
}

// The same round trip as an ordinary user, who cannot write into a directory once it
// has its own mode. Root's rights would hide a wrong order.
func TestRestoreAsUser(t *testing.T) {
	if os.Getenv("TREE_TEST_AS_USER") != "" {
		TestRoundTrip(t)
		testUnreadable(t)
		return
	}
	needRoot(t)
	dir, err := os.MkdirTemp("/tmp", "tree-as-user-")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o777))
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	bin := filepath.Join(dir, "tree.test")
	must(t, os.WriteFile(bin, exe, 0o755))
	cmd := exec.Command(bin, "-test.run=^TestRestoreAsUser$")
	cmd.Dir = dir
	cmd.Env = []string{"TREE_TEST_AS_USER=1", "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// What may not be read is in the manifest as far as it is known, with a note.
func testUnreadable(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "x")
	must(t, os.Chmod(filepath.Join(root, "file"), 0))
	must(t, os.Mkdir(filepath.Join(root, "unlisted"), 0o300))
	must(t, os.Mkdir(filepath.Join(root, "closed"), 0o600))
	write(t, filepath.Join(root, "unlisted", "x"), "x")
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "unlisted"), 0o700) })
	m := take(t, root, nil)
	want := []Note{{"file", "open it: permission denied"}, {"unlisted", "list it: permission denied"},
		{"closed", "list it: permission denied"}}
	if d := cmp.Diff(want, m.Notes); d != "" {
		t.Error(d)
	}
	if e := m.Lookup("file"); e == nil || e.Has(KnownHash) || !e.Has(KnownSize) {
		t.Errorf("file: %+v", e)
	}
	if e := m.Lookup("unlisted"); e == nil || e.Has(KnownListing) {
		t.Errorf("unlisted: %+v", e)
	}
	some, err := TakePaths(t.Context(), root, []string{"unlisted/x", "closed/x"}, nil, nil)
	must(t, err)
	if e := some.Lookup("unlisted/x"); e == nil || !e.Has(KnownHash) {
		t.Errorf("unlisted/x: %+v", e)
	}
	if d := cmp.Diff([]Note{{"closed/x", "look at it: permission denied"}}, some.Notes); d != "" {
		t.Error(d)
	}
}
