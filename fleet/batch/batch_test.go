// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() *Batch {
	return &Batch{Kind: Data, Flags: Within, Stream: "s", Number: 7, Before: 100, Events: 3,
		Lost: 2, Data: []byte("opaque")}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	got, err := Decode(want.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*want, got); d != "" {
		t.Error(d)
	}
}

// TestEveryByte: a change of any byte, and a cut at any byte, is noticed.
func TestEveryByte(t *testing.T) {
	good := sample().Append(nil)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		if _, err := Decode(bad); err == nil {
			t.Errorf("a change of byte %d was not noticed", i)
		}
		if _, err := Decode(good[:i]); err == nil {
			t.Errorf("a cut at byte %d was not noticed", i)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Batch){
		"no number":             func(p *Batch) { p.Number = 0 },
		"first is not about":    func(p *Batch) { p.Number = 1 },
		"about is not first":    func(p *Batch) { p.Kind, p.Events = About, 0 },
		"unknown kind":          func(p *Batch) { p.Kind = 9 },
		"unknown flag":          func(p *Batch) { p.Flags = 4 },
		"events of an end":      func(p *Batch) { p.Kind = End },
		"too many events":       func(p *Batch) { p.Before, p.Events = 1<<63, 1<<63 },
		"too long":              func(p *Batch) { p.Data = make([]byte, MaxData+1) },
		"a name that is no end": func(p *Batch) { p.Stream = string(make([]byte, 4096)) },
	} {
		p := sample()
		change(p)
		if _, err := Decode(p.Append(nil)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	newer := sample().Append(nil)
	newer[4]++
	if _, err := Decode(newer); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add((&Batch{Kind: About, Stream: "s", Number: 1, Data: []byte("{}")}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Append(nil), b) {
			t.Error("a batch is not what its bytes were")
		}
	})
}
