// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// noisy makes a tape of writes of some MiB that are all different.
func noisy(t *testing.T, mib int) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(mib), 1))
	chunk := make([]byte, trace.ChunkBytes)
	for i := range int64(mib) << 20 / int64(len(chunk)) {
		for k := range chunk {
			chunk[k] = byte(r.Uint32())
		}
		id, err := w.AddChunk(chunk)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(len(chunk))
		if err := w.Write(&event.Event{Op: event.OpPwrite64, PID: 1, TID: 1, Enter: i * 1000, Exit: i*1000 + 9, Ret: n,
			Offset: i * n, Files: []event.File{{FD: 3, Open: 3, Path: "/f", Known: true, Ino: 7, Mode: 0o100644}},
			Bufs: []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: n,
				Refs: []event.Ref{{Chunk: id, Len: uint32(n)}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	host := trace.Host{Head: trace.Head{Host: fmt.Sprint("h", mib), BootID: fmt.Sprint(mib), Content: "full"}}
	if err := w.Close(&trace.Manifest{Program: "test", Hosts: []trace.Host{host}}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// TestFindingsOfMuchContent: of one tape with much content, findings are not made without being asked for; of
// several tapes, which are given for what went between them, they are.
func TestFindingsOfMuchContent(t *testing.T) {
	a, b := noisy(t, 5), noisy(t, 6)
	for want, tapes := range map[string][]*trace.Tape{
		"not computed, because of 1,280 events and 5.00 MiB of different content": {a},
		"0 findings of data that is not what it should be":                        {a, b},
	} {
		if got := suite.AllFindings(t.Context(), tapes).Body(); !strings.Contains(got, want) {
			t.Errorf("%d tapes: got %q, want %q in it", len(tapes), got, want)
		}
	}
}
