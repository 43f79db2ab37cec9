// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// hostileArguments are what each operation is tried with: nothing, all bits, sizes that no file has, and flags that
// mean most to calls of mounts, namespaces and limits.
var hostileArguments = [][6]uint64{
	{},
	{tapescript.AtFDCWD(), 0, 0, tapescript.AtFDCWD(), 0, 0x1000},
	{7, 0x1000, 1 << 62, 1 << 62, 1 << 62, ^uint64(0)},
	{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)},
	{0x7e020000, 9, 0x20000, 0x1000, 0x3, 0x400}, // CLONE_NEW*, MS_BIND
}

// TestHostileOperations makes every operation that there is with names of files outside, in many ways to write them, as
// successful and as failed: nothing outside is read or changed, and neither the mounts nor the name of the machine.
func TestHostileOperations(t *testing.T) {
	testenv.Short(t, "it makes thousands of calls")
	machine := func() string {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			t.Fatal(err)
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.Readlink("/proc/self/root")
		if err != nil {
			t.Fatal(err)
		}
		return unix.ByteSliceToString(u.Nodename[:]) + root + string(mounts)
	}
	before := machine()
	for i, tt := range []struct {
		name string
		form func(c *canary) string
	}{
		{"up", func(c *canary) string { return up + c.victim[1:] }},
		{"absolute", func(c *canary) string { return c.victim }},
		{"the root of init", func(c *canary) string { return "/proc/1/root" + c.victim }},
		{"a thread's directory", func(c *canary) string { return "/proc/thread-self/cwd/" + up + c.victim[1:] }},
		{"the parent's descriptor", func(c *canary) string { return "/proc/self/../1/fd/3/" + up + c.victim[1:] }},
		{"a link to all", func(c *canary) string { return "/work/all/" + c.victim[1:] }},
		{"a line feed", func(c *canary) string { return "/work/\n\x1b]0;x\x07/" + up + c.victim[1:] }},
		{"another root", func(c *canary) string { return "/work/d/../" + up + c.victim[1:] + "/." }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for k := range 2 { // all with all takes minutes
				args := hostileArguments[(i+2*k)%len(hostileArguments)]
				c := newCanary(t)
				s := tapescript.New(t)
				s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/d")
				s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "/work/\n\x1b]0;x\x07")
				s.Symlink("/", "/work/all")
				s.Opened(7, "/work/d", tapescript.IsDir, 0o200000)
				s.Open(9, "/work/f", event.OpenCreat|2)
				path := tt.form(c)
				for op := event.Op(1); int(op) < event.NumOps; op++ {
					s.Call(op, 0, 0, args, path, path+"2")
					s.On(op, 9, 1, 0, args)
					s.Call(op, -1, syscall.ENOENT, args, path)
				}
				hostile(t, s.Close(), c, nil)
			}
		})
	}
	if after := machine(); after != before {
		t.Errorf("the machine has changed:\n%s\nwas\n%s", after, before)
	}
}

// TestHostileFiles has files that a replay makes be more than they seem: no set-id program, no device and no name
// outside is left of them, whatever calls made them, in which order.
func TestHostileFiles(t *testing.T) {
	c := newCanary(t)
	s := tapescript.New(t)
	s.Open(3, "/work/x", event.OpenCreat|2)
	for _, mode := range []uint64{0o6777, 0o4755, 0o2755, 0o7777} {
		s.On(event.OpFchmod, 3, 0, 0, [6]uint64{0, mode})
		s.Call(event.OpChmod, 0, 0, [6]uint64{0, mode}, "/work/x")
		s.Call(event.OpFchmodat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, mode}, "/work/x")
		s.Call(event.OpFchmodat2, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, mode, 0}, "/work/x")
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, mode}, "/work/dir")
		s.Call(event.OpCreat, 4, 0, [6]uint64{0, mode}, "/work/y")
		s.Call(event.OpOpenat, 5, 0, [6]uint64{tapescript.AtFDCWD(), 0, event.OpenCreat | 1, mode}, "/work/z")
		for _, kind := range []uint64{syscall.S_IFCHR, syscall.S_IFBLK, syscall.S_IFREG} {
			s.Call(event.OpMknod, 0, 0, [6]uint64{0, kind | mode, 0x103}, "/work/node")
			s.Call(event.OpMknodat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, kind | mode, 0x103}, "/work/node2")
		}
	}
	s.Call(event.OpChown, 0, 0, [6]uint64{0, 0, 0}, "/work/x")
	_, into := hostile(t, s.Close(), c, nil)
	seen := 0
	err := filepath.WalkDir(into, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		seen++
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rdev := fi.Sys().(*syscall.Stat_t).Rdev // 0:0, which is no driver's, is what devices get
		if m := fi.Mode(); rdev != 0 || m.IsRegular() && m&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s is left as %s, device %x", path, m, rdev)
		}
		return nil
	})
	if err != nil || seen < 3 {
		t.Errorf("%d files, %v: the calls made nothing", seen, err)
	}
}
