// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/httpguard"
	"github.com/iotape/iotape/pipe/wire"
	"github.com/iotape/iotape/record/sealing"
)

// DefaultPage is the default address of the page, HOST:PORT.
const DefaultPage = "127.0.0.1:7073"

// Options for Run. Data and Note of the collector's options are the broker's, too.
type Options struct {
	collector.Options
	Listen     string        // the broker's address, HOST:PORT
	Page       string        // the address of the page, HOST:PORT; "-" means no page
	PageToken  string        // a file with the token that the page wants; "" means none
	PageNames  []string      // who asks for one of these hosts is answered, too
	TLS        wire.Files    // of the broker; CA is for NATS
	Open       bool          // allow addresses that others can reach without TLS
	NATS       string        // URL of external brokers; "" means start one
	Seed       string        // file with the collector's nkey seed for them
	Program    string        // run with the host and the seconds when a host is silent; "" means none
	Sync       time.Duration // between syncs of the broker's file
	BrokerOnly bool          // collect nothing
	Name       string        // of this broker in its cluster
	Cluster    string        // where other brokers connect, HOST:PORT; "" means no cluster
	Peers      []string      // other brokers, HOST:PORT
	ClusterTLS wire.Files
	// Ready is called with the address for agents and that of the page.
	Ready func(addresses ...string) error
}

// A UsageError says that the options do not fit together.
type UsageError struct{ Err error }

// Error returns the message of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// loopback reports whether an address can be reached from this machine alone. An empty host, as
// in :4222, stands for all addresses of the machine.
func loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, &UsageError{err}
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// reachable refuses an address that others can reach, unless what is asked for there is secure,
// or Open is set. how says what makes it secure.
func (p *Options) reachable(address string, secure bool, how string) error {
	local, err := loopback(address)
	if err != nil || local || secure || p.Open {
		return err
	}
	return hint.With(fmt.Errorf("%s can be reached by others", address), "%s, or --open if that is meant", how)
}

// pageReachable refuses a page that others can reach, unless Open is set and a token is needed.
func (p *Options) pageReachable() error {
	local, err := loopback(p.Page)
	if err != nil || local || p.Open && p.PageToken != "" {
		return err
	}
	return hint.With(fmt.Errorf("others could read the page at %s", p.Page),
		"--open and --page-token FILE allow that; a proxy in front of it adds TLS")
}

// Run receives from agents until ctx ends.
func Run(ctx context.Context, p *Options) error {
	if err := p.reachable(p.Listen, p.TLS.Cert != "", "use --tls-cert and --tls-key"); err != nil {
		return err
	}
	if p.Page != "-" {
		if err := p.pageReachable(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.Data, 0o700); err != nil {
		return err
	}
	if p.Program != "" {
		p.Alarm = func(host string, silent time.Duration) {
			cmd := exec.Command(p.Program, host, fmt.Sprint(int(silent.Seconds())))
			go func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					p.Note(fmt.Sprintf("--alarm %s: %v: %s", p.Program, err, out))
				}
			}()
		}
	}
	if p.NATS != "" {
		nc, err := p.dial()
		if err != nil {
			return err
		}
		defer nc.Close()
		return p.collect(ctx, nc, p.NATS, nil)
	}
	b, err := p.start()
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go keepKeys(ctx, p.Note, b, stop)
	if p.BrokerOnly {
		if err := p.Ready(b.Address()); err != nil {
			return err
		}
		<-ctx.Done()
		return brokerFailure(ctx)
	}
	nc, err := b.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	return errors.Join(p.collect(ctx, nc, b.Address(), b.Refused), brokerFailure(ctx))
}

func brokerFailure(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, broker.ErrNotWorking) {
		return hint.With(err, "make room and start the collector again: agents keep what they have")
	}
	return nil
}

// start starts the broker.
func (p *Options) start() (*broker.Broker, error) {
	if err := p.fitBroker(); err != nil {
		return nil, err
	}
	o := &broker.Options{Data: p.Data, Listen: p.Listen, Sync: p.Sync, Note: p.Note}
	var err error
	if p.TLS.Cert != "" || p.TLS.Key != "" {
		if o.TLS, err = wire.ServerTLS(wire.Files{Cert: p.TLS.Cert, Key: p.TLS.Key}); err != nil {
			return nil, err
		}
	}
	if p.Cluster != "" {
		if p.Name == "" {
			return nil, &UsageError{errors.New("--cluster needs a --name for this broker")}
		}
		if err := p.reachable(p.Cluster, p.ClusterTLS.CA != "",
			"use --cluster-cert, --cluster-key and --cluster-ca"); err != nil {
			return nil, err
		}
		o.Cluster = &broker.Cluster{Name: p.Name, Listen: p.Cluster, Peers: p.Peers}
		if p.ClusterTLS != (wire.Files{}) {
			var t *tls.Config
			if t, err = wire.ServerTLS(p.ClusterTLS); err != nil {
				return nil, err
			}
			t.RootCAs = t.ClientCAs // brokers are each other's clients
			o.Cluster.TLS = t
		}
	}
	return broker.Start(o)
}

// leastBroker is what the broker may take of a disk that is full, in bytes: it starts, and agents
// that have sent what it has keep what is new.
const leastBroker = 16 << 20

// fitBroker limits BrokerBytes to what is free, without MinFree, and what the broker has already.
func (p *Options) fitBroker() error {
	p.BrokerBytes = cmp.Or(p.BrokerBytes, collector.DefaultBrokerBytes)
	var st unix.Statfs_t
	if err := unix.Statfs(p.Data, &st); err != nil {
		return fmt.Errorf("find out what is free at %s: %w", p.Data, err)
	}
	free := int64(min(st.Bavail, math.MaxInt64/uint64(max(st.Bsize, 1)))) * st.Bsize
	room := sealing.DirBytes(broker.StoreDir(p.Data)) + free - cmp.Or(p.MinFree, collector.DefaultMinFree)
	if room = max(room, leastBroker); room < p.BrokerBytes {
		p.Note(fmt.Sprintf("the disk of %s has room for %d MiB of the broker's %d MiB",
			p.Data, room>>20, p.BrokerBytes>>20))
		p.BrokerBytes = room
	}
	return nil
}

// keepKeys follows changes of the keys, and ends the collector with its broker.
func keepKeys(ctx context.Context, note func(string), b *broker.Broker, stop context.CancelCauseFunc) {
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if changed, err := b.Refresh(); err != nil {
			note(fmt.Sprintf("keys: %v", err))
		} else if changed {
			note("keys: taken")
		}
		if !b.Working() {
			stop(broker.ErrNotWorking)
		}
	}
}

// dial connects to external brokers.
func (p *Options) dial() (*nats.Conn, error) {
	opts := []nats.Option{nats.Name("iotape collector"), nats.MaxReconnects(-1), nats.Timeout(10 * time.Second),
		nats.IgnoreAuthErrorAbort()}
	if p.Seed != "" {
		pair, public, err := key.Read(p.Seed)
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		opts = append(opts, nats.Nkey(public, pair.Sign))
	}
	if p.TLS.CA != "" {
		opts = append(opts, nats.RootCAs(p.TLS.CA))
	}
	nc, err := nats.Connect(p.NATS, opts...)
	if err != nil {
		return nil, fmt.Errorf("--nats %s: %w", p.NATS, err)
	}
	return nc, nil
}

// guard returns what the page asks of requests.
func (p *Options) guard() (*httpguard.Guard, error) {
	g := &httpguard.Guard{Names: slices.Clone(p.PageNames)}
	if host, _, err := net.SplitHostPort(p.Page); err == nil {
		g.Names = append(g.Names, host)
	}
	if host, err := os.Hostname(); err == nil {
		g.Names = append(g.Names, host)
	}
	var err error
	if p.PageToken != "" {
		g.Token, err = httpguard.ReadToken(p.PageToken)
	}
	return g, err
}

// collect runs the collector.
func (p *Options) collect(ctx context.Context, nc *nats.Conn, address string, refused func() (uint64, uint64)) error {
	keys := broker.NewKeyring(p.Data)
	p.Keys, p.Revoked = keys.Publics, keys.Revoked
	making, cancel := context.WithTimeout(ctx, 3*time.Minute)
	col, err := collector.New(making, nc, &p.Options, refused)
	cancel()
	if err != nil {
		return err
	}
	lines := []string{address}
	if p.Page != "-" {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Page)
		if err != nil {
			return fmt.Errorf("--page: %w", err)
		}
		guard, err := p.guard()
		if err != nil {
			ln.Close()
			return err
		}
		srv := &http.Server{
			Handler: guard.Wrap(col.Handler()), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute,
			MaxHeaderBytes: 16 << 10,
		}
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()
		lines = append(lines, "http://"+ln.Addr().String())
	}
	if err := p.Ready(lines...); err != nil {
		return err
	}
	return col.Run(ctx, nc)
}
