package slice

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/trace"
)

// Temporary makes a slice of a tape in a new directory below dir ("": os.TempDir). Close of
// the returned tape removes the directory. It returns ErrEmpty if no event is wanted.
func Temporary(ctx context.Context, t *trace.Tape, dir string, o *Options) (*trace.Tape, error) {
	work, err := os.MkdirTemp(dir, "iotape-filter-*.partial")
	if err != nil {
		return nil, err
	}
	remove := func() error { return os.RemoveAll(work) }
	part, err := into(ctx, t, filepath.Join(work, filepath.Base(t.Name())), o)
	if err != nil {
		if removeErr := remove(); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
		return nil, err
	}
	part.OnClose(remove)
	return part, nil
}

// into makes a slice at a place and opens it.
func into(ctx context.Context, t *trace.Tape, name string, o *Options) (*trace.Tape, error) {
	tw, err := trace.CreateTape(name)
	if err != nil {
		return nil, err
	}
	defer tw.Abort()
	res, err := Tape(ctx, tw, t, o)
	if err != nil {
		return nil, err
	}
	if err := tw.Close(res.Manifest); err != nil {
		return nil, err
	}
	return trace.OpenTape(name)
}
