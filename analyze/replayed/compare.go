// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// Compare replays a tape on several targets, to put the results side by side.
type Compare struct {
	Options replay.Options // Into and Progress are set for each run
	Targets []Target
	Runs    int  // on each target
	Warm    bool // leave the page cache as it is
	// Progress is called now and then; nil: nobody.
	Progress func(phase string, done, total uint64)
}

// Target is a directory that a tape is replayed below.
type Target struct{ Name, Dir string }

// Run replays on all targets, one run of each after the other.
func (x *Compare) Run(ctx context.Context, t *trace.Tape) (*compare.Comparison, error) {
	r := NewComparison(t)
	for _, p := range x.Targets {
		r.Targets = append(r.Targets, compare.Target{Name: p.Name})
		r.Lines = append(r.Lines, fmt.Sprintf("%s: %s, a file system of type %s", p.Name, p.Dir, fileSystem(p.Dir)))
	}
	if x.Runs > 1 {
		r.Lines = append(r.Lines, fmt.Sprintf("%d runs on each, in turn", x.Runs))
	}
	for n := range x.Runs {
		for i, p := range x.Targets {
			x.Options.Progress = func(phase string, done, total uint64) {
				if x.Progress != nil {
					x.Progress(fmt.Sprintf("%s, run %d of %d: %s", p.Name, n+1, x.Runs, phase), done, total)
				}
			}
			run, recorded, err := x.once(ctx, t, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, Interrupted(ctx, err))
			}
			r.Recorded = recorded
			r.Targets[i].Runs = append(r.Targets[i].Runs, run)
		}
	}
	return r, nil
}

// once replays on one target.
func (x *Compare) once(ctx context.Context, t *trace.Tape,
	p Target) (run compare.Run, recorded compare.Side, err error) {
	dir, err := os.MkdirTemp(p.Dir, "iotape-compare-")
	if err != nil {
		return run, recorded, err
	}
	defer func() {
		if e := removeTree(dir); err == nil && e != nil {
			err = fmt.Errorf("remove what was replayed: %w", e)
		}
	}()
	unix.Sync()
	if !x.Warm && os.Geteuid() == 0 {
		// Where that is not allowed, in a container say, the run is warm.
		_ = os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)
	}
	o := x.Options
	o.Into = filepath.Join(dir, "root")
	before := ChildUsage()
	rep, err := replay.Run(ctx, t, &o)
	if err != nil {
		return run, recorded, err
	}
	run, recorded = RunOf(rep, &o, before)
	if run.SyncNS, err = syncTime(dir); err != nil {
		return run, recorded, err
	}
	run.SpaceBytes, err = allocated(dir)
	return run, recorded, err
}

// syncTime returns how long the file system of a directory takes to write all back.
func syncTime(dir string) (int64, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	start := time.Now()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return 0, fmt.Errorf("sync %s: %w", dir, err)
	}
	return time.Since(start).Nanoseconds(), nil
}

// allocated returns the bytes of the blocks of all files below a directory.
func allocated(dir string) (bytes int64, err error) {
	seen := map[[2]uint64]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !d.IsDir() {
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		bytes += st.Blocks * 512
		return nil
	})
	return bytes, err
}

// removeTree removes a directory whose files may have no permissions for their owner.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// fileSystem names the type of the file system that a directory is on, by its magic
// number (linux/magic.h).
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext2, 3 or 4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case 0x2fc12fc1:
		return "zfs"
	}
	return fmt.Sprintf("0x%x", uint32(st.Type))
}

// Interrupted says of an error of a replay whose context ended that it was interrupted.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("replay was interrupted; the directory holds what was replayed so far")
	}
	return err
}
