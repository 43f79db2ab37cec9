// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// anHourLater has a call that is not due, at the recorded pace, while a test goes on.
func anHourLater(s *tapescript.Script) {
	s.Clock += int64(time.Hour)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "late")
}

// A replay that would take more than a limit ends with an error that names the option; what it
// made stays.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, l := range []struct {
		name string
		make func(*tapescript.Script)
		o    Options
		root bool // it needs a file system of its own: others make and remove files
	}{
		{name: "--max-files", root: true, o: Options{MaxFiles: 50}, make: func(s *tapescript.Script) {
			for i := range 100 {
				s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "d"+strconv.Itoa(i))
			}
		}},
		{name: "--max-open", o: Options{MaxOpen: 60}, make: func(s *tapescript.Script) {
			for i := range 100 {
				s.Open(int64(3+i), "f"+strconv.Itoa(i), event.OpenCreat|2)
			}
		}},
		{name: "--max-memory", o: Options{MaxMemory: 400 << 20, Pace: PaceRecorded}, make: func(s *tapescript.Script) {
			const size = 700 << 20
			s.Open(3, "f", event.OpenCreat|2)
			s.On(event.OpFtruncate, 3, 0, 0, [6]uint64{0, size})
			s.On(event.OpPread64, 3, size, 0, [6]uint64{0, 0x1000, size, 0}, event.Buf{
				Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: size, Omitted: true,
			})
			anHourLater(s)
		}},
		{name: "--max-time", o: Options{MaxTime: 5 * time.Second, Pace: PaceRecorded}, make: anHourLater},
	} {
		t.Run(l.name, func(t *testing.T) {
			l.o.Into = filepath.Join(t.TempDir(), "out")
			if l.root {
				testenv.NeedRoot(t)
				l.o.Into = testenv.MountImage(t, "tmpfs", 16)
			}
			s := tapescript.New(t)
			s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
			l.make(s)
			_, err := Run(t.Context(), s.Close(), &l.o)
			if err == nil || !strings.Contains(err.Error(), l.name) {
				t.Errorf("error is %v, want one that names %s", err, l.name)
			}
			if l.o.MaxOpen > 0 && err != nil && !strings.Contains(err.Error(), "more than 60 files open") {
				t.Errorf("error is %v, want one with the limit, 60", err)
			}
			if _, err := os.Stat(filepath.Join(l.o.Into, "work/first")); err != nil {
				t.Error(err)
			}
		})
	}
}

// The limits that a replay has by itself do not end one that needs as much as there is: a small
// file system may be filled.
func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	for _, fs := range []string{"tmpfs", "ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			mib := 64
			if fs == "xfs" || fs == "btrfs" {
				mib = 400 // they make none that is smaller
			}
			if fs != "tmpfs" {
				testenv.NeedLoop(t)
				testenv.NeedProgram(t, "mkfs."+fs)
			}
			into := filepath.Join(testenv.MountImage(t, fs, mib), "out")
			s := tapescript.New(t)
			const size = 20 << 20
			s.Open(3, "f", event.OpenCreat|2)
			s.On(event.OpPwrite64, 3, size, 0, [6]uint64{0, 0x1000, size, 0}, event.Buf{
				Arg: 1, Kind: event.KindBuf, Len: size, Omitted: true,
			})
			s.On(event.OpFallocate, 3, 0, 0, [6]uint64{0, 0, 0, size})
			for i := range 200 {
				s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "d"+strconv.Itoa(i))
			}
			rep, err := Run(t.Context(), s.Close(), &Options{Into: into})
			if err != nil || !rep.OK() {
				t.Errorf("%v, %+v", err, rep)
			}
		})
	}
}

// A replay that is interrupted ends also while no call is due, and leaves what it has made.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := tapescript.New(t)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
	anHourLater(s)
	into := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := filepath.Join(into, "work/first")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(first); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := Run(ctx, s.Close(), &Options{Into: into, Pace: PaceRecorded})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(first); err != nil {
		t.Error(err)
	}
}
