// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// While a target is filled, no other user gets into it, and those whose calls are repeated do. Then it
// has the mode and owner that it had.
func TestPrivateTarget(t *testing.T) {
	t.Parallel()
	s := tapescript.New(t)
	as := func(uid uint32, op event.Op, args [6]uint64, path string) {
		s.Write(&event.Event{
			Op: op, Args: args, Paths: []event.Path{{Raw: path}}, UID: uid, GID: uid, PID: 1, TID: 1,
			Enter: s.Clock + 10, Exit: s.Clock + 20, Offset: -1, Count: -1,
		})
		s.Clock += 20
	}
	me := uint32(os.Geteuid())
	as(me, event.OpChmod, [6]uint64{0x1000, 0o777}, "/work")
	if os.Geteuid() == 0 {
		as(4321, event.OpMkdir, [6]uint64{0x1000, 0o755}, "/work/mine")
	}
	as(me, event.OpMkdir, [6]uint64{0x1000, 0o755}, "/work/last")
	tape := s.Close()
	into := t.TempDir()
	if err := os.Chmod(into, 0o755); err != nil {
		t.Fatal(err)
	}
	var before, during, after syscall.Stat_t
	stat := func(st *syscall.Stat_t) {
		if err := syscall.Stat(into, st); err != nil {
			t.Error(err)
		}
	}
	stat(&before)
	progress := func(phase string, _, _ uint64) {
		if phase == "replay" {
			stat(&during)
		}
	}
	rep, err := Run(t.Context(), tape, &Options{Into: into, Checks: CheckAll, Progress: progress})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if stat(&after); after.Mode != before.Mode || after.Gid != before.Gid || after.Uid != before.Uid {
		t.Errorf("mode %#o of %d:%d, want %#o of %d:%d", after.Mode, after.Uid, after.Gid, before.Mode, before.Uid,
			before.Gid)
	}
	if during.Mode&0o7 != 0 || during.Mode&0o70 != 0 && during.Gid == before.Gid {
		t.Errorf("mode %#o of group %d during the replay", during.Mode, during.Gid)
	}
	if !slices.Contains(rep.Confinement.InForce, "private target") {
		t.Errorf("%+v", rep.Confinement)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Stat(filepath.Join(into, "work/mine"), &after); err != nil || after.Uid != 4321 {
		t.Errorf("owner %d, %v", after.Uid, err)
	}
}

// What the calls change of the target itself stays.
func TestCallsChangeTarget(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	into := t.TempDir()
	p, err := openPrivate(into)
	if err != nil {
		t.Fatal(err)
	}
	p.beginCalls()
	if err := os.Chmod(into, 0o751); err != nil { // as a recorded call
		t.Fatal(err)
	}
	p.restore()
	p.restore()
	fi, err := os.Stat(into)
	if err != nil {
		t.Fatal(err)
	}
	if st := fi.Sys().(*syscall.Stat_t); fi.Mode().Perm() != 0o751 || st.Gid == p.group {
		t.Errorf("mode %v of group %d: want the mode that a call set, and the group of before", fi.Mode(), st.Gid)
	}
}
