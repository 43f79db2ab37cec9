// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// hostilePatience is how long a hostile tape of few events may take: far more than it
// should, so that only one that hangs does not make it.
const hostilePatience = 5 * time.Minute

// canary is a directory outside the target.
type canary struct {
	t           *testing.T
	dir, victim string
	before      unix.Stat_t
	beforeDir   unix.Stat_t
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{t: t, dir: t.TempDir()}
	c.victim = filepath.Join(c.dir, "victim")
	if err := os.WriteFile(c.victim, []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	// With relatime, a read moves an access time that is before the last change.
	if err := os.Chtimes(c.victim, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(c.victim, &c.before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(c.dir, &c.beforeDir); err != nil {
		t.Fatal(err)
	}
	return c
}

// check fails the test if anything outside was changed or read.
func (c *canary) check() {
	c.t.Helper()
	entries, err := os.ReadDir(c.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "victim" {
		c.t.Errorf("outside are %v, %v", entries, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(c.victim, &st); err != nil || st != c.before {
		c.t.Errorf("the victim was touched: %+v, was %+v (%v)", st, c.before, err)
	}
	if err := unix.Stat(c.dir, &st); err != nil || st.Ctim != c.beforeDir.Ctim || st.Mode != c.beforeDir.Mode {
		c.t.Errorf("the directory outside was touched (%v)", err)
	}
}

// hostile replays a tape in every order, and fails if the replay hangs or ends other
// than by itself. It returns the last report, which is nil after an error.
func hostile(t *testing.T, tape *trace.Tape, c *canary, more func(*Options)) (rep *Report, into string) {
	t.Helper()
	for _, mode := range []order.Mode{order.Recorded, order.Overlap, order.Resource} {
		into = t.TempDir()
		o := &Options{Into: into, Checks: CheckAll, Order: mode}
		if more != nil {
			more(o)
		}
		ctx, cancel := context.WithTimeout(t.Context(), hostilePatience)
		var err error
		rep, err = Run(ctx, tape, o)
		cancel()
		if err != nil {
			if ctx.Err() == context.DeadlineExceeded {
				t.Errorf("%v: the replay hangs", mode)
			}
			if strings.Contains(err.Error(), "ended without a report") {
				t.Errorf("%v: the replay ended by itself: %v", mode, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: more than one line: %v", mode, err)
			}
			t.Logf("%v: %v", mode, err)
			rep = nil
		}
		c.check()
	}
	if _, err := DryRun(t.Context(), tape, &Options{}); err != nil {
		t.Logf("dry run: %v", err)
	}
	return rep, into
}

var up = strings.Repeat("../", 40)

func out(n int64) event.Buf {
	return event.Buf{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: n}
}

// What a tape says of how much a call was given is no reason to read on behind it: the
// replay's own memory would get into files.
func TestHostileCountsDoNotLeakMemory(t *testing.T) {
	const asked = 64 << 10
	s := tapescript.New(t)
	s.Open(3, "vector", event.OpenCreat|2)
	long, text := make([]int64, 1000), strings.Repeat("secret", 1000)
	for i := range long {
		long[i] = 6
	}
	s.On(event.OpPwritev, 3, 6000, 0, [6]uint64{0, 0x1000, 1000, 10},
		event.Buf{Arg: 1, Kind: event.KindVec, Len: 6000, Parts: long, Inline: []byte(text)})
	s.On(event.OpFtruncate, 3, 0, 0, [6]uint64{})
	s.On(event.OpPwritev, 3, 3, 0, [6]uint64{0, 0x1000, 1000},
		event.Buf{Arg: 1, Kind: event.KindVec, Len: 3, Parts: []int64{3}, Inline: []byte("xyz")})
	s.Open(4, "failed", event.OpenCreat|2)
	s.On(event.OpPwrite64, 4, -1, syscall.EINVAL, [6]uint64{0, 0x1000, asked})
	into := t.TempDir()
	if _, err := Run(t.Context(), s.Close(), &Options{Into: into, Checks: CheckAll}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(into, "work/vector")); string(b) != "xyz" {
		t.Errorf("%d bytes were written of 3: %.40q, %v", len(b), b, err)
	}
	b, err := os.ReadFile(filepath.Join(into, "work/failed"))
	if err != nil || len(bytes.Trim(b, "\x00")) > 0 {
		t.Errorf("what nobody has was written: %.40q, %v", bytes.Trim(b, "\x00"), err)
	}
}

// hostileTape is a tape that tries to get out of the target, or to stop the replay.
type hostileTape struct {
	name string
	make func(s *tapescript.Script, c *canary)
	more func(*Options) // nil: nothing
}

// length is n as a buffer's length, which a tape can have.
func length(n uint64) int64 { return int64(min(n, event.MaxBytes)) }

var hostileTapes = []hostileTape{
	{name: "names through open directories", make: func(s *tapescript.Script, c *canary) {
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/d")
		s.Open(9, "/work/f", event.OpenCreat|2)
		s.Opened(7, "/work/d", tapescript.IsDir, 0o200000)
		for _, through := range []string{"/proc/self/fd/7/", "/proc/thread-self/fd/7/", "/dev/fd/7/",
			"/proc/1/fd/7/", "/proc/self/fd/9/", "/proc/self/fd/", "/proc/self/root/", "/proc/self/cwd/"} {
			p := through + up + c.victim[1:]
			s.Opened(20, p, tapescript.IsFile, event.OpenCreat|event.OpenTrunc|1)
			s.Call(event.OpUnlink, 0, 0, [6]uint64{}, p)
			s.Call(event.OpTruncate, 0, 0, [6]uint64{0, 0}, p)
			s.Call(event.OpRename, 0, 0, [6]uint64{}, p, "/work/got")
			s.Call(event.OpLink, 0, 0, [6]uint64{}, p, "/work/got")
			// The other name is relative to where the first one made the replay go.
			s.Call(event.OpRename, 0, 0, [6]uint64{}, through+"x", up+c.victim[1:])
			s.Call(event.OpRename, 0, 0, [6]uint64{}, up+c.victim[1:], through+"stolen")
			s.Call(event.OpLink, 0, 0, [6]uint64{}, up+c.victim[1:], through+"linked")
			s.Call(event.OpLink, 0, 0, [6]uint64{}, through+"x", up+c.dir[1:]+"/linked")
			s.Call(event.OpSymlink, 0, 0, [6]uint64{}, through+"link")
			s.Call(event.OpChdir, 0, 0, [6]uint64{}, through)
			s.Call(event.OpUnlink, 0, 0, [6]uint64{}, up+c.victim[1:])
		}
		s.Call(event.OpRename, 0, 0, [6]uint64{}, "/proc/self/fd/9", up+c.dir[1:]+"/new")
		s.Call(event.OpLink, 0, 0, [6]uint64{}, "/proc/self/fd/9", up+c.dir[1:]+"/new")
	}},
	{name: "no way back from a name through a descriptor", make: func(s *tapescript.Script, c *canary) {
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/d")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/gone")
		s.Opened(7, "/work/d", tapescript.IsDir, 0o200000)
		s.Call(event.OpChdir, 0, 0, [6]uint64{}, "/work/gone")
		s.Call(event.OpRmdir, 0, 0, [6]uint64{}, "/work/gone")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/proc/self/fd/7/e")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, up+c.victim[1:])
		// A thread of which no working directory is known, in one that its user may not
		// look into, goes to a descriptor's name; then it is root again.
		s.Call(event.OpChmod, 0, 0, [6]uint64{0, 0o700}, "/")
		th := event.Event{
			PID: 1, TID: 9, Enter: s.Clock + 10, Exit: s.Clock + 20, UID: 12345, GID: 12345, Offset: -1, Count: -1,
			Op: event.OpMkdir, Args: [6]uint64{0x1000, 0o755},
			Paths: []event.Path{{Arg: 0, Raw: "/proc/self/fd/7/g"}},
		}
		s.Add(event.Event{Kind: event.Forked, Child: 9, Ret: 9, Args: [6]uint64{event.ShareFiles}})
		th.PID = 9
		th.Enter, th.Exit = s.Clock+10, s.Clock+20
		s.Write(&th)
		s.Clock += 20
		s.Add(event.Event{
			Op: event.OpUnlink, PID: 9, TID: 9, Args: [6]uint64{0x1000},
			Paths: []event.Path{{Arg: 0, Raw: up + c.victim[1:]}},
		})
	}},
	{name: "symbolic links swapped for directories", make: func(s *tapescript.Script, c *canary) {
		s.Symlink(c.dir, "/work/link")
		s.Symlink(up+c.dir[1:], "/work/rel")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/dir")
		for range 20 {
			s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work/dir", "/work/tmp")
			s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work/link", "/work/dir")
			s.Opened(20, "/work/dir/victim", tapescript.IsFile, event.OpenCreat|event.OpenTrunc|1)
			s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/dir/victim")
			s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work/dir", "/work/link")
			s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work/tmp", "/work/dir")
		}
		s.Call(event.OpLink, 0, 0, [6]uint64{}, "/work/rel/victim", "/work/hard")
	}},
	{name: "files without a name that get one outside", make: func(s *tapescript.Script, c *canary) {
		for i, dir := range []string{"/work", up + c.dir[1:], c.dir} {
			fd := uint64(10 + i)
			s.Opened(int64(fd), dir, tapescript.IsFile, 0o20200000|2) // O_TMPFILE
			s.Move(event.OpWrite, int64(fd), 0, "abc")
			for _, to := range []string{c.victim + "2", up + c.victim[1:] + "3", c.victim} {
				s.Call(event.OpLinkat, 0, 0, [6]uint64{fd, 0, tapescript.AtFDCWD(), 0, 0x1000}, "", to)
				s.Call(event.OpLinkat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, tapescript.AtFDCWD(), 0, 0x400},
					fmt.Sprintf("/proc/self/fd/%d", fd), to)
			}
		}
	}},
	{name: "symbolic links exchanged with directories", make: func(s *tapescript.Script, c *canary) {
		s.Symlink(c.dir, "/work/link")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/dir")
		const exchange = 2
		for range 50 {
			s.Call(event.OpRenameat2, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, tapescript.AtFDCWD(), 0, exchange},
				"/work/link", "/work/dir")
			s.Opened(20, "/work/dir/victim", tapescript.IsFile, event.OpenCreat|event.OpenTrunc|1)
			s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/dir/victim")
			s.Call(event.OpLink, 0, 0, [6]uint64{}, "/work/dir/victim", "/work/got")
		}
	}},
	{name: "working directories that are gone", make: func(s *tapescript.Script, c *canary) {
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/a")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/a/b")
		s.Opened(7, "/work/a/b", tapescript.IsDir, 0o200000)
		s.On(event.OpFchdir, 7, 0, 0, [6]uint64{})
		s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work/a/b", "/b")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, up+c.victim[1:])
		s.Call(event.OpRmdir, 0, 0, [6]uint64{}, "/b")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, up+c.victim[1:])
		s.Call(event.OpGetcwd, 5, 0, [6]uint64{0x1000, 100})
		s.Call(event.OpChroot, 0, 0, [6]uint64{}, "/work/a")
		s.Call(event.OpChdir, 0, 0, [6]uint64{}, "..")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, up+c.victim[1:])
	}},
	{name: "calls that are nobody's business", make: func(s *tapescript.Script, c *canary) {
		for _, op := range []event.Op{event.OpMount, event.OpUmount2, event.OpPivotRoot, event.OpChroot,
			event.OpSetns, event.OpUnshare, event.OpPtrace, event.OpKill, event.OpTgkill, event.OpReboot,
			event.OpBpf, event.OpOpenByHandleAt, event.OpUnknown, 60000} {
			s.Call(op, 0, 0, [6]uint64{uint64(os.Getppid()), 9, 9, 0x1000, 0x1000}, c.dir, c.dir)
		}
	}},
	{name: "claims about types", make: func(s *tapescript.Script, c *canary) {
		s.Call(event.OpMknod, 0, 0, [6]uint64{0, syscall.S_IFIFO | 0o666}, "/work/fifo")
		s.Opened(5, "/work/fifo", tapescript.IsFile, 0)
		s.Opened(6, "/work/fifo", tapescript.IsFile, 1)
		s.Opened(7, "/work/fifo", tapescript.IsFile, 2)
		s.Move(event.OpRead, 7, 0, "xyz")
		s.On(event.OpFcntl, 7, 0, 0, [6]uint64{0, 4, 2})
		s.Move(event.OpRead, 7, 0, "xyz")
		for range 40 { // more than a pipe holds
			s.On(event.OpWrite, 7, 4096, 0, [6]uint64{0, 0x1000, 4096},
				event.Buf{Arg: 1, Kind: event.KindBuf, Len: 4096, Omitted: true})
		}
		s.Call(event.OpTruncate, 0, 0, [6]uint64{0, 5}, "/work/fifo")
		s.Call(event.OpChdir, 0, 0, [6]uint64{}, "/work/fifo")
		s.Add(event.Event{
			Kind: event.Inherited, PID: 2, TID: 2, Args: [6]uint64{1}, // OwnsFile

			Files: []event.File{{FD: 9, Known: true, Mode: tapescript.IsFile, Ino: 5, Nlink: 1,
				Path: "/work/fifo"}},
		})
	}},
	{name: "a FIFO of the first tree", make: func(s *tapescript.Script, c *canary) {
		s.Store(trace.SnapshotName, tree.Entry{Path: "work", Type: tree.Dir},
			tree.Entry{Path: "work/fifo", Type: tree.FIFO})
		s.Opened(5, "/work/fifo", tapescript.IsFile, 0)
		s.Opened(6, "/work/fifo", tapescript.IsDir, 0)
	}},
	{name: "numbers", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		s.Move(event.OpWrite, 3, 0, "hello")
		s.Open(4, "g", event.OpenCreat|2)
		for _, n := range []uint64{1 << 31, 1 << 32, 1<<32 + 7, 1 << 62, 1 << 63, ^uint64(0)} {
			for _, ret := range []int64{5, 1 << 40, 1<<63 - 1, -1 << 63} {
				s.On(event.OpRead, 3, ret, 0, [6]uint64{0, 0x1000, n}, out(5))
				s.On(event.OpPread64, 3, ret, 0, [6]uint64{0, 0x1000, n, n}, out(length(n)))
				s.On(event.OpFgetxattr, 3, ret, 0, [6]uint64{0, 0x1000, 0x1000, n},
					event.Buf{Arg: 2, Dir: event.Out, Kind: event.KindBuf, Len: length(n)})
				s.On(event.OpGetdents64, 3, ret, 0, [6]uint64{0, 0x1000, n}, out(length(n)))
				s.On(event.OpReadv, 3, ret, 0, [6]uint64{0, 0x1000, n},
					event.Buf{
						Arg: 1, Dir: event.Out, Kind: event.KindVec, Len: length(uint64(ret)),
						Parts: []int64{ret, ret, -1, int64(n)},
					})
				s.Call(event.OpReadlink, ret, 0, [6]uint64{0, 0x1000, n}, "f")
				s.Call(event.OpGetxattrat, ret, 0, [6]uint64{tapescript.AtFDCWD(), 0, 0, 0x1000, 0x1000, n}, "f")
				s.Call(event.OpGetcwd, ret, 0, [6]uint64{0x1000, n})
			}
			s.On(event.OpWrite, 3, -1, syscall.EFBIG, [6]uint64{0, 0x1000, n})
			s.On(event.OpFtruncate, 4, 0, 0, [6]uint64{0, n})
			s.On(event.OpFallocate, 4, 0, 0, [6]uint64{0, 0, n, n})
			s.On(event.OpLseek, 3, int64(n), 0, [6]uint64{0, n, 0})
			s.On(event.OpFadvise64, 3, 0, 0, [6]uint64{0, n, n, n})
			s.On(event.OpMmapPread, 4, int64(n), 0, [6]uint64{0, 0x1000, n, n}, out(length(n)))
			s.On(event.OpIoctl, 3, 0, 0, [6]uint64{0, n, n})
			s.On(event.OpFcntl, 3, 0, 0, [6]uint64{0, n, n})
			s.On(event.OpMsync, 3, 0, 0, [6]uint64{0, n, n})
			s.Call(event.OpCloseRange, 0, 0, [6]uint64{n, ^uint64(0)})
			s.Call(event.OpCloseRange, 0, 0, [6]uint64{100, n})
			s.Call(event.OpDup2, length(n), 0, [6]uint64{3, n})
			s.Call(event.OpMunmap, 0, 0, [6]uint64{n, n})
			s.Call(event.OpMmap, length(n), 0, [6]uint64{n, n, 7, 1, 3, n})
		}
	}, more: func(o *Options) { o.Native = Native{Mmap: true, Requests: true} }},
	{name: "vectors that are shorter than their count", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		long := make([]int64, 1000)
		for i := range long {
			long[i] = 3
		}
		data := strings.Repeat("abc", 1000)
		s.On(event.OpWritev, 3, 3000, 0, [6]uint64{0, 0x1000, 1000},
			event.Buf{Arg: 1, Kind: event.KindVec, Len: 3000, Parts: long, Inline: []byte(data)})
		for _, n := range []uint64{0, 2, 1000, 1024, 1025, 1<<32 + 1000} {
			s.On(event.OpWritev, 3, 3, 0, [6]uint64{0, 0x1000, n},
				event.Buf{Arg: 1, Kind: event.KindVec, Len: 3, Parts: []int64{3}, Inline: []byte("xyz")})
			s.On(event.OpPreadv, 3, 3, 0, [6]uint64{0, 0x1000, n},
				event.Buf{
					Arg: 1, Dir: event.Out, Kind: event.KindVec, Len: 3, Parts: []int64{3}, Inline: []byte("abc"),
				})
		}
	}},
	{name: "descriptors that cannot be", make: func(s *tapescript.Script, c *canary) {
		for i, fd := range []int32{-1, -100, -1 << 31, 1 << 30, 1<<31 - 1, 0, 1, 2, 3, 4, 5, 6, 7} {
			name := fmt.Sprintf("f%d", i)
			s.Opened(int64(fd), name, tapescript.IsFile, event.OpenCreat|2)
			for _, op := range []event.Op{event.OpWrite, event.OpRead, event.OpFstat, event.OpFchdir, event.OpFsync,
				event.OpFlock} {
				s.Call(op, 0, 0, [6]uint64{uint64(fd), 0x1000, 5})
			}
			s.Call(event.OpUnlinkat, 0, 0, [6]uint64{uint64(fd), 0, 0}, up+c.victim[1:])
			s.Call(event.OpUnlinkat, 0, 0, [6]uint64{uint64(fd), 0, 0}, "victim")
			s.Call(event.OpClose, 0, 0, [6]uint64{uint64(fd)})
		}
	}},
	{name: "arguments that the call does not have", make: func(s *tapescript.Script, c *canary) {
		for _, a := range []int8{5, 4, 2, 1} {
			s.Add(event.Event{
				Op: event.OpUnlink, Paths: []event.Path{{Arg: a, Raw: "x", Abs: "/x"},
					{Arg: a, Raw: "x", Abs: "/x"}}, Args: [6]uint64{1, 1, 1, 1, 1, 1},
			})
			s.Add(event.Event{Op: event.OpRename, Paths: []event.Path{{Arg: a, Raw: "/proc/self/fd/3", Abs: "/x"}}})
			s.Add(event.Event{
				Op: event.OpRead, Ret: 3, Args: [6]uint64{0, 1, 3},
				Files: []event.File{{Arg: a, Known: true, Open: 1}},
				Bufs:  []event.Buf{{Arg: a, Dir: event.Out, Kind: event.KindBuf, Len: 3, Inline: []byte("abc")}},
			})
			s.Add(event.Event{
				Op: event.OpStat, Files: []event.File{{Arg: a, Known: true}},
				Bufs:  []event.Buf{{Arg: a, Kind: event.KindStruct, Len: 144, Inline: make([]byte, 144)}},
				Paths: []event.Path{{Arg: 0, Raw: "x"}},
			})
		}
	}},
	{name: "a buffer of no argument", make: func(s *tapescript.Script, c *canary) {
		for _, a := range []int8{6, 7, 15, 100, 127} {
			s.Add(event.Event{
				Op: event.OpStat, Bufs: []event.Buf{{Arg: a, Kind: event.KindStruct, Len: 144,
					Inline: make([]byte, 144)}}, Paths: []event.Path{{Arg: 0, Raw: "x"}},
			})
			s.Add(event.Event{
				Op: event.OpRead, Ret: 3, Args: [6]uint64{0, 1, 3},
				Bufs: []event.Buf{{Arg: a, Dir: event.Out, Kind: event.KindBuf, Len: 3, Inline: []byte("abc")}},
			})
		}
	}},
	{name: "a descriptor of no argument", make: func(s *tapescript.Script, c *canary) {
		s.Add(event.Event{
			Op: event.OpRead, Ret: 3, Files: []event.File{{Arg: 100, Known: true, Ino: 5, Mode: tapescript.IsFile}},
		})
		s.Add(event.Event{
			Op: event.OpRead, Ret: 3, Files: []event.File{{Arg: 6, Known: true, Ino: 5, Mode: tapescript.IsFile}},
		})
	}},
	{name: "structures cut short", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		for n := range 40 {
			b := make([]byte, n)
			for i := range b {
				b[i] = 0xff
			}
			st := func(a int8, d event.Dir) event.Buf {
				return event.Buf{Arg: a, Dir: d, Kind: event.KindStruct, Len: int64(n), Inline: b}
			}
			s.On(event.OpFstat, 3, 0, 0, [6]uint64{0, 0x1000}, st(1, event.Out))
			for _, cmd := range []uint64{5, 6, 7, 36, 37, 38, 1024, 1030} {
				s.On(event.OpFcntl, 3, 0, 0, [6]uint64{0, cmd, 0x1000}, st(2, event.Out))
			}
			s.On(event.OpIoctl, 3, 0, 0, [6]uint64{0, 0x40049409, 3}, st(2, event.In))
			s.On(event.OpGetdents64, 3, int64(n), 0, [6]uint64{0, 0x1000, 4096},
				event.Buf{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: int64(n), Inline: b})
			s.Add(event.Event{
				Op: event.OpOpenat2, Ret: 5, Args: [6]uint64{tapescript.AtFDCWD(), 1, 0x1000, uint64(n) << 20},
				Paths: []event.Path{{Arg: 1, Raw: c.victim}}, Bufs: []event.Buf{st(2, event.In)},
			})
			s.Add(event.Event{
				Op: event.OpSetxattrat, Args: [6]uint64{tapescript.AtFDCWD(), 1, 0, 1, 0x1000, 4096},
				Paths: []event.Path{{Arg: 1, Raw: "f"}},
				Bufs: []event.Buf{{Arg: 3, Kind: event.KindText, Inline: []byte("user.x"), Len: 6},
					st(4, event.In)},
			})
			s.Add(event.Event{
				Op: event.OpBind, Args: [6]uint64{4, 0x1000, uint64(n)}, Bufs: []event.Buf{st(1, event.In)},
			})
			s.Add(event.Event{
				Op: event.OpSendfile, Ret: 5, Args: [6]uint64{3, 3, 0x1000, 5}, Bufs: []event.Buf{st(2, event.Out)},
			})
			s.Add(event.Event{
				Op: event.OpUtimensat, Args: [6]uint64{tapescript.AtFDCWD(), 1, 0x1000},
				Paths: []event.Path{{Arg: 1, Raw: "f"}}, Bufs: []event.Buf{st(2, event.In)},
			})
		}
		name := append([]byte{1, 0}, c.dir+"/socket\x00"...)
		s.Add(event.Event{
			Op: event.OpBind, Args: [6]uint64{4, 0x1000, uint64(len(name))},
			Bufs: []event.Buf{{Arg: 1, Kind: event.KindStruct, Len: int64(len(name)), Inline: name}},
		})
		name = append([]byte{1, 0}, up+c.dir[1:]+"/socket\x00"...)
		s.Add(event.Event{
			Op: event.OpBind, Args: [6]uint64{4, 0x1000, uint64(len(name))},
			Bufs: []event.Buf{{Arg: 1, Kind: event.KindStruct, Len: int64(len(name)), Inline: name}},
		})
	}},
	{name: "a name longer than any", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, strings.Repeat("a", 100_000), event.OpenCreat|2)
	}},
	{name: "names of all lengths", make: func(s *tapescript.Script, c *canary) {
		for _, p := range []string{"", "/", "//", ".", "..", "a\x00/../../x", strings.Repeat("a", 4000),
			strings.Repeat("a/", 2000), strings.Repeat("../", 1300) + c.victim[1:], "\n\xff\xfe"} {
			s.Open(3, p, event.OpenCreat|2)
			s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, p)
			s.Call(event.OpRename, 0, 0, [6]uint64{}, p, p+"x")
			s.Call(event.OpChdir, 0, 0, [6]uint64{}, p)
			s.Symlink(p, "/work/"+p+"link")
			s.Add(event.Event{
				Op: event.OpUnlink, Args: [6]uint64{1},
				Paths: []event.Path{{Raw: p, Abs: strings.Repeat("/a", 50_000) + p}},
			})
		}
	}},
	{name: "links in a circle", make: func(s *tapescript.Script, c *canary) {
		s.Symlink("b", "/work/a")
		s.Symlink("a", "/work/b")
		s.Symlink("c/c/c/c", "/work/c")
		for _, p := range []string{"a", "b/x", "c", "c/c/c"} {
			s.Open(3, p, 2)
			s.Call(event.OpRename, 0, 0, [6]uint64{}, p, "/work/c")
			s.Call(event.OpStat, 0, 0, [6]uint64{0, 0x1000}, p)
		}
		s.Call(event.OpRename, 0, 0, [6]uint64{}, "/work", "/work/into/itself")
		s.Call(event.OpRename, 0, 0, [6]uint64{}, "/", "/x")
		s.Call(event.OpLink, 0, 0, [6]uint64{}, "/work", "/work/again")
	}},
	{name: "threads", make: func(s *tapescript.Script, c *canary) {
		for i := range 200 {
			a, b := uint32(i%7+1), uint32((i+1)%7+1)
			s.Add(event.Event{
				Kind: event.Forked, PID: a, TID: a, Child: b, Ret: int64(b), Args: [6]uint64{uint64(i)},
			})
			s.Add(event.Event{
				Op: event.OpMkdir, PID: b, TID: b, Args: [6]uint64{1, 0o755},
				Paths: []event.Path{{Arg: 0, Raw: fmt.Sprint(i)}},
			})
			if i%3 == 0 {
				s.Add(event.Event{Kind: event.Exited, PID: a, TID: a})
			}
			s.Add(event.Event{Kind: event.Forked, PID: a, TID: a, Child: a, Ret: int64(a)})
		}
	}},
	{name: "times", make: func(s *tapescript.Script, c *canary) {
		for i, d := range []int64{0, -5, 1 << 62, -1 << 62, 1<<63 - 1, -1 << 63, 3} {
			s.Add(event.Event{
				Op: event.OpMkdir, PID: uint32(i%3 + 1), TID: uint32(i%3 + 1), Enter: d, Exit: -d, CPU: d,
				Args: [6]uint64{1, 0o755}, Paths: []event.Path{{Arg: 0, Raw: "a"}},
			})
			s.Add(event.Event{
				Op: event.OpRmdir, PID: uint32(i%2 + 1), TID: uint32(i%2 + 1), Enter: 5, Exit: d, CPU: -d,
				Args: [6]uint64{1}, Paths: []event.Path{{Arg: 0, Raw: "a"}},
			})
		}
	}},
	{name: "content without end", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		for range 20 {
			s.On(event.OpWrite, 3, 1<<30, 0, [6]uint64{0, 0x1000, 1 << 30},
				event.Buf{Arg: 1, Kind: event.KindBuf, Len: event.MaxBytes, Omitted: true})
			s.On(event.OpPwrite64, 3, -5, 0, [6]uint64{0, 0x1000, 1 << 20, 1<<63 - 5},
				event.Buf{Arg: 1, Kind: event.KindBuf, Len: 5, Omitted: true})
		}
	}},
	{name: "copies without end", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		s.On(event.OpFtruncate, 3, 0, 0, [6]uint64{0, 1 << 42})
		id := s.Ino
		s.Open(4, "g", event.OpenCreat|2)
		s.Add(event.Event{
			Op: event.OpIoctl, Args: [6]uint64{4, event.FiClone, 3},
			Files: []event.File{{Arg: 0, FD: 4, Known: true, Mode: tapescript.IsFile, Ino: s.Ino}},
		})
		s.Add(event.Event{Op: event.OpPipe2, Args: [6]uint64{0x1000}})
		s.Add(event.Event{
			Op: event.OpSendfile, Ret: 1 << 24, Args: [6]uint64{9, 3, 0, 1 << 62},
			Files: []event.File{{Arg: 1, FD: 3, Known: true, Mode: tapescript.IsFile, Ino: id},
				{Arg: 0, FD: 9, Known: true, Mode: syscall.S_IFSOCK}},
		})
	}},
	{name: "clones of what is not there", make: func(s *tapescript.Script, c *canary) {
		s.Open(3, "f", event.OpenCreat|2)
		s.Kept(event.OpPwrite64, 0, "some content", 12, false)
		far := int64(math.MaxInt64)
		for _, r := range [][4]int64{{3, 0, 0, far}, {3, far, 0, 0}, {3, 0, far, far}, {3, -1, -1, -1},
			{-7, 0, 1, 1}, {1 << 40, 0, 1, 1}, {3, 1, 4, 1 << 50}, {3, 0, 8, 4}} {
			s.Shares(3, event.FiCloneRange, nil, s.Handle(3), r[:]...)
			s.Shares(3, event.FiDedupeRange, nil, s.Handle(3), r[1], r[2], 0xffff, r[0], r[3], 0, 0)
		}
		s.Shares(3, event.FiCloneRange, nil, s.Handle(3), 3)
		s.Shares(3, event.FiDedupeRange, nil, s.Handle(3))
	}},
	{name: "snapshots", make: func(s *tapescript.Script, c *canary) {
		s.Store(trace.SnapshotName, tree.Entry{Path: "work", Type: tree.Dir},
			tree.Entry{Path: "work/out", Type: tree.Symlink, Target: c.dir},
			tree.Entry{Path: "work/up", Type: tree.Symlink, Target: up + c.dir[1:]},
			tree.Entry{Path: "work/huge", Type: tree.File, Size: 1<<63 - 1, Known: tree.KnownSize},
			tree.Entry{Path: "work/set", Type: tree.File, Mode: 0o6755, Known: tree.KnownMode})
		s.Store(trace.FinalName, tree.Entry{Path: "work", Type: tree.Dir, Known: tree.KnownListing},
			tree.Entry{Path: "work/out", Type: tree.Dir, Known: tree.KnownListing},
			tree.Entry{Path: "work/out/victim", Type: tree.File, Known: tree.KnownHash | tree.KnownSize, Size: 9},
			tree.Entry{Path: "work/up", Type: tree.Dir},
			tree.Entry{Path: "work/up/victim", Type: tree.File, Known: tree.KnownHash})
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/out/victim")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/up/victim")
	}},
	{name: "a final tree that a FIFO is in the way of", make: func(s *tapescript.Script, c *canary) {
		s.Store(trace.FinalName, tree.Entry{Path: "work", Type: tree.Dir},
			tree.Entry{Path: "work/d", Type: tree.Dir, Known: tree.KnownListing})
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/d")
		s.Call(event.OpMknod, 0, 0, [6]uint64{0, syscall.S_IFIFO | 0o666}, "/work/fifo")
		s.Call(event.OpRename, -1, syscall.ENOTDIR, [6]uint64{}, "/work/fifo", "/work/d")
		s.Call(event.OpUnlinkat, -1, syscall.EINVAL, [6]uint64{tapescript.AtFDCWD(), 0, 0x200}, "/work/d")
		s.Call(event.OpRename, -1, syscall.EINVAL, [6]uint64{}, "/work/fifo", "/work/d")
	}},
	{name: "renames", make: func(s *tapescript.Script, c *canary) {
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/d")
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/victim")
		s.Symlink("/work", "/work/l")
		s.Open(3, "/work/victim", event.OpenCreat|event.OpenTrunc|1)
		s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/"+up+c.victim[1:])
		s.Store(trace.FinalName, tree.Entry{Path: "work", Type: tree.Dir, Known: tree.KnownListing},
			tree.Entry{Path: "work/victim", Type: tree.File, Known: tree.KnownHash})
	}, more: func(o *Options) {
		o.Renames = eventsource.Renames{{Old: "/work", New: "/proc/self/root"}, {Old: "/", New: "/x"}}
	}},
}

// Whatever a tape says, only the target changes, and the replay comes to an end with a
// report or an error of one line.
func TestHostileTapes(t *testing.T) {
	testenv.Short(t, "it replays many damaged tapes")
	for _, tt := range hostileTapes {
		t.Run(tt.name, func(t *testing.T) {
			c := newCanary(t)
			s := tapescript.New(t)
			tt.make(s, c)
			hostile(t, s.Close(), c, tt.more)
		})
	}
}
