// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/fleet/staging"
)

// TestStrangeFiles puts links, FIFOs, hard links and directories in the place of each file of a collector's data and
// runs it: it waits for none, changes nothing elsewhere, and stores what comes for other hosts.
func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	name, all, want := sequence(1, 40)
	files := map[string]string{
		"about":    filepath.Join("staging", "db7", name, staging.AboutFile),
		"next":     filepath.Join("staging", "db7", name, staging.AboutFile+".next"),
		"end":      filepath.Join("staging", "db7", name, staging.EndFile+".next"),
		"stream":   filepath.Join("staging", "db7", name, staging.StreamFile),
		"commits":  filepath.Join("staging", "db7", name, staging.CommitsFile),
		"host":     "hosts/db7.json",
		"new host": "hosts/db7.json.next",
		"position": "position.json",
		"new":      "position.json.next",
	}
	kinds := map[string]func(outside, at string) error{
		"link":      os.Symlink,
		"hard link": os.Link,
		"FIFO":      func(_, at string) error { return unix.Mkfifo(at, 0o600) },
		"device":    func(_, at string) error { return unix.Mknod(at, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) },
	}
	for what, file := range files {
		for kind, place := range kinds {
			t.Run(what+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := newBench(t)
				outside := filepath.Join(t.TempDir(), "outside")
				at := filepath.Join(s.data, file)
				err := errors.Join(os.WriteFile(outside, []byte("kept"), 0o600), os.MkdirAll(filepath.Dir(at), 0o700))
				if err != nil {
					t.Fatal(err)
				}
				if err := place(outside, at); errors.Is(err, unix.EPERM) {
					t.Skipf("cannot make a %s: %v", kind, err)
				} else if err != nil {
					t.Fatal(err)
				}
				s.run(nil)
				for _, host := range []string{"db7", "fine"} {
					for _, p := range all {
						s.publish(host, p.Append(nil), p.Number-1)
					}
				}
				s.wait("the end of who can be written", func() bool { return s.ended("fine", name) != nil })
				if string(s.stored("fine", name)) != string(want) {
					t.Error("the stream of the other host is not what was sent")
				}
				s.wait("db7", func() bool { return s.ended("db7", name) != nil || s.host("db7").Problem != "" })
				s.stop()
				if b, err := os.ReadFile(outside); err != nil || string(b) != "kept" {
					t.Errorf("a file elsewhere has %q, %v", b, err)
				}
			})
		}
	}
}

// TestStrangeDirectories does so with directories: the collector does not begin, or the host waits.
func TestStrangeDirectories(t *testing.T) {
	t.Parallel()
	name, all, _ := sequence(1, 40)
	for _, dir := range []string{"staging", "hosts", "staging/db7", "staging/db7/" + name} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			s := newBench(t)
			outside := t.TempDir()
			at := filepath.Join(s.data, dir)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(outside, at)); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(dir, "/") {
				s.run(nil)
				for _, p := range all {
					s.publish("db7", p.Append(nil), p.Number-1)
				}
				s.wait("the problem of db7", func() bool { return s.heard("is a symbolic link") })
				s.stop()
			} else if _, err := New(t.Context(), s.nc, &Options{Data: s.data}, nil); err == nil ||
				!strings.Contains(err.Error(), "is a symbolic link") {
				t.Errorf("got %v, want an error about the link", err)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("a directory elsewhere has %v, %v", entries, err)
			}
		})
	}
}
