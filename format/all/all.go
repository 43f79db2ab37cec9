// Package all knows the foreign trace formats, and opens their files as tapes. A
// program that imports it, be it for its side effect alone, can trace.Open them:
//
//	import _ "github.com/iotape/iotape/format/all"
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
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

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/babeltrace"
	"github.com/iotape/iotape/format/blkparse"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/chrometrace"
	"github.com/iotape/iotape/format/dftracer"
	"github.com/iotape/iotape/format/dio"
	"github.com/iotape/iotape/format/dxt"
	"github.com/iotape/iotape/format/fiolog"
	"github.com/iotape/iotape/format/otlp"
	"github.com/iotape/iotape/format/perfetto"
	"github.com/iotape/iotape/format/rows"
	"github.com/iotape/iotape/format/scap"
	"github.com/iotape/iotape/format/shiviz"
	"github.com/iotape/iotape/format/snia"
	"github.com/iotape/iotape/format/straceread"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
)

// formats is in the order in which files are matched: those with a sure mark come
// first.
var formats = []*format.Format{
	&snia.Format,
	&dio.Format,
	&catlog.Format,
	&otlp.Format,
	&shiviz.Format,
	&dxt.Format,
	&fiolog.Format,
	&dftracer.Format,
	&rows.CSV,
	&rows.NDJSON,
	&blkparse.Format,
	&scap.Format,
	&babeltrace.Format,
	&perfetto.Format,
	&chrometrace.Format,
	&straceread.Format,
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

// open opens a stream, which may be piped, or a foreign file as a tape that is gone when it is closed.
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
	tape := filepath.Join(dir, "open.tape")
	if err := makeTape(ctx, in, dir, tape); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t, err := trace.OpenTape(tape)
	if err != nil {
		return nil, err
	}
	t.OnClose(func() error { return os.RemoveAll(dir) })
	return t, nil
}

// makeTape makes a tape of a stream, or of a foreign file.
func makeTape(ctx context.Context, in *os.File, dir, tape string) error {
	const program = "iotape"
	tw, err := trace.CreateTape(tape)
	if err != nil {
		return err
	}
	defer tw.Abort()
	var m *trace.Manifest
	if trace.IsStream(in) || pipe.Is(in) {
		m, err = sealFile(ctx, in, tw, program, nil)
	} else {
		var streams []string
		if streams, _, err = Read(ctx, in, nil, dir, program); err != nil {
			return err
		}
		m, err = Seal(ctx, streams, tw, program, nil)
	}
	if err != nil {
		return err
	}
	return tw.Close(m)
}

// Seal writes what Read made to a tape, with all its hosts, and removes the streams. It
// returns the manifest for tw.Close. progress, if it is not nil, is called now and then
// with bytes of the streams.
func Seal(ctx context.Context, streams []string, tw *trace.TapeWriter, program string, progress func(done int64)) (*trace.Manifest, error) {
	if len(streams) == 1 {
		m, _, err := sealStream(ctx, streams[0], tw, program, progress)
		return m, err
	}
	var tapes []*trace.Tape
	defer func() {
		for _, t := range tapes {
			t.Close()
		}
	}()
	done := int64(0)
	for _, s := range streams {
		t, n, err := sealHost(ctx, s, program, func(n int64) {
			if progress != nil {
				progress(done + n)
			}
		})
		if err != nil {
			return nil, err
		}
		tapes = append(tapes, t)
		done += n
	}
	return merge.Tapes(ctx, tw, tapes, &merge.Options{Program: program})
}

// sealHost seals the stream of one host of several, beside it, to a tape that is gone
// when it is closed. n is the size of the stream.
func sealHost(ctx context.Context, stream, program string, progress func(int64)) (t *trace.Tape, n int64, err error) {
	dir := stream + ".tape"
	tw, err := trace.CreateTape(dir)
	if err != nil {
		return nil, 0, err
	}
	defer tw.Abort()
	m, n, err := sealStream(ctx, stream, tw, program, progress)
	if err == nil {
		err = tw.Close(m)
	}
	if err == nil {
		t, err = trace.OpenTape(dir)
	}
	if err != nil {
		return nil, 0, err
	}
	t.OnClose(func() error { return os.RemoveAll(dir) })
	return t, n, nil
}

// sealStream seals a stream and removes it.
func sealStream(ctx context.Context, stream string, tw *trace.TapeWriter, program string, progress func(int64)) (m *trace.Manifest, n int64, err error) {
	in, err := os.Open(stream)
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	if m, err = sealFile(ctx, in, tw, program, progress); err != nil {
		return nil, 0, err
	}
	if n, err = in.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	}
	return m, n, os.Remove(stream)
}

func sealFile(ctx context.Context, in *os.File, tw *trace.TapeWriter, program string, progress func(int64)) (*trace.Manifest, error) {
	stream, _, err := chain.Plain(ctx, bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return nil, err
	}
	stats, err := seal.Seal(ctx, stream, tw, &seal.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	return stats.Manifest(program), nil
}
