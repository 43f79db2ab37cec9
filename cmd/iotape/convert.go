package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"iotape/event"
	"iotape/format/dataseries"
	"iotape/format/snia"
	"iotape/report"
	"iotape/trace"
)

// converted is what a conversion says.
type converted struct {
	From    string            `json:"from"`
	To      string            `json:"to"`
	Records uint64            `json:"records"` // of the foreign file
	Left    map[string]uint64 `json:"left,omitempty"`
	Missing int64             `json:"missing_bytes,omitempty"`
}

// foreign is a format that is no tape.
type foreign struct {
	name     string
	suffixes []string
	// read writes the file's records to a stream; nil if the format is only written.
	read func(in *os.File, sw *trace.StreamWriter, done *converted) error
	// write writes a tape's events; nil if the format is only read.
	write func(out io.Writer, t *trace.Tape, o *convertOptions, done *converted) error
}

type convertOptions struct {
	codec    string
	replayer bool
}

var foreigns = []foreign{
	{"DataSeries", []string{".ds"}, readDataSeries, writeDataSeries},
}

func foreignOf(path string) *foreign {
	for i := range foreigns {
		if slices.Contains(foreigns[i].suffixes, filepath.Ext(path)) {
			return &foreigns[i]
		}
	}
	return nil
}

func newConvert(c *console) *cobra.Command {
	var o convertOptions
	var asJSON, noIndex bool
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Turn a tape into another format, or another format into a tape",
		Long: `Convert reads IN and writes OUT; their suffixes say what they are:

  .tape  a tape
  .ds    system calls in SNIA's schema for DataSeries, as Re-Animator's tools
         write and replay them

What OUT cannot hold is counted, by call.`,
		Example: `  iotape convert db.tape db.ds
  iotape convert --codec zlib --for-replayer db.tape db.ds
  iotape convert trace.ds trace.tape && iotape stat trace.tape`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  converted, and nothing was left out", "1  converted; something was left out, and is listed", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := convert(cmd.Context(), c, args[0], args[1], &o, !noIndex)
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
	f.StringVar(&o.codec, "codec", "none", "compression of a .ds file: `none`, zlib, lzf, snappy, lz4 or lz4hc; every tool reads the first three")
	f.BoolVar(&o.replayer, "for-replayer", false, "leave out of a .ds file what Re-Animator's replayer crashes on")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files")
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func convert(ctx context.Context, c *console, in, out string, o *convertOptions, index bool) (*converted, error) {
	if err := mustNotExist(out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	from, to := foreignOf(in), foreignOf(out)
	switch {
	case from != nil && from.read != nil && filepath.Ext(out) == ".tape":
		return importTape(ctx, c, in, out, from, index)
	case to != nil && to.write != nil && from == nil:
		return exportTape(in, out, to, o)
	}
	return nil, usageError{fmt.Errorf("cannot convert %s to %s: one of them must be a tape, the other .ds", in, out)}
}

func exportTape(in, out string, to *foreign, o *convertOptions) (_ *converted, err error) {
	t, err := openTape(in)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(out)
		}
	}()
	done := &converted{From: "tape", To: to.name}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := to.write(w, t, o, done); err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	return done, w.Flush()
}

// importTape makes a stream of the file and seals that.
func importTape(ctx context.Context, c *console, in, out string, from *foreign, index bool) (*converted, error) {
	f, err := os.Open(in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	work := out + partialSuffix
	if err := os.Mkdir(work, 0o777); err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	s := &sealing{stream: filepath.Join(work, streamName), work: work, out: out, index: index}
	stream, err := os.OpenFile(s.stream, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	done := &converted{From: from.name, To: "tape"}
	if err := writeForeign(stream, f, from, done); err != nil {
		return nil, fmt.Errorf("%s: %w", in, err)
	}
	_, err = s.run(ctx, c)
	return done, err
}

func writeForeign(stream io.Writer, in *os.File, from *foreign, done *converted) error {
	var id [8]byte
	rand.Read(id[:])
	w := bufio.NewWriterSize(stream, 1<<20)
	// Foreign times are wall-clock times: both clocks of the anchor are the same.
	head := &trace.Head{Program: program(), Arch: "amd64", Backend: from.name, Content: "full", Overflow: "block", Shards: 1, Ops: len(event.Catalogue())}
	sw, err := trace.NewStreamWriter(w, binary.LittleEndian.Uint64(id[:]), head)
	if err != nil {
		return err
	}
	if err := from.read(in, sw, done); err != nil {
		return err
	}
	if err := sw.Close(&trace.End{}); err != nil {
		return err
	}
	return w.Flush()
}

func readDataSeries(in *os.File, sw *trace.StreamWriter, done *converted) error {
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	r, err := dataseries.NewReader(in, fi.Size())
	if err != nil {
		return err
	}
	im, err := snia.Import(r, sw)
	if err != nil {
		return err
	}
	done.Records, done.Left = im.Records, im.Unknown
	return nil
}

func writeDataSeries(out io.Writer, t *trace.Tape, o *convertOptions, done *converted) error {
	codec, ok := dataseries.ParseCodec(o.codec)
	if !ok {
		return usageError{fmt.Errorf("codec %q is neither none, zlib, lzf, snappy, lz4 nor lz4hc", o.codec)}
	}
	ex, err := snia.Export(out, t, snia.ExportOptions{Codec: codec, ForReplayer: o.replayer})
	if err != nil {
		return err
	}
	done.Records, done.Left, done.Missing = ex.Records, ex.Left, ex.Missing
	return nil
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
