// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func timeAt(ns int64) time.Time { return time.Unix(1_000_000_000, ns) }

func TestCompare(t *testing.T) {
	file := func(path string) Entry {
		return Entry{Path: path, Type: File, Known: KnownMode | KnownOwner | KnownSize | KnownHash | KnownLinks,
			Mode: 0o644, Nlink: 1, Size: 3}
	}
	dir := func(path string) Entry {
		return Entry{Path: path, Type: Dir, Known: KnownMode | KnownListing, Mode: 0o755}
	}
	linked := func(path, to string) Entry {
		e := file(path)
		e.Link, e.Nlink = to, 2
		return e
	}
	with := func(e Entry, change func(*Entry)) Entry { change(&e); return e }
	list := func(entries ...Entry) []Entry { return append([]Entry{dir(".")}, entries...) }
	tests := []struct {
		name      string
		want, got []Entry
		opt       *CompareOptions
		diffs     []string
	}{
		{name: "same", want: list(file("a")), got: list(file("a"))},
		{name: "missing", want: list(dir("d"), file("d/x"), file("d/y"), file("e")), got: list(),
			diffs: []string{"d: entry: want directory with 2 entries below, got absent", "e: entry: want file, got absent"}},
		{name: "extra", want: list(), got: list(dir("d"), file("d/x")),
			diffs: []string{"d: entry: want absent, got directory with 1 entries below"}},
		{name: "extra where not listed", want: list(with(dir("d"), func(e *Entry) { e.Known = KnownMode })), got: list(dir("d"), file("d/x"))},
		{name: "extra ignored", want: list(), got: list(file("d")), opt: &CompareOptions{Ignore: KnownListing}},
		{name: "type", want: list(dir("d"), file("d/x")), got: list(file("d")),
			diffs: []string{"d: type: want directory, got file"}},
		{name: "attributes", want: list(file("a")), got: list(with(file("a"), func(e *Entry) { e.Mode = 0o4600; e.UID = 7; e.Size = 4; e.Hash[0] = 1 })),
			diffs: []string{"a: mode: want 0644, got 4600", "a: owner: want 0:0, got 7:0", "a: size: want 3, got 4",
				"a: content: want 0000000000000000000000000000000000000000000000000000000000000000, got 0100000000000000000000000000000000000000000000000000000000000000"}},
		{name: "ignored", want: list(file("a")), got: list(with(file("a"), func(e *Entry) { e.UID = 7; e.Mode = 1 })),
			opt: &CompareOptions{Ignore: KnownOwner | KnownMode}},
		{name: "unknown in want", want: list(with(file("a"), func(e *Entry) { e.Known = 0; e.Mode, e.Size, e.Nlink = 0, 0, 0 })), got: list(file("a"))},
		{name: "unknown in got", want: list(file("a")), got: list(with(file("a"), func(e *Entry) { e.Known &^= KnownHash })),
			diffs: []string{"a: content: want 0000000000000000000000000000000000000000000000000000000000000000, got unknown"}},
		{name: "links same", want: list(file("a"), linked("b", "a")), got: list(file("a"), linked("b", "a"))},
		{name: "links split", want: list(file("a"), linked("b", "a"), linked("c", "a")), got: list(file("a"), linked("b", "a"), file("c")),
			diffs: []string{`a: links: want ["a" "b" "c"], got ["a" "b"] and ["c"]`}},
		{name: "links merged", want: list(file("a"), file("b")), got: list(file("a"), linked("b", "a")),
			diffs: []string{`a: links: want ["a"], got ["a" "b"]`}},
		{name: "link to an unwanted name", want: list(with(file("b"), func(e *Entry) { e.Nlink = 2 })), got: list(file("a"), linked("b", "a")),
			opt: &CompareOptions{Ignore: KnownListing}},
		{name: "xattrs", want: list(with(file("a"), func(e *Entry) { e.Known |= KnownXattrs; e.Xattrs = map[string][]byte{"user.a": {1}, "user.b": {}} })),
			got:   list(with(file("a"), func(e *Entry) { e.Known |= KnownXattrs; e.Xattrs = map[string][]byte{"user.b": nil, "user.c": {2}} })),
			diffs: []string{`a: xattr user.a: want "\x01", got absent`, `a: xattr user.c: want absent, got "\x02"`}},
		{name: "target", want: list(Entry{Path: "s\xff", Type: Symlink, Target: "x"}), got: list(Entry{Path: "s\xff", Type: Symlink, Target: "y"}),
			diffs: []string{`"s\xff": target: want "x", got "y"`}},
		{name: "rdev", want: list(Entry{Path: "n", Type: CharDev, Rdev: 259}), got: list(Entry{Path: "n", Type: CharDev, Rdev: 260}),
			diffs: []string{"n: rdev: want 0x103, got 0x104"}},
		{name: "mtime ignored", want: list(with(file("a"), func(e *Entry) { e.Known |= KnownMTime })), got: list(with(file("a"), func(e *Entry) { e.Known |= KnownMTime; e.MTime = 1 }))},
		{name: "mtime", opt: &CompareOptions{MTime: true},
			want:  list(with(file("a"), func(e *Entry) { e.Known |= KnownMTime })),
			got:   list(with(file("a"), func(e *Entry) { e.Known |= KnownMTime; e.MTime = 1 })),
			diffs: []string{"a: mtime: want 1970-01-01T00:00:00Z, got 1970-01-01T00:00:00.000000001Z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want, got := &Manifest{Entries: test.want}, &Manifest{Entries: test.got}
			must(t, want.Validate())
			must(t, got.Validate())
			var diffs []string
			for _, d := range Compare(want, got, test.opt) {
				diffs = append(diffs, d.String())
			}
			if d := cmp.Diff(test.diffs, diffs); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTakePaths(t *testing.T) {
	root := t.TempDir()
	p := func(name string) string { return filepath.Join(root, name) }
	must(t, os.MkdirAll(p("usr/lib/deep"), 0o755))
	write(t, p("usr/lib/a"), "a")
	write(t, p("usr/lib/b"), "b")
	write(t, p("usr/lib/deep/c"), "c")
	must(t, os.Symlink("/usr/lib", p("lib")))
	must(t, os.Symlink("../../../..//usr/./lib/deep", p("usr/lib/up"))) // stops at the root
	must(t, os.Symlink("loop", p("loop")))

	m, err := TakePaths(t.Context(), root, []string{
		"/lib/a", "usr/lib/b", "/lib/up/c", "/lib/up/..", "usr/none/x", "loop/x", "usr/lib/a/x", "a\x00b", "", "/", "..",
	}, func(path string) bool { return path != "usr/lib/b" }, nil)
	must(t, err)
	must(t, m.Validate())
	want := []string{".", "lib", "loop", "usr", "usr/lib", "usr/lib/a", "usr/lib/b", "usr/lib/deep",
		"usr/lib/deep/c", "usr/lib/up"}
	if d := cmp.Diff(want, paths(m)); d != "" {
		t.Fatal(d)
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if wantHash := e.Type == File && e.Path != "usr/lib/b"; e.Has(KnownHash) != wantHash {
			t.Errorf("%s: knows %s", e.Path, e.Known)
		}
		if e.Has(KnownListing) {
			t.Errorf("%s counts as listed", e.Path)
		}
		if !e.Has(KnownXattrs) {
			t.Errorf("%s: extended attributes got lost", e.Path)
		}
	}
	// Two ways to one file, of which the second wants the content.
	m, err = TakePaths(t.Context(), root, []string{"/lib/a", "usr/lib/a"}, func(path string) bool {
		return path == "usr/lib/a"
	}, &TakeOptions{Prefix: "/"})
	must(t, err)
	if e := m.Lookup("/usr/lib/a"); e == nil || !e.Has(KnownHash|KnownXattrs) {
		t.Errorf("a: %+v", e)
	}
	// What was touched is as it was, whatever else is there.
	wantSame(t, m, take(t, root, &TakeOptions{Prefix: "/"}))
}
