// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
)

// TestStrangeFilesOfTape puts a FIFO and a link in the place of each file of a tape: opening,
// salvaging and checking neither wait nor follow.
func TestStrangeFilesOfTape(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	for name, put := range map[string]func(path string) error{
		"FIFO": func(path string) error { return unix.Mkfifo(path, 0o666) },
		"link": func(path string) error { return os.Rename(path, secret) },
	} {
		for _, file := range []string{ManifestName, EventsName, ContentName, IndexName, AnnotationsName} {
			t.Run(name+"/"+file, func(t *testing.T) {
				dir := makeTape(t, 10)
				path := filepath.Join(dir, file)
				if _, err := os.Stat(path); err != nil { // a derived file: it may be anything
					if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if name == "link" {
					if err := errors.Join(put(path), os.Symlink(secret, path)); err != nil {
						t.Fatal(err)
					}
				} else if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Fatal(err)
				}
				tape, err := Open(dir)
				if err == nil {
					defer tape.Close()
					_, indexErr := tape.Derived()
					_, annotationsErr := tape.Annotations()
					err = errors.Join(indexErr, annotationsErr)
				}
				if !errors.Is(err, wholefile.ErrNotRegular) {
					t.Errorf("opened: %v; want an error that wraps ErrNotRegular", err)
				}
				if salvaged, err := Salvage(dir); err == nil {
					if _, ok := salvaged.Manifest().Files[file]; ok && file != ManifestName && salvaged.NoManifest() {
						t.Errorf("salvage lists %s", file)
					}
					salvaged.Close()
				}
			})
		}
	}
}

// TestNothingIsWrittenThroughLinks plants links where a tape's files are about to be written.
func TestNothingIsWrittenThroughLinks(t *testing.T) {
	dir := makeTape(t, 10)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("important"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{IndexName, AnnotationsName, TimelineName} {
		for _, suffix := range []string{"", ".tmp", ".partial"} {
			if err := os.Symlink(victim, filepath.Join(dir, name+suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if err := errors.Join(tape.SetDerived(t.Context(), 1, nil), tape.SetAnnotations([]byte("payload"))); err != nil {
		t.Fatal(err)
	}
	f, err := tape.CreateDerived(TimelineName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("timeline"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Commit(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(victim); string(b) != "important" {
		t.Errorf("the file behind the links has %q, %v; want it unchanged", b, err)
	}
	if b, err := tape.Annotations(); string(b) != "payload" {
		t.Errorf("the annotations are %q, %v; want payload", b, err)
	}
	if _, err := tape.Derived(); err != nil {
		t.Errorf("the index: %v", err)
	}
	st, err := os.Lstat(filepath.Join(dir, TimelineName))
	if err != nil || st.Mode()&fs.ModeSymlink != 0 {
		t.Errorf("the timeline is %v, %v; want a regular file", st, err)
	}
}
