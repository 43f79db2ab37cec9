// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/pipe/tool"
	"github.com/iotape/iotape/pipe/wholefile"
)

// piping is what to do to a stream.
type piping struct {
	apply   string
	undo    bool
	salvage bool
	check   bool
	json    bool
	to      string
}

func newPipe(c *cli.Console) *cobra.Command {
	var p piping
	cmd := &cobra.Command{
		Use:   "pipe [--apply CHAIN | --undo | --check] [-o TO] [FILE]",
		Short: "Apply layers to a stream, remove them, or check a stream block by block",
		Long: `Pipe passes a file, or standard input, through a chain of layers, as iotape record --pipe
does during a recording. The layers can be in any order:

  async[:BLOCKS]                a queue between the layers before and after it
  zstd[:LEVEL]                  compress; levels 1 to 22
  s2[:better|:best]             compress in less time
  checksum[:@FILE|:env:NAME]    keyed checksums; without a key, against accidents only
  encrypt:RECIPIENT[+…]         for the owners of secret keys: age1…, or @FILE
  block:SIZE  flush:TIME        the size of a block, and how long bytes wait for it

--undo removes all layers, with --identity and --key. --check reads a piped stream and
reports every block that was changed, replaced, removed, moved or replayed, or that is of
another stream. It also reports whether the end was cut off, and the number of good
blocks. If a key is missing, --check says so, and checks the rest. Without these flags,
pipe describes the file.

TO is a file, or a destination of iotape record --to: see docs/pipes.md. A piped FILE that
is written without a change of layers keeps its blocks.`,
		Example: `  iotape keygen --checksum -o sum.key
  iotape pipe --apply zstd:3,checksum:@sum.key -o db.piped db.stream
  iotape pipe --check --key sum.key db.piped
  iotape pipe --undo --key sum.key db.piped | iotape raw /dev/stdin
  iotape pipe -o tcp://collector:7070 db.piped`,
		Args: cobra.MaximumNArgs(1),
		Annotations: cli.Exits("0  done; with --check, the stream has no faults",
			"1  done, but the stream has the reported faults", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := c.In
			if len(args) > 0 && args[0] != "-" {
				f, err := wholefile.OpenGiven(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return p.run(cmd.Context(), c, in)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.apply, "apply", "", "pass FILE through the layers of `CHAIN`")
	f.BoolVar(&p.undo, "undo", false, "remove the layers")
	f.BoolVar(&p.salvage, "salvage", false, "with --undo: report faults, and write the good blocks")
	f.BoolVar(&p.check, "check", false, "report all faults")
	f.BoolVar(&p.json, "json", false, "with --check: print one JSON object")
	f.StringVarP(&p.to, "output", "o", "-", "write to `TO`; - means standard output")
	cmd.MarkFlagsMutuallyExclusive("apply", "undo", "check")
	return cmd
}

func (p *piping) run(ctx context.Context, c *cli.Console, in *os.File) error {
	switch {
	case p.salvage && !p.undo:
		return cli.Usage(errors.New("--salvage needs --undo"))
	case p.json && !p.check:
		return cli.Usage(errors.New("--json needs --check"))
	case p.check:
		res, err := tool.Check(ctx, in)
		if err != nil {
			return err
		}
		write := func(w io.Writer) error { return writeChecked(w, res) }
		if p.json {
			write = res.WriteJSON
		}
		return c.Result(write, res.Found == 0)
	case p.undo:
		return p.runUndo(ctx, c, in)
	case p.apply != "":
		spec, err := chain.Parse(p.apply)
		if err != nil {
			return cli.Usage(fmt.Errorf("--apply: %w", err))
		}
		return p.write(ctx, c, func(w io.Writer) error { return tool.Apply(ctx, w, in, spec) })
	case p.to != "-":
		s, err := pipe.NewScanner(in)
		if err != nil {
			return hint.With(err, "--apply makes a piped stream")
		}
		err = p.write(ctx, c, func(w io.Writer) error { return tool.Copy(w, s) })
		if errors.As(err, new(*tool.BlockError)) {
			return cli.Status(cli.ExitFound, err)
		}
		return err
	}
	h, err := pipe.ReadHeader(in)
	if err != nil {
		return err
	}
	return c.Print(func(w *bufio.Writer) error {
		_, err := fmt.Fprintf(w, "stream %016x, layers %s, blocks of %s\n", h.Serial, h.Chain(),
			report.Bytes(uint64(h.BlockBytes)))
		return err
	})
}

// open opens what is to be written.
func (p *piping) open(ctx context.Context, c *cli.Console) (io.WriteCloser, error) {
	return sink.Open(ctx, p.to, &sink.Options{Stdout: c.Out, New: true})
}

// write writes what f writes. A new file gets its name when it is whole. What was found to be wrong with the
// input, f has written around.
func (p *piping) write(ctx context.Context, c *cli.Console, f func(w io.Writer) error) error {
	if _, err := os.Lstat(p.to); sink.IsFile(p.to) && errors.Is(err, os.ErrNotExist) {
		wholefile.RemoveLeft(p.to)
		out, err := wholefile.Create(p.to)
		if err != nil {
			return err
		}
		if err = f(out); err == nil || errors.As(err, new(*tool.BlockError)) {
			err = errors.Join(err, out.CommitNew())
		}
		return errors.Join(err, out.Close())
	}
	out, err := p.open(ctx, c)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := f(out); err != nil {
		return err
	}
	return out.Close()
}

func (p *piping) runUndo(ctx context.Context, c *cli.Console, in io.Reader) error {
	faults := 0
	var told func(*pipe.Fault)
	if p.salvage {
		told = func(f *pipe.Fault) {
			faults++
			c.Say("%v", f)
		}
	}
	err := tool.Undo(ctx, in, func() (io.WriteCloser, error) { return p.open(ctx, c) }, told)
	var fault *pipe.Fault
	switch {
	case errors.As(err, &fault):
		return cli.Status(cli.ExitFound,
			hint.With(fault, "--salvage continues after the fault; the output so far is good"))
	case err == nil && faults > 0:
		return cli.Status(cli.ExitFound, nil)
	}
	return err
}

func writeChecked(w io.Writer, res *tool.Checked) error {
	for _, f := range res.Faults {
		fmt.Fprintln(w, report.OneLine(f.Text))
	}
	if len(res.Faults) == tool.MaxFaults {
		fmt.Fprintln(w, "… and more")
	}
	if res.Lacking != "" {
		fmt.Fprintf(w, "not all was looked at: %s\n", res.Lacking)
	}
	_, err := fmt.Fprintf(w, "stream %s, layers %s: %s good, %s bad\n", res.Serial, res.Chain,
		report.Plural(int(res.Good), "block", "blocks"), report.Count(res.Bad))
	return err
}
