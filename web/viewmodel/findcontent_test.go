// SPDX-License-Identifier: Apache-2.0

package viewmodel_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/viewmodel"
)

// TestFindContent looks for content by a part of it and by its hash. What is no search for content is a
// filter.
func TestFindContent(t *testing.T) {
	long := "the third content \"with quotes\" and \x00\x01 bytes, which is longer than what stands in an event itself"
	sum := blake3.Sum256([]byte(long))
	other := event.Digest(blake3.Sum256([]byte("what was not recorded")))
	dir := t.TempDir() + "/x.tape"
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddChunk([]byte(long))
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range []event.Buf{
		{Arg: 1, Kind: event.KindBuf, Len: 5, Inline: []byte("first")},
		{Arg: 1, Kind: event.KindBuf, Len: int64(len(long)), Refs: []event.Ref{{Chunk: id, Len: uint32(len(long))}}},
		{Arg: 1, Kind: event.KindBuf, Len: 21, Omitted: true, Hashes: []event.Digest{other}},
	} {
		at := int64(i+1) * 1000
		if err := w.Write(&event.Event{Op: event.OpWrite, PID: 1, TID: 1, Enter: at, Exit: at + 10, Ret: b.Len,
			Bufs: []event.Buf{b}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(&trace.Manifest{Program: "test", Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	isFilter := errors.New("a filter")
	s, err := viewmodel.Open(t.Context(), []*trace.Tape{tape}, &viewmodel.Options{InMemory: true,
		Filter: func(*trace.Tape, string) (func(*event.Event) bool, error) { return nil, isFilter }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for text, want := range map[string]int64{
		`containing third`:                      1,
		`containing "with quotes\" and \x00"`:   1,
		`containing "with quotes`:               1,
		`containing "\"with quotes\" and \x00"`: 1,
		`containing 0x0001206279746573`:         1,
		`containing first`:                      0,
		`containing second`:                     -1,
		"hash " + hex.EncodeToString(sum[:]):    1,
		"hash " + hex.EncodeToString(sum[:6]):   1,
		"hash " + hex.EncodeToString(other[:8]): 2,
		"hash 0000000000000000":                 -1,
	} {
		got := int64(-1)
		f, err := s.Find(t.Context(), 0, 0, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if f.Event != nil {
			got = int64(f.Event.Seq)
		}
		if got != want {
			t.Errorf("%s: found event %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"op = read", "hash abc", "hash of something"} {
		if _, err := s.Find(t.Context(), 0, 0, text); !errors.Is(err, isFilter) {
			t.Errorf("%s: got %v, want that it is a filter", text, err)
		}
	}
}
