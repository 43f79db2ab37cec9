// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func events(list ...any) iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		for i, v := range list {
			switch v := v.(type) {
			case event.Event:
				v.Seq = uint64(i)
				if !yield(&v, nil) {
					return
				}
			case error:
				if !yield(nil, v) {
					return
				}
			}
		}
	}
}

func call(op event.Op, pid, tid uint32, took, ret int64, files ...event.File) event.Event {
	return event.Event{Op: op, PID: pid, TID: tid, PPID: 1, Comm: "prog", Enter: 1000, Exit: 1000 + took, Ret: ret,
		Files: files, Offset: -1, Count: -1}
}

func file(arg int8, ino uint64, path string) event.File {
	return event.File{Arg: arg, FD: 3, Known: true, Dev: 1, Ino: ino, Mode: syscall.S_IFREG | 0o644, Path: path}
}

func sample() iter.Seq2[*event.Event, error] {
	open := call(event.OpOpenat, 10, 10, 5000, 3, file(event.ResultArg, 7, "/d/a"))
	open.Paths = []event.Path{{Arg: 1, Raw: "a", Abs: "/d/a"}}
	gone := call(event.OpOpenat, 10, 11, 2000, -1)
	gone.Errno = syscall.ENOENT
	copied := call(event.OpSendfile, 20, 20, 9000, 300, file(0, 8, "/d/b"), file(1, 7, "/d/a"))
	unwanted := call(event.OpWrite, 20, 20, 1500, 100, file(0, 8, "/d/b"))
	unwanted.Bufs = []event.Buf{{Arg: 1, Len: 100, Omitted: true}}
	missing := call(event.OpRead, 10, 10, 1000, 50, file(0, 7, "/d/a"))
	missing.Bufs = []event.Buf{{Arg: 1, Len: 50, Missing: 20}}
	missing.Flags = event.Incomplete
	raw := call(event.OpUnknown, 20, 20, 100, 0)
	raw.NR = 0x1c7
	cut := call(event.OpRead, 20, 20, 100, 0)
	cut.Flags = event.Interrupted
	loss := event.Event{Kind: event.LossMark, Ret: 17, Enter: 1000, Exit: 1000}
	return events(open, gone, missing, copied, errors.New("block 3: checksum differs"), unwanted, raw, cut, loss,
		event.Event{Kind: event.Exited, PID: 20, TID: 20, PPID: 10, Comm: "prog", Enter: 90000, Exit: 90000})
}

func TestCollect(t *testing.T) {
	s := Collect(sample(), &Options{Manifest: &trace.Manifest{
		Hosts: []trace.Host{{Head: trace.Head{Host: "alpha", Kernel: "6.1", Arch: "amd64", Backend: "ebpf",
			Content: "full", Command: []string{"prog", "a\x1bb"}}}},
		Losses:  []trace.Loss{{Reason: "the ring was full", Records: 17}},
		Content: trace.ContentTotals{MovedBytes: 9000, UniqueBytes: 5000, StoredBytes: 3000, Chunks: 2},
	}})
	for _, tt := range []struct {
		name   string
		render func(*bytes.Buffer) error
	}{
		{"stat.txt", func(b *bytes.Buffer) error { return s.Text(b) }},
		{"stat.json", func(b *bytes.Buffer) error { return s.JSON(b) }},
	} {
		var got bytes.Buffer
		if err := tt.render(&got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile("testdata/"+tt.name, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + tt.name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	var back Stat
	b, _ := json.Marshal(s)
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, &back); d != "" {
		t.Errorf("JSON loses something:\n%s", d)
	}
}

func TestLimits(t *testing.T) {
	var list []any
	for i := range 100 {
		list = append(list, call(event.OpWrite, uint32(i+1), uint32(i+1), 10, 1, file(0, uint64(i), "/f")))
	}
	s := Collect(events(list...), &Options{MaxFiles: 10, MaxProcesses: 10, Top: -1})
	if len(s.Files) != 11 || len(s.Processes) != 11 {
		t.Fatalf("%d files and %d processes, want 11 each", len(s.Files), len(s.Processes))
	}
	if f := s.Files[0]; f.Path != otherFiles || f.WrittenBytes != 90 {
		t.Errorf("first file is %+v, want 90 bytes of %s", f, otherFiles)
	}
	if p := s.Processes[0]; p.Comm != otherProcesses || p.Calls != 90 || p.PID != 0 {
		t.Errorf("first process is %+v, want 90 calls of %s", p, otherProcesses)
	}
}

func TestEmpty(t *testing.T) {
	s := Collect(events(), nil)
	if !s.Quality.Perfect() || s.Calls != 0 {
		t.Errorf("%+v", s)
	}
	if err := s.Text(new(bytes.Buffer)); err != nil {
		t.Error(err)
	}
}

// TestLacks: what a tape lacks, in one line.
func TestLacks(t *testing.T) {
	for _, test := range []struct {
		m    trace.Manifest
		want string
	}{
		{trace.Manifest{}, ""},
		{trace.Manifest{Losses: []trace.Loss{{Reason: "the ring was full"}}}, ""},
		{trace.Manifest{Incomplete: true, Reason: "3 records were lost", Losses: []trace.Loss{
			{Reason: "the ring was full", Records: 2}, {Reason: "too many threads", Records: 1}}},
			"2 records lost (the ring was full), 1 record lost (too many threads)"},
		{trace.Manifest{Incomplete: true, Reason: "it was killed"}, "it was killed"},
		{trace.Manifest{Incomplete: true}, "the recording did not end in order"},
	} {
		if got := Lacks(&test.m); got != test.want {
			t.Errorf("Lacks(%+v) = %q, want %q", test.m, got, test.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10 << 20: "10.0 MiB",
		999 << 20: "999 MiB", 1 << 40: "1.00 TiB", math.MaxUint64: "16.0 EiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 1_234_567: "1.23 ms",
		999_700_000: "1.00 s", 3_600_000_000_000: "3,600 s"} {
		if got := Duration(n); got != want {
			t.Errorf("Duration(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestUntimed: calls whose duration is not known count, but for the times.
func TestUntimed(t *testing.T) {
	untimed := call(event.OpFsync, 10, 10, 0, 0)
	untimed.Flags = event.Untimed
	mixed := call(event.OpRead, 10, 10, 0, 0)
	mixed.Flags = event.Untimed
	s := Collect(events(untimed, mixed, call(event.OpRead, 10, 10, 700, 0)), &Options{})
	var text bytes.Buffer
	if err := s.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fsync          1       –      –       ?       ?       ?       ?\n",
		"read           2       –      –  700 ns  700 ns  700 ns  700 ns\n",
		"2 calls whose durations are not known\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got\n%s\nwant a line\n%s", &text, want)
		}
	}
	if got := s.Quality.Untimed; got != 2 {
		t.Errorf("got %d calls without a duration, want 2", got)
	}
}

// A file has one row, under the name that the kernel knows it by, whatever names lead to it.
func TestNamesOfFiles(t *testing.T) {
	byLink, renamed := file(event.ResultArg, 7, "/link/a"), file(0, 7, "/link/a")
	byLink.Real, renamed.Real = "/d/a", "/d/b"
	for _, tt := range []struct {
		name        string
		files       []event.File
		path, given string
	}{
		{"its own name", []event.File{file(0, 7, "/d/a")}, "/d/a", ""},
		{"a link", []event.File{byLink}, "/d/a", "/link/a"},
		{"a link, then its own name", []event.File{byLink, file(0, 7, "/d/a")}, "/d/a", "/link/a"},
		{"renamed", []event.File{byLink, renamed}, "/d/b", "/link/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []any
			for _, f := range tt.files {
				list = append(list, call(event.OpRead, 1, 1, 10, 5, f))
			}
			s := Collect(events(list...), &Options{})
			if len(s.Files) != 1 || s.Files[0].Path != tt.path || s.Files[0].Given != tt.given {
				t.Fatalf("want one file %q given as %q, got %+v", tt.path, tt.given, s.Files)
			}
			var text bytes.Buffer
			if err := s.Text(&text); err != nil {
				t.Fatal(err)
			}
			want := tt.path + "\n"
			if tt.given != "" {
				want = tt.path + " (as " + tt.given + ")\n"
			}
			if !strings.Contains(text.String(), want) {
				t.Errorf("want a line that ends with %q, got\n%s", want, text.String())
			}
		})
	}
}
