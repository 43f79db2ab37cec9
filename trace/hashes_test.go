// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/iotape/iotape/event"
)

// A HashReader says what ChunkHash says, and fails where a pack's head is damaged.
func TestHashReader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.tape")
	w, err := CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3 * packBytes / ChunkBytes
	for i := range n {
		chunk := make([]byte, ChunkBytes)
		chunk[0], chunk[1] = byte(i), byte(i>>8)
		if _, err := w.AddChunk(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(&Manifest{Hosts: []Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	r := tape.NewHashReader()
	for id := uint64(n); id > 0; id-- {
		got, err := r.Hash(id)
		want, werr := tape.ChunkHash(id)
		if err != nil || werr != nil || got != want {
			t.Fatalf("chunk %d: %x, %v; want %x, %v", id, got, err, want, werr)
		}
	}
	for _, id := range []uint64{0, n + 1} {
		if _, err := r.Hash(id); !errors.Is(err, ErrCorrupt) {
			t.Errorf("chunk %d: %v", id, err)
		}
	}
	path := filepath.Join(dir, ContentName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[fileHeadBytes+20] ^= 1
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := tape.NewHashReader().Hash(1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("chunk of a damaged pack: %v", err)
	}
	if _, err := tape.NewHashReader().Hash(n); err != nil {
		t.Errorf("chunk of a sound pack: %v", err)
	}
}

// Memory of packs is used again only where nobody has a part of it: what Chunk lent stays,
// and readers beside each other get what was written, from a cache that holds one pack.
func TestPackMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.tape")
	w, err := CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	const n = 6 * packBytes / ChunkBytes
	chunk := func(id uint64) []byte {
		return bytes.Repeat([]byte{byte(id), byte(id >> 8), 'x', byte(id >> 4)}, ChunkBytes/4)
	}
	for id := uint64(1); id <= n; id++ {
		if _, err := w.AddChunk(chunk(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(&Manifest{Hosts: []Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	tape.packs.limit = packBytes
	lent := map[uint64][]byte{}
	for id := uint64(1); id <= n; id += n / 3 {
		if lent[id], err = tape.Chunk(id); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			var dst []byte
			for i := range uint64(600) {
				id := (i*i*7+g*911)%n + 1
				b := &event.Buf{Len: ChunkBytes, Refs: []event.Ref{{Chunk: id, Len: ChunkBytes}}}
				if dst, err := tape.Content(b, dst[:0]); err != nil || !bytes.Equal(dst, chunk(id)) {
					t.Errorf("chunk %d: %v, or other bytes", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for id, b := range lent {
		if !bytes.Equal(b, chunk(id)) {
			t.Errorf("chunk %d, which was lent, has changed", id)
		}
	}
}
