package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wire"
)

// listenFlags say where and how to listen.
type listenFlags struct{ wire.ListenOptions }

func (l *listenFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.TLS.Cert, "tls-cert", "", "with tls://: the certificate in `FILE`")
	f.StringVar(&l.TLS.Key, "tls-key", "", "with tls://: the certificate's key in `FILE`")
	f.StringVar(&l.TLS.CA, "client-ca", "", "with tls://: only take clients with a certificate of those in `FILE`")
	f.BoolVar(&l.Open, "open", false, "listen on an address that others can reach without TLS")
}

// listen opens an address, see wire.Listen.
func (l *listenFlags) listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := wire.Listen(ctx, address, &l.ListenOptions)
	switch {
	case errors.As(err, new(*wire.AddressError)):
		return nil, usageError{err}
	case errors.As(err, new(*wire.ExposedError)):
		return nil, hint.With(err, "use tls://, with --client-ca to know who it is, or --open if that is meant")
	}
	return ln, err
}

func newReceive(c *console) *cobra.Command {
	var l listenFlags
	var dir string
	var noSync bool
	var streams, conns int
	var bytes sizeFlag
	cmd := &cobra.Command{
		Use:   "receive ADDRESS -o DIR",
		Short: "Take streams that recorders send, and keep them",
		Long: `Receive listens at ADDRESS, which is unix:PATH, tcp://HOST:PORT or tls://HOST:PORT, for
what iotape record --to and iotape pipe -o send. Each stream is a file in DIR, named by
its serial; iotape seal and the other commands read it. Without a HOST, receive listens
to this machine only.

Every block of a stream is kept once, and acknowledged when it is on the disk. A sender
that was cut off connects again and goes on where it was. A disk that is full makes
senders wait. Receive needs no keys: what is encrypted stays so.

It prints the address that it listens at, says on standard error what begins and ends,
and runs until SIGINT or SIGTERM.`,
		Example: `  iotape receive :7070 -o streams
  iotape record --to tcp://127.0.0.1:7070 --pipe zstd -- make
  iotape receive tls://0.0.0.0:7070 --tls-cert c.pem --tls-key c.key --client-ca clients.pem -o streams
  iotape receive unix:/run/iotape.sock -o streams`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  stopped by a signal", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := wire.NewDir(dir)
			if err != nil {
				return err
			}
			d.MaxStreams, d.MaxBytes, d.NoSync = streams, int64(bytes), noSync
			ln, err := l.listen(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer ln.Close()
			if err := c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, wire.AddressOf(ln, args[0])); return err }); err != nil {
				return err
			}
			s := &wire.Server{Store: d, Limits: wire.Limits{Conns: conns}, Note: func(line string) { c.say("%s", line) }}
			return s.Serve(cmd.Context(), ln)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&dir, "output", "o", "", "the `DIR` for the streams; it is made if it is not there")
	l.add(cmd)
	f.IntVar(&conns, "max-conns", 64, "take so many connections at a time")
	f.IntVar(&streams, "max-streams", 10000, "keep so many streams in DIR")
	f.Var(&bytes, "max-bytes", "keep so many bytes in DIR; 0 is as many as there is room for, but for 64M")
	f.BoolVar(&noSync, "no-sync", false, "acknowledge what the kernel has, and the disk perhaps not")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
