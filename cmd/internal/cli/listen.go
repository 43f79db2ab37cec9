// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wire"
)

// ListenFlags say where and how to listen.
type ListenFlags struct{ wire.ListenOptions }

// Add adds the flags.
func (l *ListenFlags) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.TLS.Cert, "tls-cert", "", "with tls://: a `FILE` with the certificate")
	f.StringVar(&l.TLS.Key, "tls-key", "", "with tls://: a `FILE` with the certificate's key")
	f.StringVar(&l.TLS.CA, "client-ca", "",
		"with tls://: accept only clients whose certificate is from an authority in `FILE`")
	f.BoolVar(&l.Open, "open", false, "allow an address that other machines can reach, without TLS")
}

// Listen opens an address, see wire.Listen.
func (l *ListenFlags) Listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := wire.Listen(ctx, address, &l.ListenOptions)
	switch {
	case errors.As(err, new(*wire.AddressError)):
		return nil, Usage(err)
	case errors.As(err, new(*wire.ExposedError)):
		return nil, hint.With(err, "use tls:// (and --client-ca to authenticate clients), or --open to allow it")
	}
	return ln, err
}
