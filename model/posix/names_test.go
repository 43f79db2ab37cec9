// SPDX-License-Identifier: Apache-2.0

package posix_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// walker makes random calls on names and tells the model of them.
type walker struct {
	t    *testing.T
	rng  *rand.Rand
	m    *posix.Model
	dir  string
	fds  []int
	last string
	// known and unknown count the names that the model told, and those that it did not.
	known, unknown int
}

// TestNamesAgreeWithKernel asks the kernel for the names of open directories and files, and
// of the working directory, after each of many random calls. IOTAPE_NAME_STEPS says how
// many.
func TestNamesAgreeWithKernel(t *testing.T) {
	steps := 1000
	if s := os.Getenv("IOTAPE_NAME_STEPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("IOTAPE_NAME_STEPS: %v", err)
		}
		steps = n
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its working directory
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			t.Errorf("a working directory of the test's own: %v", err)
			return
		}
		w := &walker{t: t, rng: rand.New(rand.NewPCG(1, uint64(steps))), m: posix.New(), dir: dir}
		if err := unix.Chdir(dir); err != nil {
			t.Error(err)
			return
		}
		w.m.Apply(&event.Event{Kind: event.Started, PID: 1, TID: 1, Paths: []event.Path{{Abs: dir}}})
		for i := range steps {
			w.step()
			if !w.agree(i) {
				return
			}
		}
		if w.unknown > w.known/100 {
			t.Errorf("%d names of %d are unknown, want one in 100 at most", w.unknown, w.known)
		}
	}()
	<-done
}

// call tells the model of a call.
func (w *walker) call(op event.Op, err error, ret int, args []uint64, paths ...event.Path) *event.Event {
	ev := &event.Event{Op: op, PID: 1, TID: 1, Ret: int64(ret), Paths: paths}
	copy(ev.Args[:], args)
	if err != nil {
		ev.Errno, ev.Ret = err.(syscall.Errno), -1
	}
	return ev
}

// name returns a random name and the directory that it begins at.
func (w *walker) name() (fd int, name string) {
	parts := []string{"a", "b", "c", "d", "l", "m", "..", "..", "."}
	var list []string
	for range w.rng.IntN(4) {
		list = append(list, parts[w.rng.IntN(len(parts))])
	}
	list = append(list, parts[w.rng.IntN(6)])
	name, fd = strings.Join(list, "/"), unix.AT_FDCWD
	switch n := w.rng.IntN(6); {
	case n == 0:
		name = w.dir + "/" + name
	case n < 4 && len(w.fds) > 0:
		fd = w.fds[w.rng.IntN(len(w.fds))]
	case n == 4 && len(w.fds) > 0:
		name = fmt.Sprintf("/proc/self/fd/%d/%s", w.fds[w.rng.IntN(len(w.fds))], name)
	case n == 5:
		name = "/proc/thread-self/cwd/" + name
	}
	return fd, name
}

// inside reports whether the directory of a name is in the test's own.
func (w *walker) inside(fd int, name string) bool {
	dir := "."
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir = name[:i+1]
	}
	at, err := unix.Openat(fd, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(at)
	real := kernelName(w.t, at)
	return real == w.dir || strings.HasPrefix(real, w.dir+"/")
}

func kernelName(t *testing.T, fd int) string {
	name, err := os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(fd))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func (w *walker) step() {
	fd, name := w.name()
	if !w.inside(fd, name) {
		return
	}
	at := uint64(int64(fd))
	p := event.Path{Arg: 1, Raw: name}
	w.last = fmt.Sprintf("%d %q", fd, name)
	switch w.rng.IntN(14) {
	case 0, 1, 2:
		w.last = "mkdirat " + w.last
		err := unix.Mkdirat(fd, name, 0o700)
		w.m.Apply(w.call(event.OpMkdirat, err, 0, []uint64{at}, p))
	case 3:
		_, target := w.name()
		w.last = fmt.Sprintf("symlinkat %q at %s", target, w.last)
		err := unix.Symlinkat(target, fd, name)
		p.Arg = 2
		ev := w.call(event.OpSymlinkat, err, 0, []uint64{0, at}, p)
		ev.Bufs = []event.Buf{{Arg: 0, Kind: event.KindText, Inline: []byte(target)}}
		w.m.Apply(ev)
	case 4:
		w.last = "unlinkat " + w.last
		flags := w.rng.IntN(2) * unix.AT_REMOVEDIR
		err := unix.Unlinkat(fd, name, flags)
		w.m.Apply(w.call(event.OpUnlinkat, err, 0, []uint64{at, 0, uint64(flags)}, p))
	case 5, 6, 7:
		to, other := w.name()
		if !w.inside(to, other) {
			return
		}
		flags := w.rng.IntN(2) * unix.RENAME_EXCHANGE
		w.last = fmt.Sprintf("renameat2 %s to %d %q, flags %d", w.last, to, other, flags)
		err := unix.Renameat2(fd, name, to, other, uint(flags))
		w.m.Apply(w.call(event.OpRenameat2, err, 0, []uint64{at, 0, uint64(int64(to)), 0, uint64(flags)}, p,
			event.Path{Arg: 3, Raw: other}))
	case 8:
		w.last = "chdir " + w.last
		if fd == unix.AT_FDCWD {
			p.Arg = 0
			w.m.Apply(w.call(event.OpChdir, unix.Chdir(name), 0, nil, p))
		} else {
			w.m.Apply(w.call(event.OpFchdir, unix.Fchdir(fd), 0, []uint64{at}))
		}
	case 9:
		w.link(fd, name)
	case 10:
		w.openIn(fd, name)
	default:
		w.last = "openat " + w.last
		if len(w.fds) > 20 {
			old := w.fds[0]
			w.fds = w.fds[1:]
			w.m.Apply(w.call(event.OpClose, unix.Close(old), 0, []uint64{uint64(old)}))
			return
		}
		flags := []int{unix.O_RDONLY, unix.O_PATH | unix.O_NOFOLLOW, unix.O_CREAT,
			unix.O_CREAT | unix.O_EXCL}[w.rng.IntN(4)]
		flags |= unix.O_CLOEXEC | unix.O_NONBLOCK
		got, err := unix.Openat(fd, name, flags, 0o600)
		w.opened(w.call(event.OpOpenat, err, got, []uint64{at, 0, uint64(flags)}, p))
	}
}

// opened tells the model of an open.
func (w *walker) opened(ev *event.Event) {
	if ev.OK() {
		got := int(ev.Ret)
		var st unix.Stat_t
		if err := unix.Fstat(got, &st); err != nil {
			w.t.Fatal(err)
		}
		f := event.File{Arg: event.ResultArg, FD: int32(got), Known: true, Dev: st.Dev, Ino: st.Ino, Mode: st.Mode}
		ev.Files = []event.File{f}
		w.fds = append(w.fds, got)
	}
	w.m.Apply(ev)
}

// link gives a file one more name.
func (w *walker) link(fd int, name string) {
	to, other := w.name()
	if !w.inside(to, other) {
		return
	}
	flags := w.rng.IntN(2) * unix.AT_SYMLINK_FOLLOW
	w.last = fmt.Sprintf("linkat %s to %d %q, flags %#x", w.last, to, other, flags)
	err := unix.Linkat(fd, name, to, other, flags)
	w.m.Apply(w.call(event.OpLinkat, err, 0, []uint64{uint64(int64(fd)), 0, uint64(int64(to)), 0, uint64(flags)},
		event.Path{Arg: 1, Raw: name}, event.Path{Arg: 3, Raw: other}))
}

// openIn opens a name with a limit to where it may lead.
func (w *walker) openIn(fd int, name string) {
	resolve := []uint64{unix.RESOLVE_BENEATH, unix.RESOLVE_IN_ROOT, unix.RESOLVE_NO_SYMLINKS,
		unix.RESOLVE_NO_MAGICLINKS}[w.rng.IntN(4)]
	if resolve == unix.RESOLVE_IN_ROOT && w.rng.IntN(2) == 0 {
		name = "/" + name
	}
	w.last = fmt.Sprintf("openat2 %d %q, resolve %#x", fd, name, resolve)
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: resolve}
	got, err := unix.Openat2(fd, name, &how)
	ev := w.call(event.OpOpenat2, err, got, []uint64{uint64(int64(fd))}, event.Path{Arg: 1, Raw: name})
	inline := binary.LittleEndian.AppendUint64(nil, how.Flags)
	inline = binary.LittleEndian.AppendUint64(append(inline, make([]byte, 8)...), resolve)
	ev.Bufs = []event.Buf{{Arg: 2, Kind: event.KindStruct, Inline: inline}}
	w.opened(ev)
}

// agree compares what the model says of all that is open with what the kernel says.
func (w *walker) agree(step int) bool {
	th := w.m.Thread(1, 1)
	good := true
	for _, fd := range w.fds {
		d := th.Table.Lookup(int32(fd))
		if d == nil {
			w.t.Errorf("step %d, %s: descriptor %d is not open in the model", step, w.last, fd)
			return false
		}
		w.known++
		want, gone := strings.CutSuffix(kernelName(w.t, fd), " (deleted)")
		if d.Open.Now.Real == "" {
			w.unknown++
			continue
		}
		if !gone && (d.Open.Now.Real != want || d.Open.Gone) {
			w.t.Errorf("step %d, %s: descriptor %d is %q (gone %v), want %q", step, w.last, fd, d.Open.Now.Real,
				d.Open.Gone, want)
			good = false
		}
		if gone && !d.Open.Gone && !w.inGone(want) {
			w.t.Errorf("step %d, %s: descriptor %d is %q, want it gone", step, w.last, fd, d.Open.Now.Real)
			good = false
		}
	}
	want, err := os.Readlink("/proc/thread-self/cwd")
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.HasSuffix(want, " (deleted)") {
		w.m.Apply(w.call(event.OpChdir, unix.Chdir(w.dir), 0, nil, event.Path{Raw: w.dir}))
		return good
	}
	ev := w.call(event.OpReadlink, nil, 0, nil, event.Path{Raw: "x"})
	w.m.Apply(ev)
	if got := ev.Paths[0].Reached(); got != want+"/x" {
		w.t.Errorf("step %d, %s: a relative name x is %q, want %q", step, w.last, got, want+"/x")
		good = false
	}
	return good
}

// inGone reports whether a name that is gone is so because a directory above it is.
func (w *walker) inGone(name string) bool {
	_, err := os.Lstat(filepath.Dir(name))
	return err != nil
}
