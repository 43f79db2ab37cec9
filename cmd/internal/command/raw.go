// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace/raw"
)

func newRaw(c *cli.Console) *cobra.Command {
	var build string
	cmd := &cobra.Command{
		Use:   "raw STREAM | raw --build STREAM TEXT",
		Short: "Print a stream as text, or make a stream from text",
		Long: `Raw prints exactly what a recorder wrote: every frame, record, object and piece of a
stream, one per line, without interpreting them. With --build, it makes a stream from
such a text, also a damaged stream. Use it to test iotape seal, and to report bugs about
damaged recordings.`,
		Example: `  iotape record --keep-stream -o ls.tape -- ls
  iotape raw ls.stream | less
  iotape raw --build broken.stream broken.txt && iotape seal broken.stream`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  done", "2  failed, or the stream is damaged; its good part was printed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := wholefile.OpenGiven(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			if build == "" {
				stream, _, err := chain.Plain(cmd.Context(), in)
				if err != nil {
					return err
				}
				return c.Print(func(w *bufio.Writer) error { return raw.Dump(w, stream) })
			}
			wholefile.RemoveLeft(build)
			out, err := wholefile.Create(build)
			if err != nil {
				return err
			}
			defer out.Close()
			if err := raw.Build(out, in); err != nil {
				return err
			}
			return out.CommitNew()
		},
	}
	cmd.Flags().StringVar(&build, "build", "", "make this `STREAM` from a text")
	return cmd
}
