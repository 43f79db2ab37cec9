package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wire"
)

// listenFlags say where and how to listen.
type listenFlags struct {
	tls  wire.Files
	open bool
	risk string // what others could do; "" is to send
}

func (l *listenFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.tls.Cert, "tls-cert", "", "with tls://: the certificate in `FILE`")
	f.StringVar(&l.tls.Key, "tls-key", "", "with tls://: the certificate's key in `FILE`")
	f.StringVar(&l.tls.CA, "client-ca", "", "with tls://: only take clients with a certificate of those in `FILE`")
	f.BoolVar(&l.open, "open", false, "listen on an address that others can reach without TLS")
}

// listen opens an address: unix:PATH, tcp://HOST:PORT, tls://HOST:PORT or HOST:PORT.
// Without a host it is this machine only.
func (l *listenFlags) listen(ctx context.Context, address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	scheme, hostPort, ok := strings.Cut(address, "://")
	if !ok {
		scheme, hostPort = "tcp", address
	}
	if scheme != "tcp" && scheme != "tls" {
		return nil, usageError{fmt.Errorf("%s: an address is unix:PATH, tcp://HOST:PORT or tls://HOST:PORT", address)}
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", address, err)}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var config *tls.Config
	if scheme == "tls" {
		if config, err = wire.ServerTLS(l.tls); err != nil {
			return nil, err
		}
	} else if l.tls != (wire.Files{}) {
		return nil, usageError{errors.New("--tls-cert, --tls-key and --client-ca are for tls://")}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if config != nil {
		return tls.NewListener(ln, config), nil
	}
	if a := ln.Addr().(*net.TCPAddr); !a.IP.IsLoopback() && !l.open {
		ln.Close()
		return nil, hint.With(fmt.Errorf("%s can be reached by others, and %s", address, cmp.Or(l.risk, "whoever does can send")), "use tls://, with --client-ca to know who it is, or --open if that is meant")
	}
	return ln, nil
}

// listenUnix makes a socket that only its owner can use. One that nobody listens to any
// more is replaced.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
			return nil, fmt.Errorf("%s: somebody listens there already", path)
		}
		if errors.Is(err, unix.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// addressOf returns an address in the form that record --to takes.
func addressOf(ln net.Listener, address string) string {
	switch scheme, _, ok := strings.Cut(address, "://"); {
	case ln.Addr().Network() == "unix":
		return "unix:" + ln.Addr().String()
	case ok:
		return scheme + "://" + ln.Addr().String()
	}
	return "tcp://" + ln.Addr().String()
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
			if err := c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, addressOf(ln, args[0])); return err }); err != nil {
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
