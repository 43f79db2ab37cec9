package main

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

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/tapes"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// converted is what a conversion says.
type converted struct {
	From string `json:"from"`
	To   string `json:"to"`
	format.Done
}

func newConvert(c *console) *cobra.Command {
	var o format.Options
	var from, to string
	var asJSON, noIndex bool
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Turn a tape into another format, or another format into a tape",
		Long: `Convert reads IN and writes OUT. One of them is a tape (.tape), the other one of:

` + formatTable() + `
What a file is that is read is seen in its first bytes, and if not, in its suffix;
--from and --to say it where neither tells. An OUT whose name ends in .gz is
compressed. What OUT cannot hold is counted. With --filter OUT has what iotape slice
--filter makes of the tape: the calls that fit, and those that say what their
descriptors and names stand for.`,
		Example: `  iotape convert db.tape db.ds
  iotape convert --codec zlib --for-replayer db.tape db.ds
  iotape convert trace.ds trace.tape && iotape stat trace.tape
  iotape convert build.tape build.pftrace
  strace -f -ttt -T -y -yy -s 1000000 -xx -v -o make.strace make && iotape convert make.strace make.tape
  iotape convert --content-bytes 64 db.tape db.strace`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  converted, and nothing was left out", "1  converted; something was left out, and is listed", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cv := conversion{in: args[0], out: args[1], options: &o, index: !noIndex, filter: &filter}
			var err error
			if cv.from, err = formatFlag("from", from); err != nil {
				return err
			}
			if cv.to, err = formatFlag("to", to); err != nil {
				return err
			}
			done, err := cv.run(cmd.Context(), c)
			if err != nil {
				return err
			}
			if err := c.print(func(w *bufio.Writer) error { return done.write(w, asJSON) }); err != nil {
				return err
			}
			if len(done.Left) > 0 || done.Missing > 0 {
				return &statusError{Status: exitFound}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `FORMAT` of IN, by its word in the list above")
	f.StringVar(&to, "to", "", "the `FORMAT` of OUT")
	f.StringVar(&o.Codec, "codec", "none", "compression of a .ds file: `none`, zlib, lzf, snappy, lz4 or lz4hc; every tool reads the first three")
	f.BoolVar(&o.ForReplayer, "for-replayer", false, "leave out of a .ds file what Re-Animator's replayer crashes on")
	f.Int64Var(&o.ContentBytes, "content-bytes", 0, "write at most the first `N` bytes of each buffer to a text format; 0 is all")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files")
	filter.add(f)
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// formatTable lists the formats for the help.
func formatTable() string {
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

// formatFlag returns the format that a flag names, nil if the flag is not given.
func formatFlag(flag, id string) (*format.Format, error) {
	if id == "" || id == "tape" {
		return nil, nil
	}
	if f := all.ByID(id); f != nil {
		return f, nil
	}
	return nil, usageError{fmt.Errorf("--%s %s: there is no such format; iotape convert --help lists them", flag, id)}
}

// conversion is what is to be converted.
type conversion struct {
	in, out  string
	from, to *format.Format // nil: by content and name
	options  *format.Options
	index    bool
	filter   *filterFlags
}

func (cv *conversion) run(ctx context.Context, c *console) (*converted, error) {
	if err := sealing.MustNotExist(cv.out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	if cv.to == nil && filepath.Ext(cv.out) == ".tape" {
		if cv.filter.given() {
			return nil, usageError{errors.New("--filter picks events of a tape: convert all, and then iotape slice --filter")}
		}
		return cv.importTape(ctx, c)
	}
	if cv.to == nil {
		cv.to = all.ByName(cv.out)
	}
	if cv.to == nil {
		cv.to = all.ByName(strings.TrimSuffix(cv.out, gzipSuffix))
	}
	switch {
	case cv.to == nil:
		return nil, usageError{fmt.Errorf("cannot tell from the name %s what it is to be: --to says it", cv.out)}
	case cv.to.Write == nil:
		return nil, usageError{fmt.Errorf("%s is read, but not written", cv.to.Name)}
	}
	return cv.export(ctx, c)
}

func (cv *conversion) export(ctx context.Context, c *console) (_ *converted, err error) {
	t, err := openTape(ctx, cv.in)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if g, err := cv.filter.graph(c, t); err != nil {
		return nil, err
	} else if g != nil {
		part, err := slicedTape(ctx, t, g, filepath.Dir(cv.out))
		if err != nil {
			return nil, err
		}
		defer part.Close()
		t = part
	}
	f, err := os.OpenFile(cv.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(cv.out)
		}
	}()
	buf := bufio.NewWriterSize(f, 1<<20)
	out := io.WriteCloser(unclosed{buf})
	if strings.HasSuffix(cv.out, gzipSuffix) && all.ByName(cv.out) != cv.to { // or the format compresses by itself
		out = gzip.NewWriter(buf)
	}
	done, err := cv.to.Write(ctx, out, t, cv.options)
	if err == nil {
		err = errors.Join(out.Close(), buf.Flush())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cv.out, err)
	}
	return &converted{"tape", cv.to.Name, *done}, nil
}

// gzipSuffix is of files that are compressed, whatever the format is.
const gzipSuffix = ".gz"

// unclosed is a Writer with nothing to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// importTape makes a stream of each host in the file, and a tape of those.
func (cv *conversion) importTape(ctx context.Context, c *console) (*converted, error) {
	f, err := os.Open(cv.in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if st.IsDir() {
		return nil, usageError{fmt.Errorf("cannot convert %s to %s: one of them must be no tape", cv.in, cv.out)}
	}
	if cv.from == nil {
		if cv.from, err = all.Identify(f); err != nil {
			return nil, err
		}
	}
	switch {
	case cv.from == nil:
		return nil, usageError{fmt.Errorf("cannot tell what %s is: --from says it", cv.in)}
	case cv.from.Read == nil:
		return nil, usageError{fmt.Errorf("%s is written, but not read", cv.from.Name)}
	}
	mk, err := c.stage(cv.out, cv.index)
	if err != nil {
		return nil, err
	}
	defer mk.Abandon()
	streams, done, err := all.Read(ctx, f, cv.from, mk.Work, program())
	if err != nil {
		return nil, err
	}
	progress := c.progress(report.Bytes)
	defer progress.Done()
	total := sealing.DirBytes(mk.Work)
	err = mk.Write(func(tw *trace.TapeWriter) (*trace.Manifest, error) {
		return tapes.Hosts(ctx, streams, tw, program(), func(done int64) { progress.Update("sealing", done, total) })
	})
	progress.Done()
	if err != nil {
		return nil, err
	}
	if _, err := mk.Publish(ctx); err != nil {
		return nil, err
	}
	return &converted{cv.from.Name, "tape", *done}, nil
}

func (d *converted) write(w *bufio.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	fmt.Fprintf(w, "%s records from %s to %s\n", report.Count(d.Records), d.From, d.To)
	if d.Missing > 0 {
		fmt.Fprintf(w, "%s of content are not in the tape\n", report.Bytes(uint64(d.Missing)))
	}
	names := slices.SortedFunc(maps.Keys(d.Left), func(a, b string) int { return cmp.Or(-cmp.Compare(d.Left[a], d.Left[b]), strings.Compare(a, b)) })
	for _, n := range names {
		fmt.Fprintf(w, "left out: %s %s\n", report.Count(d.Left[n]), n)
	}
	return nil
}
