// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// Trees are what a final tree is compared with.
type Trees struct {
	Into    string // the target
	Final   *tree.Manifest
	Initial *initialtree.Tree // of the same tape
	Tainted effect.Ranges     // content that the replay made up
	Tape    *trace.Tape
	// Privileged says that set-id bits, capabilities and device numbers are made.
	Privileged bool
}

// Compare compares what the recording left with what the replay did, and adds the differences
// to a report.
func (x *Trees) Compare(ctx context.Context, rep *result.Report) error {
	for _, dir := range x.Initial.Overlays {
		rep.AddOverlay(0, dir)
	}
	want, hash := x.wanted(rep)
	paths := make([]string, len(want.Entries))
	for i := range want.Entries {
		paths[i] = want.Entries[i].Path
	}
	want.Sort()
	old := slices.ContainsFunc(want.Entries, func(e tree.Entry) bool {
		return e.Has(tree.KnownHash) && e.Size >= tree.LargeBytes
	})
	got, err := tree.TakePaths(ctx, x.Into, paths, func(p string) bool { return hash[p] },
		&tree.TakeOptions{Whole: old})
	if err != nil {
		return fmt.Errorf("look at the replayed tree: %w", err)
	}
	if !x.Privileged {
		for i := range got.Entries {
			effect.LeaveOff(&got.Entries[i])
		}
	}
	opt := &tree.CompareOptions{Ignore: tree.KnownListing}
	if os.Geteuid() != 0 {
		opt.Ignore |= tree.KnownOwner
		without(want, effect.RootsAttribute)
		without(got, effect.RootsAttribute)
	}
	without(want, effect.OverlaysAttribute)
	without(got, effect.OverlaysAttribute)
	rep.TreePaths = len(paths)
	rep.Tree = append(rep.Tree, tree.Compare(want, got, opt)...)
	return x.findExtra(rep)
}

// without takes extended attributes away.
func without(m *tree.Manifest, taken func(name string) bool) {
	for i := range m.Entries {
		e := &m.Entries[i]
		if len(e.Xattrs) == 0 {
			continue
		}
		kept := map[string][]byte{}
		for name, value := range e.Xattrs {
			if !taken(name) {
				kept[name] = value
			}
		}
		if e.Xattrs = kept; len(kept) == 0 {
			e.Xattrs = nil
		}
	}
}

// wanted returns the entries of the final tree that the replay should have made, and of which
// of them the content is compared.
func (x *Trees) wanted(rep *result.Report) (want *tree.Manifest, hash map[string]bool) {
	want, hash = &tree.Manifest{}, map[string]bool{}
	anonymised, several := content.AnonymisedContent(x.Tape), len(x.Tape.Manifest().Hosts) > 1
	for i := range x.Final.Entries {
		e := x.Final.Entries[i]
		if _, found := slices.BinarySearch(x.Initial.Others, "/"+e.Path); found && e.Type != tree.Dir {
			rep.AddOutside(0, "/"+e.Path)
			continue
		}
		e.Path = strings.TrimPrefix(x.Initial.Mounted.Path("/"+e.Path), "/")
		if dir := effect.Below(x.Initial.Overlays, "/"+e.Path); dir != "" && dir != "/"+e.Path {
			continue
		}
		// Files that were only looked up, or executed, are not part of what the replay makes;
		// nor are those that others removed after the recording that found them had ended.
		if effect.Virtual("/"+e.Path) || !x.Initial.Remains(e.Path) && (several || !e.HasHash()) {
			continue
		}
		tainted := x.Tainted[effect.Inode{Dev: e.Dev, Ino: e.Ino}] != nil
		if e.HasHash() && (tainted || !content.HashHolds(anonymised, &e)) {
			e.Known &^= tree.KnownHash | tree.KnownBlocks
			rep.TreeMadeUp++
		}
		if !x.Privileged {
			effect.LeaveOff(&e)
		}
		hash[e.Path] = e.HasHash()
		want.Entries = append(want.Entries, e)
	}
	return want, hash
}

// findExtra looks for names that the recording did not leave, in directories where
// it is known which it did.
func (x *Trees) findExtra(rep *result.Report) error {
	root, err := os.OpenRoot(x.Into)
	if err != nil {
		return fmt.Errorf("look at the replayed tree: %w", err)
	}
	defer root.Close()
	for dir := range x.Initial.Listed() {
		if effect.Virtual("/"+dir) || effect.Below(x.Initial.Overlays, "/"+dir) != "" {
			continue
		}
		d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // a FIFO would wait
		if err != nil {
			continue // missing: reported already
		}
		entries, err := d.ReadDir(-1)
		d.Close()
		if err != nil {
			continue // no directory: reported already
		}
		for _, e := range entries {
			if p := path.Join(dir, e.Name()); !x.Initial.Remains(p) {
				rep.Tree = append(rep.Tree, tree.Difference{Path: p, Field: "entry", Want: "absent", Got: "present"})
			}
		}
	}
	return nil
}
