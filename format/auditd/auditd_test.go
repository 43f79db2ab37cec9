// SPDX-License-Identifier: Apache-2.0

package auditd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
)

// TestRead reads a log as it is, what ausearch -i of audit 3.0.9 printed of another one, and lines that other versions
// and locales print.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		path    string
		records uint64
		left    map[string]uint64
	}{
		{"testdata/session.log", 9, map[string]uint64{otherArch: 1, notCalls: 1, setBack: 2}},
		{"testdata/interpreted.log", 15, map[string]uint64{otherArch: 1}},
	} {
		head, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if !Format.Match(head) {
			t.Errorf("%s is not recognised", c.path)
		}
		tape, done := formattest.One(t, &Format, c.path)
		formattest.Golden(t, c.path+".golden", formattest.Text(t, tape))
		if done.Records != c.records {
			t.Errorf("%s: %d records, want %d", c.path, done.Records, c.records)
		}
		for what, want := range c.left {
			if got := done.Left[what]; got != want {
				t.Errorf("%s: %d left out as %q, want %d", c.path, got, what, want)
			}
		}
	}
}

func TestDates(t *testing.T) {
	const want, serial = 1700000000_126_000_000, 15
	for _, text := range []string{
		"11/14/23 22:13:20.126:15", "11/14/2023 22:13:20.126:15", "2023-11-14 22:13:20.126:15", "14/11/23 22:13:20.126:15",
		"14.11.2023 22:13:20.126:15", "2023年11月14日 22:13:20.126:15",
	} {
		if ns, n, ok := parseDate(text); !ok || ns != want || n != serial {
			t.Errorf("%s is read as %d:%d, %v, want %d:%d", text, ns, n, ok, uint64(want), serial)
		}
	}
}

// TestSplitArguments: many arguments of a program are in several records, long ones in parts.
func TestSplitArguments(t *testing.T) {
	const log = `type=SYSCALL msg=audit(5.007:9): arch=c000003e syscall=59 success=yes exit=0 a0=1 a1=2 a2=3 a3=0 pid=7 comm="ls"
type=EXECVE msg=audit(5.007:9): argc=4 a0="ls" a1=2D6C2061 a2_len=8 a2[0]=6162
type=EXECVE msg=audit(5.007:9): a2[1]=6364 a3="last"
`
	path := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, done := formattest.One(t, &Format, path)
	const want = `["ls", "-l a", "abcd", "last"]`
	if got := formattest.Text(t, tape); !strings.Contains(got, want) || len(done.Left) > 0 {
		t.Errorf("read as %s with %v left out, want %s", got, done.Left, want)
	}
}

func TestParseLine(t *testing.T) {
	for _, text := range []string{
		"", "type=", "type=SYSCALL", "type=SYSCALL msg=audit(", "type=SYSCALL msg=audit(1.2)", "type=A msg=audit(x.1:2): a=b",
		"type=A msg=audit(1.1000:2): a=b", "type=SYSCALL msg=audit(08/12/25 12:48:19.093) : a=b",
		"a=b",
	} {
		if r, ok := parseLine(text); ok {
			t.Errorf("%q is read as %+v, want an error", text, r)
		}
	}
	r, ok := parseLine(`<13>Jan 1 h audispd: node=n1 type=PATH msg=audit(5.007:9): item=0 name="a b" x='c d' bare y=1`)
	if !ok || r.node != "n1" || r.kind != "PATH" || r.time != 5_007_000_000 || r.serial != 9 {
		t.Fatalf("read as %+v, %v", r, ok)
	}
	if name, _ := r.text("name"); name != "a b" || r.value("y") != "1" || r.value("item") != "0" {
		t.Errorf("fields are %q", r.fields)
	}
}

func FuzzRead(f *testing.F) {
	sample, err := os.ReadFile("testdata/session.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Add([]byte("node=a type=SYSCALL msg=audit(1.1:1): arch=c00000b7 syscall=56 exit=x a0=z pid=4294967296\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formattest.Read(t, read, b)
	})
}
