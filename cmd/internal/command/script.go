// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
)

func newScript(c *cli.Console) *cobra.Command {
	var out, compile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "script TAPE -o DIR | --compile DIR -o TAPE",
		Short: "Write a tape as text that you can edit and replay",
		Long: `Script writes a tape as the files of a directory. skeleton has the commands that make
the initial tree. replay has one line for each event, with its arguments and the
expected result. final has the tree that is expected at the end. content has the bytes
that are too long for a line. You can remove, change and add lines. Omitted parts have
defaults. docs/script.md describes the files.

iotape replay --script DIR runs a script. iotape script --compile makes a tape of it.`,
		Example: `  iotape script db.tape -o db.script
  sed -i 's/O_SYNC|//' db.script/replay
  iotape replay --script db.script --into again --verify
  iotape script --compile db.script -o nosync.tape`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: cli.Exits("0  written", "2  failed; errors in a script have file, line and column"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case out == "":
				return cli.MissingFlag(cmd, "output")
			case compile != "" && len(args) > 0:
				return cli.Usage(errors.New("--compile reads a directory, not a tape"))
			case compile != "":
				return compileTo(cmd.Context(), c, compile, out)
			case len(args) == 0:
				return cli.Usage(errors.New("a TAPE is needed, or --compile DIR"))
			}
			done, err := writeScript(cmd.Context(), args[0], out)
			if err != nil {
				return err
			}
			return c.Print(func(w *bufio.Writer) error {
				if asJSON {
					return jsonout.Line(w, done)
				}
				fmt.Fprintf(w, "%s and %s in %s, with %s of content\n", report.Plural(done.Entries, "entry", "entries"),
					report.Plural(int(done.Events), "event", "events"),
					report.Printable(out), report.Bytes(uint64(done.Bytes)))
				if done.Missing > 0 {
					fmt.Fprintf(w, "%s of content are not in the tape\n", report.Bytes(uint64(done.Missing)))
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the directory `DIR` to make, or with --compile the tape to make")
	f.StringVar(&compile, "compile", "", "make a tape of the script in `DIR`")
	f.BoolVar(&asJSON, "json", false, "print a summary as one JSON object")
	return cmd
}

// writeScript infers the initial tree of a tape and writes both.
func writeScript(ctx context.Context, tape, out string) (*script.Written, error) {
	t, err := cli.OpenTape(ctx, tape)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	sk, err := initialtree.OfTape(ctx, t)
	if err != nil {
		return nil, err
	}
	return script.Write(ctx, t, script.Tree{Entries: sk.Entries(), Content: sk.Content}, out)
}

// compileTo makes a tape of a script.
func compileTo(ctx context.Context, c *cli.Console, dir, out string) error {
	var wrong error
	_, err := sealing.Make(ctx, out, c.Making(true, report.Count),
		func(tw *trace.TapeWriter, _ sealing.Update) (m *trace.Manifest, err error) {
			m, wrong = script.Compile(ctx, dir, tw, cli.Program())
			return m, wrong
		})
	if wrong != nil {
		return script.Locate(dir, wrong)
	}
	return err
}
