// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// capabilities is the value of an attribute that gives a program CAP_NET_RAW.
const capabilities = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// privilegedTape makes files that give rights in each way that there is, as far as this user may.
func privilegedTape(t *testing.T) *trace.Tape {
	const ends = syscall.O_CREAT | syscall.O_WRONLY
	s := tapescript.New(t)
	first := tree.Entry{Path: "work/first", Type: tree.File, Known: tree.KnownMode, Mode: 0o4755}
	s.Store(trace.SnapshotName, tree.Entry{Path: "work", Type: tree.Dir}, first)
	final := []tree.Entry{{Path: "work", Type: tree.Dir}, first}
	wants := func(name string) {
		final = append(final, tree.Entry{Path: "work/" + name, Type: tree.File, Known: tree.KnownMode, Mode: 0o6755})
	}
	named := func(op event.Op, name string, args [6]uint64) {
		s.Open(3, name, event.OpenCreat|1)
		s.Call(event.OpClose, 0, 0, [6]uint64{3})
		s.Call(op, 0, 0, args, name)
		wants(name)
	}
	s.Call(event.OpUmask, 0o22, 0, [6]uint64{0})
	named(event.OpChmod, "chmod", [6]uint64{0, 0o6755})
	named(event.OpFchmodat, "fchmodat", [6]uint64{tapescript.AtFDCWD(), 0, 0o6755})
	named(event.OpFchmodat2, "fchmodat2", [6]uint64{tapescript.AtFDCWD(), 0, 0o6755})
	s.Open(3, "fchmod", event.OpenCreat|1)
	s.Add(event.Event{Op: event.OpFchmod, Args: [6]uint64{3, 0o6755}, Files: []event.File{s.Handle(3)}})
	s.Call(event.OpClose, 0, 0, [6]uint64{3})
	s.Call(event.OpChmod, 0, 0, [6]uint64{0, 0o6755}, "fchmod")
	wants("fchmod")
	made := func(name string, ev event.Event, arg int8) {
		s.Ino++
		ev.Ret = 3
		ev.Paths = []event.Path{{Arg: arg, Raw: name}}
		ev.Files = []event.File{{Arg: event.ResultArg, FD: 3, Open: 3, Known: true, Mode: syscall.S_IFREG | 0o6755,
			Ino: s.Ino, Nlink: 1, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
		s.Add(ev)
		s.Call(event.OpClose, 0, 0, [6]uint64{3})
		wants(name)
	}
	made("creat", event.Event{Op: event.OpCreat, Args: [6]uint64{1, 0o6755}}, 0)
	made("open", event.Event{Op: event.OpOpen, Args: [6]uint64{1, ends, 0o6755}}, 0)
	made("openat", event.Event{Op: event.OpOpenat, Args: [6]uint64{tapescript.AtFDCWD(), 1, ends, 0o6755}}, 1)
	how := binary.LittleEndian.AppendUint64(nil, ends)
	how = append(binary.LittleEndian.AppendUint64(how, 0o6755), make([]byte, 8)...)
	made("openat2", event.Event{Op: event.OpOpenat2, Args: [6]uint64{tapescript.AtFDCWD(), 1, 1, 24},
		Bufs: []event.Buf{{Arg: 2, Kind: event.KindStruct, Len: 24, Inline: how}}}, 1)
	s.Call(event.OpMknod, 0, 0, [6]uint64{0, syscall.S_IFREG | 0o6755}, "mknod")
	wants("mknod")
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "dir")
	s.Call(event.OpChmod, 0, 0, [6]uint64{0, 0o2755}, "dir")
	final = append(final, tree.Entry{Path: "work/dir", Type: tree.Dir, Known: tree.KnownMode, Mode: 0o2755})
	if os.Geteuid() == 0 {
		s.Call(event.OpMknod, 0, 0, [6]uint64{0, syscall.S_IFCHR | 0o600, unix.Mkdev(1, 3)}, "null")
		final = append(final, tree.Entry{Path: "work/null", Type: tree.CharDev, Rdev: unix.Mkdev(1, 3)})
		name := event.Buf{Arg: 1, Kind: event.KindText, Len: 20, Inline: []byte(effect.CapabilityAttr + "\x00")}
		for _, op := range []event.Op{event.OpSetxattr, event.OpGetxattr} {
			ev := event.Event{Op: op, Args: [6]uint64{1, 1, 1, 20}, Paths: []event.Path{{Arg: 0, Raw: "creat"}}}
			value := event.Buf{Arg: 2, Kind: event.KindBuf, Len: 20, Inline: []byte(capabilities)}
			if op == event.OpGetxattr {
				ev.Ret, value.Dir = 20, event.Out
			}
			ev.Bufs = []event.Buf{name, value}
			s.Add(ev)
		}
	}
	s.Store(trace.FinalName, final...)
	return s.Close()
}

// What gives rights is made if that is asked for; else it is left off, counted, and not
// taken for a difference.
func TestPrivilegedFiles(t *testing.T) {
	t.Parallel()
	for _, privileged := range []bool{false, true} {
		into := t.TempDir()
		rep, err := Run(t.Context(), privilegedTape(t), &Options{
			Into: into, Checks: CheckAll, PrivilegedFiles: privileged,
		})
		if err != nil {
			t.Fatal(err)
		}
		if !rep.OK() || len(rep.Problems) > 0 {
			t.Errorf("privileged %v: %+v, %+v, %q", privileged, rep.Mismatches, rep.Tree, rep.Problems)
		}
		want, root := LeftOff{}, uint64(0)
		if os.Geteuid() == 0 {
			root = 1
		}
		if !privileged {
			// The initial file, and the calls; fchmod's file has two.
			want = LeftOff{SetID: 1 + 4 + 1 + 4 + 1, Capabilities: root, Devices: root}
		}
		if rep.LeftOff != want {
			t.Errorf("privileged %v: left off %+v, want %+v", privileged, rep.LeftOff, want)
		}
		entries, err := os.ReadDir(filepath.Join(into, "work"))
		if err != nil || len(entries) != 11+int(root) {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		for _, e := range entries {
			var st unix.Stat_t
			path := filepath.Join(into, "work", e.Name())
			if err := unix.Lstat(path, &st); err != nil {
				t.Fatal(err)
			}
			switch n, err := unix.Lgetxattr(path, effect.CapabilityAttr, nil); {
			case e.IsDir():
				if st.Mode&syscall.S_ISGID == 0 {
					t.Errorf("privileged %v: the directory has lost its bit", privileged)
				}
			case st.Mode&syscall.S_IFMT == syscall.S_IFREG && (st.Mode&effect.SetID != 0) != privileged,
				(st.Rdev != 0) != (privileged && e.Name() == "null"),
				(n > 0 && err == nil) != (privileged && root == 1 && e.Name() == "creat"):
				t.Errorf("privileged %v: %s has mode %o, device %x, %d bytes of capabilities", privileged, path,
					st.Mode, st.Rdev, n)
			}
		}
	}
}
