// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/internal/testenv"
)

var samples = map[string]uint64{"testdata/raw.txt": 7, "testdata/named.txt": 6}

func TestRead(t *testing.T) {
	for sample, records := range samples {
		head, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		if !Format.Match(head) {
			t.Errorf("%s is not recognised", sample)
		}
		tape, done := formattest.One(t, &Format, sample)
		formattest.Golden(t, sample+".golden", formattest.Text(t, tape))
		if done.Records != records {
			t.Errorf("%s: %d records, want %d; left out %v", sample, done.Records, records, done.Left)
		}
	}
}

// TestPerf reads what perf itself prints of a program, if this machine has it and lets it record.
func TestPerf(t *testing.T) {
	testenv.Short(t, "it runs perf")
	testenv.NeedProgram(t, "perf")
	dir := t.TempDir()
	data, text := filepath.Join(dir, "perf.data"), filepath.Join(dir, "perf.txt")
	record := exec.Command("perf", "record", "-q", "-o", data, "-e", "raw_syscalls:*", "cat", "/etc/passwd")
	if out, err := record.CombinedOutput(); err != nil {
		t.Skipf("perf cannot record here: %v: %.200s", err, out)
	}
	out, err := exec.Command("perf", "script", "-i", data).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, out, 0o600); err != nil {
		t.Fatal(err)
	}
	tape, done := formattest.One(t, &Format, text)
	printed := formattest.Text(t, tape)
	for _, want := range []string{"openat(AT_FDCWD, ", "write(1", "exit_group(0)"} {
		if !strings.Contains(printed, want) {
			t.Errorf("there is no %s in\n%s", want, printed)
		}
	}
	if enters := strings.Count(string(out), "sys_enter"); done.Records != uint64(enters) {
		t.Errorf("%d calls of %d entries; left out %v", done.Records, enters, done.Left)
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{
		"", "cat 4711 [000] 65186.282701: sched:sched_switch: a\n", "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n",
		"cat 4711 65186.282701: raw_syscalls:sys_enter_read: NR 0 (\n", "cat 4711 [000] 65186.282701: raw_syscalls:sys_enter: x\n",
	} {
		if Format.Match([]byte(text)) {
			t.Errorf("%q is taken for perf script's", text)
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
