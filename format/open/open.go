// SPDX-License-Identifier: Apache-2.0

package open

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/tapes"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// ErrUnknownFormat is wrapped by Any for a file that is neither iotape's nor of a foreign
// format that is known. It is a trace.ErrNotATrace.
var ErrUnknownFormat = all.ErrUnknownFormat

// program is what the manifest of a temporary tape names as its maker.
const program = "iotape"

// Any opens the trace at path. What is no tape is made into one in os.TempDir, which Close
// of the returned tape removes; its Name is path. That takes the time of reading all of it,
// and stops when the context ends. A piped stream is read with the keys of the context (see
// chain.WithKeys). A recording's directory gives the events of its stream, without the file
// trees that iotape seal adds to them; a stream that is cut off gives the events before the
// cut, and a manifest that is Incomplete.
//
// "-" is the standard input; a foreign file may be compressed with gzip, zstd or xz. A directory
// may have the files of one run of strace -ff.
//
// If nothing can be made of it, the error wraps ErrUnknownFormat or one of package trace.
func Any(ctx context.Context, path string) (*trace.Tape, error) {
	if path == all.StandardInput {
		return temporary(ctx, path)
	}
	t, err := trace.Open(path)
	switch {
	case errors.Is(err, trace.ErrNotSealed) || errors.Is(err, trace.ErrForeign):
	case err != nil && all.IsFamily(path):
		return temporary(ctx, path)
	case err != nil && all.HintOfDirectory(path) != "":
		return nil, fmt.Errorf("%s: %s: %w", path, all.HintOfDirectory(path), all.ErrUnknownFormat)
	default:
		return t, err
	}
	file := path
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		file = filepath.Join(path, trace.StreamName)
	}
	if t, err = temporary(ctx, file); err != nil {
		return nil, err
	}
	t.SetName(path)
	return t, nil
}

// Family opens the files that strace -ff wrote in one run (NAME.PID) as one tape, as Any does.
func Family(ctx context.Context, paths []string) (*trace.Tape, error) {
	return making(ctx, paths[0], func(dir string) (*os.File, error) { return all.OpenFamily(ctx, paths, dir) })
}

// temporary makes a tape of a file. The tape is removed when it is closed.
func temporary(ctx context.Context, path string) (*trace.Tape, error) {
	return making(ctx, path, func(dir string) (*os.File, error) { return all.Open(ctx, path, dir) })
}

// making makes a tape of what open returns, which may use a directory meanwhile. path is its
// name for messages.
func making(ctx context.Context, path string, open func(dir string) (*os.File, error)) (_ *trace.Tape, err error) {
	work, err := wholefile.TempDir("iotape-open")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			work.Close()
		}
	}()
	dir := work.Temp
	in, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	tape := filepath.Join(dir, "open.tape")
	if err := makeTape(ctx, in, dir, tape); err != nil {
		switch {
		case path != all.StandardInput:
			return nil, fmt.Errorf("%s: %w", path, err)
		case errors.Is(err, ErrUnknownFormat):
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return nil, err // which names it
	}
	t, err := trace.Open(tape)
	if err != nil {
		return nil, err
	}
	t.OnClose(work.Close)
	return t, nil
}

// makeTape makes a tape of a stream, or of a foreign file.
func makeTape(ctx context.Context, in *os.File, dir, tape string) error {
	tw, err := trace.CreateTape(tape)
	if err != nil {
		return err
	}
	defer tw.Abort()
	var m *trace.Manifest
	if trace.IsStream(in) || pipe.Is(in) {
		m, err = tapes.Stream(ctx, in, tw, program, nil)
	} else {
		var streams []string
		if streams, _, err = all.Read(ctx, in, nil, dir, program); err != nil {
			return err
		}
		m, err = tapes.Hosts(ctx, streams, tw, program, nil)
	}
	if err != nil {
		return err
	}
	return tw.Close(m)
}
