// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wire"
)

func newReceive(c *cli.Console) *cobra.Command {
	var l cli.ListenFlags
	var dir string
	var noSync bool
	var streams, conns int
	var bytes cli.Size
	cmd := &cobra.Command{
		Use:   "receive ADDRESS -o DIR",
		Short: "Receive streams from recorders, and store them",
		Long: `Receive listens at ADDRESS (unix:PATH, tcp://HOST:PORT or tls://HOST:PORT) for iotape
record --to and iotape pipe -o. It stores each stream as a file in DIR, named by the
serial of the stream. iotape seal and the other commands read these files. Without a
HOST, receive listens on this machine only.

Receive stores every block of a stream once, and acknowledges it when it is on the disk.
A sender that was disconnected connects again and continues where it was. If the disk is
full, senders wait. Receive needs no keys: encrypted streams stay encrypted.

Receive prints its address, reports the start and end of streams on standard error, and
runs until SIGINT or SIGTERM.`,
		Example: `  iotape receive :7070 -o streams
  iotape record --to tcp://127.0.0.1:7070 --pipe zstd -- make
  iotape receive tls://0.0.0.0:7070 --tls-cert c.pem --tls-key c.key --client-ca clients.pem -o streams
  iotape receive unix:/run/iotape.sock -o streams`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  stopped by a signal", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := wire.NewDir(dir)
			if err != nil {
				return err
			}
			d.MaxStreams, d.MaxBytes, d.NoSync = streams, int64(bytes), noSync
			ln, err := l.Listen(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer ln.Close()
			if err := c.Print(func(w *bufio.Writer) error {
				_, err := fmt.Fprintln(w, wire.AddressOf(ln, args[0]))
				return err
			}); err != nil {
				return err
			}
			s := &wire.Server{Store: d, Limits: wire.Limits{Conns: conns},
				Note: func(line string) { c.Say("%s", line) }}
			return s.Serve(cmd.Context(), ln)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&dir, "output", "o", "", "the `DIR` for the streams; receive makes it if it does not exist")
	l.Add(cmd)
	f.IntVar(&conns, "max-conns", 64, "take at most `N` connections at a time")
	f.IntVar(&streams, "max-streams", 10000, "keep at most `N` streams in DIR")
	f.Var(&bytes, "max-bytes", "the most bytes in DIR; 0 means as many as fit, with 64M left free")
	f.BoolVar(&noSync, "no-sync", false, "acknowledge blocks before they are on the disk")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
