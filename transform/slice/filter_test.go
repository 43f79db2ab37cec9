// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// filters are what is asked of each recording; COMM is the name of the thread that made
// the most calls.
var filters = []string{
	"op = write",
	"class = data and result > 100",
	"failed",
	"op in {read, pread64} and count <= 4KiB",
	"comm = COMM",
	"comm != COMM and class in {data, meta}",
	"latency > 20us and not op = read",
	"op in {stat, newfstatat, fsync, fdatasync} or op = write and offset > 0",
	"not (comm = COMM and errno = 0)",
	"path glob '*.db*' and class = data",
	"uid = 4242 or op = pwrite64",
	"ext in {sst, c, db, txt} and class = data",
	"name endsWith -wal and op in {pread64, pwrite64, fsync, fdatasync}",
	"path glob *.log and latency >= 0s",
}

// someFilters are the filters that are asked of the recording of one program: every third
// of them, others of the next program. With three programs each filter is asked.
func someFilters(program string) (some []string) {
	names := append(slices.Clone(programs), "python-rw")
	first := slices.Index(names, program)
	for i, src := range filters {
		if i%3 == first%3 {
			some = append(some, src)
		}
	}
	return some
}

// withoutRefused copies a tape but for the calls that a recording with a filter leaves
// out, and returns the copy and how many those were.
func withoutRefused(t *testing.T, tp *trace.Tape, g *predicate.Graph) (*trace.Tape, int) {
	t.Helper()
	prefilter := g.Prefilter(MayLeaveOut)
	dir := filepath.Join(t.TempDir(), "less.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	copier := trace.NewCopier(tp, tw)
	left := 0
	var waited delays // of calls left out, which the kernel's account goes on counting
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Call && ev.Flags&(event.Interrupted|event.Compat) == 0 {
			c := &predicate.PrefilterCall{
				PID: ev.PID, TID: ev.TID, PPID: ev.PPID, PGRP: ev.PGID, SID: ev.SID,
				UID: ev.UID, GID: ev.GID, NR: ev.NR,
				Latency: ev.Exit - ev.Enter, Raw: ev.Ret, Args: ev.Args,
			}
			if ev.Errno != 0 {
				c.Raw = -int64(ev.Errno)
			}
			copy(c.Comm[:], ev.Comm)
			if c.Named = len(ev.Files) == 1 && ev.Files[0].Path != ""; c.Named {
				for i, end := range prefilter.Suffixes {
					if strings.HasSuffix(ev.Files[0].Path, end) {
						c.Ends |= 1 << i
					}
				}
			}
			if prefilter.Drops(ev.Op, c) {
				left++
				waited.leftOut(ev)
				continue
			}
		}
		waited.kept(ev)
		if err := errors.Join(copier.Content(ev), tw.Write(ev)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Hosts: tp.Manifest().Hosts}); err != nil {
		t.Fatal(err)
	}
	return open(t, dir), left
}

// commOf returns the name of the thread that made the most calls.
func commOf(t *testing.T, tp *trace.Tape) string {
	counts := map[string]int{}
	best := ""
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if counts[ev.Comm]++; counts[ev.Comm] > counts[best] {
			best = ev.Comm
		}
	}
	return best
}

// What a recording leaves out for its filter makes no difference to the slice.
func TestLeftOutMakesNoDifference(t *testing.T) {
	recorded(t, func(t *testing.T, _ string, tp *trace.Tape) {
		program := filepath.Base(t.Name())
		if program == "sqlite-wal" {
			testenv.Short(t, "slices a large tape by each filter")
		}
		comm := commOf(t, tp)
		total := 0
		for _, src := range someFilters(program) {
			src = strings.ReplaceAll(src, "COMM", predicate.Quote(comm))
			g := filter(t, src)
			if !slices.ContainsFunc(slices.Collect(calls(t, tp)), func(ev *event.Event) bool {
				return g.NewMatcher().Match(ev)
			}) {
				continue
			}
			less, left := withoutRefused(t, tp, g)
			total += left
			whole, _ := sliced(t, tp, &Options{Filter: g})
			part, _ := sliced(t, less, &Options{Filter: g})
			want, got := events(t, whole), events(t, part)
			if len(want) != len(got) {
				t.Errorf("%s: %d events, and %d of the recording that left %d out", src, len(want), len(got), left)
				continue
			}
			for i := range want {
				if err := same(whole, part, want[i], got[i], nil); err != nil {
					t.Errorf("%s: event %d: %v\n%+v\n%+v", src, i, err, want[i], got[i])
					break
				}
			}
		}
		if total == 0 {
			t.Error("no filter left anything out")
		}
	})
}

// calls iterates over copies of a tape's calls.
func calls(t *testing.T, tp *trace.Tape) func(func(*event.Event) bool) {
	return func(yield func(*event.Event) bool) {
		for ev, err := range tp.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == event.Call && !yield(ev.Clone()) {
				return
			}
		}
	}
}

// lines writes what is the same of two runs of a program: of each thread, by its place in
// the tree of processes, the calls with their names, descriptors and results.
func lines(t *testing.T, tp *trace.Tape, work string, without ...event.Op) (all []string) {
	t.Helper()
	names := map[uint32]string{} // of threads
	made := map[uint32]int{}
	name := func(tid uint32) string {
		if names[tid] == "" {
			names[tid] = "root"
		}
		return names[tid]
	}
	byThread := map[string][]string{}
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == event.Forked {
			made[ev.TID]++
			names[ev.Child] = fmt.Sprintf("%s.%d", name(ev.TID), made[ev.TID])
			continue
		}
		if ev.Kind != event.Call || slices.Contains(without, ev.Op) {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s %s", name(ev.TID), ev.Comm, ev.Op)
		if k := ev.Spec().Result; k != event.KindPID && k != event.KindHex {
			fmt.Fprintf(&b, " = %d", ev.Ret)
		}
		fmt.Fprintf(&b, " %v at %d of %d flags %d", ev.Errno, ev.Offset, ev.Count, ev.Flags&event.Synthetic)
		for i := range ev.Files {
			fmt.Fprintf(&b, " %d:%s", ev.Files[i].FD, ev.Files[i].Path)
		}
		for i := range ev.Paths {
			b.WriteString(" " + ev.Paths[i].Abs)
		}
		for i := range ev.Bufs {
			if part, arg := event.SplitPart(int(ev.Bufs[i].Arg)); part == event.PartWhole && arg < len(ev.Spec().Args) {
				if k := ev.Spec().Args[arg].Kind; k == event.KindBuf || k == event.KindVec {
					fmt.Fprintf(&b, " %d bytes", ev.Bufs[i].Len-ev.Bufs[i].Missing)
				}
			}
		}
		if f := ev.Subject(); f != nil && strings.HasPrefix(f.Path, "pipe:") {
			continue // in what pieces bytes come through a pipe is chance
		}
		line := strings.ReplaceAll(b.String(), work, "WORK")
		line = regexp.MustCompile(`\[\d+\]|/proc/\d+|tmp[._-]?\w+`).ReplaceAllString(line, "N")
		byThread[name(ev.TID)] = append(byThread[name(ev.TID)], line)
	}
	for _, list := range byThread {
		all = append(all, list...)
	}
	slices.Sort(all) // threads may be made in another order
	return all
}

// The tape of record --filter is what slice --filter makes of a full recording.
func TestRecordingWithFilter(t *testing.T) {
	testenv.Short(t, "records programs, with both back ends, many times")
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, backend := range []string{"ebpf", "ptrace"} {
		for _, p := range workload.Programs() {
			if !slices.Contains([]string{"failures", "sqlite-wal", "python-rw", "mapped"}, p.Name) ||
				p.Name == "mapped" && backend == "ptrace" {
				continue
			}
			t.Run(backend+"/"+p.Name, func(t *testing.T) {
				if backend == "ebpf" {
					testenv.NeedBPF(t)
				}
				testenv.NeedProgram(t, p.Needs...)
				var without []event.Op
				if backend == "ptrace" { // which looks now and then what was stored: one store or two, that is chance
					without = []event.Op{event.OpMmapPwrite}
				}
				record := func(src string) (*trace.Tape, string) {
					dir := t.TempDir()
					work := filepath.Join(dir, "work")
					run(t, "mkdir", work)
					run(t, p.Command(install, work, workload.Prep)...)
					tape := filepath.Join(dir, "x.tape")
					argv := []string{iotape, "record", "-o", tape, "--no-index", "--backend", backend}
					if src != "" {
						argv = append(argv, "--filter", src)
					}
					run(t, append(append(argv, "--"), p.Command(install, work, workload.Run)...)...)
					return open(t, tape), work
				}
				full, dir := record("")
				again, dir2 := record("")
				compared := 0
				for _, src := range someFilters(p.Name) {
					if strings.Contains(src, "latency >") && !strings.Contains(src, ">=") {
						continue // differs between runs
					}
					src = strings.ReplaceAll(src, "COMM", predicate.Quote(commOf(t, full)))
					g := filter(t, src)
					if !slices.ContainsFunc(slices.Collect(calls(t, full)), func(ev *event.Event) bool {
						return g.NewMatcher().Match(ev)
					}) {
						continue
					}
					whole, _ := sliced(t, full, &Options{Filter: g})
					other, _ := sliced(t, again, &Options{Filter: g})
					want := lines(t, whole, dir, without...)
					if !slices.Equal(want, lines(t, other, dir2, without...)) {
						continue // the program itself does something else each time
					}
					part, dir3 := record(src)
					got := lines(t, part, dir3, without...)
					for i := range max(len(want), len(got)) {
						if i >= len(want) || i >= len(got) || want[i] != got[i] {
							t.Errorf("%s: %d calls, want %d; the first that differs:\n%q\n%q", src, len(got), len(want),
								got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
							break
						}
					}
					if filter := part.Manifest().Hosts[0].Filter; filter == "" {
						t.Errorf("%s: the tape does not say so", src)
					}
					compared++
				}
				t.Logf("%d filters compared", compared)
				if compared == 0 {
					t.Error("no filter could be compared")
				}
			})
		}
	}
}

// namesProgram opens files by names that are not what the kernel knows them by.
const namesProgram = `
import os
def use(f):
    for i in range(5):
        os.pwrite(f, b"x" * 10, i)
    os.lseek(f, 0, 0)
    os.read(f, 3)
    os.fsync(f)
def opened(n):
    f = os.open(n, os.O_RDWR | os.O_CREAT)
    use(f)
    return f
a = opened("a.sst"); os.rename("a.sst", "a.log"); use(a)
b = opened("a.log"); use(os.dup(b)); os.link("a.log", "b.sst"); use(opened("b.sst"))
os.symlink("a.log", "link.sst"); use(opened("link.sst"))
use(os.open("/proc/self/fd/%d" % a, os.O_RDWR))
os.mkdir("d.sst"); use(opened("d.sst/../c.log")); use(opened("d.sst/plain"))
for i in range(50): # addresses of open files are used again
    os.close(opened(("x.sst", "y.log", "z")[i % 3]))
    r, w = os.pipe(); os.write(w, b"p"); os.read(r, 1); os.close(r); os.close(w)
os.dup2(a, 50); use(50); os.dup2(opened("n.log"), 50); use(50)
if os.fork() == 0:
    use(a); use(50); os._exit(0)
os.wait()
use(os.open(".", os.O_TMPFILE | os.O_RDWR))
os.chdir("/proc/self/fd"); use(os.open(str(a), os.O_RDWR))
`

// A name that a file was opened by decides, whatever it is called later or elsewhere.
func TestRecordingByNames(t *testing.T) {
	testenv.Short(t, "records a program six times")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	iotape := testenv.Iotape(t)
	record := func(args ...string) (*trace.Tape, string) {
		work := t.TempDir()
		tape := filepath.Join(t.TempDir(), "x.tape")
		script := fmt.Sprintf("import os; os.chdir(%q)\n%s", work, namesProgram)
		run(t, slices.Concat([]string{iotape, "record", "-o", tape, "--no-index", "--backend", "ebpf"}, args,
			[]string{"--", "python3", "-I", "-c", script})...)
		return open(t, tape), work
	}
	full, dir := record()
	for _, src := range []string{"ext = sst and class = data", "path glob *.log and op = read", "name endsWith n.log",
		"ext in {sst, log} and count = 3", "path endsWith z and op = pwrite64"} {
		whole, _ := sliced(t, full, &Options{Filter: filter(t, src)})
		part, dir2 := record("--filter", src)
		want, got := lines(t, whole, dir), lines(t, part, dir2)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s: %d calls, want %d; the first that differs:\n%q\n%q", src, len(got), len(want),
					got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
				break
			}
		}
	}
}

// Operations that a slice may need are not left out.
func TestMayLeaveOut(t *testing.T) {
	for _, s := range event.Specs() {
		if MayLeaveOut(s.Op) && posix.MayChange(s.Op) {
			t.Errorf("%s changes the state", s.Name)
		}
	}
	for _, op := range []event.Op{event.OpRead, event.OpWrite, event.OpPread64, event.OpStat, event.OpFsync,
		event.OpFutex, event.OpSendto} {
		if !MayLeaveOut(op) {
			t.Errorf("%s may not be left out", op)
		}
	}
	for _, op := range []event.Op{event.OpOpenat, event.OpClose, event.OpExecve, event.OpClone, event.OpLseek,
		event.OpRename, event.OpSendmsg, event.OpChdir, event.OpUringRead, event.OpMmap, event.OpConnect, event.OpUnknown} {
		if MayLeaveOut(op) {
			t.Errorf("%s may be left out", op)
		}
	}
}
