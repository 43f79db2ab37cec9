// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// small returns a tape of a few calls.
func small(t *testing.T) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	for i := range int64(10) {
		ev := &event.Event{Op: event.OpWrite, PID: 4711, TID: 4711, UID: 1000, Comm: "alice", Enter: 100 + 10*i,
			Exit: 105 + 10*i, Ret: 5, Offset: -1, Count: -1,
			Files: []event.File{{FD: 3, Known: true, Ino: 77, Mode: 0o100644, Path: "/home/alice/notes"}},
			Bufs:  []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 5, Inline: []byte("hello")}}}
		if err := tw.Write(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Program: "test",
		Hosts: []trace.Host{{Head: trace.Head{Host: "alices", Arch: "amd64", Command: []string{"sh", "-c", "böse\n"},
			ClockNS: 100, WallNS: 1_700_000_000_000_000_000}}}, Incomplete: true, Reason: "cut"}); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func revealError(t *testing.T, tp *trace.Tape, keys Keys) error {
	t.Helper()
	tw, err := trace.CreateTape(filepath.Join(t.TempDir(), "revealed.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	_, err = Reveal(context.Background(), tw, tp, &Options{Fields: AllFields, Keys: keys})
	return err
}

// TestForged checks that a tape is not revealed that somebody changed who can make good
// all sums, but has no key.
func TestForged(t *testing.T) {
	keys := NewKeys()
	out := made(t, Anonymise, small(t), &Options{Fields: AllFields, Keys: keys, Content: trace.ContentEncrypted})
	if err := revealError(t, out, keys); err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(m *trace.Manifest){
		"status":     func(m *trace.Manifest) { m.ExitStatus = 1 },
		"host":       func(m *trace.Manifest) { m.Hosts[0].Host = "bob" },
		"sums":       func(m *trace.Manifest) { s := m.Files["events"]; s.Bytes++; m.Files["events"] = s },
		"extensions": func(m *trace.Manifest) { m.Anonymised.KeepExtensions = true },
		"another's MAC": func(m *trace.Manifest) {
			s := m.Anonymised.Fields["path"]
			s.MAC = m.Anonymised.Fields["uid"].MAC
			m.Anonymised.Fields["path"] = s
		},
	} {
		m, err := trace.ParseManifest(read(t, filepath.Join(out.Dir(), trace.ManifestName)))
		if err != nil {
			t.Fatal(err)
		}
		forge(m)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "forged.tape")
		if err := os.CopyFS(dir, os.DirFS(out.Dir())); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, trace.ManifestName), b, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := revealError(t, open(t, dir), keys); !errors.Is(err, trace.ErrCorrupt) ||
			!strings.Contains(err.Error(), "signed with the key of ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := NewKeys()
	other[UID] = keys[UID]
	if err := revealError(t, out, other); !errors.Is(err, ErrWrongKey) ||
		!strings.Contains(err.Error(), "the key of path is ") {
		t.Errorf("with another key: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEveryBit flips a bit of every byte of every file: either nothing is revealed, or it is
// a byte that does not count.
func TestEveryBit(t *testing.T) {
	testenv.Short(t, "it changes every bit of a file")
	keys := NewKeys()
	out := made(t, Anonymise, small(t), &Options{Fields: AllFields, Keys: keys, Content: trace.ContentEncrypted})
	dir := filepath.Join(t.TempDir(), "flipped.tape")
	if err := os.CopyFS(dir, os.DirFS(out.Dir())); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		b := read(t, name)
		for i := 0; i < len(b); i += 1 + len(b)/100 {
			b[i] ^= 1 << (i % 8)
			if err := os.WriteFile(name, b, 0o666); err != nil {
				t.Fatal(err)
			}
			tp, err := trace.Open(dir)
			if err == nil {
				err = revealError(t, tp, keys)
				tp.Close()
			}
			if err == nil {
				t.Errorf("%s: byte %d: it is revealed", e.Name(), i)
			}
			b[i] ^= 1 << (i % 8)
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManifest checks what stands in the manifest, with texts that JSON cannot carry.
func TestManifest(t *testing.T) {
	keys, tp := NewKeys(), small(t)
	out := made(t, Anonymise, tp, &Options{Fields: AllFields, Keys: keys, Content: trace.ContentEncrypted})
	text := string(read(t, filepath.Join(out.Dir(), trace.ManifestName)))
	for _, secret := range []string{"alices", "böse", `"cut"`, "1700000000000000000"} {
		if strings.Contains(text, secret) {
			t.Errorf("the manifest has %s:\n%s", secret, text)
		}
	}
	same(t, tp, made(t, Reveal, out, &Options{Fields: AllFields, Keys: keys}), nil)
}

func TestKeyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "k")
	keys, err := CreateKeyFile(name)
	if err != nil {
		t.Fatal(err)
	}
	again, shared, err := ReadKeyFile(name)
	if err != nil || shared || len(again) != int(numFields) || again[Path] != keys[Path] {
		t.Errorf("%d keys, shared %v, %v", len(again), shared, err)
	}
	if _, err := CreateKeyFile(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made again: %v", err)
	}
	for text, want := range map[string]string{
		"":                                  "has no keys",
		"# only this\n":                     "has no keys",
		"path 00":                           "line 1: the key of path is not 64 hexadecimal digits",
		"\nname " + strings.Repeat("0", 64): "line 2: there is no field",
		"path " + strings.Repeat("g", 64):   "line 1: the key of path is not hexadecimal",
		strings.Repeat("uid "+strings.Repeat("0", 64)+"\n", 2): "line 2: a second key of uid",
		strings.Repeat("#\n", maxKeyFile):                      "is larger than",
	} {
		if _, err := ParseKeys(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
}
