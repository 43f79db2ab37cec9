// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/tail"
	"github.com/iotape/iotape/pipe/wire"
)

func newTail(c *cli.Console) *cobra.Command {
	var o tail.Options
	var noWait bool
	var listen cli.ListenFlags
	var clock cli.ClockFlags
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "tail ADDRESS|STREAM|TAPE.partial",
		Short: "Print the events of a recording in progress",
		Long: `Tail prints the events of a recording in progress, in the form of iotape print.

With a file, tail prints the existing events and waits for more, until the recording ends.
The file is the output of iotape record --to or of iotape receive, or the directory
TAPE.partial of a recording. With an ADDRESS (unix:PATH, tcp://HOST:PORT or
tls://HOST:PORT), tail receives from iotape record --to, in place of iotape receive, and
stores nothing.

Tail has the first 64 bytes of each buffer. It prints an event when no earlier event can
arrive any more. A block arrives when it is full, or after 200 ms (flush:TIME in --pipe).`,
		Example: `  iotape tail db.tape.partial
  iotape tail tcp://:7070 & iotape record --to tcp://127.0.0.1:7070 -- make
  iotape tail tcp://:7070 --filter 'latency > 10ms and class = data'
  iotape tail --identity reader.key streams/8f3e2a7c11d09b46.stream`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  the recording ended", "1  the recording is incomplete or damaged", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.MaxBytes < 1 || o.MaxBytes > 64 {
				return cli.Usage(fmt.Errorf("--max-bytes %d: the value must be from 1 to 64", o.MaxBytes))
			}
			var err error
			if o.Clock, o.Location, err = clock.Lines(cmd); err != nil {
				return err
			}
			if o.Filter, err = filter.Expr(); err != nil {
				return err
			}
			o.Out, o.Note, o.Style = c.Escaped(c.Out), c.Reporter().Note, c.Style(c.Out)
			var complete bool
			if args[0] == "-" {
				return cli.Usage(errors.New("tail reads a file or listens; for the standard input: iotape print -"))
			}
			if strings.HasPrefix(args[0], "unix:") || strings.Contains(args[0], "://") {
				ln, listenErr := listen.Listen(cmd.Context(), args[0])
				if listenErr != nil {
					return listenErr
				}
				defer ln.Close()
				c.Say("listening at %s", wire.AddressOf(ln, args[0]))
				complete, err = tail.Serve(cmd.Context(), ln, &o)
			} else {
				complete, err = tail.File(cmd.Context(), args[0], !noWait, &o)
			}
			return cli.Ended(err, complete)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line")
	f.BoolVar(&noWait, "no-wait", false, "print the events that a file has, and do not wait for more")
	f.IntVar(&o.MaxBytes, "max-bytes", 32, "show the first `N` bytes of each buffer, up to 64")
	clock.AddLines(cmd)
	filter.Add(f)
	listen.Add(cmd)
	return cmd
}
