// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iotape/iotape/analyze/report"
)

// A Class says which goals a workload has.
type Class string

// Classes. The goal for full content over programs is for their median.
const (
	Database  Class = "database"  // LevelDB, whose cost others have published; also a program
	Program   Class = "program"   // a real program
	Build     Class = "build"     // a program that computes
	Synthetic Class = "synthetic" // does I/O and nothing else, as fast as the storage lets it
	Loop      Class = "loop"      // worst case: nothing but calls, into memory
)

// A Workload is a program with its input.
type Workload struct {
	Name  string // as in --workloads
	Title string // with %s for the size
	Class Class

	size, slowSize int  // for the fast ways and for the slow ones
	stages         bool // also in parts, to see where the time goes
	memory         bool // its files are in memory
	// absent says why it cannot run here; "" if it can.
	absent func(t *tools) string
	// prepare lays the files that every run starts from in dir; nil: none. It is
	// called once, runs get copies.
	prepare func(ctx context.Context, t *tools, dir string, size int) error
	// job returns what to run in dir, which holds such a copy.
	job func(t *tools, dir string, size int) *job
}

// A job is a workload ready to run.
type job struct {
	argv  []string
	env   []string // more of it
	calls int      // that argv makes, if that is all it does; 0: not known
	// service: argv is a server, which is what is recorded. The client is timed.
	service *service
}

// Workloads returns all workloads.
func Workloads() []*Workload {
	return []*Workload{
		dbBench("db_bench-1t-mmap", 1, true, 120_000),
		dbBench("db_bench-1t-pread", 1, false, 120_000),
		dbBench("db_bench-4t-mmap", 4, true, 40_000),
		dbBench("db_bench-4t-pread", 4, false, 40_000),
		fio("fio-psync-direct", "psync", true, 15_000),
		fio("fio-psync-cached", "psync", false, 300_000),
		fio("fio-uring-direct", "io_uring", true, 60_000),
		fio("fio-uring-cached", "io_uring", false, 300_000),
		sqlite("sqlite-journal", "delete"),
		sqlite("sqlite-wal", "wal"),
		postmark,
		makeLua,
		pgbench,
		gitGC,
		loop("writeloop", "a loop of %s writes of 1 byte into memory", 2_000_000, 100_000, 1),
		loop("pwriteloop", "a loop of %s times pwrite and pread of 4 KiB in memory", 150_000, 30_000, 2),
	}
}

func (w *Workload) title(size int) string {
	return strings.ReplaceAll(w.Title, "%s", report.Count(uint64(size)))
}

func needs(programs ...string) func(*tools) string {
	return func(*tools) string { return missing(programs...) }
}

// dbPhases are db_bench's default ones but for crc32c and snappy, at its end, which
// compute and make no call: they would only make every ratio look better.
const dbPhases = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse," +
	"compact,readrandom,readseq,readreverse,fill100K"

func dbBench(name string, threads int, mmap bool, size int) *Workload {
	how, limit := "pread", "0"
	if mmap {
		how, limit = "mmap", "1000"
	}
	unit := "1 thread"
	if threads > 1 {
		unit = fmt.Sprintf("%d threads", threads)
	}
	return &Workload{
		Name: name, Title: fmt.Sprintf("LevelDB db_bench, %s, tables read with %s, %%s entries", unit, how),
		Class: Database, size: size, slowSize: size / 4, stages: threads == 1 && !mmap,
		absent: func(t *tools) string { return missing(filepath.Join(t.bin, "db_bench")) },
		job: func(t *tools, dir string, size int) *job {
			return &job{
				argv: []string{filepath.Join(t.bin, "db_bench"), "--db=" + filepath.Join(dir, "db"),
					"--benchmarks=" + dbPhases,
					"--num=" + strconv.Itoa(size), "--threads=" + strconv.Itoa(threads)},
				env: []string{"LEVELDB_MMAP_LIMIT=" + limit}, // see src/leveldb_mmap.cc
			}
		},
	}
}

const fioFileBytes = 64 << 20

func fio(name, engine string, direct bool, size int) *Workload {
	how, flag := "through the page cache", "--direct=0"
	if direct {
		how, flag = "with O_DIRECT", "--direct=1"
	}
	return &Workload{
		Name: name, Title: fmt.Sprintf("fio, %%s random reads and writes of 4 KiB, %s, %s", engine, how),
		Class: Synthetic, size: size, slowSize: size / 10,
		absent: needs("fio"),
		prepare: func(_ context.Context, _ *tools, dir string, _ int) error {
			// Blocks that hold something: reading a hole is not reading.
			b := make([]byte, fioFileBytes)
			newRandom().fill(b)
			return os.WriteFile(filepath.Join(dir, "file"), b, 0o644)
		},
		job: func(_ *tools, dir string, size int) *job {
			return &job{argv: []string{"fio", "--name=rw", "--filename=" + filepath.Join(dir, "file"),
				"--size=" + strconv.Itoa(fioFileBytes),
				"--rw=randrw", "--bs=4k", "--io_size=" + strconv.Itoa(size*4096), "--ioengine=" + engine, "--iodepth=16", flag,
				"--thread", "--invalidate=0", "--overwrite=1", "--eta=never", "--output-format=terse"}}
		},
	}
}

// postmark runs in memory. On ext4 four fifths of its time would go into the search
// for an inode that was not deleted in the last seconds, a time that depends on
// the runs before and not on the tracer.
var postmark = &Workload{
	Name: "postmark", Title: "PostMark, 500 files in memory, %s transactions",
	Class: Program, size: 50_000, slowSize: 5_000, memory: true,
	absent: needs("postmark"),
	job: func(_ *tools, dir string, size int) *job {
		return &job{argv: []string{"postmark", filepath.Join(dir, "postmark.cfg")}}
	},
	prepare: func(_ context.Context, _ *tools, dir string, size int) error {
		// The names are relative: the directory that prepare fills is copied.
		if err := os.Mkdir(filepath.Join(dir, "mail"), 0o755); err != nil {
			return err
		}
		cfg := fmt.Sprintf("set seed 42\nset number 500\nset transactions %d\nset location mail\nrun\nquit\n", size)
		return os.WriteFile(filepath.Join(dir, "postmark.cfg"), []byte(cfg), 0o644)
	},
}

var makeLua = &Workload{
	Name: "make", Title: "make -j2 of Lua 5.4",
	Class: Build, size: 1, slowSize: 1,
	absent: func(t *tools) string {
		if _, err := os.Stat(filepath.Join(t.bin, "lua.tar.gz")); err != nil {
			return "the sources of Lua are missing (scripts/setup.sh --bench)"
		}
		return missing("make", "gcc")
	},
	prepare: func(ctx context.Context, t *tools, dir string, _ int) error {
		return run(ctx, dir, "tar", "-xf", filepath.Join(t.bin, "lua.tar.gz"),
			"--strip-components=1", "--no-same-owner")
	},
	job: func(_ *tools, dir string, _ int) *job {
		return &job{argv: []string{"make", "-s", "-j2", "-C", filepath.Join(dir, "src"), "generic"}}
	},
}

var gitGC = &Workload{
	Name: "git-gc", Title: "git gc of %s commits in loose objects",
	Class: Program, size: 1_000, slowSize: 100,
	absent: needs("git"),
	prepare: func(ctx context.Context, _ *tools, dir string, size int) error {
		if err := run(ctx, dir, "git", "init", "-q", "-b", "main", "repo"); err != nil {
			return err
		}
		return feed(ctx, dir, commits(size), "git", "-C", "repo", "-c", "fastimport.unpackLimit=1000000000",
			"fast-import", "--quiet")
	},
	job: func(_ *tools, dir string, _ int) *job {
		return &job{argv: []string{"git", "-C", filepath.Join(dir, "repo"), "gc", "--quiet", "--prune=now"}}
	},
}

func loop(name, title string, size, slowSize, callsEach int) *Workload {
	return &Workload{
		Name: name, Title: title,
		Class: Loop, size: size, slowSize: slowSize, stages: true, memory: true,
		absent: needs(),
		job: func(t *tools, dir string, size int) *job {
			return &job{argv: []string{filepath.Join(t.dir, name), filepath.Join(dir, "file"), strconv.Itoa(size)},
				calls: callsEach * size}
		},
	}
}
