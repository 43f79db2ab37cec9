package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wire"
)

// defaultPage is where the collector shows the fleet.
const defaultPage = "127.0.0.1:7073"

// collectorPlan is what a collector is told.
type collectorPlan struct {
	collector.Options
	listen, page     string
	tls              wire.Files
	open             bool
	nats, key        string
	alarm            string
	sync             time.Duration
	brokerOnly       bool
	name, cluster    string
	peers            []string
	clusterTLS       wire.Files
	brokerMax, spare sizeFlag
}

func newCollector(c *console) *cobra.Command {
	p := &collectorPlan{}
	cmd := &cobra.Command{
		Use:   "collector --data DIR",
		Short: "Take what the agents of a fleet send, and stage it for the archive",
		Long: `Collector takes the streams that iotape-agents send and keeps each in a directory below
DIR/staging, by host, every byte once, whatever happens to agents, networks and the
collector itself (docs/fleet.md). It never looks into what it stores.

The broker that agents connect to, NATS JetStream, is part of the collector; --nats uses
an existing one instead. Agents need a key, which iotape collector enrol takes; a key is
for one host's stream, and nobody reads what is sent without one for that.

It listens to this machine only, unless it is told otherwise, and then with TLS. A page,
metrics for Prometheus, and what iotape fleet shows are at --page. It prints where agents
connect, and runs until SIGINT or SIGTERM.`,
		Example: `  iotape collector --data /srv/iotape --listen :4222
  iotape collector --data /srv/iotape --listen 0.0.0.0:4222 --tls-cert c.pem --tls-key c.key
  iotape collector enrol db7 --data /srv/iotape --public UABC...
  iotape collector --data /srv/iotape --nats tls://nats.example.com:4222 --key collector.nk`,
		Args:        cobra.NoArgs,
		Annotations: exits("0  stopped by a signal", "2  failed"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Note = func(line string) { c.say("%s", line) }
			p.BrokerBytes, p.MinFree = int64(p.brokerMax), int64(p.spare)
			return p.run(cmd.Context(), c)
		},
	}
	cmd.PersistentFlags().StringVar(&p.Data, "data", "", "the collector's directory is `DIR`")
	_ = cmd.MarkPersistentFlagRequired("data")
	f := cmd.Flags()
	f.StringVar(&p.listen, "listen", "127.0.0.1:4222", "agents connect to `HOST:PORT`")
	f.StringVar(&p.tls.Cert, "tls-cert", "", "the certificate in `FILE`")
	f.StringVar(&p.tls.Key, "tls-key", "", "the certificate's key in `FILE`")
	f.BoolVar(&p.open, "open", false, "listen on an address that others can reach without TLS")
	f.StringVar(&p.page, "page", defaultPage, "show the fleet at `HOST:PORT`; - is nowhere")
	f.StringVar(&p.nats, "nats", "", "use the NATS servers at `URL`, several with commas, and start none")
	f.StringVar(&p.key, "key", "", "with --nats: the collector's nkey seed is in `FILE`")
	f.StringVar(&p.tls.CA, "ca", "", "with --nats: the servers' certificates are checked with those in `FILE`")
	f.IntVar(&p.Replicas, "replicas", 1, "how many brokers of a cluster keep what is sent")
	f.DurationVar(&p.Silent, "silent", 5*time.Minute, "tell of a host that was not heard for `TIME`")
	f.DurationVar(&p.Abandon, "abandon", 24*time.Hour, "end the streams of a host that was not heard for `TIME`")
	f.StringVar(&p.alarm, "alarm", "", "run `PROGRAM` HOST SECONDS when a host is silent")
	f.DurationVar(&p.sync, "sync", 2*time.Second, "the broker's file is synced every `TIME`")
	f.Var(&p.brokerMax, "broker-bytes", "the broker keeps up to so many bytes; 0 is 4G")
	f.Var(&p.spare, "min-free", "leave so much room on the disk; 0 is 64M")
	f.BoolVar(&p.brokerOnly, "broker-only", false, "only be a broker: one of a cluster")
	f.StringVar(&p.name, "name", "", "with --cluster: the `NAME` of this broker")
	f.StringVar(&p.cluster, "cluster", "", "be one broker of a cluster: the others connect to `HOST:PORT`")
	f.StringSliceVar(&p.peers, "peer", nil, "with --cluster: another broker's `HOST:PORT`; repeatable")
	f.StringVar(&p.clusterTLS.Cert, "cluster-cert", "", "with --cluster: the certificate in `FILE`")
	f.StringVar(&p.clusterTLS.Key, "cluster-key", "", "with --cluster: the certificate's key in `FILE`")
	f.StringVar(&p.clusterTLS.CA, "cluster-ca", "", "with --cluster: only take brokers with a certificate of those in `FILE`")
	cmd.AddCommand(newEnrol(c, p), newRevoke(c, p), newKeys(c, p))
	for _, sub := range cmd.Commands() {
		finishCommand(sub)
	}
	return cmd
}

// reachable refuses an address that others can reach, without TLS.
func (p *collectorPlan) reachable(address string, secure bool, how string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usageError{err}
	}
	ip := net.ParseIP(host)
	if secure || p.open || host == "" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return hint.With(fmt.Errorf("%s can be reached by others", address), "%s, or --open if that is meant", how)
}

func (p *collectorPlan) run(ctx context.Context, c *console) error {
	if err := p.reachable(p.listen, p.tls.Cert != "", "use --tls-cert and --tls-key"); err != nil {
		return err
	}
	if p.page != "-" {
		if err := p.reachable(p.page, false, "the page has neither TLS nor passwords: put a proxy in front of it"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.Data, 0o755); err != nil {
		return err
	}
	if p.alarm != "" {
		p.Alarm = func(host string, silent time.Duration) {
			cmd := exec.Command(p.alarm, host, fmt.Sprint(int(silent.Seconds())))
			go func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					c.say("--alarm %s: %v: %s", p.alarm, err, out)
				}
			}()
		}
	}
	if p.nats != "" {
		nc, err := p.dial()
		if err != nil {
			return err
		}
		defer nc.Close()
		return p.collect(ctx, c, nc, p.nats, nil)
	}
	b, err := p.start(c)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go keepKeys(ctx, c, b, stop)
	if p.brokerOnly {
		if err := c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, b.Address()); return err }); err != nil {
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
	return errors.Join(p.collect(ctx, c, nc, b.Address(), b.Refused), brokerFailure(ctx))
}

func brokerFailure(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, broker.ErrNotWorking) {
		return hint.With(err, "make room and start the collector again: agents keep what they have")
	}
	return nil
}

// start starts the broker.
func (p *collectorPlan) start(c *console) (*broker.Broker, error) {
	o := &broker.Options{Data: p.Data, Listen: p.listen, Sync: p.sync, Note: func(line string) { c.say("%s", line) }}
	var err error
	if p.tls.Cert != "" || p.tls.Key != "" {
		if o.TLS, err = wire.ServerTLS(wire.Files{Cert: p.tls.Cert, Key: p.tls.Key}); err != nil {
			return nil, err
		}
	}
	if p.cluster != "" {
		if p.name == "" {
			return nil, usageError{errors.New("--cluster needs a --name for this broker")}
		}
		if err := p.reachable(p.cluster, p.clusterTLS.CA != "", "use --cluster-cert, --cluster-key and --cluster-ca"); err != nil {
			return nil, err
		}
		o.Cluster = &broker.Cluster{Name: p.name, Listen: p.cluster, Peers: p.peers}
		if p.clusterTLS != (wire.Files{}) {
			var t *tls.Config
			if t, err = wire.ServerTLS(p.clusterTLS); err != nil {
				return nil, err
			}
			t.RootCAs = t.ClientCAs // brokers are each other's clients
			o.Cluster.TLS = t
		}
	}
	return broker.Start(o)
}

// keepKeys takes changes of the keys, and ends the collector with its broker.
func keepKeys(ctx context.Context, c *console, b *broker.Broker, stop context.CancelCauseFunc) {
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if changed, err := b.Refresh(); err != nil {
			c.say("keys: %v", err)
		} else if changed {
			c.say("keys: taken")
		}
		if !b.Working() {
			stop(broker.ErrNotWorking)
		}
	}
}

// dial connects to somebody else's brokers.
func (p *collectorPlan) dial() (*nats.Conn, error) {
	opts := []nats.Option{nats.Name("iotape collector"), nats.MaxReconnects(-1), nats.Timeout(10 * time.Second), nats.IgnoreAuthErrorAbort()}
	if p.key != "" {
		pair, public, err := key.Read(p.key)
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		opts = append(opts, nats.Nkey(public, pair.Sign))
	}
	if p.tls.CA != "" {
		opts = append(opts, nats.RootCAs(p.tls.CA))
	}
	nc, err := nats.Connect(p.nats, opts...)
	if err != nil {
		return nil, fmt.Errorf("--nats %s: %w", p.nats, err)
	}
	return nc, nil
}

// collect runs the collector.
func (p *collectorPlan) collect(ctx context.Context, c *console, nc *nats.Conn, address string, refused func() (uint64, uint64)) error {
	p.Key = broker.NewKeyring(p.Data).Public
	making, cancel := context.WithTimeout(ctx, 3*time.Minute)
	col, err := collector.New(making, nc, &p.Options, refused)
	cancel()
	if err != nil {
		return err
	}
	lines := []string{address}
	if p.page != "-" {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.page)
		if err != nil {
			return fmt.Errorf("--page: %w", err)
		}
		srv := &http.Server{Handler: col.Handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()
		lines = append(lines, "http://"+ln.Addr().String())
	}
	if err := c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); return err }); err != nil {
		return err
	}
	return col.Run(ctx, nc)
}
