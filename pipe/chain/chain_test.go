// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/checksum"
	"github.com/iotape/iotape/pipe/encrypt"
)

// keyring is files with keys, and what reads with them.
type keyring struct {
	recipient, identity, key string // key and identity are files
}

func newKeyring(t testing.TB) *keyring {
	t.Helper()
	dir := t.TempDir()
	k := &keyring{identity: filepath.Join(dir, "id"), key: filepath.Join(dir, "key")}
	file, recipient, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	k.recipient = recipient
	sum, _ := NewChecksumKey()
	for name, text := range map[string]string{k.identity: file, k.key: sum} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *keyring) keys(t testing.TB) *Keys {
	t.Helper()
	keys, err := ReadKeys([]string{k.identity}, []string{k.key})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// fill puts the names of the keyring into a spec.
func (k *keyring) fill(spec string) string {
	return strings.NewReplacer("RECIPIENT", k.recipient, "@KEY", "@"+k.key).Replace(spec)
}

func (k *keyring) apply(t testing.TB, spec string, data []byte) []byte {
	t.Helper()
	s, err := Parse(k.fill(spec))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pipe.NewWriter(&out, s.Layers, &s.Options)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 { // in odd pieces
		n := min(len(data), 1237)
		if _, err := w.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func undo(t testing.TB, stream []byte, keys *Keys) ([]byte, error) {
	t.Helper()
	r, err := pipe.NewReader(bytes.NewReader(stream), keys.Open, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

var specs = []string{
	"none", "async", "zstd:1", "zstd:19", "s2", "s2:better", "s2:best", "checksum", "checksum:@KEY", "encrypt:RECIPIENT",
	"async,zstd:3,encrypt:RECIPIENT,checksum:@KEY",
	"checksum:@KEY,encrypt:RECIPIENT,zstd:3",
	"async:1,s2,async:1,checksum:@KEY,async:1,encrypt:RECIPIENT,async:1",
	"zstd,zstd,checksum,checksum:@KEY,encrypt:RECIPIENT,encrypt:RECIPIENT,s2",
}

// TestRoundTrip undoes chains in many orders and with all kinds of lengths.
func TestRoundTrip(t *testing.T) {
	k := newKeyring(t)
	keys := k.keys(t)
	for _, spec := range specs {
		t.Run(strings.ReplaceAll(spec, k.recipient, "R"), func(t *testing.T) {
			for _, n := range []int{0, 1, 4095, 4096, 4097, 3*4096 + 5} {
				data := make([]byte, n)
				if n%2 == 1 {
					rand.Read(data) // does not compress
				}
				got, err := undo(t, k.apply(t, spec+",block:4K", data), keys)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes: %d came back: %v", n, len(got), err)
				}
			}
		})
	}
}

// TestRoundTripRandom makes chains and writes at random.
func TestRoundTripRandom(t *testing.T) {
	k := newKeyring(t)
	keys := k.keys(t)
	words := []string{"async", "async:1", "zstd", "s2", "checksum", "checksum:@KEY", "encrypt:RECIPIENT"}
	rapid.Check(t, func(rt *rapid.T) {
		spec := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 5).Draw(rt, "chain"), ",")
		data := rapid.SliceOfN(rapid.Byte(), 0, 9000).Draw(rt, "data")
		got, err := undo(t, k.apply(t, spec+",block:2K", data), keys)
		if err != nil || !bytes.Equal(got, data) {
			rt.Fatalf("%s: %v", spec, err)
		}
	})
}

// TestWrongKeys reads with keys that do not fit, and with none.
func TestWrongKeys(t *testing.T) {
	k, wrong := newKeyring(t), newKeyring(t)
	for _, tt := range []struct {
		spec string
		keys *Keys
		want string
	}{
		{"checksum:@KEY", wrong.keys(t), "layer checksum:keyed: wrong key: its checksums were made with key "},
		{"checksum:@KEY", nil, "no key is given"},
		{"zstd,encrypt:RECIPIENT", wrong.keys(t), "layer encrypt:aes256gcm: wrong recipient: it is not encrypted for any identity that is given"},
		{"encrypt:RECIPIENT", nil, "it is encrypted, and no identity is given"},
	} {
		stream := k.apply(t, tt.spec, []byte("text"))
		_, err := undo(t, stream, tt.keys)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.spec, err)
		}
	}
	// What is outside can be checked without the rest.
	stream := k.apply(t, "encrypt:RECIPIENT,checksum:@KEY", []byte("text"))
	keys := k.keys(t)
	keys.Identities = nil
	decoders, lacking, err := keys.OpenSome(mustHeader(t, stream))
	var recipient *encrypt.RecipientError
	if err != nil || !errors.As(lacking, &recipient) || decoders[0] != nil || decoders[1] == nil {
		t.Errorf("%v, %v, %v", decoders, lacking, err)
	}
	keys = wrong.keys(t)
	keys.Identities = nil
	_, lacking, _ = keys.OpenSome(mustHeader(t, stream))
	var key *checksum.KeyError
	if !errors.As(lacking, &key) || key.Given != 1 {
		t.Errorf("%v", lacking)
	}
}

func mustHeader(t *testing.T, stream []byte) *pipe.Header {
	t.Helper()
	h, err := pipe.ReadHeader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestParseErrors has what people write wrong.
func TestParseErrors(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	text, _ := NewChecksumKey()
	if err := os.WriteFile(open, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	id, _, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ = strings.Cut(strings.TrimSpace(id), "\n")
	for spec, want := range map[string]string{
		"":                       `"" is no layer`,
		"gzip":                   `"gzip" is no layer: they are async`,
		"zstd:":                  "zstd: nothing after the colon",
		"zstd:23":                `zstd: "23" is no number from 1 to 22`,
		"s2:fast":                "levels are better and best",
		"async:0":                `async: "0" is no number from 1 to 1024`,
		"block:7":                "is no size from 1K to 16M",
		"block:32M":              "is no size",
		"flush:1":                "is no time",
		"none:1":                 "it has no options",
		"encrypt":                "recipient",
		"encrypt:age1xyz":        "recipient",
		"encrypt:" + id:          "this is a secret key",
		"checksum:0123":          "named as @FILE or env:NAME",
		"checksum:@" + open:      "chmod 600",
		"checksum:@/nowhere":     "no such file",
		"checksum:env:NO_SUCH_V": "there is no variable NO_SUCH_V",
		strings.TrimSuffix(strings.Repeat("s2,", 17), ","): "at most 16 layers",
	} {
		_, err := Parse(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", spec, err)
		}
		if err != nil && strings.Contains(err.Error(), id) {
			t.Errorf("%q: the error tells the secret", spec)
		}
	}
}

// TestKeysFromEnvironment needs no file.
func TestKeysFromEnvironment(t *testing.T) {
	sum, _ := NewChecksumKey()
	id, recipient, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUM", sum)
	t.Setenv("ID", id)
	k := &keyring{recipient: recipient}
	keys, err := ReadKeys([]string{"env:ID"}, []string{"env:SUM"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := undo(t, k.apply(t, "checksum:env:SUM,encrypt:RECIPIENT", []byte("text")), keys)
	if err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestUnreadable looks for plain bytes in an encrypted stream.
func TestUnreadable(t *testing.T) {
	k := newKeyring(t)
	stream := k.apply(t, "encrypt:RECIPIENT,block:1K", make([]byte, 8000))
	if bytes.Contains(stream, make([]byte, 64)) {
		t.Error("plain bytes in the stream")
	}
	if diff := cmp.Diff("encrypt:aes256gcm", mustHeader(t, stream).Chain()); diff != "" {
		t.Error(diff)
	}
}

// failing is a sink that takes some writes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

// TestStickyErrors has a sink that fails: the error stays, whatever is called next.
func TestStickyErrors(t *testing.T) {
	for _, spec := range []string{"none,block:1K", "async:2,zstd,async:1,block:1K"} {
		s, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		w, err := pipe.NewWriter(&failing{3}, s.Layers, &s.Options)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = w.Write(make([]byte, 700))
		}
		for _, next := range []func() error{w.Flush, func() error { _, err := w.Write([]byte("x")); return err },
			w.Close, w.Close} {
			if got := next(); got == nil || got.Error() != "disk full" {
				t.Errorf("%s: %v after %v", spec, got, err)
			}
		}
	}
	if _, err := pipe.NewWriter(&failing{}, nil, nil); err == nil {
		t.Error("the header was not written, and nobody knows")
	}
}

// TestWriteAfterClose is an error.
func TestWriteAfterClose(t *testing.T) {
	var out bytes.Buffer
	w, err := pipe.NewWriter(&out, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := out.Len()
	if _, err := w.Write([]byte("x")); err == nil || out.Len() != n {
		t.Error("written after the end")
	}
}

// TestAbort leaves a stream that is known to be cut off.
func TestAbort(t *testing.T) {
	var out bytes.Buffer
	w, err := pipe.NewWriter(&out, []pipe.Layer{pipe.Async{Blocks: 2}}, &pipe.Options{BlockBytes: 1024})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	_, err = undo(t, out.Bytes(), nil)
	var f *pipe.Fault
	if !errors.As(err, &f) || f.Kind != pipe.Truncated {
		t.Errorf("%v", err)
	}
}

// slow is a sink that waits to be let go.
type slow struct {
	bytes.Buffer
	gate chan struct{}
}

func (s *slow) Write(b []byte) (int, error) {
	<-s.gate
	return s.Buffer.Write(b)
}

// TestBackPressure has a sink that stands still: a writer can go on for the length of
// the queue, and then waits.
func TestBackPressure(t *testing.T) {
	s := &slow{gate: make(chan struct{}, 1)}
	s.gate <- struct{}{} // the header
	w, err := pipe.NewWriter(s, []pipe.Layer{pipe.Async{Blocks: 4}}, &pipe.Options{BlockBytes: 1024, FlushAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan int, 100)
	go func() {
		for i := range 20 {
			if _, err := w.Write(make([]byte, 1024)); err != nil {
				t.Error(err)
			}
			written <- i
		}
		close(written)
	}()
	for range 5 { // these go at least
		<-written
	}
	select {
	case <-time.After(50 * time.Millisecond):
	case n := <-written:
		if n > 7 {
			t.Errorf("block %d was taken: there is no limit", n)
		}
	}
	close(s.gate)
	for range written {
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := undo(t, s.Bytes(), nil)
	if err != nil || len(got) != 20*1024 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestFlush has bytes appear that do not fill a block.
func TestFlush(t *testing.T) {
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		w, err := pipe.NewWriter(out, nil, &pipe.Options{FlushAfter: time.Millisecond})
		if err == nil {
			_, err = w.Write([]byte("soon"))
		}
		done <- err
	}()
	pr, err := pipe.NewReader(r, (*Keys)(nil).Open, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(pr, b); err != nil || string(b) != "soon" {
		t.Errorf("%q, %v", b, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNoAllocations has a long stream take no memory for its blocks.
func TestNoAllocations(t *testing.T) {
	k := newKeyring(t)
	for _, spec := range []string{"none", "zstd:1", "s2", "checksum:@KEY"} {
		s, err := Parse(k.fill(spec) + ",block:64K")
		if err != nil {
			t.Fatal(err)
		}
		s.Options.FlushAfter = -1
		w, err := pipe.NewWriter(io.Discard, s.Layers, &s.Options)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte("some text, and more of it. "), 10000)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(20, func() { _, _ = w.Write(data) }); n > 1 {
			t.Errorf("%s: %v allocations for %d bytes", spec, n, len(data))
		}
		_ = w.Close()
	}
}
