// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/stracetext"
)

// unknown are traces whose last call lacks a field, by format and field.
var unknown = []struct {
	format, field string
	text          string
	line          string   // what is printed of the call
	absent        []string // keys of its JSON that are not there, or of its args
	offset, count int64    // of the event; -1: not known
}{
	{"strace", "duration", "1 1700000000.5 read(3, \"ab\", 8) = 2\n",
		`read(3, "ab", 8) = 2`, []string{"exit_ns"}, -1, 8},
	{"strace", "result", "1 1700000000.5 lseek(3, ?, SEEK_SET) = ?\n",
		`lseek(3, ?, SEEK_SET) = ?`, []string{"ret", "offset"}, -1, -1},
	{"dio", "return_timestamp", dioEvent("read", `"return_value":2,"args":{"file_descriptor":3,"bytes_requested":8}`, false),
		`read(3, 0x1 /* 2 bytes, not wanted */, 8) = 2`, []string{"exit_ns"}, -1, 8},
	{"dio", "return_value", dioEvent("fsync", `"args":{"file_descriptor":3}`, true), `fsync(3) = ?`, []string{"ret"}, -1, -1},
	{"dio", "file_descriptor", dioEvent("fsync", `"return_value":0,"args":{}`, true), `fsync(?) = 0`, []string{"fd"}, -1, -1},
	{"dio", "bytes_requested", dioEvent("read", `"return_value":-1,"error_message":"Bad file descriptor","args":{"file_descriptor":3}`, true),
		`read(3, "", ?) = -1 EBADF (Bad file descriptor)`, []string{"count"}, -1, -1},
	{"dio", "offset", dioEvent("pread64", `"return_value":2,"args":{"file_descriptor":3,"bytes_requested":8}`, true),
		`pread64(3, 0x1 /* 2 bytes, not wanted */, 8, ?) = 2`, []string{"offset"}, -1, 8},
	{"dftracer", "dur", dftracerEvent("read", "", `"fd":3,"count":8,"ret":2`),
		`read(3</a>, 0x1 /* 2 bytes, not wanted */, 8) = 2`, []string{"exit_ns"}, -1, 8},
	{"dftracer", "ret", dftracerEvent("read", `"dur":4,`, `"fd":3,"count":8`), `read(3</a>, NULL, 8) = ?`, []string{"ret"}, -1, 8},
	{"dftracer", "count", dftracerEvent("read", `"dur":4,`, `"fd":3`), `read(3</a>, NULL, ?) = ?`, []string{"count"}, -1, -1},
	{"dftracer", "offset and whence", dftracerEvent("lseek", `"dur":4,`, `"fd":3,"ret":5`), `lseek(3</a>, ?, ?) = 5`,
		[]string{"offset", "whence"}, -1, -1},
	{"dftracer", "flags", dftracerEvent("open", `"dur":4,`, `"ret":3`), `open("/a", ?) = 3</a>`, nil, -1, -1},
	{"catlog", "size", `{"type":"RD","timestamp":5,"thread":"7@h","pid":7,"fd":3,"filename":"/a"}` + "\n",
		`read(3</a>, "", ?) = ?`, []string{"count", "ret"}, -1, -1},
	{"auditd", "fifth argument", auditEvent("9", "a0=0 a1=1000 a2=1 a3=2"), `mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, ?, ?) = 0`,
		[]string{"fd", "offset", "exit_ns"}, -1, -1},
	{"procmon", "Duration", "\"Time of Day\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\"\n" +
		"\"1:00:00.0000000 PM\",\"4\",\"ReadFile\",\"C:\\a\",\"SUCCESS\",\"Offset: 0, Length: 8\"\n",
		`pread64(3</C/a>, 0x1 /* 8 bytes, not wanted */, 8, 0) = 8`, []string{"exit_ns"}, 0, 8},
	{"procmon", "Length and Offset", "\"Time of Day\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\",\"Duration\"\n" +
		"\"1:00:00.0000000 PM\",\"4\",\"ReadFile\",\"C:\\a\",\"SUCCESS\",\"\",\"0.001\"\n",
		`pread64(3</C/a>, NULL, ?, ?) = ?`, []string{"count", "offset"}, -1, -1},
	{"fio", "duration", "fio version 3 iolog\n1 /a add\n2 /a open\n3 /a read 0 8\n",
		`pread64(3</a>, 0x1 /* 8 bytes, not wanted */, 8, 0) = 8`, []string{"exit_ns"}, 0, 8},
	{"perf trace", "duration", "     0.100 (         ): cat/7 openat(dfd: CWD, filename: \"/a\", flags: RDONLY) ...\n" +
		"     0.200 ( 0.010 ms): cat/7 close(fd: 3) = 0\n     0.300 (         ): cat/7 fsync(fd: 3) = 0\n",
		`fsync(3) = 0`, []string{"exit_ns"}, -1, -1},
}

func dioEvent(name, rest string, returned bool) string {
	at := ""
	if returned {
		at = `"return_timestamp":1700000000000000001,`
	}
	return `{"system_call_name":"` + name + `","call_timestamp":1700000000000000000,` + at + `"pid":7,"tid":7,` +
		rest + "}\n"
}

func dftracerEvent(name, dur, args string) string {
	return "[\n" + `{"id":1,"name":"` + name + `","cat":"POSIX","pid":7,"tid":7,"ts":1727387308054418,` + dur +
		`"ph":"X","args":{"fname":"/a",` + args + "}}\n"
}

func auditEvent(nr, args string) string {
	return `type=SYSCALL msg=audit(1700000000.500:7): arch=c000003e syscall=` + nr + ` success=yes exit=0 ` + args +
		` items=0 ppid=1 pid=7 uid=0 gid=0 comm="x" exe="/x"` + "\n"
}

// TestUnknown imports traces that do not say a field. It is printed as "?", is absent in JSON, and is part of no sum.
func TestUnknown(t *testing.T) {
	for _, tt := range unknown {
		t.Run(tt.format+"/"+tt.field, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			f, err := all.Identify(in)
			if err != nil || f == nil {
				t.Fatalf("the format is not known: %v", err)
			}
			tape, _ := formattest.One(t, f, path)
			var last event.Event
			for ev, err := range tape.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Kind == event.Call {
					last = *ev.Clone()
				}
			}
			p := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, Hosts: tape.Manifest().Hosts})
			_, line, _ := strings.Cut(string(bytes.TrimSpace(p.Append(nil, &last))), " ")
			if line, _, _ = strings.Cut(line, " <0."); line != tt.line {
				t.Errorf("it is printed as %s, want %s", line, tt.line)
			}
			var fields struct {
				All  map[string]json.RawMessage
				Args map[string]json.RawMessage `json:"args"`
			}
			text := p.AppendJSON(nil, &last)
			if err := json.Unmarshal(text, &fields); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &fields.All); err != nil {
				t.Fatal(err)
			}
			for _, key := range tt.absent {
				if fields.All[key] != nil || fields.Args[key] != nil {
					t.Errorf("its JSON has %s: %s", key, text)
				}
			}
			if last.Offset != tt.offset || last.Count != tt.count {
				t.Errorf("offset %d, count %d; want %d, %d", last.Offset, last.Count, tt.offset, tt.count)
			}
			for _, key := range []string{`"ino"`, `"nlink"`, `"owner"`, `"size"`, `|000"`} {
				if bytes.Contains(text, []byte(key)) {
					t.Errorf("its JSON has %s of a file, which no trace here says: %s", key, text)
				}
			}
			s := report.Collect(tape.Events(), &report.Options{Manifest: tape.Manifest()})
			if slices.Contains(tt.absent, "exit_ns") && s.Quality.Untimed+s.Quality.Interrupted == 0 {
				t.Errorf("the statistics say nothing of calls whose duration is not known: %+v", s.Quality)
			}
		})
	}
}
