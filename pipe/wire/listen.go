// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ListenOptions for Listen.
type ListenOptions struct {
	TLS  Files  // for tls://
	Open bool   // allow an address that others can reach without TLS
	Risk string // what others can do then; "" means: send
}

// An AddressError says that an address, or what goes with it, is wrong.
type AddressError struct{ Err error }

// Error returns the message of Err.
func (e *AddressError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AddressError) Unwrap() error { return e.Err }

// An ExposedError is returned for an address that others can reach without TLS.
type ExposedError struct{ Address, Risk string }

// Error says what others can do.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("%s can be reached by others, and %s", e.Address, e.Risk)
}

// Listen opens an address: unix:PATH, tcp://HOST:PORT, tls://HOST:PORT or HOST:PORT.
// Without a host it listens on this machine only. AddressOf returns the address of the
// listener.
func Listen(ctx context.Context, address string, o *ListenOptions) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	scheme, hostPort, ok := strings.Cut(address, "://")
	if !ok {
		scheme, hostPort = "tcp", address
	}
	if scheme != "tcp" && scheme != "tls" {
		return nil, &AddressError{fmt.Errorf("%s: an address is unix:PATH, tcp://HOST:PORT or tls://HOST:PORT",
			address)}
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, &AddressError{fmt.Errorf("%s: %w", address, err)}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var config *tls.Config
	if scheme == "tls" {
		if config, err = ServerTLS(o.TLS); err != nil {
			return nil, err
		}
	} else if o.TLS != (Files{}) {
		return nil, &AddressError{errors.New("--tls-cert, --tls-key and --client-ca are for tls://")}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if config != nil {
		return tls.NewListener(ln, config), nil
	}
	if a := ln.Addr().(*net.TCPAddr); !a.IP.IsLoopback() && !o.Open {
		ln.Close()
		return nil, &ExposedError{Address: address, Risk: cmp.Or(o.Risk, "all of them can send")}
	}
	return ln, nil
}

// listenUnix makes a socket that only its owner can use. It
// replaces a socket that has no listener.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
			return nil, fmt.Errorf("%s: another program listens there already", path)
		}
		if errors.Is(err, unix.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// AddressOf returns an address in the form that record --to takes,
// with the port that was chosen.
func AddressOf(ln net.Listener, address string) string {
	switch scheme, _, ok := strings.Cut(address, "://"); {
	case ln.Addr().Network() == "unix":
		return "unix:" + ln.Addr().String()
	case ok:
		return scheme + "://" + ln.Addr().String()
	}
	return "tcp://" + ln.Addr().String()
}
