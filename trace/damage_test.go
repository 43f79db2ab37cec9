// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
)

// defined reports whether an error is one that callers can branch on.
func defined(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrNewer) ||
		errors.Is(err, ErrNotATrace)
}

func tapeFiles(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// stride thins out exhaustive tests under -short and -race.
func stride() int {
	if testing.Short() || raceEnabled {
		return 17
	}
	return 1
}

func TestEveryFlipIsFound(t *testing.T) {
	dir := makeTape(t, 20)
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.parquet"), []byte("derived"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := tape.SetDerived(t.Context(), 1, []string{"events.parquet"}); err != nil {
		t.Fatal(err)
	}
	tape.Close()
	if err := use(t, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range tapeFiles(t, dir) {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(whole); i += stride() {
			b := append([]byte(nil), whole...)
			b[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := use(t, dir); !defined(err) {
				t.Errorf("%s: flip at %d: %v", name, i, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Any bits, anywhere in the tape, not one in each byte.
func TestRandomFlipsAreFound(t *testing.T) {
	dir := makeTape(t, 20)
	var files []string
	var whole [][]byte
	total := 0
	for _, name := range tapeFiles(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files, whole, total = append(files, filepath.Join(dir, name)), append(whole, b), total+len(b)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 / stride() {
		at, i := rng.IntN(total), 0
		for at >= len(whole[i]) {
			at, i = at-len(whole[i]), i+1
		}
		b := slices.Clone(whole[i])
		bits := byte(1 + rng.IntN(255))
		b[at] ^= bits
		if err := os.WriteFile(files[i], b, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := use(t, dir); !defined(err) {
			t.Fatalf("%s: bits %08b flipped at %d: %v", files[i], bits, at, err)
		}
		if err := os.WriteFile(files[i], whole[i], 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	dir := makeTape(t, 20)
	for _, name := range tapeFiles(t, dir) {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(whole); i += stride() {
			if err := os.WriteFile(path, whole[:i], 0o666); err != nil {
				t.Fatal(err)
			}
			if err := use(t, dir); !defined(err) {
				t.Errorf("%s: cut to %d of %d: %v", name, i, len(whole), err)
			}
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSalvage cuts the files as a crash does and expects the whole blocks before
// the cut.
func TestSalvage(t *testing.T) {
	dir := makeTape(t, 3*maxBlockEvents)
	if err := os.Remove(filepath.Join(dir, ManifestName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrTruncated) {
		t.Errorf("open without manifest: %v", err)
	}
	path := filepath.Join(dir, EventsName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tape, err := Salvage(dir)
	if err != nil {
		t.Fatal(err)
	}
	blocks := tape.events.blocks
	tape.Close()
	for size := fileHeadBytes; size <= len(whole); size += 97 * stride() {
		if err := os.WriteFile(path, whole[:size], 0o666); err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for _, b := range blocks {
			if b.off+int64(b.bytes) <= int64(size) {
				want = b.first + uint64(b.items)
			}
		}
		tape, err := Salvage(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := uint64(0)
		for _, err := range tape.Events() {
			if err != nil {
				t.Fatalf("cut to %d: %v", size, err)
			}
			got++
		}
		if got != want {
			t.Errorf("cut to %d: %d events, want %d", size, got, want)
		}
		tape.Close()
	}
}

func TestDamagedBlockIsSkipped(t *testing.T) {
	dir := makeTape(t, 3*maxBlockEvents)
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	off := tape.events.blocks[1].off + 200
	tape.Close()
	f, err := os.OpenFile(filepath.Join(dir, EventsName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("damage"), off)
	f.Close()
	if tape, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	good, bad := 0, 0
	for _, err := range tape.Events() {
		if err != nil {
			bad++
		} else {
			good++
		}
	}
	if good != 2*maxBlockEvents || bad != 1 {
		t.Errorf("%d events, %d errors", good, bad)
	}
	r, err := tape.Check(t.Context(), nil)
	if err != nil || r.OK() {
		t.Fatalf("check: %+v, %v", r, err)
	}
}

func TestOpenSaysWhatItIs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var sb strings.Builder
	if _, err := NewStreamWriter(&sb, 7, &Head{}); err != nil {
		t.Fatal(err)
	}
	stream := []byte(sb.String())
	newer := append([]byte(nil), stream...)
	newer[4] = 99
	tape := makeTape(t, 1)
	future := t.TempDir()
	if err := os.WriteFile(filepath.Join(future, ManifestName), []byte(`{"format":"iotape.tape","version":99}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       error
		says       string
	}{
		{"stream", file("s", stream), ErrNotSealed, "iotape seal"},
		{"newer stream", file("n", newer), ErrNewer, "version 99"},
		{"cut stream", file("c", stream[:20]), ErrTruncated, "first frame"},
		{"empty", file("e", nil), ErrNotATrace, "empty"},
		{"text", file("t", []byte("hello, world")), ErrNotATrace, ""},
		{"inner file", filepath.Join(tape, EventsName), ErrNotATrace, "within a tape"},
		{"directory", dir, ErrNotATrace, "without manifest.json"},
		{"newer tape", future, ErrNewer, "version 99"},
		{"nothing", filepath.Join(dir, "none"), os.ErrNotExist, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape, err := Open(c.path)
			if tape != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v saying %q", err, c.want, c.says)
			}
		})
	}
}

func FuzzBlock(f *testing.F) {
	e := newBlockEncoder()
	e.add(&event.Event{Op: 1, Comm: "x",
		Bufs: []event.Buf{{Inline: []byte("ab"), Refs: []event.Ref{{Chunk: 1, Len: 2}}, Parts: []int64{3}}}})
	e.add(&event.Event{Op: 2, Paths: []event.Path{{Raw: "a", Abs: "/a"}}, Files: []event.File{{FD: 3, Path: "/a"}}})
	f.Add(e.appendPlain(nil), 2)
	f.Add([]byte{colFiles, encConst, 3, 0xff, 0xff, 0x03}, 4)
	f.Add([]byte{colDict, 0, 1, 5}, 1)
	f.Add([]byte{0xff, 0xff, 0x7f, 0, 0}, 1)
	d := new(blockDecoder)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if err := d.decode(b, n, 0); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		e.reset()
		var ev event.Event
		for range d.n {
			d.event(&ev)
			if checkSize(&ev) != nil {
				return
			}
			e.add(&ev)
		}
		again := new(blockDecoder)
		if err := again.decode(e.appendPlain(nil), d.n, 0); err != nil {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	b, err := (&Manifest{Program: "x", Hosts: []Host{{}}, Files: map[string]FileSum{}}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":"iotape.tape","version":1}`))
	f.Add([]byte(`{"format":"iotape.tape","version":1,"files":{"../x":{"bytes":1,"blake3":"00"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if (m == nil) != (err != nil) || err != nil && !defined(err) {
			t.Fatalf("%v, %v", m, err)
		}
		// The same with a sound checksum.
		body := append(bytes.TrimRight(b, "} \n"), sealStart...)
		sum := blake3.Sum256(body)
		m, err = ParseManifest(append(hex.AppendEncode(body, sum[:]), sealEnd...))
		if (m == nil) != (err != nil) || err != nil && !defined(err) {
			t.Fatalf("%v, %v", m, err)
		}
		if m == nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(again); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzIndex reads arbitrary files of blocks.
func FuzzIndex(f *testing.F) {
	dir := makeTape(f, 20)
	for _, name := range []string{EventsName, ContentName} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-trailerBytes])
		f.Add(b[:len(b)-100])
	}
	dec := newDecoder(1)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range []*blockKind{&eventsKind, &contentKind} {
			bf, err := openBlockFile(k, strings.NewReader(string(b)), int64(len(b)))
			if (bf == nil) != (err != nil) {
				t.Fatal(bf, err)
			}
			if err != nil {
				if !defined(err) {
					t.Fatal(err)
				}
				continue
			}
			var rb rawBlock
			for i := range bf.blocks {
				if err := bf.read(i, &rb); err != nil {
					continue
				}
				if err := bf.expand(&rb, dec); err != nil {
					continue
				}
				if k == &contentKind {
					_, _ = packEnds(nil, &rb.header, rb.table)
				}
			}
		}
	})
}
