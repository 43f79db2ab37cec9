// SPDX-License-Identifier: Apache-2.0

package fsusage

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
	if done.Records != 8 || done.Left[others+"RdData[A]"] != 1 || len(done.Left) != 1 {
		t.Errorf("%d records, left out %v; want 8, and one of the disk", done.Records, done.Left)
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{
		"", "12:00:00.128367 close(3) = 0 <0.000004>\n", "1 12:02:36.269753803 2 cat (4711) > read fd=3 size=4096\n",
		"12:00:00 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n",
	} {
		if Format.Match([]byte(text)) {
			t.Errorf("%q is taken for fs_usage's", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}
