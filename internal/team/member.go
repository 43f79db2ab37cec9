// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
)

// ranks are the variables in which launchers that start all members tell each which one
// it is, from 0.
var ranks = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}

// rankMark begins the name of a member that knows its rank only.
const rankMark = "#"

// Join connects to the hub at an address. Secret is a file, or FromInput. Name is what the
// hub calls this member; "" leaves that to the launcher's numbers, or to the hub.
func Join(ctx context.Context, hub, secret, name string) (*Wire, error) {
	b, err := readSecret(secret)
	if err != nil {
		return nil, err
	}
	config, err := tlsOf(b)
	if err != nil {
		return nil, err
	}
	for _, v := range ranks {
		if s := os.Getenv(v); s != "" && name == "" {
			name = rankMark + s
		}
	}
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: Silence}, Config: config}
	conn, err := d.DialContext(ctx, "tcp", hub)
	if err != nil {
		return nil, fmt.Errorf("join the team at %s: %w", hub, err)
	}
	w := NewWire(conn)
	if err := w.Send(kindJoin, []byte(name)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("join the team at %s: %w", hub, err)
	}
	return w, nil
}
