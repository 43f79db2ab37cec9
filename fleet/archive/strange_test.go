// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/pipe/objectstore"
)

// TestStrangeFiles puts links and FIFOs in the place of the files and directories that the archive uses: it waits for
// none, and neither changes nor removes anything elsewhere. Whoever runs the collector must not reach with them what
// only the archive's user may change.
func TestStrangeFiles(t *testing.T) {
	const host = "db7"
	stream := stage(t, t.TempDir(), host, 1, 7, 0, 3, staging.ReasonStop)
	job := filepath.Join("archive", "jobs", host+"-"+stream)
	for _, at := range []string{
		"archive", "archive/jobs", "archive/lock", "archive/refused", job, filepath.Join(job, planName),
		filepath.Join(job, planName+".next"), filepath.Join(job, storedName+".next"), filepath.Join(job, refusedName),
		filepath.Join(job, removedName), "staging", "staging/" + host, "staging/db8",
		filepath.Join("staging", host, stream, staging.StreamFile),
		filepath.Join("staging", host, stream, staging.EndFile),
	} {
		for _, kind := range []string{"directory", "file", "hard link", "FIFO"} {
			t.Run(at+"/"+kind, func(t *testing.T) {
				data, elsewhere, tapes := t.TempDir(), t.TempDir(), t.TempDir()
				stage(t, data, host, 1, 7, 0, 3, staging.ReasonStop)
				for _, name := range []string{"theirs/file", "file"} {
					err := errors.Join(os.MkdirAll(filepath.Join(elsewhere, "theirs"), 0o700),
						os.WriteFile(filepath.Join(elsewhere, name), []byte("kept"), 0o600))
					if err != nil {
						t.Fatal(err)
					}
				}
				to := filepath.Join(data, at)
				if err := errors.Join(os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o700)); err != nil {
					t.Fatal(err)
				}
				err := map[string]func() error{
					"directory": func() error { return os.Symlink(elsewhere, to) },
					"file":      func() error { return os.Symlink(filepath.Join(elsewhere, "file"), to) },
					"hard link": func() error { return os.Link(filepath.Join(elsewhere, "file"), to) },
					"FIFO":      func() error { return unix.Mkfifo(to, 0o600) },
				}[kind]()
				if err != nil {
					t.Fatal(err)
				}
				store, err := objectstore.Open(t.Context(), tapes)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 2 { // and what the first run left
					_, err := Run(ctx, &Options{Data: data, Store: store, sealWith: seal})
					if errors.Is(err, context.DeadlineExceeded) {
						t.Fatal("it waits")
					}
				}
				for _, name := range []string{"theirs/file", "file"} {
					if b, err := os.ReadFile(filepath.Join(elsewhere, name)); err != nil || string(b) != "kept" {
						t.Errorf("elsewhere, %s has %q, %v", name, b, err)
					}
				}
				for _, dir := range []string{"", "theirs"} {
					entries, err := os.ReadDir(filepath.Join(elsewhere, dir))
					if want := map[string]int{"": 2, "theirs": 1}[dir]; err != nil || len(entries) != want {
						t.Errorf("elsewhere, %q has %v, %v", dir, entries, err)
					}
				}
			})
		}
	}
}
