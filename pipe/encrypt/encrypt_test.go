// SPDX-License-Identifier: Apache-2.0

package encrypt

import (
	"testing"

	"filippo.io/age"

	"github.com/iotape/iotape/pipe"
)

func newEncoder(t *testing.T) (*encoder, *age.X25519Identity, []byte) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Layer(id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	e, params, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return e.(*encoder), id, params
}

// TestTakenOver takes all the keys that a writer has after some blocks: they open what
// comes next, and nothing of what was before.
func TestTakenOver(t *testing.T) {
	e, _, _ := newEncoder(t)
	var blocks [][]byte
	encode := func() {
		b, err := e.Encode(nil, []byte("text"), &pipe.Place{Number: uint64(len(blocks))})
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	for range 5 {
		encode()
	}
	taken := e.chain
	encode()
	encode()
	for n, b := range blocks {
		opened := false
		for k, steps := taken, 0; steps < 10; k, steps = derive(nextLabel, &k), steps+1 {
			d := &decoder{marks: []key{k}, at: k, n: uint64(n)} // k stands for block n's
			_, err := d.Decode(nil, b, &pipe.Place{Number: uint64(n)})
			opened = opened || err == nil
		}
		if opened != (n >= 5) {
			t.Errorf("block %d: opened %v", n, opened)
		}
	}
}

// TestAnyOrder opens blocks far apart, forwards and backwards.
func TestAnyOrder(t *testing.T) {
	e, id, params := newEncoder(t)
	blocks := map[uint64][]byte{}
	for n := range uint64(3*markEvery + 2) {
		b, err := e.Encode(nil, []byte{byte(n)}, &pipe.Place{Number: n})
		if err != nil {
			t.Fatal(err)
		}
		blocks[n] = b
	}
	d, ok, err := Open(layerName, params, []age.Identity{id})
	if !ok || err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 3*markEvery + 1, 1, markEvery, markEvery - 1, 2*markEvery + 7,
		2*markEvery + 6, 3 * markEvery, 0} {
		got, err := d.Decode(nil, blocks[n], &pipe.Place{Number: n})
		if err != nil || len(got) != 1 || got[0] != byte(n) {
			t.Errorf("block %d: %v, %v", n, got, err)
		}
	}
}

// TestFarNumber refuses a block whose number would take long to make a key for.
func TestFarNumber(t *testing.T) {
	_, id, params := newEncoder(t)
	d, _, err := Open(layerName, params, []age.Identity{id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(nil, make([]byte, 100), &pipe.Place{Number: 1 << 62}); err == nil {
		t.Error("taken")
	}
}

// TestLabels are of the length that a key's derivation is written for.
func TestLabels(t *testing.T) {
	if len(nextLabel) != keyBytes || len(blockLabel) != keyBytes {
		t.Error(len(nextLabel), len(blockLabel))
	}
}
