// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeebo/blake3"
)

// largeFile makes a file of some size that holds texts at offsets, and else a hole.
func largeFile(t *testing.T, path string, size int64, texts map[int64]string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(size))
	for off, text := range texts {
		_, err := f.WriteAt([]byte(text), off)
		must(t, err)
	}
}

// The hash of a large file takes the time of its data, and is that of its content, whatever of it is
// holes. A terabyte of zeros could not be hashed within the test's time.
func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 40
	zeros := string(make([]byte, 3*chunkBytes))
	for name, texts := range map[string]map[int64]string{
		"a":     {5e9: "data", size - 3: "end"},
		"zeros": {1 << 20: zeros, 5e9: "data", size - 3: "end"},
		"other": {5e9 + chunkBytes: "data", size - 3: "end"},
	} {
		largeFile(t, filepath.Join(dir, name), size, texts)
	}
	m, err := Take(context.Background(), dir, nil)
	must(t, err)
	a := m.Lookup("a")
	if !a.Has(KnownBlocks) || a.Has(KnownHash) {
		t.Fatalf("of a large file %v is known, want blocks and no hash", a.Known)
	}
	if a.Hash != m.Lookup("zeros").Hash {
		t.Errorf("zeros in place of a hole give another hash")
	}
	if a.Hash == m.Lookup("other").Hash {
		t.Errorf("data at another offset gives the same hash")
	}

	h := blake3.New() // by the definition, see LargeBytes
	for _, b := range []struct {
		at   int64
		text string
	}{{5e9, "data"}, {size - 3, "end"}} {
		block := make([]byte, chunkBytes)
		copy(block[b.at%chunkBytes:], b.text)
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(b.at/chunkBytes*chunkBytes)))
		_, _ = h.Write(block)
	}
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, size))
	if got := h.Sum(nil); !bytes.Equal(got, a.Hash[:]) {
		t.Errorf("the hash is %x, want %x", a.Hash, got)
	}

	var text bytes.Buffer
	must(t, Encode(&text, m))
	again, err := Decode(&text)
	must(t, err)
	if e := again.Lookup("a"); !e.Has(KnownBlocks) || e.Hash != a.Hash {
		t.Errorf("decoded as %v %x, want %v %x", e.Known, e.Hash, a.Known, a.Hash)
	}
}

// What a manifest of before says of a large file can be compared: Whole hashes the content as it did.
func TestLargeFileWhole(t *testing.T) {
	dir := t.TempDir()
	largeFile(t, filepath.Join(dir, "f"), LargeBytes, map[int64]string{7: "x"})
	m, err := Take(context.Background(), dir, &TakeOptions{Whole: true})
	must(t, err)
	if e := m.Lookup("f"); !e.Has(KnownHash) || e.Has(KnownBlocks) {
		t.Errorf("of the file %v is known, want its hash", e.Known)
	}
}
