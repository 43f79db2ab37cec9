// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/trace"
)

// TestSignedRecall compares what is found by signatures alone, of contents of which many
// lie near the threshold, with what their bytes say: the goal is 0.95 both ways.
func TestSignedRecall(t *testing.T) {
	const (
		threshold    = 0.8
		groups, each = 40, 8
		size         = 1024
	)
	pick := rand.New(rand.NewPCG(11, 12))
	dir := filepath.Join(t.TempDir(), "signed.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	var digester similar.Digester
	for range groups {
		base := make([]byte, size)
		for i := range base {
			base[i] = byte(pick.IntN(256))
		}
		for k := range each {
			c := slices.Clone(base)
			for range k * size / 300 {
				c[pick.IntN(size)] ^= byte(1 + pick.IntN(255))
			}
			digest, sketch := digester.Sign(nil, c)
			at := int64(len(all))
			all = append(all, c)
			if err := tw.Write(&event.Event{
				Op: event.OpPwrite64, PID: 1, TID: 1, Enter: 10 * at, Exit: 10*at +
					5, Ret: size, Count: size, Offset: at * size,
				Files: []event.File{{FD: 3, Open: 3, Path: "/store", Known: true, Dev: 1, Ino: 2, Mode: 0o100644}},
				Bufs: []event.Buf{{Arg: 1, Dir: event.In, Kind: event.KindBuf, Len: size, Omitted: true,
					Hashes: []event.Digest{event.Digest(digest)}, Sketch: sketch}},
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := trace.Host{Head: trace.Head{Host: "a", Arch: "amd64", BootID: "a", Content: "signature"}}
	if err := tw.Close(&trace.Manifest{Program: "test", Hosts: []trace.Host{h}}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	f, err := Load(t.Context(), []*trace.Tape{tape}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := similar.NewSigner(nil)
	if err != nil {
		t.Fatal(err)
	}
	sets := make([]similar.Set, len(all))
	for i, c := range all {
		sets[i] = signer.Set(nil, c)
	}
	truth, found, right := 0, 0, 0
	for i := range all {
		for k := range i {
			is := similar.Jaccard(sets[i], sets[k]) >= threshold
			says := f.near(f.moves[i].class, f.moves[k].class) >= threshold
			if is {
				truth++
			}
			if says {
				found++
			}
			if is && says {
				right++
			}
		}
	}
	if truth < 200 || found == 0 {
		t.Fatalf("%d pairs are similar, %d were found", truth, found)
	}
	recall, precision := float64(right)/float64(truth), float64(right)/float64(found)
	t.Logf("%d pairs: recall %.3f, precision %.3f", truth, recall, precision)
	if recall < 0.95 || precision < 0.95 {
		t.Errorf("recall %.3f, precision %.3f", recall, precision)
	}
}
