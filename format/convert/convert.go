// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/tapes"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Options for File.
type Options struct {
	From, To *format.Format  // nil: told by content and name
	Format   *format.Options // of the file that is written
	// Open opens the tape that is converted.
	Open func(ctx context.Context, name string) (*trace.Tape, error)
	// Pick returns the part of a tape that is converted, a temporary tape in the directory
	// dir, or nil for all of it.
	Pick     func(ctx context.Context, t *trace.Tape, dir string) (*trace.Tape, error)
	Index    sealing.Indexer  // of a tape that is made; nil: nobody
	Reporter sealing.Reporter // nil: sealing.Silent
	Program  string           // name and version, for the manifest of a tape that is made
}

// A RequestError says that what is asked for cannot be done, whatever the files have.
type RequestError struct{ Text string }

// Error returns the text.
func (e *RequestError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &RequestError{fmt.Sprintf(format, args...)} }

// Result is what a conversion says. Its JSON is the output of iotape convert --json.
type Result struct {
	From string `json:"from"` // the name of a format, or "tape"
	To   string `json:"to"`
	format.Done
}

// ToTape reports whether File makes a tape of that name.
func (o *Options) ToTape(out string) bool { return o.To == nil && filepath.Ext(out) == ".tape" }

// File converts the file or tape in to out, which must not exist.
func File(ctx context.Context, in, out string, o *Options) (*Result, error) {
	if err := sealing.MustNotExist(out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	cv := &conversion{Options: *o, in: in, out: out}
	cv.Reporter = sealing.OrSilent(cv.Reporter)
	if o.ToTape(out) {
		return cv.importTape(ctx)
	}
	if cv.To == nil {
		cv.To = all.ByName(out)
	}
	if cv.To == nil {
		cv.To = all.ByName(strings.TrimSuffix(out, gzipSuffix))
	}
	switch {
	case cv.To == nil:
		return nil, refuse("cannot tell from the name %s what it is to be: --to says it", out)
	case cv.To.Write == nil:
		return nil, refuse("%s is read, but not written", cv.To.Name)
	}
	return cv.export(ctx)
}

// conversion is one conversion under way.
type conversion struct {
	Options
	in, out string
}

func (cv *conversion) export(ctx context.Context) (_ *Result, err error) {
	t, err := cv.Open(ctx, cv.in)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	part, err := cv.Pick(ctx, t, filepath.Dir(cv.out))
	if err != nil {
		return nil, err
	}
	if part != nil {
		defer part.Close()
		t = part
	}
	wholefile.RemoveLeft(cv.out)
	f, err := wholefile.Create(cv.out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := bufio.NewWriterSize(f, 1<<20)
	out := io.WriteCloser(unclosed{buf})
	if strings.HasSuffix(cv.out, gzipSuffix) && all.ByName(cv.out) != cv.To { // or the format compresses by itself
		out = gzip.NewWriter(buf)
	}
	done, err := cv.To.Write(ctx, out, t, cv.Format)
	if err == nil {
		err = errors.Join(out.Close(), buf.Flush())
	}
	if err == nil {
		err = f.CommitNew()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cv.out, err)
	}
	return &Result{"tape", cv.To.Name, *done}, nil
}

// gzipSuffix is of files that are compressed, whatever the format is.
const gzipSuffix = ".gz"

// unclosed is a Writer with nothing to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// importTape makes a stream of each host in the file, and a tape of those.
func (cv *conversion) importTape(ctx context.Context) (*Result, error) {
	work, err := wholefile.TempDir("iotape-convert") // for what does not come from a file
	if err != nil {
		return nil, err
	}
	defer work.Close()
	dir := work.Temp
	f, err := all.Open(ctx, cv.in, dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if st.IsDir() {
		if text := all.HintOfDirectory(cv.in); text != "" {
			return nil, refuse("cannot convert %s: %s", cv.in, text)
		}
		return nil, refuse("cannot convert %s to %s: one of them must be no tape", cv.in, cv.out)
	}
	if cv.From == nil {
		if cv.From, err = all.Identify(f); err != nil {
			return nil, err
		}
		if cv.From == nil {
			head := make([]byte, format.MatchBytes)
			n, _ := f.ReadAt(head, 0)
			if text := all.Hint(head[:n]); text != "" {
				return nil, refuse("cannot convert %s: %s", cv.in, text)
			}
		}
	}
	switch {
	case cv.From == nil:
		in := cv.in
		if in == "-" {
			in = "the standard input"
		}
		return nil, refuse("cannot tell what %s is: name its format with --from; iotape convert --help lists the "+
			"formats", in)
	case cv.From.Read == nil:
		return nil, refuse("%s is written, but not read", cv.From.Name)
	}
	mk, err := sealing.Stage(cv.out)
	if err != nil {
		return nil, err
	}
	defer mk.Abandon()
	mk.Index, mk.Reporter = cv.Index, cv.Reporter
	progress := mk.Reporter.Progress(report.Bytes)
	defer progress.Done()
	stop := follow(f, progress)
	streams, done, err := all.Read(ctx, f, cv.From, mk.Work, cv.Program)
	stop()
	if err != nil {
		return nil, err
	}
	total := sealing.DirBytes(mk.Work)
	err = mk.Write(func(tw *trace.TapeWriter) (*trace.Manifest, error) {
		return tapes.Hosts(ctx, streams, tw, cv.Program, func(done int64) { progress.Update("sealing", done, total) })
	})
	progress.Done()
	if err != nil {
		return nil, err
	}
	if _, err := mk.Publish(ctx); err != nil {
		return nil, err
	}
	return &Result{cv.From.Name, "tape", *done}, nil
}

// follow shows how far a file is read, by its position, until stop is called.
func follow(f *os.File, progress sealing.Progress) (stop func()) {
	st, err := f.Stat()
	if err != nil {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second / 4)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if at, err := f.Seek(0, io.SeekCurrent); err == nil {
					progress.Update("reading", at, st.Size())
				}
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// Lossy reports whether something of the input is not in the output.
func (d *Result) Lossy() bool { return len(d.Left) > 0 || d.Missing > 0 }

// WriteJSON writes the result as one object.
func (d *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// WriteText writes the result for people.
func (d *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s records from %s to %s\n", report.Count(d.Records), d.From, d.To)
	if d.Missing > 0 {
		fmt.Fprintf(&b, "%s of content are not in the tape\n", report.Bytes(uint64(d.Missing)))
	}
	names := slices.SortedFunc(maps.Keys(d.Left), func(a, b string) int {
		return cmp.Or(-cmp.Compare(d.Left[a], d.Left[b]), strings.Compare(a, b))
	})
	for _, n := range names {
		fmt.Fprintf(&b, "left out: %s %s\n", report.Count(d.Left[n]), n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Table lists the formats, one a line, for a help text.
func Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	formats := slices.Clone(all.Formats())
	slices.SortFunc(formats, func(a, b *format.Format) int { return strings.Compare(a.ID, b.ID) })
	for _, f := range formats {
		way := "read and written"
		switch {
		case f.Write == nil:
			way = "read"
		case f.Read == nil:
			way = "written"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s (%s)\n", f.ID, strings.Join(f.Suffixes, " "), f.About, way)
	}
	w.Flush()
	return b.String()
}
