// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

// fuzzEvents bounds the events of one input: what goes wrong, goes wrong with few.
const fuzzEvents = 64

// fuzzOps are what an input picks from: what is replayed, and what changes what names and
// descriptors stand for.
var fuzzOps = []event.Op{
	event.OpOpenat, event.OpOpen, event.OpCreat, event.OpOpenat2, event.OpClose, event.OpDup, event.OpDup2,
	event.OpCloseRange, event.OpRead, event.OpWrite,
	event.OpPread64, event.OpPwrite64, event.OpReadv, event.OpWritev, event.OpLseek, event.OpFtruncate,
	event.OpTruncate, event.OpMkdir, event.OpMkdirat,
	event.OpRmdir, event.OpUnlink, event.OpUnlinkat, event.OpRename, event.OpRenameat2, event.OpLink, event.OpLinkat,
	event.OpSymlink, event.OpReadlink,
	event.OpMknod, event.OpChdir, event.OpFchdir, event.OpGetcwd, event.OpGetdents64, event.OpStat, event.OpFstat,
	event.OpStatx, event.OpChmod, event.OpFcntl,
	event.OpFlock, event.OpIoctl, event.OpSendfile, event.OpCopyFileRange, event.OpSplice, event.OpMmap, event.OpMunmap,
	event.OpMmapPread, event.OpMmapPwrite,
	event.OpMsync, event.OpSetxattr, event.OpGetxattr, event.OpSetxattrat, event.OpBind, event.OpChroot, event.OpMount,
	event.OpUringRead, event.OpUringSplice,
	event.OpAIOPwritev, event.OpUnknown,
}

var fuzzNames = []string{"a", "b", "a/b", "a/../b", "/", "..", "/work/a", "../../../../../../outside",
	"/proc/self/fd/3", "/proc/self/fd/3/../x", "/proc/self/root/a", "a\x00b", "", "/dev/fd/4/c", "a/b/c"}

// Bits of a file's mode that are types of files, and one that is none.
var fuzzModes = []uint32{syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFIFO, syscall.S_IFLNK, syscall.S_IFSOCK,
	syscall.S_IFCHR, 0}

// numbers decodes an input.
type numbers []byte

func (n *numbers) next() byte {
	if len(*n) == 0 {
		return 0
	}
	b := (*n)[0]
	*n = (*n)[1:]
	return b
}

// value is a small number mostly, and now and then one at the edge of what there is.
func (n *numbers) value() int64 {
	edges := [...]int64{-1, -2, 1 << 20, 1 << 30, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 62, 1<<63 - 1, -1 << 63}
	if b := n.next(); b >= 0xf0 {
		return edges[int(b&0xf)%len(edges)]
	} else {
		return int64(b)
	}
}

// event makes up the next one.
func (n *numbers) event(clock *int64) event.Event {
	pid := uint32(n.next()%4) + 1
	*clock += int64(n.next())
	ev := event.Event{
		PID: pid, TID: pid, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Enter: *clock,
		Exit: *clock + int64(n.next()) - 4, Offset: n.value(), Count: n.value(),
	}
	switch k := n.next(); {
	case k < 8:
		ev.Kind, ev.Child, ev.Ret = event.Forked, uint32(n.next()%4)+1, n.value()
		ev.Args[0] = uint64(n.next())
		return ev
	case k < 12:
		ev.Kind = event.Exited
		return ev
	case k < 16:
		ev.Kind = event.Inherited
		ev.SetOwnsFile(true)
		ev.Files = []event.File{{FD: int32(n.value()), Known: true,
			Mode: fuzzModes[int(n.next())%len(fuzzModes)] | 0o644, Ino: uint64(n.next() % 8), Nlink: 1,
			Path: fuzzNames[int(n.next())%len(fuzzNames)]}}
		return ev
	}
	ev.Op = fuzzOps[int(n.next())%len(fuzzOps)]
	spec := ev.Spec()
	ev.Ret = n.value()
	if b := n.next(); b&7 == 0 {
		ev.Errno, ev.Ret = syscall.Errno(b>>3), -1
	}
	file := func(arg int8, fd int64) {
		ev.Files = append(ev.Files, event.File{
			Arg: arg, FD: int32(fd), Known: true, Mode: fuzzModes[int(n.next())%len(fuzzModes)] | 0o644,
			Ino: uint64(n.next() % 8), Nlink: uint32(n.next() % 3), Size: n.value(), Pos: n.value(),
			Flags: uint32(n.next()),
		})
	}
	for i := range spec.Args {
		v := n.value()
		ev.Args[i] = uint64(v)
		buf := event.Buf{Arg: int8(i), Dir: spec.Args[i].Dir, Kind: spec.Args[i].Kind}
		switch spec.Args[i].Kind {
		case event.KindPath:
			ev.Args[i] = 1
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(i), Raw: fuzzNames[int(n.next())%len(fuzzNames)]})
			continue
		case event.KindFD, event.KindDirFD:
			if n.next()&1 == 0 && spec.Args[i].Kind == event.KindDirFD {
				ev.Args[i] = tapescript.AtFDCWD()
			} else {
				file(int8(i), v)
			}
			continue
		case event.KindText:
			buf.Inline = []byte(fuzzNames[int(n.next())%len(fuzzNames)])
		case event.KindBuf, event.KindStruct, event.KindVec:
			buf.Inline = []byte(strings.Repeat(string([]byte{n.next(), n.next()}), int(n.next()%128)))
			if buf.Omitted = n.next()&7 == 0; spec.Args[i].Kind == event.KindVec {
				buf.Parts = []int64{int64(len(buf.Inline)), n.value()}
			}
		default:
			continue
		}
		buf.Len = int64(len(buf.Inline))
		ev.Args[i] = 1
		ev.Bufs = append(ev.Bufs, buf)
	}
	if spec.Result == event.KindFD && ev.Errno == 0 {
		file(event.ResultArg, ev.Ret)
	}
	return ev
}

// Whatever a tape of few events says, it is planned, and replayed where there are the
// rights to, without a crash, a hang, or a change outside.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 5, 9, 0, 0, 20, 0, 3, 1, 0, 0, 0, 0, 0x42, 0}, byte(0))
	f.Add([]byte("\x00\x05\x09\x00\x00\x20\x08\x00\x01\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"+
		"\xff\xf8\xf9\x01\x02\x03\x20\x21\x22\x23"), byte(1))
	f.Add([]byte(strings.Repeat("\x01\x02\x03\x04\x05\x06\xf7", 60)), byte(2))
	f.Add([]byte(strings.Repeat("\x05\x02\x03\x01\x05\x06\xf7", 60)), byte(17))
	f.Fuzz(func(t *testing.T, data []byte, how byte) {
		c := newCanary(t)
		dir := filepath.Join(t.TempDir(), "x.tape")
		w, err := trace.CreateTape(dir)
		if err != nil {
			t.Fatal(err)
		}
		in, clock := numbers(data), int64(0)
		hosts := []trace.Host{{Head: trace.Head{Host: "h", Arch: "amd64"}}}
		if how&16 != 0 {
			hosts = append(hosts, trace.Host{Head: trace.Head{Host: "../..", Arch: "amd64"}})
		}
		for n := range fuzzEvents {
			if len(in) == 0 {
				break
			}
			ev := in.event(&clock)
			ev.Host = uint32(n % len(hosts))
			if w.Write(&ev) != nil {
				return // not every event can be written
			}
		}
		if w.Close(&trace.Manifest{Program: "test", Hosts: hosts}) != nil {
			return
		}
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		ctx, cancel := context.WithTimeout(t.Context(), hostilePatience)
		defer cancel()
		if _, err := DryRun(ctx, tape, &Options{Shared: []string{"/work"}}); err != nil &&
			!errors.Is(err, trace.ErrCorrupt) {
			t.Fatalf("dry run: %v", err)
		}
		if os.Geteuid() != 0 {
			return
		}
		modes := [...]order.Mode{order.Recorded, order.Overlap, order.Resource}
		_, err = Run(ctx, tape, &Options{
			Into: t.TempDir(), Checks: CheckAll, Shared: []string{"/work"}, Order: modes[how%3],
			Native: Native{Mmap: how&4 != 0, Requests: how&8 != 0},
		})
		if err != nil && (ctx.Err() != nil || strings.Contains(err.Error(), "ended without a report")) {
			t.Fatal(err)
		}
		c.check()
	})
}
