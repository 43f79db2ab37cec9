// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// drawn makes a random valid manifest and the content that it refers to.
func drawn(t *rapid.T, mem *memory) *Manifest {
	isRoot := os.Geteuid() == 0
	types := []Type{File, File, File, Dir, Dir, Symlink, FIFO, Socket}
	if isRoot {
		types = append(types, CharDev, BlkDev)
	}
	name := rapid.StringOfN(rapid.RuneFrom([]rune("ab-.~ \n\\é")), 1, 4, -1).
		Filter(func(s string) bool { return s != "." && s != ".." })
	m := &Manifest{Entries: []Entry{{Path: ".", Type: Dir}}}
	dirs := []string{"."}
	used := map[string]bool{".": true}
	for range rapid.IntRange(0, 25).Draw(t, "entries") {
		n := name.Draw(t, "name")
		if rapid.Bool().Draw(t, "raw") {
			n += "\xff"
		}
		path := join(rapid.SampledFrom(dirs).Draw(t, "dir"), n)
		if used[path] {
			continue
		}
		used[path] = true
		e := Entry{Path: path, Type: rapid.SampledFrom(types).Draw(t, "type")}
		if e.Type == Dir {
			dirs = append(dirs, path)
		}
		m.Entries = append(m.Entries, e)
	}
	m.Sort()
	var linkable []int
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Type != Dir && len(linkable) > 0 && rapid.IntRange(0, 3).Draw(t, "link") == 0 {
			first := &m.Entries[rapid.SampledFrom(linkable).Draw(t, "first")]
			path := e.Path
			*e = *first
			e.Path, e.Link, e.Chunks = path, first.Path, nil
			continue
		}
		drawAttributes(t, e, isRoot, mem)
		if e.Type != Dir {
			linkable = append(linkable, i)
		}
	}
	return m
}

func drawAttributes(t *rapid.T, e *Entry, isRoot bool, mem *memory) {
	e.Known = KnownMTime | KnownXattrs
	e.MTime = rapid.Int64Range(-1e9, 1e18).Draw(t, "mtime")
	if isRoot {
		e.Known |= KnownOwner
		e.UID = rapid.Uint32Range(0, 70000).Draw(t, "uid")
		e.GID = rapid.Uint32Range(0, 70000).Draw(t, "gid")
	}
	if e.Type == Symlink {
		e.Target = rapid.StringMatching(`[a-z/.]{1,20}`).Draw(t, "target")
	} else {
		e.Known |= KnownMode
		e.Mode = rapid.Uint32Range(0, 0o7777).Draw(t, "mode")
		if !isRoot {
			e.Mode |= 0o700 // or our own Take could not read it again
		}
	}
	switch e.Type {
	case Dir:
		e.Known |= KnownListing
	case CharDev, BlkDev:
		e.Rdev = unix.Mkdev(rapid.Uint32Range(0, 4095).Draw(t, "major"), rapid.Uint32Range(0, 1<<20-1).Draw(t, "minor"))
	}
	if e.Type != Dir {
		e.Known |= KnownLinks
	}
	if e.Type == File || e.Type == Dir {
		for _, n := range rapid.SliceOfNDistinct(rapid.StringMatching(`user\.[a-z\x{80}-\x{90}]{1,5}`), 0, 2,
			rapid.ID[string]).Draw(t, "xattrs") {
			if e.Xattrs == nil {
				e.Xattrs = map[string][]byte{}
			}
			e.Xattrs[n] = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 900).Draw(t, "value")...)
		}
	}
	if e.Type != File {
		return
	}
	e.Known |= KnownSize | KnownContent
	e.Size = rapid.Int64Range(0, 40000).Draw(t, "size")
	for off := int64(0); off < e.Size; {
		n := min(e.Size-off, int64(rapid.SampledFrom([]int{1, 100, 4096, 4096, 5000}).Draw(t, "chunk")))
		if rapid.Bool().Draw(t, "data") {
			data := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, int(n))
			mem.chunks = append(mem.chunks, data)
			e.Chunks = append(e.Chunks, Chunk{off, uint32(n), uint64(len(mem.chunks) - 1)})
		}
		off += n
	}
}

// A drawn tree is made, taken with its content, encoded and decoded, made again and
// taken again: nothing may get lost on the way.
func TestModelRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		defer os.RemoveAll(base)
		var drawnContent, mem memory
		model := drawn(rt, &drawnContent)
		check := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		report, err := Restore(t.Context(), model, base+"/one", drawnContent.get, nil)
		check(err)
		if report.Problems != nil {
			rt.Fatal(report.Problems)
		}
		one, err := Take(t.Context(), base+"/one", &TakeOptions{Sink: mem.put})
		check(err)
		same := func(want, got *Manifest) {
			if got.Notes != nil {
				rt.Fatal(got.Notes)
			}
			if diffs := Compare(want, got, &CompareOptions{MTime: true}); diffs != nil {
				rt.Fatal(diffs)
			}
		}
		same(model, one)

		var buf bytes.Buffer
		check(Encode(&buf, one))
		decoded, err := Decode(&buf)
		check(err)
		_, err = Restore(t.Context(), decoded, base+"/two", mem.get, nil)
		check(err)
		two, err := Take(t.Context(), base+"/two", nil)
		check(err)
		same(decoded, two)
		same(two, one)

		some, err := TakePaths(t.Context(), base+"/two", paths(one), nil, nil)
		check(err)
		same(some, one)
		if len(some.Entries) != len(one.Entries) {
			rt.Fatalf("TakePaths found %d entries of %d", len(some.Entries), len(one.Entries))
		}
	})
}

// The order of manifests is the order of a walk.
func TestComparePathsModel(t *testing.T) {
	path := rapid.StringMatching(`[a\-!/\x{1}]{1,8}`).Filter(func(s string) bool {
		return ValidPath(s) == nil && !strings.HasPrefix(s, "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := path.Draw(t, "a"), path.Draw(t, "b")
		want := slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
		got := ComparePaths(a, b)
		if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
			t.Fatalf("%q and %q: got %d, want %d", a, b, got, want)
		}
	})
}
