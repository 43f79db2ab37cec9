// SPDX-License-Identifier: Apache-2.0

package sysdig

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
	if done.Records != 9 || done.Left[notCalls+"switch"] != 1 || len(done.Left) != 1 {
		t.Errorf("%d records, left out %v; want 9, and one switch", done.Records, done.Left)
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{
		"", "1 12:02:36.2 cat > read\n", "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n",
		"4711 12:02:36.269754 read(3, \"a\", 1) = 1\n", "1 1:2.5 2 cat (4711) > read fd=3\n",
	} {
		if Format.Match([]byte(text)) {
			t.Errorf("%q is taken for sysdig's", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("1 1.5 0 a b (7.8) < openat fd=99999999999(<f>) name= flags=1(|) res=(\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}
