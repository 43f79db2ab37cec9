package initialtree

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/tree"
)

// treeOf is what an inference with these names alone would give.
func treeOf(n *names) *Tree {
	in := &inference{result: &Tree{}, names: n}
	in.finish()
	return in.result
}

func paths(s *Tree) (all []string) {
	for e := range s.Entries() {
		all = append(all, e.Path)
	}
	return all
}

// Names that are found, made, removed and renamed, against a map of paths.
func TestNamesAgainstPaths(t *testing.T) {
	type file struct{ initial string } // its first path; "" if it was made
	rapid.Check(t, func(t *rapid.T) {
		n := newNames(nil)
		now := map[string]*file{}
		absent := map[*file]map[string]bool{}
		top := &file{"."}
		parent := func(p string) (*file, string) {
			dir, name := ".", p
			if i := strings.LastIndexByte(p, '/'); i >= 0 {
				dir, name = p[:i], p[i+1:]
			}
			if dir == "." {
				return top, name
			}
			return now[dir], name
		}
		path := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c-"}), 1, 4).Draw(t, "names"), "/")
		})
		// find makes known what a call that goes through all but the last name tells.
		find := func(p string) *file {
			for i := range len(p) + 1 {
				if i < len(p) && p[i] != '/' || now[p[:i]] != nil {
					continue
				}
				dir, name := parent(p[:i])
				if dir.initial == "" || absent[dir][name] {
					return nil
				}
				f := &file{initial: name}
				if dir.initial != "." {
					f.initial = dir.initial + "/" + name
				}
				now[p[:i]] = f
			}
			return now[p]
		}
		forget := func(p string) {
			dir, name := parent(p)
			if absent[dir] == nil {
				absent[dir] = map[string]bool{}
			}
			absent[dir][name] = true
			maps.DeleteFunc(now, func(k string, _ *file) bool { return k == p || strings.HasPrefix(k, p+"/") })
		}
		initial := map[string]bool{}
		note := func() {
			for _, f := range now {
				if f.initial != "" {
					initial[f.initial] = true
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			p := path.Draw(t, "path")
			f := find(p)
			note()
			c := n.lookup("/"+p, false)
			if f != nil && c == nil {
				t.Fatalf("%s cannot be looked up", p)
			}
			if f == nil {
				continue
			}
			n.exist(c, tree.Dir)
			switch rapid.SampledFrom([]string{"found", "made", "removed", "renamed"}).Draw(t, "call") {
			case "made":
				forget(p)
				now[p] = &file{}
				n.unlink(c)
				n.assign(c, n.newObject(tree.Dir))
			case "removed":
				forget(p)
				n.unlink(c)
			case "renamed":
				q := path.Draw(t, "to")
				dir, _ := parent(q)
				if dir == nil || q == p || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/") {
					continue
				}
				to := n.lookup("/"+q, false)
				n.move(c, to)
				moved := map[string]*file{}
				for k, g := range now {
					if k == p || strings.HasPrefix(k, p+"/") {
						moved[q+k[len(p):]] = g
					}
				}
				forget(p)
				forget(q)
				maps.Copy(now, moved)
			}
		}
		sk := treeOf(n)
		got := paths(sk)
		if !slices.IsSortedFunc(got, tree.ComparePaths) {
			t.Errorf("not in the order of a manifest: %q", got)
		}
		slices.Sort(got)
		if want := slices.Sorted(maps.Keys(initial)); !slices.Equal(got, want) {
			t.Errorf("initial\n got %q\nwant %q", got, want)
		}
		left := map[string]bool{}
		for p := range n.current() {
			left[p] = true
			if !sk.Remains(p) {
				t.Errorf("%s is there, and Left does not know", p)
			}
		}
		if got, want := slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(now)); !slices.Equal(got, want) {
			t.Errorf("left\n got %q\nwant %q", got, want)
		}
	})
}

// A name that calls followed turns out to be a symbolic link: what was found through it
// is where it leads.
func TestLinkLearntLate(t *testing.T) {
	n := newNames(nil)
	n.exist(n.lookup("/lib/sub/file", true), tree.File)
	n.becomeLink(n.lookup("/lib", false), "usr/lib")
	got := strings.Join(paths(treeOf(n)), " ")
	if want := "lib usr usr/lib usr/lib/sub usr/lib/sub/file"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What no kernel does: a directory that is moved into itself, links that lead through
// what they were taken for.
func TestLiesEnd(t *testing.T) {
	n := newNames(nil)
	n.exist(n.lookup("/a/s/x", true), tree.File)
	n.move(n.lookup("/a", false), n.lookup("/a/s/t", false))
	a, s := n.lookup("/a", false), n.lookup("/a/s", false)
	n.swap(a, s)
	n.move(s, n.lookup("/t", false))
	n.becomeLink(a, "t/x2")
	n.becomeLink(n.lookup("/t", false), "t")
	sk := treeOf(n)
	for e := range sk.Entries() {
		if err := tree.ValidPath(e.Path); err != nil {
			t.Error(err)
		}
	}
	for p := range sk.Listed() {
		t.Errorf("%s is listed", p)
	}
	for _, c := range []*node{a, s} {
		_, _ = c.path(), c.initialPath()
	}
}
