package main

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/service"
)

func newCollector(c *console) *cobra.Command {
	p := &service.Options{}
	var brokerMax, spare sizeFlag
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
			p.Note = reporter{c}.Note
			p.Ready = func(addresses ...string) error {
				return c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, strings.Join(addresses, "\n")); return err })
			}
			p.BrokerBytes, p.MinFree = int64(brokerMax), int64(spare)
			err := service.Run(cmd.Context(), p)
			return usageIf[*service.UsageError](err)
		},
	}
	cmd.PersistentFlags().StringVar(&p.Data, "data", "", "the collector's directory is `DIR`")
	_ = cmd.MarkPersistentFlagRequired("data")
	f := cmd.Flags()
	f.StringVar(&p.Listen, "listen", "127.0.0.1:4222", "agents connect to `HOST:PORT`")
	f.StringVar(&p.TLS.Cert, "tls-cert", "", "the certificate in `FILE`")
	f.StringVar(&p.TLS.Key, "tls-key", "", "the certificate's key in `FILE`")
	f.BoolVar(&p.Open, "open", false, "listen on an address that others can reach without TLS")
	f.StringVar(&p.Page, "page", service.DefaultPage, "show the fleet at `HOST:PORT`; - is nowhere")
	f.StringVar(&p.NATS, "nats", "", "use the NATS servers at `URL`, several with commas, and start none")
	f.StringVar(&p.Seed, "key", "", "with --nats: the collector's nkey seed is in `FILE`")
	f.StringVar(&p.TLS.CA, "ca", "", "with --nats: the servers' certificates are checked with those in `FILE`")
	f.IntVar(&p.Replicas, "replicas", 1, "how many brokers of a cluster keep what is sent")
	f.DurationVar(&p.Silent, "silent", 5*time.Minute, "tell of a host that was not heard for `TIME`")
	f.DurationVar(&p.Abandon, "abandon", 24*time.Hour, "end the streams of a host that was not heard for `TIME`")
	f.StringVar(&p.Program, "alarm", "", "run `PROGRAM` HOST SECONDS when a host is silent")
	f.DurationVar(&p.Sync, "sync", 2*time.Second, "the broker's file is synced every `TIME`")
	f.Var(&brokerMax, "broker-bytes", "the broker keeps up to so many bytes; 0 is 4G")
	f.Var(&spare, "min-free", "leave so much room on the disk; 0 is 64M")
	f.BoolVar(&p.BrokerOnly, "broker-only", false, "only be a broker: one of a cluster")
	f.StringVar(&p.Name, "name", "", "with --cluster: the `NAME` of this broker")
	f.StringVar(&p.Cluster, "cluster", "", "be one broker of a cluster: the others connect to `HOST:PORT`")
	f.StringSliceVar(&p.Peers, "peer", nil, "with --cluster: another broker's `HOST:PORT`; repeatable")
	f.StringVar(&p.ClusterTLS.Cert, "cluster-cert", "", "with --cluster: the certificate in `FILE`")
	f.StringVar(&p.ClusterTLS.Key, "cluster-key", "", "with --cluster: the certificate's key in `FILE`")
	f.StringVar(&p.ClusterTLS.CA, "cluster-ca", "", "with --cluster: only take brokers with a certificate of those in `FILE`")
	cmd.AddCommand(newEnrol(c, p), newRevoke(c, p), newKeys(c, p))
	for _, sub := range cmd.Commands() {
		finishCommand(sub)
	}
	return cmd
}
