// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestFullDisk records onto a disk that fills up: the command goes on, and the tape
// is valid and says what is missing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fs, command string }{
		{"random content", "tmpfs", "for i in 1 2 3 4; do head -c 8000000 /dev/urandom > /dev/shm/x.$$; done; rm /dev/shm/x.$$; echo finished"},
		{"many zeros", "tmpfs", "head -c 100000000 /dev/zero > /dev/shm/x.$$; rm /dev/shm/x.$$; echo finished"},
		{"the command fills the disk", "tmpfs", "head -c 100000000 /dev/urandom > fill; echo finished"},
		{"ext4", "ext4", "for i in 1 2 3 4; do head -c 8000000 /dev/urandom > /dev/shm/x.$$; done; rm /dev/shm/x.$$; echo finished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.fs != "ext4" {
				testenv.Short(t, "fills a disk")
			}
			forBackends(t, func(t *testing.T, backend string) {
				disk := testenv.MountImage(t, tt.fs, 24)
				e := &env{iotape: testenv.Iotape(t), dir: disk}
				stdout, stderr := e.run(t, e.iotape, "record", "-o", "a.tape", "--backend", backend, "--", "sh", "-c",
					tt.command)
				if stdout != "finished\n" {
					t.Errorf("the command did not finish: %q", stdout)
				}
				t.Log(stderr)
				contains(t, stderr, "iotape: the recording is not whole: write stream: write "+
					"a.tape.partial/stream: no space left on device")
				contains(t, stderr, "LOST ")
				e.run(t, e.iotape, "check", "a.tape")
				stdout, _ = e.run(t, e.iotape, "stat", "--json", "a.tape")
				var s struct {
					Calls   uint64
					Quality struct {
						Lost   uint64 `json:"lost_records"`
						Marks  uint64 `json:"loss_marks"`
						Losses []struct{ Reason string }
					}
				}
				if err := json.Unmarshal([]byte(stdout), &s); err != nil {
					t.Fatal(err)
				}
				if s.Calls == 0 || s.Quality.Lost == 0 || s.Quality.Marks == 0 || len(s.Quality.Losses) == 0 {
					t.Errorf("the tape does not say what is lost: %+v", s)
				}
				if left, _ := filepath.Glob(filepath.Join(disk, "*.partial")); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		})
	}
}

// TestNoRoom records onto a disk without any room at all.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	disk := testenv.MountImage(t, "tmpfs", 2)
	if err := os.WriteFile(filepath.Join(disk, "fill"), make([]byte, 2<<20-64<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	e := &env{iotape: testenv.Iotape(t), dir: disk}
	stdout, stderr, err := e.try(t, e.iotape, "record", "-o", "a.tape", "--", "echo", "hello")
	if err == nil || stdout != "" {
		t.Errorf("%v, output %q", err, stdout)
	}
	contains(t, stderr, "no space left on device")
	contains(t, stderr, "hint: free some space")
	if left, _ := filepath.Glob(filepath.Join(disk, "*.partial")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
