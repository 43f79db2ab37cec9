// SPDX-License-Identifier: Apache-2.0

package fsusage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
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

// TestNarrow reads what fs_usage prints without -w: no fractions of seconds, or ms.
func TestNarrow(t *testing.T) {
	const text = `10:56:22  open              /Volumes/4 TB Utility                                        0.000009   Spotlight   
10:56:22  stat64            /Volumes/4 TB Utility//Applications                          0.000030   mds
10:56:22.382  open              /Users/u/.git/HEAD          0.000024   git.6890353
`
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Format.Match([]byte(text)) {
		t.Error("the text is not recognised")
	}
	tape, done := formattest.One(t, &Format, path)
	var ends []int64
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call {
			ends = append(ends, ev.Exit)
		}
	}
	if done.Records != 3 || len(ends) != 3 || ends[1]-ends[0] != 1000 || ends[2]-ends[0] != 382e6 {
		t.Errorf("%d records that end at %v, want 3, the second 1 µs and the third 382 ms behind the first",
			done.Records, ends)
	}
}
