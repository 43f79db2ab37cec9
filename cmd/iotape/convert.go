package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"iotape/format"
	"iotape/format/all"
	"iotape/report"
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
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Turn a tape into another format, or another format into a tape",
		Long: `Convert reads IN and writes OUT. One of them is a tape (.tape), the other one of:

` + formatTable() + `
What a file is that is read is seen in its first bytes, and if not, in its suffix;
--from and --to say it where neither tells. What OUT cannot hold is counted.`,
		Example: `  iotape convert db.tape db.ds
  iotape convert --codec zlib --for-replayer db.tape db.ds
  iotape convert trace.ds trace.tape && iotape stat trace.tape
  strace -f -ttt -T -y -yy -s 1000000 -xx -v -o make.strace make && iotape convert make.strace make.tape
  iotape convert --content-bytes 64 db.tape db.strace`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  converted, and nothing was left out", "1  converted; something was left out, and is listed", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cv := conversion{in: args[0], out: args[1], options: &o, index: !noIndex}
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
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// formatTable lists the formats for the help.
func formatTable() string {
	var b strings.Builder
	for _, f := range all.Formats() {
		way := "read and written"
		switch {
		case f.Write == nil:
			way = "read"
		case f.Read == nil:
			way = "written"
		}
		fmt.Fprintf(&b, "  %-12s %-14s %s (%s)\n", f.ID, strings.Join(f.Suffixes, " "), f.About, way)
	}
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
}

func (cv *conversion) run(ctx context.Context, c *console) (*converted, error) {
	if err := mustNotExist(cv.out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	if cv.to == nil && filepath.Ext(cv.out) == ".tape" {
		return cv.importTape(ctx, c)
	}
	if cv.to == nil {
		cv.to = all.ByName(cv.out)
	}
	switch {
	case cv.to == nil:
		return nil, usageError{fmt.Errorf("cannot tell from the name %s what it is to be: --to says it", cv.out)}
	case cv.to.Write == nil:
		return nil, usageError{fmt.Errorf("%s is read, but not written", cv.to.Name)}
	}
	return cv.export(ctx)
}

func (cv *conversion) export(ctx context.Context) (_ *converted, err error) {
	t, err := openTape(ctx, cv.in)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	f, err := os.OpenFile(cv.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(cv.out)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	done, err := cv.to.Write(ctx, w, t, cv.options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cv.out, err)
	}
	return &converted{"tape", cv.to.Name, *done}, w.Flush()
}

// importTape makes a stream of the file and seals that.
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
	work := cv.out + partialSuffix
	if err := os.Mkdir(work, 0o777); err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	streams, done, err := all.Read(ctx, f, cv.from, work, program())
	if err != nil {
		return nil, err
	}
	s := &sealing{stream: streams[0], work: work, out: cv.out, index: cv.index}
	if _, err = s.run(ctx, c); err != nil {
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
