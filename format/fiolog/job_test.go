// SPDX-License-Identifier: Apache-2.0

package fiolog_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/fiolog"
	"github.com/iotape/iotape/internal/testenv"
)

const jobLog = `fio version 3 iolog
1 /data/a add
1 /data/a open
20 /data/a write 0 65536
30 /data/a write 65536 65536
40 /data/a sync 0 0
60 /data/a read 4096 4096
90 /data/a read 100000 512
100 /data/a read 20000 4096
110 /data/a read 24096 4096
200 /data/a close
`

// TestJob writes a job file of a log, and lets fio check it.
func TestJob(t *testing.T) {
	var out bytes.Buffer
	if _, err := fiolog.ExportJob(&out, openLog(t, jobLog)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rw=randrw\n", "percentage_random=75,0\n", "rwmixread=67\n",
		"bssplit=4096/75:512/25,65536/100\n", "filesize=131072\n", "number_ios=6\n", "io_size=143872\n", "end_fsync=1\n",
		"ioengine=psync\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %sin\n%s", want, &out)
		}
	}
	testenv.NeedProgram(t, "fio")
	dir := t.TempDir()
	job := filepath.Join(dir, "x.fiojob")
	if err := os.WriteFile(job, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), "fio", "--directory="+dir, job).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestJobOfNothing: a tape without reads and writes makes no job.
func TestJobOfNothing(t *testing.T) {
	const empty = "fio version 3 iolog\n1 /data/a add\n1 /data/a open\n2 /data/a close\n"
	if _, err := fiolog.ExportJob(&bytes.Buffer{}, openLog(t, empty)); err == nil {
		t.Error("no error")
	}
}
