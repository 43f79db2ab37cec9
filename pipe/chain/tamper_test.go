// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/pipe"
)

// blocksOf cuts a stream into its header and blocks.
func blocksOf(t testing.TB, stream []byte) (blocks [][]byte) {
	t.Helper()
	s, err := pipe.NewScanner(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); ; from = s.Offset() {
		if s.Offset() > from {
			blocks = append(blocks, bytes.Clone(stream[from:s.Offset()]))
			from = s.Offset()
		}
		if _, _, err := s.Next(); err == io.EOF {
			return blocks
		} else if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, bytes.Clone(stream[from:s.Offset()]))
	}
}

// TestTampering changes streams in each of the ways that docs/pipes.md lists, and looks
// for the name of what was done, the number of the block, and the others being good.
func TestTampering(t *testing.T) {
	k := newKeyring(t)
	keys := k.keys(t)
	data := make([]byte, 10*2048)
	rand.Read(data)
	other := make([]byte, 10*2048) // of another stream, with the same keys
	rand.Read(other)

	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0x10
		return b
	}
	number := func(b []byte, n uint64) []byte { // forges a block's number
		var h pipe.BlockHeader
		if !h.Parse(b[:pipe.BlockHeaderBytes]) {
			t.Fatal("no block")
		}
		h.Number = n
		b = bytes.Clone(b)
		h.Put(b)
		return b
	}
	serial := func(b, of []byte) []byte { // says that b is of the stream of another block
		var h, o pipe.BlockHeader
		h.Parse(b[:pipe.BlockHeaderBytes])
		o.Parse(of[:pipe.BlockHeaderBytes])
		h.Serial = o.Serial
		b = bytes.Clone(b)
		h.Put(b)
		return b
	}
	// In what follows, s has the header at 0 and block n at n+1, the final one is 10.
	tests := []struct {
		name   string
		change func(s, o [][]byte) [][]byte
		want   []string // "kind block"
		good   uint64
	}{
		{"untouched", func(s, _ [][]byte) [][]byte { return s }, nil, 11},
		{"bit of a payload", func(s, _ [][]byte) [][]byte { s[6] = flip(s[6], 700); return s }, []string{"changed 5"}, 10},
		{"last bit of a payload", func(s, _ [][]byte) [][]byte { s[6] = flip(s[6], -1); return s }, []string{"changed|replaced 5"}, 10},
		{"bit of the final block", func(s, _ [][]byte) [][]byte { s[11] = flip(s[11], 40); return s }, []string{"changed 10"}, 10},
		{"bit of a block's header", func(s, _ [][]byte) [][]byte { s[6] = flip(s[6], 9); return s }, []string{"garbage 5", "removed 5"}, 10},
		{"removed", func(s, _ [][]byte) [][]byte { return slices.Delete(s, 6, 7) }, []string{"removed 5"}, 10},
		{"two removed", func(s, _ [][]byte) [][]byte { return slices.Delete(s, 6, 8) }, []string{"removed 5-6"}, 9},
		{"first removed", func(s, _ [][]byte) [][]byte { return slices.Delete(s, 1, 2) }, []string{"removed 0"}, 10},
		{"swapped", func(s, _ [][]byte) [][]byte { s[6], s[7] = s[7], s[6]; return s }, []string{"moved 5"}, 10},
		{"swapped with the final", func(s, _ [][]byte) [][]byte { s[10], s[11] = s[11], s[10]; return s }, []string{"moved 9"}, 10},
		{"replayed", func(s, _ [][]byte) [][]byte { return slices.Insert(s, 8, s[4]) }, []string{"replayed 3"}, 11},
		{"replayed at the end", func(s, _ [][]byte) [][]byte { return append(s, s[4]) }, []string{"replayed 3"}, 11},
		{"put in the place of another", func(s, _ [][]byte) [][]byte { s[6] = number(s[4], 5); return s }, []string{"replaced|changed 5"}, 10},
		{"changed and removed", func(s, _ [][]byte) [][]byte { s[7] = flip(s[7], 700); return slices.Delete(s, 6, 7) }, []string{"changed 6", "removed 5"}, 9},
		{"spliced", func(s, o [][]byte) [][]byte { s[6] = o[6]; return s }, []string{"foreign 5", "removed 5"}, 10},
		{"spliced in between", func(s, o [][]byte) [][]byte { return slices.Insert(s, 6, o[6]) }, []string{"foreign 5"}, 11},
		{"spliced with a forged serial", func(s, o [][]byte) [][]byte { s[6] = serial(o[6], s[6]); return s }, []string{"replaced|changed 5"}, 10},
		{"cut between blocks", func(s, _ [][]byte) [][]byte { return s[:8] }, []string{"truncated 7"}, 7},
		{"cut in a block", func(s, _ [][]byte) [][]byte { s[8] = s[8][:99]; return s[:9] }, []string{"truncated 7"}, 7},
		{"cut in a block's header", func(s, _ [][]byte) [][]byte { s[8] = s[8][:17]; return s[:9] }, []string{"truncated 7"}, 7},
		{"only the header", func(s, _ [][]byte) [][]byte { return s[:1] }, []string{"truncated 0"}, 0},
		{"final forged", func(s, _ [][]byte) [][]byte {
			var h pipe.BlockHeader
			h.Parse(s[7][:pipe.BlockHeaderBytes])
			h.Final = true
			h.Put(s[7])
			return s[:8]
		}, []string{"replaced|changed 6"}, 6},
		{"final forged in the middle", func(s, _ [][]byte) [][]byte {
			var h pipe.BlockHeader
			h.Parse(s[4][:pipe.BlockHeaderBytes])
			h.Final = true
			h.Put(s[4])
			return s
		}, []string{"replaced|changed 3"}, 10},
		{"bytes after the end", func(s, _ [][]byte) [][]byte { return append(s, []byte("more, and more")) }, []string{"trailing 11"}, 11},
		{"bytes in between", func(s, _ [][]byte) [][]byte { return slices.Insert(s, 4, []byte("iotb, and more; iotape P")) }, []string{"garbage 3"}, 11},
		{"a copy of the header, as where files are joined", func(s, _ [][]byte) [][]byte { return slices.Insert(s, 4, s[0]) }, nil, 11},
		{"the header of another stream", func(s, o [][]byte) [][]byte { s[0] = o[0]; return s },
			[]string{"foreign 0", "foreign 1", "foreign 2", "foreign 3", "foreign 4", "foreign 5", "foreign 6", "foreign 7", "foreign 8", "foreign 9", "foreign 10", "truncated 0"}, 0},
	}
	for _, spec := range []string{"checksum:@KEY", "encrypt:RECIPIENT", "zstd:3,encrypt:RECIPIENT,checksum:@KEY",
		"checksum:@KEY,zstd:1,encrypt:RECIPIENT"} {
		for _, tt := range tests {
			t.Run(spec+"/"+tt.name, func(t *testing.T) {
				s := blocksOf(t, k.apply(t, spec+",block:2K", data))
				o := blocksOf(t, k.apply(t, spec+",block:2K", other))
				if len(s) != 12 {
					t.Fatalf("%d blocks", len(s)-1)
				}
				stream := bytes.Join(tt.change(s, o), nil)

				var got []string
				r, err := pipe.NewReader(bytes.NewReader(stream), keys.Open,
					&pipe.ReadOptions{Rest: true, OnFault: func(f *pipe.Fault) error {
						got = append(got, faultText(f))
						return nil
					}})
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Discard(); err != nil {
					t.Fatal(err)
				}
				if good, _, _ := r.Counts(); good != tt.good {
					t.Errorf("%d good blocks, want %d", good, tt.good)
				}
				if len(got) != len(tt.want) {
					t.Fatalf("faults %q, want %q", got, tt.want)
				}
				for i, want := range tt.want {
					kinds, block, _ := strings.Cut(want, " ")
					if kind, b, _ := strings.Cut(got[i], " "); b != block ||
						!slices.Contains(strings.Split(kinds, "|"), kind) {
						t.Errorf("faults %q, want %q", got, tt.want)
					}
				}

				// A strict reader returns nothing that was not written, and ends
				// in an error.
				plain, err := undo(t, stream, keys)
				if !bytes.HasPrefix(data, plain) {
					t.Error("bytes came back that were not written")
				}
				atEnd := strings.HasPrefix(tt.name, "replayed at the end") || strings.HasPrefix(tt.name, "bytes after")
				if len(tt.want) > 0 && !atEnd && err == nil {
					t.Error("no error")
				}
				if (len(tt.want) == 0 || atEnd) && (err != nil || len(plain) != len(data)) {
					t.Errorf("%d bytes of %d: %v", len(plain), len(data), err)
				}
			})
		}
	}
}

func faultText(f *pipe.Fault) string {
	if f.Kind == pipe.Removed && f.Last > f.Block {
		return fmt.Sprintf("%v %d-%d", f.Kind, f.Block, f.Last)
	}
	return fmt.Sprintf("%v %d", f.Kind, f.Block)
}

// TestKeyedNames looks for the exact name where a keyed checksum can tell it.
func TestKeyedNames(t *testing.T) {
	k := newKeyring(t)
	keys := k.keys(t)
	s := blocksOf(t, k.apply(t, "checksum:@KEY,block:1K", make([]byte, 5000)))
	s[2], s[3] = s[3], s[2]
	for i := 2; i <= 3; i++ { // with their numbers put right
		var h pipe.BlockHeader
		h.Parse(s[i][:pipe.BlockHeaderBytes])
		h.Number = uint64(i - 1)
		h.Put(s[i])
	}
	_, err := undo(t, bytes.Join(s, nil), keys)
	var f *pipe.Fault
	if !errors.As(err, &f) || f.Kind != pipe.Replaced || f.Block != 1 {
		t.Errorf("%v", err)
	}
}

// TestHeaderIsBound changes the header, and its open checksum with it: no block is good.
func TestHeaderIsBound(t *testing.T) {
	k := newKeyring(t)
	for _, spec := range []string{"checksum:@KEY", "encrypt:RECIPIENT"} {
		s := blocksOf(t, k.apply(t, spec, []byte("text")))
		h, err := pipe.ParseHeader(s[0])
		if err != nil {
			t.Fatal(err)
		}
		h.BlockBytes *= 2
		if s[0], err = h.Append(nil); err != nil {
			t.Fatal(err)
		}
		if got, err := undo(t, bytes.Join(s, nil), k.keys(t)); err == nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", spec, got, err)
		}
	}
}
