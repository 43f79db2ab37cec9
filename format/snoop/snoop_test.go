// SPDX-License-Identifier: Apache-2.0

package snoop

import (
	"os"
	"testing"

	"github.com/iotape/iotape/format/formattest"
)

var samples = map[string]struct{ records, left uint64 }{
	"testdata/opensnoop.txt":     {3, 0},
	"testdata/opensnoop-bcc.txt": {2, 0},
	"testdata/ext4slower.txt":    {4, 0},
	"testdata/fileslower.txt":    {2, 0},
	"testdata/biosnoop.txt":      {3, 1},
}

func TestRead(t *testing.T) {
	for sample, want := range samples {
		head, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		if !Format.Match(head) {
			t.Errorf("%s is not recognised", sample)
		}
		tape, done := formattest.One(t, &Format, sample)
		formattest.Golden(t, sample+".golden", formattest.Text(t, tape))
		if done.Records != want.records || done.Left[rows] != want.left {
			t.Errorf("%s: %d records, left out %v; want %d, %d",
				sample, done.Records, done.Left, want.records, want.left)
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{
		"", "PID COMM\n1 init\n", "Tracing...\nTID COMM READS WRITES R_Kb W_Kb T FILE\n",
		"TIME(ms)     DISK    COMM             PID    LAT(ms)\n",
	} {
		if Format.Match([]byte(text)) {
			t.Errorf("%q is taken for a table", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	for sample := range samples {
		b, err := os.ReadFile(sample)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}
