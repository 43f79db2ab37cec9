// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// Staged is a tape that is made of something else than a recording. Until Publish it is in
// the directory NAME.partial beside its name.
type Staged struct {
	Tape     string  // its name
	Work     string  // the directory for what is unfinished
	Index    Indexer // called when the tape has its name; nil: nobody
	Reporter Reporter
	manifest *trace.Manifest
	lock     *wholefile.Dir // of Work
}

// Stage begins a tape. The caller calls Abandon in the end, after Publish too.
func Stage(name string) (*Staged, error) {
	if err := MustNotExist(name, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	s := &Staged{Tape: filepath.Clean(name)}
	s.Work = s.Tape + PartialSuffix
	var err error
	if s.lock, err = Reserve(s.Work); err != nil {
		return nil, err
	}
	return s, nil
}

// Write fills the tape by a function that returns its manifest.
func (s *Staged) Write(fill func(tw *trace.TapeWriter) (*trace.Manifest, error)) error {
	tw, err := trace.CreateTape(filepath.Join(s.Work, tapeName))
	if err != nil {
		return err
	}
	defer tw.Abort()
	if s.manifest, err = fill(tw); err != nil {
		return err
	}
	return tw.Close(s.manifest)
}

// Manifest returns the manifest that Write's function returned.
func (s *Staged) Manifest() *trace.Manifest { return s.manifest }

// Publish gives the tape its name and returns its size in bytes.
func (s *Staged) Publish(ctx context.Context) (size int64, err error) {
	j := &Job{Work: s.Work, Out: s.Tape, Index: s.Index, Reporter: s.Reporter}
	if err := j.publish(filepath.Join(s.Work, tapeName)); err != nil {
		return 0, err
	}
	j.index(ctx)
	return DirBytes(s.Tape), nil
}

// Abandon takes an unfinished tape away. After Publish it does nothing.
func (s *Staged) Abandon() {
	if s.lock == nil {
		return
	}
	os.RemoveAll(s.Work)
	s.lock.Unlock()
	s.lock = nil
}

// MustNotExist returns an error with a hint if there is something at path.
func MustNotExist(path, hintText string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return hint.With(fmt.Errorf("%s exists", path), "%s", hintText)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// TrimTape returns a name without the extension .tape.
func TrimTape(name string) string {
	const ext = ".tape"
	if filepath.Ext(name) == ext {
		return name[:len(name)-len(ext)]
	}
	return name
}

// DirBytes returns the sizes of the regular files below a directory, in bytes.
func DirBytes(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
			n += fi.Size()
		}
		return nil
	})
	return n
}

// MakeOptions for Make.
type MakeOptions struct {
	Index    Indexer                    // see Staged
	Reporter Reporter                   // nil: Silent
	Unit     func(amount uint64) string // writes the amounts of the progress
}

// A Made tape is what Make made.
type Made struct {
	Tape     string // its name
	Manifest *trace.Manifest
	Bytes    int64 // of its files
}

// An Update says how far some work is, see Progress.
type Update = func(what string, done, total uint64)

// Make makes a tape of something else than a recording, by a function that fills it and
// returns its manifest. If that fails there is no tape.
func Make(
	ctx context.Context, name string, o *MakeOptions,
	fill func(tw *trace.TapeWriter, update Update) (*trace.Manifest, error),
) (*Made, error) {
	s, err := Stage(name)
	if err != nil {
		return nil, err
	}
	defer s.Abandon()
	s.Index, s.Reporter = o.Index, OrSilent(o.Reporter)
	progress := s.Reporter.Progress(o.Unit)
	defer progress.Done()
	update := func(what string, done, total uint64) { progress.Update(what, int64(done), int64(total)) }
	err = s.Write(func(tw *trace.TapeWriter) (*trace.Manifest, error) { return fill(tw, update) })
	progress.Done()
	if err != nil {
		return nil, err
	}
	size, err := s.Publish(ctx)
	if err != nil {
		return nil, err
	}
	return &Made{Tape: s.Tape, Manifest: s.Manifest(), Bytes: size}, nil
}
