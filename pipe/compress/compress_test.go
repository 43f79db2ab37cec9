// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/iotape/iotape/pipe"
)

// TestSizes compresses what does and what does not compress: the one becomes small, the
// other grows by one byte.
func TestSizes(t *testing.T) {
	random := make([]byte, 10_000)
	rand.Read(random)
	text := bytes.Repeat([]byte("some text, "), 1000)
	fast, err := Zstd(1)
	if err != nil {
		t.Fatal(err)
	}
	best, err := Zstd(19)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := S2("")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []pipe.Layer{fast, best, quick} {
		e, params, err := l.Begin()
		if err != nil || len(params) > 0 {
			t.Fatal(err)
		}
		d, ok, err := Open(l.Name(), 16_000)
		if !ok || err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{random, text, nil, {1}} {
			packed, err := e.Encode([]byte("before"), bytes.Clone(data), nil)
			if err != nil {
				t.Fatal(err)
			}
			packed = packed[len("before"):]
			if len(packed) > len(data)+1 || len(data) == len(text) && len(packed) > 1000 {
				t.Errorf("%s: %d bytes become %d", l.Name(), len(data), len(packed))
			}
			got, err := d.Decode(nil, packed, nil)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes come back as %d: %v", l.Name(), len(data), len(got), err)
			}
		}
	}
}

// TestBombs refuses what would become far larger than a block can be, without making it.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, bomb := range map[string][]byte{"zstd:3": enc.EncodeAll(zeros, []byte{packed}),
		"s2": append([]byte{packed}, s2.Encode(nil, zeros)...)} {
		d, _, err := Open(name, 4096)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode(nil, bomb, nil)
		if err == nil || cap(got) > 1<<20 {
			t.Errorf("%s: %d bytes of %d, %v", name, cap(got), len(bomb), err)
		}
	}
}

// FuzzDecode undoes anything: never more than asked for, never a panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{stored, 1, 2, 3})
	f.Add(append([]byte{packed}, s2.Encode(nil, []byte("text text text text text"))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"zstd:3", "s2"} {
			d, _, err := Open(name, 4096)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(nil, bytes.Clone(b), nil)
			if err == nil && len(got) > max(4096, len(b)) {
				t.Errorf("%s: %d bytes", name, len(got))
			}
		}
	})
}
