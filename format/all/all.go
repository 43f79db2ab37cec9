// SPDX-License-Identifier: Apache-2.0

package all

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/auditd"
	"github.com/iotape/iotape/format/babeltrace"
	"github.com/iotape/iotape/format/blkparse"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/chrometrace"
	"github.com/iotape/iotape/format/dftracer"
	"github.com/iotape/iotape/format/dio"
	"github.com/iotape/iotape/format/dxt"
	"github.com/iotape/iotape/format/fiolog"
	"github.com/iotape/iotape/format/folded"
	"github.com/iotape/iotape/format/fsusage"
	"github.com/iotape/iotape/format/otlp"
	"github.com/iotape/iotape/format/perfetto"
	"github.com/iotape/iotape/format/perfscript"
	"github.com/iotape/iotape/format/perftrace"
	"github.com/iotape/iotape/format/pprof"
	"github.com/iotape/iotape/format/procmon"
	"github.com/iotape/iotape/format/rows"
	"github.com/iotape/iotape/format/scap"
	"github.com/iotape/iotape/format/shiviz"
	"github.com/iotape/iotape/format/snia"
	"github.com/iotape/iotape/format/snoop"
	"github.com/iotape/iotape/format/straceread"
	"github.com/iotape/iotape/format/sysdig"
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
	&procmon.Format,
	&fiolog.Format, &fiolog.JobFormat,
	&dftracer.Format,
	&rows.CSV,
	&rows.NDJSON,
	&blkparse.Format,
	&auditd.Format,
	&perfscript.Format,
	&sysdig.Format,
	&snoop.Format,
	&fsusage.Format,
	&perftrace.Format,
	&scap.Format,
	&babeltrace.Format,
	&perfetto.Format,
	&chrometrace.Format,
	&folded.Format,
	&pprof.Format,
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

// Identify returns the format of a file, which may be compressed: by its content and, where
// that does not say, by its name. It is nil if no format that is read matches.
func Identify(f *os.File) (*format.Format, error) {
	head, err := headOf(f)
	if err != nil {
		return nil, err
	}
	p := packed(head)
	if found := matching(head); found != nil && (p == nil || !p.text) { // some formats are compressed by themselves
		return found, nil
	}
	name := f.Name()
	if p != nil {
		if found := matching(p.head(f)); found != nil {
			return found, nil
		}
		name = strings.TrimSuffix(name, p.suffix)
	}
	found := ByName(name)
	if found == nil || found.Read == nil || found.Marked || found.Match != nil && Hint(head) != "" {
		return nil, nil
	}
	return found, nil
}

// headOf returns the first bytes of a file.
func headOf(f *os.File) ([]byte, error) {
	head := make([]byte, format.MatchBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// matching returns the first format that is read and matches the first bytes of a file.
func matching(head []byte) *format.Format {
	for _, f := range formats {
		if f.Read != nil && f.Match != nil && f.Match(head) {
			return f
		}
	}
	return nil
}

// unknown is the error for a file that no format matches. Who opened the file names it.
func unknown(in *os.File) error {
	head, err := headOf(in)
	if err != nil {
		return err
	}
	if text := Hint(head); text != "" {
		return fmt.Errorf("%w: %s", ErrUnknownFormat, text)
	}
	return ErrUnknownFormat
}

// Read makes streams of a foreign file, in files in dir: one for each host. tapes.Hosts
// makes a tape of them. from may be nil; then the file is identified. program is who
// converts, with its version. A compressed file is unpacked in dir meanwhile.
func Read(ctx context.Context, in *os.File, from *format.Format, dir, program string) (streams []string,
	done *format.Done, err error) {
	if from == nil {
		if from, err = Identify(in); err != nil {
			return nil, nil, err
		}
		if from == nil {
			return nil, nil, unknown(in)
		}
	}
	name := in.Name()
	head, err := headOf(in)
	if err != nil {
		return nil, nil, err
	}
	im := format.NewImport(dir, program)
	if p := packed(head); p != nil && (p.text || from.Match == nil || !from.Match(head)) {
		text, whole, err := p.unpack(ctx, in, dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		defer os.RemoveAll(filepath.Dir(text.Name()))
		defer text.Close()
		if in = text; !whole {
			im.Done.LeftOut("the rest of a compressed file that is cut off", 1)
		}
	}
	err = from.Read(ctx, in, im)
	streams, closeErr := im.Close()
	if err == nil {
		err = closeErr
	}
	if err == nil && len(streams) == 0 {
		err = errors.New("no events in it")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", name, from.Name, err)
	}
	return streams, &im.Done, nil
}
