// SPDX-License-Identifier: Apache-2.0

package perftrace

import (
	"os"
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
