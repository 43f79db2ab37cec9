// SPDX-License-Identifier: Apache-2.0

// Package all lists the foreign trace formats, identifies files of them and reads them
// into streams. Package format/tapes makes tapes of those.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package all

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	"github.com/iotape/iotape/trace"
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

// ErrUnknownFormat is wrapped by Read for a file that no format matches.
var ErrUnknownFormat = fmt.Errorf("%w, and no other format that is known", trace.ErrNotATrace)

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

// Read makes streams of a foreign file, in files in dir: one for each host. tapes.Hosts
// makes a tape of them. from may be nil; then the file is identified. program is who converts, with its version.
func Read(ctx context.Context, in *os.File, from *format.Format, dir, program string) (streams []string, done *format.Done, err error) {
	if from == nil {
		if from, err = Identify(in); err != nil {
			return nil, nil, err
		}
		if from == nil {
			return nil, nil, fmt.Errorf("%s: %w", in.Name(), ErrUnknownFormat)
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
