// SPDX-License-Identifier: Apache-2.0

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
	in.decide()
	return in.result
}

func paths(s *Tree) (all []string) {
	for e := range s.Entries() {
		all = append(all, e.Path)
	}
	return all
}

// modelFile is a file of pathModel. initial is its first path; "" if it was made.
type modelFile struct{ initial string }

// pathModel is what names should know, as a map of paths.
type pathModel struct {
	top     *modelFile
	now     map[string]*modelFile
	absent  map[*modelFile]map[string]bool // names, by directory
	initial map[string]bool                // paths
}

// parent returns the directory of a path, nil if there is none, and its last name.
func (m *pathModel) parent(p string) (*modelFile, string) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return m.top, p
	}
	return m.now[p[:i]], p[i+1:]
}

// find notes what a call proves that goes through all names of a path.
func (m *pathModel) find(p string) *modelFile {
	for i := range len(p) + 1 {
		if i < len(p) && p[i] != '/' || m.now[p[:i]] != nil {
			continue
		}
		dir, name := m.parent(p[:i])
		if dir.initial == "" || m.absent[dir][name] {
			return nil
		}
		f := &modelFile{initial: name}
		if dir.initial != "." {
			f.initial = dir.initial + "/" + name
		}
		m.now[p[:i]] = f
	}
	return m.now[p]
}

// remove empties a name, with all below it.
func (m *pathModel) remove(p string) {
	dir, name := m.parent(p)
	if m.absent[dir] == nil {
		m.absent[dir] = map[string]bool{}
	}
	m.absent[dir][name] = true
	maps.DeleteFunc(m.now, func(k string, _ *modelFile) bool { return k == p || strings.HasPrefix(k, p+"/") })
}

// rename moves what is at p, and below it, to q. It returns false if no kernel would.
func (m *pathModel) rename(p, q string) bool {
	dir, _ := m.parent(q)
	if dir == nil || q == p || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/") {
		return false
	}
	moved := map[string]*modelFile{}
	for k, g := range m.now {
		if k == p || strings.HasPrefix(k, p+"/") {
			moved[q+k[len(p):]] = g
		}
	}
	m.remove(p)
	m.remove(q)
	maps.Copy(m.now, moved)
	return true
}

// noteInitial remembers the first paths of the files that are known now.
func (m *pathModel) noteInitial() {
	for _, f := range m.now {
		if f.initial != "" {
			m.initial[f.initial] = true
		}
	}
}

// Names that are found, made, removed and renamed, against a map of paths.
func TestNamesAgainstPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNames(nil)
		m := &pathModel{
			top: &modelFile{"."}, now: map[string]*modelFile{},
			absent: map[*modelFile]map[string]bool{}, initial: map[string]bool{},
		}
		path := rapid.Custom(func(t *rapid.T) string {
			names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c-"}), 1, 4).Draw(t, "names")
			return strings.Join(names, "/")
		})
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			p := path.Draw(t, "path")
			f := m.find(p)
			m.noteInitial()
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
				m.remove(p)
				m.now[p] = &modelFile{}
				n.unlink(c)
				n.assign(c, n.newObject(tree.Dir))
			case "removed":
				m.remove(p)
				n.unlink(c)
			case "renamed":
				q := path.Draw(t, "to")
				if m.rename(p, q) {
					n.move(c, n.lookup("/"+q, false))
				}
			}
		}
		compareNames(t, n, m)
	})
}

// compareNames compares names with the model.
func compareNames(t *rapid.T, n *names, m *pathModel) {
	sk := treeOf(n)
	got := paths(sk)
	if !slices.IsSortedFunc(got, tree.ComparePaths) {
		t.Errorf("not in the order of a manifest: %q", got)
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(m.initial)); !slices.Equal(got, want) {
		t.Errorf("initial\n got %q\nwant %q", got, want)
	}
	left := map[string]bool{}
	for p := range n.current() {
		left[p] = true
		if !sk.Remains(p) {
			t.Errorf("%s is there, and Remains does not know", p)
		}
	}
	if got, want := slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(m.now)); !slices.Equal(got, want) {
		t.Errorf("left\n got %q\nwant %q", got, want)
	}
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
