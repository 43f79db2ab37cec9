// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden computes all sections of real recordings.
func TestGolden(t *testing.T) {
	for name, dir := range map[string]string{"make": "../../../model/history/testdata/make.tape",
		"job": "../../../store/testdata/job.tape"} {
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		p := collect(t, tape, nil)
		var text, page, object bytes.Buffer
		for _, err := range []error{p.Text(&text), p.HTML(&page, nil), p.JSON(&object)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		var v map[string]any
		if err := json.Unmarshal(object.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		for _, id := range suite.IDs() {
			if id == "stacks" || id == "block" { // of tapes that have some
				continue
			}
			if v[id] == nil {
				t.Errorf("%s: no %s in JSON", name, id)
			}
			if !strings.Contains(page.String(), `<section id="`+id+`">`) {
				t.Errorf("%s: no %s in the page", name, id)
			}
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, text.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text.Bytes(), want) {
			t.Errorf("%s differs: go test -update, and look at the difference", golden)
		}
	}
}

// TestIncomplete: a report of a tape that lacks records begins with that.
func TestIncomplete(t *testing.T) {
	tape, err := trace.Open("../../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	tape.Manifest().Losses = []trace.Loss{{Reason: "the ring was full", Records: 2000}}
	got := collect(t, tape, &suite.Options{Sections: []string{"run"}}).Lines
	want := "the tape is incomplete: 2,000 records lost (the ring was full)"
	if len(got) != 1 || got[0] != want {
		t.Errorf("below the title: %q, want %q", got, want)
	}
}

func collect(t *testing.T, tape *trace.Tape, o *suite.Options) *page.Page {
	t.Helper()
	p, damaged, err := suite.Collect(context.Background(), tape, o)
	if err != nil {
		t.Fatal(err)
	}
	if damaged != 0 {
		t.Errorf("%d damaged parts", damaged)
	}
	return p
}

// section returns the numbers of a section of what a script does, as JSON has them.
func section(t *testing.T, id, lines string) map[string]any {
	t.Helper()
	return sectionWith(t, id, lines, &suite.Options{})
}

func sectionWith(t *testing.T, id, lines string, o *suite.Options) map[string]any {
	t.Helper()
	o.Sections = []string{id}
	dir, name := t.TempDir(), filepath.Join(t.TempDir(), "x.tape")
	if err := os.WriteFile(filepath.Join(dir, "replay"),
		[]byte("iotape-script 1\nhost arch=\"amd64\" first=1000000000\n"+lines), 0o666); err != nil {
		t.Fatal(err)
	}
	tw, err := trace.CreateTape(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := script.Compile(context.Background(), dir, tw, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	p := collect(t, tape, o)
	if len(p.Sections) != 1 {
		t.Fatalf("%d sections", len(p.Sections))
	}
	var b bytes.Buffer
	if err := p.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if list, ok := v[id].([]any); ok {
		return map[string]any{"list": list}
	}
	return v[id].(map[string]any)
}

// at returns a number or text in JSON: names and indices with dots between them.
func at(v any, path string) string {
	for _, name := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := 0
			fmt.Sscan(name, &i)
			if i >= len(x) {
				return "none"
			}
			v = x[i]
		}
	}
	return fmt.Sprint(v)
}

// opens are lines that open /a and /b for reading and writing, each of a process.
const (
	openA = `7 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3</a #1@0 flags=0x8042 mode=0100644 dev=8:1 ino=11 ` +
		`links=1 owner=0:0 size=0>` + "\n"
	openB = `8 openat(AT_FDCWD, "/a", O_RDWR) = 3</a #2@0 flags=0x8002 mode=0100644 dev=8:1 ino=11 links=1 ` +
		`owner=0:0 size=0>` + "\n"
	openA0 = `7 openat(AT_FDCWD, "/a", O_RDWR|O_DSYNC) = 3</a #1@0 flags=0x9002 mode=0100644 dev=8:1 ino=11 links=1 ` +
		`owner=0:0 size=0>` + "\n"
	openC = `7 openat(AT_FDCWD, "/c", O_RDWR|O_CREAT, 0644) = 4</c #4@0 flags=0x8042 mode=0100644 dev=8:1 ino=13 ` +
		`links=1 owner=0:0 size=0>` + "\n"
)

// smallWrites are lines that write two bytes n times; with 2 calls, each is synced.
func smallWrites(n, calls int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "7 write(3</a #1@%d>, \"aa\", 2) = 2\n", 2*i+2)
		if calls > 1 {
			fmt.Fprintf(&b, "7 fsync(3</a #1@%d>) = 0\n", 2*i+2)
		}
	}
	return b.String()
}

// TestDefinitions holds each section against calls of which the answer is plain.
func TestDefinitions(t *testing.T) {
	tests := []struct {
		name, section, lines string
		want                 map[string]string
	}{
		{"consecutive, sequential, random", "access", openA +
			"7 pwrite64(3</a #1@0>, \"aa\", 2, 0) = 2\n" + // the first
			"7 pwrite64(3</a #1@0>, \"aa\", 2, 2) = 2\n" + // consecutive
			"7 pwrite64(3</a #1@0>, \"aa\", 2, 10) = 2\n" + // sequential
			"7 pread64(3</a #1@0>, \"aa\", 2, 0) = 2\n" + // random, and a switch
			"7 pread64(3</a #1@0>, \"aa\", 2, 0) = 2\n", // random
			map[string]string{"all.first": "1", "all.consecutive": "1", "all.sequential": "2", "all.random": "2", "all.switches": "1", "all.unaligned": "5", "strides.1.bytes": "-2", "reread.0.factor": "2"}},
		{"append only", "access", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 write(3</a #1@4>, \"aa\", 2) = 2\n", map[string]string{"files.0.append_only": "true", "files.0.consecutive": "1"}},
		{"sizes", "sizes", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 pread64(3</a #1@2>, \"aa\", 100, 0) = 2\n7 pread64(3</a #1@2>, _, 100, 0) = 100\n7 pread64(3</a #1@2>, _, 2000000, 0) = 1000000\n",
			map[string]string{"writes.0": "1", "reads.0": "1", "reads.1": "1", "reads.4": "0", "reads.5": "1", "common.0.bytes": "2"}},
		{"synced", "durability", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n0.5 0.0 7 fsync(3</a #1@2>) = 0\n", map[string]string{"files.0.syncs": "1", "files.0.unsynced_bytes": "0", "files.0.gap_max_ns": "5e+08", "never_synced": "0"}},
		{"never synced", "durability", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 close(3) = 0\n", map[string]string{"files.0.unsynced_bytes": "2", "never_synced": "1", "directories.0.directory": "/"}},
		{"O_DSYNC", "durability", openA0 + "7 write(3</a #1@2>, \"aa\", 2) = 2\n", map[string]string{"files.0.unsynced_bytes": "0", "unsynced_bytes": "0"}},
		{"removed", "durability", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 unlink(\"/a\") = 0\n", map[string]string{"unsynced_bytes": "0"}},
		{"renamed over before the sync", "durability", openA + openC + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 rename(\"/a\", \"/c\") = 0\n", map[string]string{"warnings.0.name": "/c", "warnings.0.what": "put in the place of another file before its data were synced: after a crash both may be lost"}},
		{"renamed after the sync", "durability", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 fsync(3</a #1@2>) = 0\n7 rename(\"/a\", \"/c\") = 0\n", map[string]string{"warnings": "<nil>"}},
		{"requests while a sync waited", "block", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n" +
			`0.1 0.2 9 block_write(-1</a #0@0 flags=0 mode=0100644 dev=8:1 ino=11 links=1 owner=0:0 size=2>, 0x801, 4096, 4096, 0, SYNC) = 4096` + "\n" +
			`0.15 0.2 9 block_write(-1, 0x801, 8192, 512, 0, META) = 512` + "\n" +
			`0.3 0.1 9 block_flush(-1, 0x801, 0, 0, 0, FLUSH) = 0` + "\n" +
			"0.05 0.5 7 fsync(3</a #1@2>) = 0\n" + `1.0 0.2 7 block_read(-1, 0x801, 0, 512, 0, 0) = 512` + "\n" +
			"0.9 0.4 7 pread64(3</a #1@2>, _, 512, 0) = 512\n",
			map[string]string{"syncs.0.requests": "3", "syncs.0.own_bytes": "4096", "syncs.0.meta_bytes": "512",
				"syncs.0.flushes": "1", "syncs.0.busy_ns": "3e+08", "files.0.written_by.0": "process 7", "reads.waited_calls": "1",
				"devices.0.device": "8:1"}},
		{"read after write, not committed", "conflicts", openA + openB + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n8 pread64(3</a #2@0>, \"aa\", 2, 2) = 2\n",
			map[string]string{"conflicts.0.kind": "read after write", "conflicts.0.bytes": "2", "conflicts.0.not_committed": "1", "conflicts.0.not_in_session": "1"}},
		{"committed", "conflicts", openA + openB + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 fsync(3</a #1@0>) = 0\n8 pread64(3</a #2@0>, \"aa\", 2, 2) = 2\n",
			map[string]string{"conflicts.0.not_committed": "0", "conflicts.0.not_in_session": "1"}},
		{"in session", "conflicts", openA + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 close(3</a #1@0>) = 0\n" + openB + "8 pread64(3</a #2@0>, \"aa\", 2, 2) = 2\n",
			map[string]string{"conflicts.0.not_committed": "0", "conflicts.0.not_in_session": "0"}},
		{"no conflict", "conflicts", openA + openB + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n8 pwrite64(3</a #2@0>, \"aa\", 2, 4) = 2\n7 pread64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n", map[string]string{"files_of_several_processes": "1", "conflicts.0": "none"}},
		{"written twice", "conflicts", openA + openB + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n8 pread64(3</a #2@0>, \"aa\", 2, 0) = 2\n7 pwrite64(3</a #1@0>, \"bb\", 2, 0) = 2\n",
			map[string]string{"conflicts.1.kind": "write after read", "conflicts.1.count": "1"}},
		{"the same bytes again", "redundant", openA + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 pread64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 pread64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n7 pwrite64(3</a #1@0>, \"bbbb\", 4, 0) = 4\n7 pread64(3</a #1@0>, \"bbbb\", 4, 0) = 4\n",
			map[string]string{"all.rewritten_bytes": "4", "all.reread_bytes": "4", "all.written_bytes": "12"}},
		{"small writes", "redundant", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 write(3</a #1@4>, \"aa\", 2) = 2\n7 write(3</a #1@6>, \"aa\", 2) = 2\n7 fsync(3</a #1@6>) = 0\n", map[string]string{"all.small_writes": "2", "all.syncs": "1"}},
		{"a number that is used again", "census", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 close(3</a #1@2>) = 0\n7 unlink(\"/a\") = 0\n" + strings.ReplaceAll(openA, "#1", "#9"),
			map[string]string{"uses.0.files": "2", "removed": "1", "made": "2", "lives.0.written_bytes": "2"}},
		{"written and not read", "census", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n" + openC + "7 write(4</c #4@2>, \"aa\", 2) = 2\n7 pread64(4</c #4@2>, \"aa\", 2, 0) = 2\n", map[string]string{"written_and_never_read": "1", "never_read.0.file": "/a", "uses.2.files": "1", "uses.3.files": "1"}},
		{"searches", "failures", "7 access(\"/x/lib.so\", F_OK) = -1 ENOENT\n7 access(\"/y/lib.so\", F_OK) = -1 ENOENT\n7 access(\"/y/lib.so\", F_OK) = -1 EACCES\n", map[string]string{"errors.ENOENT": "2", "errors.EACCES": "1", "searches.0.name": "lib.so", "searches.0.places": "2"}},
		{"overlap", "overlap", "0.0 0.0 7 getpid() = 7\n1.0 2.0 7 fsync(3) = 0\n", map[string]string{"list.0.io_ns": "2e+09", "list.0.compute_ns": "1e+09", "list.0.unoverlapped_io_ns": "2e+09"}},
		{"overlapped", "overlap", "0.0 0.0 7 getpid() = 7\n0.0 0.0 7 fork 8 process 8 share 0\n0.0 0.0 8 getpid() = 8\n1.0 2.0 7 fsync(3) = 0\n2.5 1.0 8 getpid() = 8\n", map[string]string{"list.0.io_ns": "2e+09", "list.0.compute_ns": "2.5e+09", "list.0.unoverlapped_io_ns": "5e+08"}},
		{"balance", "imbalance", openA + openB + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n", map[string]string{"list.0.gini": "0.5", "list.0.most": "4", "list.0.least": "0"}},
		{"provenance", "processes", openA + "7 pwrite64(3</a #1@0>, \"aaaa\", 4, 0) = 4\n" + openB + "8 pread64(3</a #2@0>, \"aa\", 2, 0) = 2\n", map[string]string{"flows.0.file": "/a", "flows.0.read_bytes": "2", "flows.1": "none"}},
		{"cost", "cost", "0.0 0.0 7 getpid() = 7\n1.0 2.0 7 fsync(3) = 0\n3.0 1.0 7 getpid() = 7\n", map[string]string{"processes.0.sync": "0.5", "processes.0.io": "0.5"}},
		{"calls by file system", "tstat", openA + "7 pwrite64(3</a #1@0>, \"aa\", 2, 0) = 2\n7 stat(\"/b\") = -1 ENOENT\n7 getpid() = 7\n",
			map[string]string{"calls": "4", "failed": "1", "file_systems.0.device": "8:1", "file_systems.0.under": "/", "file_systems.0.calls": "3", "file_systems.0.failed": "1", "file_systems.1.device": "none known", "file_systems.1.calls": "1"}},
		{"users", "users", "7 getuid() = 7\n0.1 0.5 7 getpid() = 7\n", map[string]string{"users.0.uid": "0", "users.0.calls": "2", "users.0.processes": "1", "users.0.took_ns": "5e+08"}},
		{"written whole", "patterns", openA + "7 write(3</a #1@2 size=2>, \"aa\", 2) = 2\n7 write(3</a #1@4 size=4>, \"aa\", 2) = 2\n7 close(3</a #1@4>) = 0\n",
			map[string]string{"uses.write_only.whole.accesses": "1", "uses.write_only.whole.written_bytes": "4", "uses.write_only.all.accesses": "1", "all.accesses": "1"}},
		{"other sequential", "patterns", openA + "7 pwrite64(3</a #1@0 size=12>, \"aa\", 2, 10) = 2\n7 close(3</a #1@0>) = 0\n", map[string]string{"uses.write_only.sequential.accesses": "1"}},
		{"random, still open in the end", "patterns", openA + "7 pwrite64(3</a #1@0 size=12>, \"aa\", 2, 10) = 2\n7 pread64(3</a #1@0 size=12>, \"aa\", 2, 0) = 2\n",
			map[string]string{"uses.read_write.random.accesses": "1", "uses.read_write.random.read_bytes": "2", "uses.read_write.random.written_bytes": "2"}},
		{"opened for nothing", "patterns", openA + "7 close(3</a #1@0>) = 0\n", map[string]string{"unused": "1", "all.accesses": "0"}},
		{"nothing to say", "advice", openA + "7 write(3</a #1@2>, \"aa\", 2) = 2\n", map[string]string{"list.0": "none"}},
		{"many small writes", "advice", openA + smallWrites(120, 1), map[string]string{"list.0.id": "small-writes", "list.0.count": "119", "list.0.where": "/a", "list.1": "none"}},
		{"a sync for each write", "advice", openA + smallWrites(120, 2), map[string]string{"list.0.id": "small-writes", "list.1.id": "small-commits", "list.1.bytes": "2"}},
		{"renamed too early", "advice", openA + openC + "7 write(3</a #1@2>, \"aa\", 2) = 2\n7 rename(\"/a\", \"/c\") = 0\n", map[string]string{"list.0.id": "rename", "list.0.where": "/c"}},
		{"offsets of a file that grows", "access", openA + "7 pread64(3</a #1@0>, _, 4096, 0) = 4096\n7 pread64(3</a #1@0>, _, 4096, 262144) = 4096\n",
			map[string]string{"offsets.0.accesses": "2", "offsets.0.bytes_of_a_row": "16384", "offsets.0.rows.1": "<nil>", "offsets.0.rows.16.0": "4096"}},
		{"bandwidth is spread", "bandwidth", openA + "0.0 1.2 7 pread64(3</a #1@0>, _, 1200, 0) = 1200\n", map[string]string{"read_bytes.0": "10", "read_bytes.119": "10"}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			v := section(t, x.section, x.lines)
			for path, want := range x.want {
				if got := at(v, path); got != want {
					t.Errorf("%s is %s, not %s\n%v", path, got, want, v)
				}
			}
		})
	}
}

// TestSessions has a burst, a gap, more of it, a long pause, and one busy interval.
func TestSessions(t *testing.T) {
	var b strings.Builder
	burst := func(second, calls int) {
		for i := range calls {
			fmt.Fprintf(&b, "%d.%03d 0.0 7 access(\"/a\", F_OK) = -1 ENOENT\n", second, i)
		}
	}
	burst(0, 3)  // low
	burst(1, 1)  // not active
	burst(2, 25) // medium
	burst(9, 2)  // passing
	burst(20, 300)
	burst(21, 2)
	o := suite.SessionOptions{Interval: time.Second, Activity: 2, Gap: 1, Transient: 1}
	v := sectionWith(t, "sessions", b.String(), &suite.Options{Sessions: o})
	for path, want := range map[string]string{
		"passing": "1", "sessions.0.start_ns": "0", "sessions.0.length_ns": "3e+09", "sessions.0.calls": "29", "sessions.0.active": "2", "sessions.0.low": "1", "sessions.0.medium": "1",
		"sessions.0.level": "low", "sessions.1.start_ns": "2e+10", "sessions.1.high": "1", "sessions.1.level": "medium", "sessions.2": "none",
	} {
		if got := at(v, path); got != want {
			t.Errorf("%s is %s, not %s\n%v", path, got, want, v)
		}
	}
}

func TestUnknownSection(t *testing.T) {
	tape, err := trace.Open("../../../store/testdata/job.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if _, _, err := suite.Collect(context.Background(), tape,
		&suite.Options{Sections: []string{"nothing"}}); err == nil || !strings.Contains(err.Error(), "durability") {
		t.Errorf("%v", err)
	}
}

// Beyond its limits, a suite sums up under one name, and goes on.
func TestLimits(t *testing.T) {
	tape, err := trace.Open("../../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	p := collect(t, tape, &suite.Options{MaxFiles: 3, MaxProcesses: 1})
	var b bytes.Buffer
	if err := p.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(other files)", "(others)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestSummary holds the summary of a real recording against the sections that it is of.
func TestSummary(t *testing.T) {
	tape, err := trace.Open("../../../store/testdata/job.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	s, err := suite.Summarise(context.Background(), tape, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := collect(t, tape, nil).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]any{
		"run.calls": s.Calls, "run.errors": s.Failed, "run.read_bytes": s.Read, "run.written_bytes": s.Written, "run.in_calls_ns": s.InCallsNS, "ops.0.count": s.Ops[at(v, "ops.0.op")],
		"ops.0.p99_ns": s.P99NS[at(v, "ops.0.op")], "ops.0.max_ns": s.MaxNS[at(v, "ops.0.op")], "failures.errors.ENOENT": s.Errors["ENOENT"],
		"patterns.uses.read_only.whole.accesses": s.Patterns["read_only_whole"], "patterns.uses.write_only.sequential.accesses": s.Patterns["write_only_sequential"],
		"users.users.0.uid": s.Users[0], "sizes.reads.1": s.ReadSizes[1], "sizes.writes.2": s.WriteSizes[2], "sessions.sessions.0.length_ns": s.ActiveNS, "census.uses.0.files": s.Files,
		"census.made": s.Made, "census.removed": s.Removed, "top.files.bytes.0.name": s.HotFiles[0], "redundant.all.syncs": s.Syncs, "redundant.all.rewritten_bytes": s.Rewritten,
		"durability.unsynced_bytes": s.Unsynced, "durability.never_synced": s.NeverSynced,
	} {
		var want any
		if json.Unmarshal([]byte(fmt.Sprintf("%q", at(v, path))), &want) != nil || fmt.Sprint(want) != compact(got) {
			t.Errorf("%s is %v, the summary says %v", path, want, got)
		}
	}
	if len(s.Commands) < 3 {
		t.Errorf("commands %q", s.Commands)
	}
}

// compact writes a number as at does.
func compact(v any) string {
	b, _ := json.Marshal(v)
	var x any
	_ = json.Unmarshal(b, &x)
	return fmt.Sprint(x)
}
