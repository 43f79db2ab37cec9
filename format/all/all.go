// Package all knows the foreign trace formats, and opens their files as tapes. A
// program that imports it, be it for its side effect alone, can trace.Open them:
//
//	import _ "iotape/format/all"
package all

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"iotape/format"
	"iotape/format/catlog"
	"iotape/format/dio"
	"iotape/format/otlp"
	"iotape/format/shiviz"
	"iotape/format/snia"
	"iotape/seal"
	"iotape/trace"
)

// formats is in the order in which files are matched: those with a sure mark come
// first.
var formats = []*format.Format{
	&snia.Format,
	&dio.Format,
	&catlog.Format,
	&otlp.Format,
	&shiviz.Format,
}

// Formats returns what is known. The caller must not change it.
func Formats() []*format.Format { return formats }

// ByID returns the format with an ID, nil if there is none.
func ByID(id string) *format.Format {
	for _, f := range formats {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// ByName returns the format that a file's name stands for, nil if there is none. The
// longest suffix counts.
func ByName(name string) (found *format.Format) {
	longest := 0
	for _, f := range formats {
		for _, s := range f.Suffixes {
			if len(s) > longest && strings.HasSuffix(name, s) {
				longest, found = len(s), f
			}
		}
	}
	return found
}

// Identify returns the format of a file: by its content and, where that does not say,
// by its name. It is nil if no format that is read matches.
func Identify(f *os.File) (*format.Format, error) {
	head := make([]byte, format.MatchBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	for _, f := range formats {
		if f.Read != nil && f.Match != nil && f.Match(head) {
			return f, nil
		}
	}
	if f := ByName(f.Name()); f != nil && f.Read != nil && f.Match == nil {
		return f, nil
	}
	return nil, nil
}

// Read makes streams of a foreign file, in files in dir: one for each host. from may be
// nil; then the file is identified. program is who converts, with its version.
func Read(ctx context.Context, in *os.File, from *format.Format, dir, program string) (streams []string, done *format.Done, err error) {
	if from == nil {
		if from, err = Identify(in); err != nil {
			return nil, nil, err
		}
		if from == nil {
			return nil, nil, fmt.Errorf("%s: %w, and no other format that is known", in.Name(), trace.ErrNotATrace)
		}
	}
	im := format.NewImport(dir, program)
	err = from.Read(ctx, in, im)
	streams, closeErr := im.Close()
	if err == nil {
		err = closeErr
	}
	if err == nil && len(streams) == 0 {
		err = errors.New("no events in it")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", in.Name(), from.Name, err)
	}
	return streams, &im.Done, nil
}

func init() { trace.RegisterOpener(open) }

// open opens a stream or a foreign file as a tape that is gone when it is closed.
func open(ctx context.Context, path string) (_ *trace.Tape, err error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	dir, err := os.MkdirTemp("", "iotape-open-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	streams := []string{path}
	if !trace.IsStream(in) {
		if streams, _, err = Read(ctx, in, nil, dir, "iotape"); err != nil {
			return nil, err
		}
	}
	if len(streams) > 1 {
		return nil, fmt.Errorf("%s has events of %d hosts; run: iotape convert %s NAME.tape", path, len(streams), path)
	}
	tape := filepath.Join(dir, "open.tape")
	if err := sealed(ctx, streams[0], tape); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if streams[0] != path {
		os.Remove(streams[0])
	}
	t, err := trace.OpenTape(tape)
	if err != nil {
		return nil, err
	}
	t.OnClose(func() error { return os.RemoveAll(dir) })
	return t, nil
}

func sealed(ctx context.Context, stream, tape string) error {
	in, err := os.Open(stream)
	if err != nil {
		return err
	}
	defer in.Close()
	tw, err := trace.CreateTape(tape)
	if err != nil {
		return err
	}
	defer tw.Abort()
	stats, err := seal.Seal(ctx, bufio.NewReaderSize(in, 1<<20), tw, nil)
	if err != nil {
		return err
	}
	return tw.Close(stats.Manifest("iotape"))
}
