// SPDX-License-Identifier: Apache-2.0

package procmon

import (
	"os"
	"testing"

	"github.com/iotape/iotape/format/formattest"
)

const sample = "testdata/app.csv"

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
	if done.Records != 14 || done.Left["operations that are not on files: Reg…"] != 1 ||
		done.Left["operations that are not on files: TCP…"] != 1 ||
		done.Left["operations on files without a like call: LockFile"] != 1 {
		t.Errorf("%d records, left out %v; want 14, and one each of Reg, TCP and LockFile", done.Records, done.Left)
	}
}

func TestTimeOfDay(t *testing.T) {
	for text, want := range map[string]uint64{
		"12:00:00.0000001 AM": 100, "3:38:35.6627776 PM": (15*3600+38*60+35)*1e9 + 662777600, "15:00:01,5": 54001.5e9,
		"12:00:00 PM": 12 * 3600e9,
	} {
		if got, ok := timeOfDay(text); !ok || got != want {
			t.Errorf("%q is read as %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1:2", "25:00:00", "1:2:3.0123456789", "a:b:c", "-1:0:0"} {
		if got, ok := timeOfDay(text); ok {
			t.Errorf("%q is read as %d, want an error", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("" +
		"\xef\xbb\xbf\"Time of Day\",\"PID\",\"Operation\",\"Path\",\"Result\"\n1:0:0,1,CreateFile,C:,\"SUCCESS\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}

// TestDetail reads numbers as countries write them.
func TestDetail(t *testing.T) {
	for _, number := range []string{"12345678", "12,345,678", "12.345.678", "12'345'678", "12 345 678",
		"12\u00a0345\u00a0678", "12\u202f345\u202f678"} {
		n, ok := detail("Offset: "+number+", Length: 5, I/O Flags: Non-cached, Paging I/O", "Offset")
		if n != 12345678 || !ok {
			t.Errorf("an offset of %s is read as %d, %v", number, n, ok)
		}
	}
	if n, ok := detail("Length: x, Priority: Normal", "Length"); ok {
		t.Errorf("a length of x is read as %d", n)
	}
}
