// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestBlockRequests records what a disk is asked to do: the data of a synced file reach it within the
// fsync, with the file's name, and are read from it when they left the page cache. The report
// finds both.
func TestBlockRequests(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it makes file systems")
	testenv.NeedBPF(t)
	const size = 3 << 20
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			t.Parallel()
			dir := testenv.MountImage(t, fs, 64)
			e := newEnv(t, testenv.Iotape(t), "", nil)
			file := filepath.Join(dir, "data")
			_, stderr, status := e.records(t, []string{"--block-requests", "--backend", "ebpf"}, "sh", "-c",
				fmt.Sprintf("dd if=/dev/urandom of=%[1]s bs=64k count=%[2]d conv=fsync status=none; "+
					"dd if=%[1]s iflag=nocache count=0 status=none; dd if=%[1]s of=/dev/null bs=1M status=none",
					file, size>>16))
			if status != 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			contains(t, stderr, "lost 0")
			var st unix.Stat_t
			if err := unix.Stat(dir, &st); err != nil {
				t.Fatal(err)
			}
			written, read, flushes, queued, missed := int64(0), int64(0), 0, 0, int64(0)
			e.events(t, "a.tape", func(ev *event.Event) {
				if ev.Flags&event.Missed != 0 && ev.Op == event.OpRead && ev.FileArg(0).Name() == file {
					missed += ev.Ret
				}
				if ev.Kind != event.Call || ev.Spec().Class != event.Block || fs != "btrfs" && ev.Args[1] != st.Dev {
					return // of another disk
				}
				if ev.Flags&event.Delays != 0 && ev.DelayBefore > 0 {
					queued++
				}
				f := ev.FileArg(0)
				switch {
				case ev.Op == event.OpBlockWrite && f != nil && f.Name() == file:
					written += ev.Ret
				case ev.Op == event.OpBlockRead && ev.Exit > ev.Enter:
					read += ev.Ret
				case ev.Op == event.OpBlockFlush || ev.Args[5]&(event.BlockFUA|event.BlockPreFlush) != 0:
					flushes++
				}
			})
			if written < size || read < size || flushes == 0 {
				t.Errorf("of %d bytes %d are written to the disk and %d read from it, with %d flushes", size, written,
					read, flushes)
			}
			if missed == 0 || missed == size { // the first read; the others find what was read ahead
				t.Errorf("reads of %d bytes missed the page cache, want some of %d", missed, size)
			}
			if queued == 0 {
				t.Error("no request says how long it was queued")
			}
			out, _ := e.run(t, e.iotape, "report", "a.tape", "--section", "block", "--json")
			var report struct {
				Block struct {
					Syncs []struct {
						Op, File, Process string
						Own               int64 `json:"own_bytes"`
						Took              int64 `json:"took_ns"`
						Busy              int64 `json:"busy_ns"`
					}
					Files []struct {
						File string
						By   []string `json:"written_by"`
					}
					Reads struct {
						Bytes  int64 `json:"waited_bytes"`
						Missed int64 `json:"missed_bytes"`
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			b := &report.Block
			if len(b.Syncs) != 1 || b.Syncs[0].File != file || b.Syncs[0].Own < size || b.Syncs[0].Busy <= 0 ||
				b.Syncs[0].Busy > b.Syncs[0].Took || !strings.HasPrefix(b.Syncs[0].Process, "dd ") {
				t.Errorf("the syncs are %+v, want one fsync of %s by dd, with %d bytes of it", b.Syncs, file, size)
			}
			if b.Reads.Missed < missed {
				t.Errorf("the report has reads of %d bytes that missed the page cache, want %d", b.Reads.Missed, missed)
			}
			if b.Reads.Bytes == 0 { // the others were read ahead
				t.Error("no read waited, want the first")
			}
			found := false
			for _, f := range b.Files {
				found = found || f.File == file && len(f.By) == 1 && strings.HasPrefix(f.By[0], "dd ")
			}
			if !found {
				t.Errorf("the files are %+v, want %s, written by dd", b.Files, file)
			}
			out, _ = e.run(t, e.iotape, "replay", "a.tape", "--into", filepath.Join(e.dir, "again"), "--verify")
			contains(t, out, "all results agree")
		})
	}
}

// TestBlockRequestsNeedBPF: an option that cannot be kept is an error.
func TestBlockRequestsNeedBPF(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testenv.Iotape(t), "", nil)
	for _, flag := range []string{"--block-requests", "--wakeups"} {
		_, stderr, err := e.try(t, e.iotape, "record", "--backend", "ptrace", flag, "--", "true")
		if err == nil || !strings.Contains(err.Error(), "exit status 125") {
			t.Errorf("%s: %v", flag, err)
		}
		contains(t, stderr, flag+" needs eBPF")
	}
}
