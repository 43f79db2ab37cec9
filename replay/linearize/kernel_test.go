// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"bytes"
	"fmt"

	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/trace"
)

// kernel makes the calls of a tape one after the other, those about files in one
// directory of the recording, in another directory, and compares what they return.
type kernel struct {
	from, to string // directories
	tape     *trace.Tape
	fds      map[event.OpenID]int
	made     int
	differ   []string
}

func newKernel(t *testing.T, tape *trace.Tape, from, to string) *kernel {
	k := &kernel{from: from, to: to, tape: tape, fds: map[event.OpenID]int{}}
	t.Cleanup(func() {
		for _, fd := range k.fds {
			unix.Close(fd)
		}
	})
	return k
}

func (k *kernel) path(abs string) (string, bool) {
	rest, ok := strings.CutPrefix(abs, k.from+"/")
	return filepath.Join(k.to, rest), ok
}

// do makes a call, if it is one of those, and notes how it differs.
func (k *kernel) do(ev *event.Event, unexplained bool) {
	if ev.Kind != event.Call || ev.Flags&event.Interrupted != 0 {
		return
	}
	if unexplained && ev.Errno != 0 {
		return // it had no effect, and might have one now
	}
	var names [2]string
	for i := range min(2, len(ev.Paths)) {
		ok := false
		if names[i], ok = k.path(ev.Paths[i].Abs); !ok {
			return
		}
	}
	fd := -1
	if f := ev.FileArg(0); f != nil && len(ev.Paths) == 0 {
		ok := false
		if fd, ok = k.fds[f.Open]; !ok {
			return
		}
		if ev.Op == event.OpClose {
			delete(k.fds, f.Open)
		}
	} else if len(ev.Paths) == 0 {
		return
	}
	got := k.make(ev, fd, names)
	if got.skip {
		return
	}
	k.made++
	if got.errno != 0 {
		got.ret = -1
	}
	k.keep(ev, &got)
	if (got.errno != ev.Errno || got.ret != ev.Ret || got.what != "") && !unexplained {
		k.differ = append(k.differ, fmt.Sprintf("event %d: tid %d %s %s: want %d %v, got %d %v %s",
			ev.Seq, ev.TID, ev.Op, ev.Name(), ev.Ret, ev.Errno, got.ret, got.errno, got.what))
	}
}

// make makes the call of an event on a descriptor or on names.
func (k *kernel) make(ev *event.Event, fd int, names [2]string) outcome {
	switch ev.Op {
	case event.OpFstat, event.OpNewfstatat, event.OpStat, event.OpLstat:
		return k.stat(ev, fd, names[0])
	case event.OpRead, event.OpPread64, event.OpWrite, event.OpPwrite64:
		return k.transfer(ev, fd)
	}
	return k.other(ev, fd, names)
}

// keep takes the descriptor that a call made for the one that was recorded.
func (k *kernel) keep(ev *event.Event, got *outcome) {
	f := ev.FileArg(event.ResultArg)
	if f == nil || ev.Spec().Result != event.KindFD || got.errno != 0 {
		return
	}
	if ev.OK() {
		k.fds[f.Open] = int(got.ret)
	} else {
		unix.Close(int(got.ret))
	}
	got.ret = ev.Ret
}

type outcome struct {
	ret   int64
	errno syscall.Errno
	what  string // differs otherwise
	skip  bool
}

func result(n int, err error) outcome {
	e, _ := err.(syscall.Errno)
	return outcome{ret: int64(n), errno: e}
}

func (k *kernel) stat(ev *event.Event, fd int, name string) outcome {
	var st unix.Stat_t
	var err error
	switch {
	case fd >= 0 || ev.Op == event.OpFstat:
		err = unix.Fstat(fd, &st)
	case ev.Paths[0].Raw == "":
		f := ev.FileArg(0)
		if f == nil || k.fds[f.Open] == 0 {
			return outcome{skip: true}
		}
		err = unix.Fstat(k.fds[f.Open], &st)
	case ev.FollowsLast():
		err = unix.Stat(name, &st)
	default:
		err = unix.Lstat(name, &st)
	}
	o := result(0, err)
	want, ok := effect.DecodeStat(ev, event.AMD64)
	if ok && err == nil && (want.Mode != st.Mode || effect.TypeOf(st.Mode) != 'd' && want.Size != st.Size) {
		o.what = fmt.Sprintf("stat: want mode %o size %d, got %o %d", want.Mode, want.Size, st.Mode, st.Size)
	}
	return o
}

func (k *kernel) transfer(ev *event.Event, fd int) outcome {
	var content []byte
	if b := ev.BufArg(1); b != nil {
		content, _ = k.tape.Content(b, nil)
	}
	buf := make([]byte, ev.Args[2])
	switch ev.Op {
	case event.OpWrite:
		n, err := unix.Write(fd, content)
		return result(n, err)
	case event.OpPwrite64:
		n, err := unix.Pwrite(fd, content, int64(ev.Args[3]))
		return result(n, err)
	}
	var n int
	var err error
	if ev.Op == event.OpRead {
		n, err = unix.Read(fd, buf)
	} else {
		n, err = unix.Pread(fd, buf, int64(ev.Args[3]))
	}
	o := result(n, err)
	if err == nil && int64(n) == ev.Ret && !bytes.Equal(buf[:n], content) {
		o.what = "other bytes"
	}
	return o
}

func (k *kernel) other(ev *event.Event, fd int, names [2]string) outcome {
	switch ev.Op {
	case event.OpOpen, event.OpOpenat, event.OpCreat:
		mode := uint32(0)
		if ev.Op == event.OpOpenat {
			mode = uint32(ev.Args[3])
		}
		n, err := unix.Open(names[0], int(effect.OpenFlags(ev)), mode)
		return result(n, err)
	case event.OpClose:
		return result(0, unix.Close(fd))
	case event.OpLseek:
		n, err := unix.Seek(fd, int64(ev.Args[1]), int(ev.Args[2]))
		return result(int(n), err)
	case event.OpFtruncate:
		return result(0, unix.Ftruncate(fd, int64(ev.Args[1])))
	case event.OpTruncate:
		return result(0, unix.Truncate(names[0], int64(ev.Args[1])))
	case event.OpUnlink:
		return result(0, unix.Unlink(names[0]))
	case event.OpRmdir:
		return result(0, unix.Rmdir(names[0]))
	case event.OpMkdir:
		return result(0, unix.Mkdir(names[0], uint32(ev.Args[1])))
	case event.OpRename:
		return result(0, unix.Rename(names[0], names[1]))
	case event.OpRenameat2:
		return result(0, unix.Renameat2(unix.AT_FDCWD, names[0], unix.AT_FDCWD, names[1], uint(ev.Args[4])))
	case event.OpLink:
		return result(0, unix.Link(names[0], names[1]))
	case event.OpSymlink:
		return result(0, unix.Symlink(effect.CString(ev.BufArg(0).Inline), names[0]))
	case event.OpReadlink:
		buf := make([]byte, ev.Args[2])
		n, err := unix.Readlink(names[0], buf)
		o := result(n, err)
		if err == nil && ev.OK() && string(buf[:n]) != string(ev.BufArg(1).Inline) {
			o.what = "other target"
		}
		return o
	case event.OpAccess:
		return result(0, unix.Access(names[0], uint32(ev.Args[1])))
	}
	return outcome{skip: true}
}

func readTape(t *testing.T, dir string) *trace.Tape {
	t.Helper()
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}
