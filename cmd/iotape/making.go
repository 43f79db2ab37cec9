package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/trace"
)

// making is a tape that is made of something else than a recording. Until it is
// finished it lies in a directory beside its name.
type making struct {
	out   string
	work  string // directory for what is unfinished
	index bool   // make the Parquet files
	m     *trace.Manifest
}

// startTape begins a tape. If it is not finished it has to be abandoned.
func startTape(out string, index bool) (*making, error) {
	if err := mustNotExist(out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	mk := &making{out: filepath.Clean(out), index: index}
	mk.work = mk.out + partialSuffix
	return mk, os.Mkdir(mk.work, 0o777)
}

// write fills the tape by a function that returns its manifest.
func (mk *making) write(fill func(tw *trace.TapeWriter) (*trace.Manifest, error)) error {
	tw, err := trace.CreateTape(filepath.Join(mk.work, sealingName))
	if err != nil {
		return err
	}
	defer tw.Abort()
	if mk.m, err = fill(tw); err != nil {
		return err
	}
	return tw.Close(mk.m)
}

// finish gives the tape its name and returns its size in bytes.
func (mk *making) finish(ctx context.Context, c *console) (size int64, err error) {
	s := &sealing{work: mk.work, out: mk.out}
	if err := s.publish(filepath.Join(mk.work, sealingName)); err != nil {
		return 0, err
	}
	if mk.index {
		if err := s.indexOut(ctx, c); err != nil {
			c.say("%v", withHint(err, "the tape is whole without; to make it later: iotape index %s", mk.out))
		}
	}
	return dirBytes(mk.out), nil
}

// abandon takes an unfinished tape away. After finish it does nothing.
func (mk *making) abandon() { os.RemoveAll(mk.work) }
