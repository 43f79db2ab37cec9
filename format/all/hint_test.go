// SPDX-License-Identifier: Apache-2.0

package all

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHints(t *testing.T) {
	tests := []struct{ name, head, want string }{
		{"Darshan", "3.41\x00\x00\x00\x00\x37\x35\x64\x00\x00\x00\x00\x00", "darshan-dxt-parser"},
		{"perf", "PERFILE2\x68\x00\x00\x00", "perf trace"},
		{"CTF", "\xc1\x1f\xfc\xc1\x00\x00", "babeltrace2"},
		{"blktrace", "\x07\x74\x61\x65" + strings.Repeat("\x00", 44), "blkparse"},
		{"Process Monitor", "PML_\x09\x00\x00\x00", "CSV"},
		{"strace -c", "% time     seconds  usecs/call     calls    errors syscall\n------ ----\n", "without -c"},
		{"filetop", "12:00:01 loadavg: 0.10\n\nTID    COMM             READS  WRITES R_Kb    W_Kb    T FILE\n", "biosnoop"},
		{"perf trace -s", "\n Summary of events:\n\n ls (16684), 288 events, 97.3%\n", "with -S"},
		{"a text", "% time flies\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Hint([]byte(tt.head)); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("the hint is %q, want one with %q", got, tt.want)
			}
			path := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(path, []byte(tt.head), 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			_, _, err = Read(t.Context(), in, nil, t.TempDir(), "test")
			if !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("read: %v, want ErrUnknownFormat and %q", err, tt.want)
			}
		})
	}
}

func TestHintOfDirectory(t *testing.T) {
	for file, want := range map[string]string{"recorder.mt": "recorder2text", "metadata": "babeltrace2", "other": ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := HintOfDirectory(dir); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("the hint for a directory with %s is %q, want one with %q", file, got, want)
		}
	}
}
