// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/convert"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

func newConvert(c *cli.Console) *cobra.Command {
	var options format.Options
	var from, to string
	var asJSON, noIndex bool
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Convert a tape into another format, or another format into a tape",
		Long: `Convert reads IN and writes OUT. One of them is a tape (.tape). The other one has one of
these formats:

` + convert.Table() + `
Convert recognises the format of IN by its first bytes, otherwise by its suffix, and the
format of OUT by its suffix. Use --from and --to if these do not show the format. IN may
be compressed with gzip, zstd or xz; - is the standard input. If the name of OUT ends in
.gz, OUT is compressed. Convert counts what OUT cannot hold. With
--filter, convert uses the tape that iotape slice --filter would make: the calls that
match, and the calls that explain their descriptors and names.`,
		Example: `  iotape convert db.tape db.ds
  iotape convert --codec zlib --for-replayer db.tape db.ds
  iotape convert trace.ds trace.tape && iotape stat trace.tape
  iotape convert build.tape build.pftrace
  strace -f -ttt -T -y -yy -s 1000000 -xx -v -o make.strace make && iotape convert make.strace make.tape
  xz -dc old.strace.xz | iotape convert - old.tape
  iotape convert --content-bytes 64 db.tape db.strace`,
		Args: cobra.ExactArgs(2),
		Annotations: cli.Exits("0  converted, and nothing was left out",
			"1  converted, except the parts that are listed",
			"2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := converting(c, &options, &filter, !noIndex)
			var err error
			if o.From, err = formatFlag("from", from); err != nil {
				return err
			}
			if o.To, err = formatFlag("to", to); err != nil {
				return err
			}
			if o.ToTape(args[1]) && filter.Given() {
				return cli.Usage(errors.New(
					"--filter selects events of a tape: convert all, then use iotape slice --filter"))
			}
			done, err := convert.File(cmd.Context(), args[0], args[1], o)
			if err != nil {
				return cli.UsageIf[*convert.RequestError](err)
			}
			return c.Result(cli.Either(asJSON, done.WriteJSON, done.WriteText), !done.Lossy())
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `FORMAT` of IN, a word of the list above")
	f.StringVar(&to, "to", "", "the `FORMAT` of OUT")
	f.StringVar(&options.Codec, "codec", "none",
		"compression of a .ds file: `none`, zlib, lzf, snappy, lz4 or lz4hc; all tools can read the first three")
	f.BoolVar(&options.ForReplayer, "for-replayer", false,
		"omit the parts of a .ds file on which Re-Animator's replayer crashes")
	f.StringVar(&options.Weight, "weight", "time",
		"`WHAT` the numbers of a .folded file are: time (ns), bytes or calls")
	f.Int64Var(&options.ContentBytes, "content-bytes", 0,
		"write at most the first `N` bytes of each buffer to a text format; 0 means all")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files")
	filter.Add(f)
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// formatFlag returns the format that a flag names, nil if the flag is not given.
func formatFlag(flag, id string) (*format.Format, error) {
	if id == "" || id == "tape" {
		return nil, nil
	}
	if f := all.ByID(id); f != nil {
		return f, nil
	}
	return nil, cli.Usage(fmt.Errorf("--%s %s: this format does not exist; iotape convert --help lists all formats",
		flag, id))
}

// converting returns what is the same for all conversions.
func converting(c *cli.Console, o *format.Options, filter *cli.FilterFlags, index bool) *convert.Options {
	return &convert.Options{
		Format: o, Open: cli.OpenTape, Index: c.Indexer(index), Reporter: c.Reporter(), Program: cli.Program(),
		Pick: func(ctx context.Context, t *trace.Tape, dir string) (*trace.Tape, error) {
			g, err := filter.Graph(c, t)
			if g == nil || err != nil {
				return nil, err
			}
			return slice.Fitting(ctx, t, dir, g, cli.Program())
		},
	}
}
