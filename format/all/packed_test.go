// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/internal/testenv"
)

// packers compress a text in each way that is read.
var packers = map[string]func(w io.Writer) (io.WriteCloser, error){
	".gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	".zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	".xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
}

func pack(t *testing.T, suffix string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := packers[suffix](&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readBytes reads a foreign file with some content.
func readBytes(t *testing.T, name string, b []byte) (*format.Done, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, done, err := all.Read(t.Context(), in, nil, t.TempDir(), "test")
	return done, err
}

// TestPacked reads text formats that are compressed, whatever the file is called.
func TestPacked(t *testing.T) {
	texts := map[string]string{
		"strace": strings.Repeat("1 1700000000.000001 getpid() = 1 <0.000001>\n", 50_000),
	}
	for _, sample := range []string{"two-hosts.dxt", "v3.fio", "sample.blkparse", "old.pfw"} {
		b, err := os.ReadFile("testdata/" + sample)
		if err != nil {
			t.Fatal(err)
		}
		texts[sample] = string(b)
	}
	others, err := filepath.Glob("../*/testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range others {
		if fi, err := os.Stat(path); err != nil || fi.IsDir() || fi.Size() > 64<<10 ||
			strings.HasSuffix(path, ".golden") || strings.HasSuffix(path, ".ds") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readBytes(t, filepath.Base(path), b); err == nil { // it is of a format that is read
			texts[filepath.Base(path)] = string(b)
		}
	}
	if len(texts) < 20 {
		t.Fatalf("%d texts, want those of all formats", len(texts))
	}
	for name, text := range texts {
		want, err := readBytes(t, "plain", []byte(text))
		if err != nil {
			t.Fatal(name, err)
		}
		for suffix := range packers {
			for _, called := range []string{name + suffix, "x"} {
				got, err := readBytes(t, called, pack(t, suffix, []byte(text)))
				if err != nil || got.Records != want.Records {
					t.Errorf("%s with %s, called %s: %+v, %v; want %d records",
						name, suffix, called, got, err, want.Records)
				}
			}
		}
	}
}

// TestPackedAndCut reads what is there of compressed files that are cut off.
func TestPackedAndCut(t *testing.T) {
	testenv.Short(t, "it reads every sample many times")
	var text []byte
	for i := range 200_000 { // of several blocks
		text = fmt.Appendf(text, "1 1700000000.%06d getpid() = %d\n", i, i*7919%100003)
	}
	for suffix := range packers {
		b := pack(t, suffix, text)
		done, err := readBytes(t, "x.strace"+suffix, b[:len(b)*3/4])
		if err != nil || done.Records < 1000 || done.Records >= 200_000 ||
			done.Left["the rest of a compressed file that is cut off"] != 1 {
			t.Errorf("%s: %+v, %v; want some of the records, and that the rest is left out", suffix, done, err)
		}
	}
}

// TestPackedBomb does not fill the disk with a file that is no trace.
func TestPackedBomb(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("1 1700000000.000001 getpid() = 1 <0.000001>\n", 25_000))
	for range 100 {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := readBytes(t, "x.zst", b.Bytes()); err == nil || !strings.Contains(err.Error(), "expands") {
		t.Errorf("%d bytes that become 110 MB: %v; want that they expand too much", b.Len(), err)
	}
}

// TestPipe reads what comes through a pipe.
func TestPipe(t *testing.T) {
	text, err := os.ReadFile("testdata/v3.fio")
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		w.Write(text) //nolint:errcheck // the reader sees it
		w.Close()
	}()
	stdin := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = stdin }()
	in, err := all.Open(t.Context(), all.StandardInput, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes of the standard input, %v; want %d", len(got), err, len(text))
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	_, done, err := all.Read(t.Context(), in, nil, t.TempDir(), "test")
	if err != nil || done.Records == 0 {
		t.Errorf("read %+v, %v", done, err)
	}
}

// TestEncodings reads text as programs of Windows write it: with a byte order mark.
func TestEncodings(t *testing.T) {
	const trace = "open(\"/\u00e4\U0001f600\", O_RDONLY) = 3\nclose(3) = 0\n"
	units := utf16.Encode([]rune("\ufeff" + trace))
	little, big := []byte{}, []byte{}
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, text := range map[string][]byte{
		"UTF-8": []byte("\ufeff" + trace), "UTF-16 little": little, "UTF-16 big": big,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.strace")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		tape, err := open.Any(t.Context(), path)
		if err != nil {
			t.Fatal(name, err)
		}
		const want = `1 open("/\303\244\360\237\230\200", O_RDONLY) = 3</\xc3\xa4\xf0\x9f\x98\x80>` + "\n" +
			`1 close(3</\xc3\xa4\xf0\x9f\x98\x80>) = 0` + "\n"
		if got := formattest.Text(t, tape); got != want {
			t.Errorf("%s is read as\n%swant\n%s", name, got, want)
		}
		tape.Close()
	}
	_, err := readBytes(t, "x.strace", []byte("\xff\xfe\x61"))
	if err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("half a character: error %v, want one about UTF-16", err)
	}
}
