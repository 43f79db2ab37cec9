package trace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
	tape, err := OpenTape(dir)
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
