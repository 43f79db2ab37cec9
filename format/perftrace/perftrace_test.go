// SPDX-License-Identifier: Apache-2.0

package perftrace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
)

const sample = "testdata/cat.txt"

func TestRead(t *testing.T) {
	head, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	if !Format.Match(head) {
		t.Error("the sample is not recognised")
	}
	tape, done := formattest.One(t, &Format, sample)
	formattest.Golden(t, sample+".golden", formattest.Text(t, tape))
	if done.Records != 12 || done.Left["calls of nonesuch, which is not known"] != 1 || len(done.Left) != 1 {
		t.Errorf("%d records, left out %v; want 12, and one call that is not known", done.Records, done.Left)
	}
}

// TestLost: lines about lost events are losses of the tape.
func TestLost(t *testing.T) {
	const text = "6.188 ( 0.012 ms): dd/27737 close(fd: 1) = 0\n\x1b[31mLOST 44 events!\n" +
		"\x1b[m6.288 ( 0.014 ms): dd/27737 close(fd: 2) = 0\nLOST 3 events!\n"
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, done := formattest.One(t, &Format, path)
	got := uint64(0)
	for _, l := range tape.Manifest().Losses {
		got += l.Records
	}
	if got != 47 || done.Records != 2 || len(done.Left) > 0 {
		t.Errorf("%d events are lost, of %d records, %v left out; want 47, 2 and nothing", got, done.Records, done.Left)
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{
		"", "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n", "1700000000.123456 close(3) = 0\n", "0.100 close(3) = 0\n",
		"4711 0.000100 read(3, \"a\", 1) = 1\n", "% time     seconds  usecs/call     calls    errors syscall\n",
	} {
		if Format.Match([]byte(text)) {
			t.Errorf("%q is taken for perf trace's", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("0.000 ( 0.001 ms): a/1 read(fd: 3<, buf: {[}, count: \"x) = -9223372036854775808\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}

// TestNames reads names without their prefix or suffix; one that is not known is unknown, and not 0.
func TestNames(t *testing.T) {
	const text = `     0.033 ( 0.008 ms): cat/1234 access(filename: "/a", mode: R|W) = 0
     0.043 ( 0.008 ms): cat/1234 openat(dfd: CWD, filename: "/a", flags: RDONLY|NEWFLAG) = 3
     0.053 ( 0.002 ms): cat/1234 close(fd: 3) = 0
`
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, done := formattest.One(t, &Format, path)
	got := formattest.Text(t, tape)
	for _, want := range []string{`access("/a", W_OK|R_OK) = 0`, `openat(AT_FDCWD, "/a", ?) = 3`} {
		if !strings.Contains(got, want) {
			t.Errorf("read as\n%swant %s", got, want)
		}
	}
	if done.Left[words] != 1 {
		t.Errorf("left out %v, want one word", done.Left)
	}
}
