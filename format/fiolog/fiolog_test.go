// SPDX-License-Identifier: Apache-2.0

package fiolog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/fiolog"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// openLog opens a log as a tape.
func openLog(t *testing.T, log string) *trace.Tape {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.fio")
	if err := os.WriteFile(path, []byte(log), 0o666); err != nil {
		t.Fatal(err)
	}
	tape, err := open.Any(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

const log = `fio version 3 iolog
1 /data/a add
1 /data/a open
20 /data/a write 0 65536
21 /data/b add
21 /data/b open
30 /data/b write 0 10
31 /data/a read 100 4000
40 /data/b sync 0 0
41 /data/b datasync 0 0
50 /data/a trim 4096 4096
2000000 /data/b close
2000001 /data/b open
2000002 /data/b read 3 5
2000003 /data/b close
2000004 /data/a close
`

func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	done, err := fiolog.Export(&out, openLog(t, log))
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != log {
		t.Errorf("it became:\n%s", &out)
	}
	if n := uint64(strings.Count(log, "\n") - 1); done.Records != n || len(done.Left) != 0 {
		t.Errorf("%d records, not %d; left out: %v", done.Records, n, done.Left)
	}
}

// TestFio lets fio replay an export.
func TestFio(t *testing.T) {
	testenv.NeedProgram(t, "fio")
	dir := t.TempDir()
	var out bytes.Buffer
	// Trims are not for fio 3.33, which says of each that it does not know them.
	text := strings.ReplaceAll(strings.Replace(log, "50 /data/a trim 4096 4096\n", "", 1), "/data/", dir+"/")
	if _, err := fiolog.Export(&out, openLog(t, text)); err != nil {
		t.Fatal(err)
	}
	iolog := filepath.Join(dir, "iolog")
	if err := os.WriteFile(iolog, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("fio", "--read_iolog="+iolog, "--replay_no_stall=1", "--name=x", "--output-format=json")
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	answer, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("fio: %v: %s%s", err, answer, &complaints)
	}
	type moved struct {
		Bytes int64 `json:"io_bytes"`
		IOs   int64 `json:"total_ios"`
	}
	var report struct {
		Jobs []struct {
			Error             int
			Read, Write, Sync moved
		}
	}
	if err := json.Unmarshal(answer, &report); err != nil || len(report.Jobs) != 1 {
		t.Fatalf("fio's report: %v: %s", err, answer)
	}
	j := report.Jobs[0]
	// datasync is not counted
	if j.Error != 0 || j.Read != (moved{4005, 2}) || j.Write != (moved{65546, 2}) || j.Sync.IOs == 0 {
		t.Errorf("fio did %+v", j)
	}
	if st, err := os.Stat(filepath.Join(dir, "a")); err != nil || st.Size() != 65536 {
		t.Error("fio's file:", st, err)
	}
}

func TestLeftOut(t *testing.T) {
	long := "/" + strings.Repeat("x", 300)
	tape := openLog(t, fmt.Sprintf("fio version 2 iolog\n/proc/x open\n/proc/x read 0 9\n%s open\n%s write 0 "+
		"9\n/ok open\n/ok read 0 0\n", long, long))
	var out bytes.Buffer
	done, err := fiolog.Export(&out, tape)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(done.Left); out.String() != "fio version 3 iolog\n" ||
		!strings.Contains(got, "reads of /proc and /sys:1") ||
		!strings.Contains(got, "names fio cannot read:1") || !strings.Contains(got, "reads and writes of nothing") {
		t.Errorf("%s\n%s", got, &out)
	}
}

// TestHugeHole: a hole that is as large as a number is not billions of lines.
func TestHugeHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.strace")
	text := "open(\"/a\", O_RDWR) = 3\n" +
		"fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 9223372036854775807) = 0\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, err := open.Any(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var out bytes.Buffer
	done, err := fiolog.Export(&out, tape)
	if err != nil || done.Left["trims of more than 1 TiB at once"] != 1 || strings.Contains(out.String(), "trim") {
		t.Errorf("%v, %v:\n%.1000s", err, done, &out)
	}
}

func TestNoLog(t *testing.T) {
	for _, text := range []string{"", "fio version 1 iolog\n", "\n", "hello"} {
		im := format.NewImport(t.TempDir(), "test")
		if err := fiolog.Import(context.Background(), strings.NewReader(text), im); text != "" &&
			(err == nil || !strings.Contains(err.Error(), "line 1")) {
			t.Errorf("%q: %v", text, err)
		}
		if streams, _ := im.Close(); len(streams) != 0 {
			t.Errorf("%q has events", text)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(log))
	f.Add([]byte("fio version 2 iolog\na add\na open\na write 0 4096\na wait 100 0\na trim 0 1\na sync 0 0\na close\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		im := format.NewImport(t.TempDir(), "fuzz")
		err := fiolog.Import(context.Background(), bytes.NewReader(b), im)
		streams, closeErr := im.Close()
		if closeErr != nil {
			t.Fatal(closeErr)
		}
		if err == nil && im.Records > 0 && len(streams) != 1 {
			t.Errorf("%d records, %d streams", im.Records, len(streams))
		}
	})
}
