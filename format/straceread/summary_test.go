// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
)

// TestSummary imports the calls around summaries as strace -C writes them, with the columns that -U names: all calls
// are there, and no line is one that was not understood.
func TestSummary(t *testing.T) {
	const calls = "7 getpid() = 7\n7 +++ exited with 0 +++\n"
	for name, summary := range map[string]string{
		"default": `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 19.10    0.000737          15        47        19 openat
 18.30    0.000706         141         5           fcntl
------ ----------- ----------- --------- --------- ----------------
100.00    0.003858          17       222        20 total
`,
		"of all": `% time     seconds shortest  longest  usecs/call     calls    errors syscall
------ ----------- -------- -------- ----------- --------- --------- ----------------
 60.00    0.000060 0.000010 0.000050          15         4         1 openat
`,
		"names and calls": "    calls syscall\n--------- ----------------\n        1 rseq\n" +
			"--------- ----------------\n       29 total\n",
		"two architectures": "System call usage summary for 32 bit mode:\n" +
			"% time     seconds  usecs/call     calls    errors syscall\n 0.1 0.1 1 1 read\n",
	} {
		im := format.NewImport(t.TempDir(), "test")
		host, err := im.Host("")
		if err != nil {
			t.Fatal(err)
		}
		if err := Import(strings.NewReader(calls+summary+calls), 0, host, &im.Done); err != nil {
			t.Fatal(err)
		}
		if im.Records != 4 || im.Left[notUnderstood] != 0 {
			t.Errorf("%s: %d records, %d lines not understood; want 4 and none", name, im.Records,
				im.Left[notUnderstood])
		}
	}
}
