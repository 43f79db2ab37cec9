// SPDX-License-Identifier: Apache-2.0

package sysdig

import (
	"os"
	"path/filepath"
	"slices"
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
	if done.Records != 9 || done.Left[notCalls+"switch"] != 1 || len(done.Left) != 1 {
		t.Errorf("%d records, left out %v; want 9, and one switch", done.Records, done.Left)
	}
}

// TestPositions: positions follow from the calls before, also in a child; not once there are threads, whose processes
// the lines do not say.
func TestPositions(t *testing.T) {
	const text = `1 12:00:00.000000001 0 sh (10) > openat
2 12:00:00.000000002 0 sh (10) < openat fd=3(<f>/etc/a) dirfd=-100(AT_FDCWD) name=/etc/a flags=1(O_RDONLY) mode=0
3 12:00:00.000000003 0 sh (10) > read fd=3(<f>/etc/a) size=4
4 12:00:00.000000004 0 sh (10) < read res=4 data=abcd
5 12:00:00.000000005 0 sh (10) > clone
6 12:00:00.000000006 0 sh (11) < clone res=0 exe=sh tid=11(sh) pid=11(sh) ptid=10(sh) flags=0
7 12:00:00.000000007 0 sh (11) > read fd=3(<f>/etc/a) size=4
8 12:00:00.000000008 0 sh (11) < read res=4 data=abcd
9 12:00:00.000000009 0 sh (10) < clone res=11(sh) exe=sh tid=10(sh) pid=10(sh) ptid=1(init) flags=0
10 12:00:00.000000010 0 sh (10) > read fd=3(<f>/etc/a) size=4
11 12:00:00.000000011 0 sh (10) < read res=4 data=abcd
12 12:00:00.000000012 0 sh (10) > clone
13 12:00:00.000000013 0 sh (10) < clone res=12(sh) exe=sh tid=10(sh) pid=10(sh) ptid=1(init) flags=1(CLONE_FILES|CLONE_THREAD)
14 12:00:00.000000014 0 sh (10) > read fd=3(<f>/etc/a) size=4
15 12:00:00.000000015 0 sh (10) < read res=4 data=abcd
`
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, _ := formattest.One(t, &Format, path)
	var got []string
	for _, line := range formattest.Describe(t, tape) {
		if _, call, _ := strings.Cut(line, " sh "); strings.HasPrefix(call, "read") {
			got = append(got, call)
		}
	}
	const read = "read 0:fd3=/etc/a 1:4 "
	if want := []string{read + "@0 = 4", read + "@4 = 4", read + "@8 = 4", read + "= 4"}; !slices.Equal(got, want) {
		t.Errorf("read as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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
