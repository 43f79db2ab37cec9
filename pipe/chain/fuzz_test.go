// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/iotape/iotape/pipe"
)

// FuzzRead reads anything as a stream: it ends, takes bounded memory, and a strict reader
// returns either all that a valid stream has, or an error.
func FuzzRead(f *testing.F) {
	k := &keyring{recipient: "age13mmw0eq72z4ec4ywr4yz5mqgntzkp78lxkv3hna0hk4vlpwl6axq7k4vpz",
		identity: "testdata/identity", key: "testdata/key"}
	for _, name := range []string{k.identity, k.key} { // the same in every worker
		if err := os.Chmod(name, 0o600); err != nil {
			f.Fatal(err)
		}
	}
	keys := k.keys(f)
	for _, spec := range []string{"none,block:1K", "zstd,block:1K", "s2", "checksum",
		"async,zstd:3,encrypt:RECIPIENT,checksum:@KEY,block:1K"} {
		f.Add(k.apply(f, spec, bytes.Repeat([]byte("some text "), 400)))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		faults := 0
		r, err := pipe.NewReader(bytes.NewReader(stream), keys.Open,
			&pipe.ReadOptions{Rest: true, OnFault: func(*pipe.Fault) error { faults++; return nil }})
		if err != nil {
			return
		}
		salvaged, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("with a handler of faults: %v", err)
		}
		if _, _, n := r.Counts(); n != int64(len(salvaged)) {
			t.Errorf("%d bytes counted, %d read", n, len(salvaged))
		}
		strict, err := undo(t, stream, keys)
		if !bytes.HasPrefix(salvaged, strict) {
			t.Error("strict reading gave other bytes")
		}
		if faults == 0 && (err != nil || len(strict) != len(salvaged)) {
			t.Errorf("no faults, and %v", err)
		}
	})
}

// FuzzHeader encodes again what parses: it is the same.
func FuzzHeader(f *testing.F) {
	for _, h := range []pipe.Header{{BlockBytes: 1 << 20},
		{Serial: 7, BlockBytes: 4096, Layers: []pipe.LayerHeader{{Name: "zstd:3"}, {Name: "checksum:keyed", Params: []byte("12345678")}}}} {
		b, err := h.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := pipe.ParseHeader(b)
		if err != nil {
			return
		}
		again, err := h.Append(nil)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x is encoded as %x: %v", b, again, err)
		}
	})
}

// FuzzParse reads anything as a chain, but for names of files.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"async,zstd:3,s2:best,checksum,block:64K,flush:1s", "none", "zstd:99", "encrypt:age1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if bytes.ContainsRune([]byte(text), '@') || bytes.Contains([]byte(text), []byte(envPrefix)) {
			return
		}
		s, err := Parse(text)
		if (err == nil) == (s == nil) {
			t.Errorf("%v and %v", s, err)
		}
		if s != nil && len(s.Layers) > pipe.MaxLayers {
			t.Errorf("%d layers", len(s.Layers))
		}
	})
}
