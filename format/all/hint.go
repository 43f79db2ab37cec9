// SPDX-License-Identifier: Apache-2.0

package all

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hints say of files that are recognised and not read what makes of them one that is.
var hints = []struct {
	match func(head []byte) bool
	text  string
}{
	{isDarshan, "this is a binary log of Darshan: run darshan-dxt-parser on it, and read what it prints"},
	{begins("\xc1\x1f\xfc\xc1", "\xc1\xfc\x1f\xc1"),
		"this is a stream of CTF (LTTng): run babeltrace2 on its directory, and read what it prints"},
	{begins("/* CTF 1.8"),
		"this is the metadata of CTF (LTTng): run babeltrace2 on its directory, and read what it prints"},
	{begins("PERFILE2"), "this is a binary file of perf: run perf trace -i or perf script -i on it, and read what it prints"},
	{isBlktrace, "this is a binary file of blktrace: run blkparse on it, and read what it prints"},
	{begins("PML_"), "this is a binary log of Process Monitor: save it as CSV there"},
	{isSums, "this is a table of sums (filetop, biotop), which has no calls: trace with opensnoop, fileslower or biosnoop"},
	{isSummary, "this is the table of strace -c, which has no calls: record without -c"},
	{begins("\n Summary of events:"), "this is the table of perf trace -s, " +
		"which has no calls: record without -s, or with -S"},
}

// Hint says of a file's first bytes what can be done with a file that no format matches; "" if
// nothing is known.
func Hint(head []byte) string {
	for i := range hints {
		if hints[i].match(head) {
			return hints[i].text
		}
	}
	return ""
}

// directories are the hints about directories, by a file that they have.
var directories = []struct{ file, text string }{
	{"recorder.mt", "this is a trace of Recorder, whose form changes with its versions and has no results of calls: " +
		"iotape does not read it (recorder2text prints it)"},
	{"metadata", "this is perhaps a trace of CTF (LTTng): run babeltrace2 on it, and read what it prints"},
}

// HintOfDirectory is Hint for a directory that is no tape.
func HintOfDirectory(path string) string {
	for _, d := range directories {
		if st, err := os.Stat(filepath.Join(path, d.file)); err == nil && st.Mode().IsRegular() {
			return d.text
		}
	}
	return ""
}

func begins(marks ...string) func(head []byte) bool {
	return func(head []byte) bool {
		for _, m := range marks {
			if bytes.HasPrefix(head, []byte(m)) {
				return true
			}
		}
		return false
	}
}

// isDarshan looks for the version and the magic number in the head of a log of Darshan 3.
func isDarshan(head []byte) bool {
	const magic = 6567223
	return len(head) >= 16 && head[0] >= '2' && head[0] <= '9' && head[1] == '.' &&
		(binary.LittleEndian.Uint64(head[8:]) == magic || binary.BigEndian.Uint64(head[8:]) == magic)
}

// isBlktrace looks for the magic number of blktrace's events ("eat", and a version below it).
func isBlktrace(head []byte) bool {
	const magic = 0x65617400
	return len(head) >= 48 && (binary.LittleEndian.Uint32(head)&^0xff == magic ||
		binary.BigEndian.Uint32(head)&^0xff == magic)
}

// isSummary reports whether a text begins with the head of a table that strace -c prints.
func isSummary(head []byte) bool {
	line, _, _ := strings.Cut(string(head[:min(len(head), 200)]), "\n")
	f := strings.Fields(line)
	return len(f) > 3 && f[0] == "%" && f[1] == "time" && f[len(f)-1] == "syscall"
}

// isSums reports whether a text has the head of a table of filetop or biotop, of bcc.
func isSums(head []byte) bool {
	for line := range bytes.Lines(head[:min(len(head), 2000)]) {
		f := strings.Fields(string(line))
		if len(f) > 5 && (f[0] == "TID" || f[0] == "PID") && f[1] == "COMM" &&
			(slices.Contains(f, "R_Kb") || slices.Contains(f, "Kbytes")) {
			return true
		}
	}
	return false
}
