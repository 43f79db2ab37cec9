package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// comparing is what compare was asked for.
type comparing struct {
	options replay.Options
	targets []place
	runs    int
	warm    bool // leave the caches
}

// place is one directory that a tape is replayed below.
type place struct{ name, dir string }

func newCompare(c *console) *cobra.Command {
	x := &comparing{}
	var on []string
	var asJSON bool
	var html, checks, pace string
	cmd := &cobra.Command{
		Use:   "compare TAPE --on NAME=DIR --on NAME=DIR …",
		Short: "Replay a tape on several file systems and put the results side by side",
		Long: `Compare replays a tape below each DIR in turn, in a new directory that is removed
afterwards, and prints elapsed time, system and user time, the space that is used, and
the latencies of each operation, beside each other and beside the recording.

Before each run all is written back and, as root, the page cache is dropped, unless
--warm is given. With --runs N, each target is replayed on N times, in turn, and the
table has the median with the least and the largest. Run it on an idle machine.`,
		Example: `  iotape compare db.tape --on ext4=/mnt/a --on xfs=/mnt/b --on btrfs=/mnt/c
  iotape compare db.tape --on ext4=/mnt/a --on xfs=/mnt/b --runs 5 --html fs.html
  iotape compare db.tape --on ssd=/mnt/ssd --verify --json | jq .targets.targets`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  done; all calls succeeded or failed as recorded and, with --verify, everything agreed", "1  something differed somewhere", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if x.options.Checks, err = replay.ParseChecks(checks); err != nil {
				return usageError{fmt.Errorf("--verify: %w", err)}
			}
			if x.options.Pace, err = replay.ParsePace(pace); err != nil {
				return usageError{fmt.Errorf("--pace: %w", err)}
			}
			if x.runs < 1 || x.runs > 1000 {
				return usageError{errors.New("--runs: it is a number from 1 to 1000")}
			}
			if x.targets, err = places(on); err != nil {
				return err
			}
			t, err := openTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			r, err := x.run(cmd.Context(), c, t)
			if err != nil {
				return err
			}
			p := r.Page()
			if html != "" {
				if err := writePage(p, html); err != nil {
					return err
				}
			}
			render := p.Text
			if asJSON {
				render = p.JSON
			}
			err = c.print(func(w *bufio.Writer) error { return render(w) })
			if err == nil && !r.OK() {
				return &statusError{Status: exitFound}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&on, "on", nil, "a target: `NAME=DIR`; may be given several times")
	f.IntVar(&x.runs, "runs", 1, "replay `N` times on each target, in turn")
	f.BoolVar(&x.warm, "warm", false, "leave the page cache as it is before each run")
	f.StringVar(&pace, "pace", "afap", "`WHEN` to make calls: afap, think or recorded, as of iotape replay")
	f.StringVar(&checks, "verify", "none", "compare with the recording, as of iotape replay; it takes time of its own")
	f.Lookup("verify").NoOptDefVal = "all"
	sharedFlag(f, &x.options.Shared)
	f.StringVar(&html, "html", "", "write a page with pictures to `FILE`, too")
	f.BoolVar(&asJSON, "json", false, "one JSON object, with times in ns")
	return cmd
}

// places reads the targets of the command line.
func places(on []string) (list []place, err error) {
	if len(on) == 0 {
		return nil, usageError{errors.New("a target is needed: --on NAME=DIR")}
	}
	for _, s := range on {
		name, dir, ok := strings.Cut(s, "=")
		if !ok || name == "" || dir == "" {
			return nil, usageError{fmt.Errorf("--on %s: it is NAME=DIR", s)}
		}
		for _, p := range list {
			if p.name == name {
				return nil, usageError{fmt.Errorf("--on %s: there is a target of that name already", s)}
			}
		}
		st, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			return nil, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
		}
		list = append(list, place{name, dir})
	}
	return list, nil
}

// run replays on all targets, one run of each after the other.
func (x *comparing) run(ctx context.Context, c *console, t *trace.Tape) (*compare.Comparison, error) {
	r := newComparison(t)
	for _, p := range x.targets {
		r.Targets = append(r.Targets, compare.Target{Name: p.name})
		r.Lines = append(r.Lines, fmt.Sprintf("%s: %s, a file system of type %s", p.name, p.dir, fileSystem(p.dir)))
	}
	if x.runs > 1 {
		r.Lines = append(r.Lines, fmt.Sprintf("%d runs on each, in turn", x.runs))
	}
	progress := c.progress(report.Count)
	defer progress.Done()
	for n := range x.runs {
		for i, p := range x.targets {
			x.options.Progress = func(phase string, done, total uint64) {
				progress.Update(fmt.Sprintf("%s, run %d of %d: %s", p.name, n+1, x.runs, phase), int64(done), int64(total))
			}
			run, recorded, err := x.once(ctx, t, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, replayError(ctx, err))
			}
			r.Recorded = recorded
			r.Targets[i].Runs = append(r.Targets[i].Runs, run)
		}
	}
	return r, nil
}

// once replays on one target.
func (x *comparing) once(ctx context.Context, t *trace.Tape, p place) (run compare.Run, recorded compare.Side, err error) {
	dir, err := os.MkdirTemp(p.dir, "iotape-compare-")
	if err != nil {
		return run, recorded, err
	}
	defer func() {
		if e := removeTree(dir); err == nil && e != nil {
			err = fmt.Errorf("remove what was replayed: %w", e)
		}
	}()
	unix.Sync()
	if !x.warm && os.Geteuid() == 0 {
		// Where that is not allowed, in a container say, the run is warm.
		_ = os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)
	}
	o := x.options
	o.Into = filepath.Join(dir, "root")
	before := childUsage()
	rep, err := replay.Run(ctx, t, &o)
	if err != nil {
		return run, recorded, err
	}
	run, recorded = runOf(rep, &o, before)
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
