// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/iotape/iotape/event"
)

// What was seen of a chunk is found again, for the same bytes only, and the memory for it
// is bounded.
func TestHashCache(t *testing.T) {
	k := NewHashCache()
	data := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	k.Observe(&event.Buf{Len: 36, Inline: data[:4],
		Refs: []event.Ref{{Chunk: 0, Len: 2}, {Chunk: 5, Len: 10}, {Chunk: 6, Off: 3, Len: 10}, {Chunk: 7, Len: 99}}},
		data)
	for _, tt := range []struct {
		ref  event.Ref
		want []byte
	}{
		{event.Ref{Chunk: 5, Len: 10}, data[6:16]},
		{event.Ref{Chunk: 5, Len: 9}, nil},
		{event.Ref{Chunk: 5, Off: 1, Len: 10}, nil},
		{event.Ref{Chunk: 6, Off: 3, Len: 10}, nil}, // not from its beginning
		{event.Ref{Chunk: 6, Len: 10}, nil},
		{event.Ref{Chunk: 7, Len: 99}, nil}, // there was less of it
		{event.Ref{Chunk: 5, Len: 0}, nil},
		{event.Ref{Chunk: 0, Len: 2}, nil},
		{event.Ref{Chunk: 1 << 63, Len: 2}, nil},
	} {
		got, ok := k.sum(tt.ref)
		if ok != (tt.want != nil) || ok && got != xxh3.Hash128(tt.want) {
			t.Errorf("%+v: known %v, %x", tt.ref, ok, got)
		}
	}
	// All that is known: nothing is taken out of a tape, of which there is none here.
	sums, ok := k.Sums(nil, &event.Buf{Len: 20, Refs: []event.Ref{{Chunk: 5, Len: 10}, {Chunk: 5, Len: 10}}}, nil)
	twice := append(bytes.Clone(data[6:16]), data[6:16]...)
	if !ok || !Same(sums, twice) || Same(sums, twice[:19]) || Same(sums, twice[:10]) ||
		Same(sums, append(twice, 'x')) || Same(sums, data[:20]) {
		t.Errorf("two of a chunk: %v, %+v", ok, sums)
	}
	for _, b := range []event.Buf{
		{Len: 10},
		{Len: 11, Refs: []event.Ref{{Chunk: 5, Len: 10}}},
		{Len: 10, Inline: data[:0:0], Refs: []event.Ref{{Chunk: 5, Len: 5}, {Len: 5}}},
		{Len: 11, Inline: data[:1], Refs: []event.Ref{{Chunk: 5, Len: 10}}},
	} {
		if _, ok := k.Sums(nil, &b, nil); ok {
			t.Errorf("%+v is known", b)
		}
	}

	for n := range uint64(maxHashPages + 10) {
		k.add(event.Ref{Chunk: n * chunksPerPage, Len: 1}, xxh3.Uint128{Lo: n})
	}
	if len(k.pages) != maxHashPages || len(k.order) != maxHashPages {
		t.Errorf("%d pages, %d in order, at most %d", len(k.pages), len(k.order), maxHashPages)
	}
	if _, ok := k.sum(event.Ref{Chunk: 5, Len: 10}); ok {
		t.Error("the oldest is still known")
	}
	if got, ok := k.sum(event.Ref{Chunk: (maxHashPages + 9) * chunksPerPage, Len: 1}); !ok || got.Lo != maxHashPages+9 {
		t.Error("the newest is not known")
	}
}
