// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// A tree whose content is not in the tape is damage, although every hash is right.
func TestCheckTrees(t *testing.T) {
	for _, c := range []struct {
		name  string
		chunk tree.Chunk
		ok    bool
	}{
		{"sound", tree.Chunk{ID: 1, Len: 4}, true},
		{"no such chunk", tree.Chunk{ID: 2, Len: 4}, false},
		{"too long", tree.Chunk{ID: 1, Len: 5}, false},
	} {
		dir := filepath.Join(t.TempDir(), "x.tape")
		tw, err := trace.CreateTape(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Abort()
		if _, err := tw.AddChunk([]byte("four")); err != nil {
			t.Fatal(err)
		}
		m := &tree.Manifest{Root: "/", Entries: []tree.Entry{{Path: "f", Type: tree.File, Size: 5,
			Known: tree.KnownSize | tree.KnownContent, Chunks: []tree.Chunk{c.chunk}}}}
		if err := WriteTree(tw, trace.FinalName, m); err != nil {
			t.Fatal(err)
		}
		if err := tw.Close(&trace.Manifest{}); err != nil {
			t.Fatal(err)
		}
		tp, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tp.Close()
		rep, err := tp.Check(context.Background(), nil)
		if err != nil || !rep.OK() {
			t.Fatalf("check: %+v %v", rep, err)
		}
		if err := CheckTrees(context.Background(), tp, rep); err != nil || rep.OK() != c.ok {
			t.Errorf("%s: %v, %+v", c.name, err, rep.Damage)
		}
	}
}
