// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// fileSystems are those that a tape is recorded on, and replayed on.
var fileSystems = []string{"ext4", "xfs", "btrfs", "tmpfs"}

// portable are tools that ask of no file system what others do not have. dbench is not
// among them: a listing that did not see the mkdir that it overlapped is not settled.
var portable = []string{"coreutils", "clones", "shared-descriptors", "python-mmap", "fio-pvsync2", "fio-mmap",
	"fio-io_uring", "git-merge"}

// own are tools that do: their tapes are replayed on the file system that they were
// recorded on.
var own = []string{"tar-formats", "fallocate-holes", "rsync-delta", "stress-ng-file", "stress-ng-xattr"}

// TestReplayFileSystems records on each file system and replays there and on the next
// one, in the default order; with IOTAPE_REPEAT above 1 on all, in every order.
func TestReplayFileSystems(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs on four file systems")
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	mounts := map[string]string{}
	for _, fs := range fileSystems {
		mounts[fs] = testenv.MountImage(t, fs, 512)
	}
	for _, r := range slices.Concat(tools, fioRows(), stressRows()) {
		everywhere := slices.Contains(portable, r.name)
		if !everywhere && !slices.Contains(own, r.name) {
			continue
		}
		r.snapshot = r.prep != ""
		for i, fs := range fileSystems {
			t.Run(r.name+"/"+fs, func(t *testing.T) {
				testenv.NeedProgram(t, r.needs...)
				e := &env{iotape: iotape, dir: mounts[fs]}
				tape := filepath.Join(t.TempDir(), "x.tape")
				want := r.record(t, e, tape)
				r.keep(t, fs, tape)
				for k := range fileSystems {
					on := fileSystems[(i+k)%len(fileSystems)]
					if k > 0 && !everywhere || k > 1 && repeat(t) == 1 {
						continue
					}
					t.Run("on "+on, func(t *testing.T) {
						for _, order := range orders[:min(repeat(t), len(orders))] {
							r.replay(t, t, e, tape, into(t, filepath.Join(mounts[on], "again-"+order)), order, want)
						}
					})
				}
			})
		}
	}
}
