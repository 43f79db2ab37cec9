// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/fleet/service"
)

func newCollector(c *cli.Console) *cobra.Command {
	p := &service.Options{}
	var brokerMax, spare cli.Size
	cmd := &cobra.Command{
		Use:   "collector --data DIR",
		Short: "Receive the streams of agents, and stage them for the archive",
		Long: `Collector receives the streams of iotape-agents. It stores each stream in a directory
below DIR/staging, by host. It stores every byte once, even if agents, networks or the
collector itself fail (docs/fleet.md). It does not interpret what it stores.

Agents connect to a broker, NATS JetStream, which is part of the collector. --nats uses
an existing broker instead. Every agent needs a key, which you register with iotape
collector enrol. A key gives the right to send the stream of one host. To read what
agents send, a reader's key is necessary.

By default the collector listens only on this machine. On other addresses it requires
TLS, unless --open is given. --page is the address of a page about the fleet, of the
metrics for Prometheus, and of the data for iotape fleet. On other addresses it requires
--open and --page-token. The collector prints the addresses for agents, and runs until
SIGINT or SIGTERM.`,
		Example: `  iotape collector --data /srv/iotape
  iotape collector --data /srv/iotape --listen 0.0.0.0:4222 --tls-cert c.pem --tls-key c.key
  iotape collector enrol db7 --data /srv/iotape --public UABC...
  iotape collector --data /srv/iotape --nats tls://nats.example.com:4222 --key collector.nk`,
		Args:        cobra.NoArgs,
		Annotations: cli.Exits("0  stopped by a signal", "2  failed"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Note = c.Reporter().Note
			p.Ready = func(addresses ...string) error {
				return c.Print(func(w *bufio.Writer) error {
					_, err := fmt.Fprintln(w, strings.Join(addresses, "\n"))
					return err
				})
			}
			p.BrokerBytes, p.MinFree = int64(brokerMax), int64(spare)
			err := service.Run(cmd.Context(), p)
			return cli.UsageIf[*service.UsageError](err)
		},
	}
	cmd.PersistentFlags().StringVar(&p.Data, "data", "", "the collector's directory, `DIR`")
	_ = cmd.MarkPersistentFlagRequired("data")
	f := cmd.Flags()
	f.StringVar(&p.Listen, "listen", "127.0.0.1:4222", "listen for agents on `HOST:PORT`")
	f.StringVar(&p.TLS.Cert, "tls-cert", "", "a `FILE` with the certificate")
	f.StringVar(&p.TLS.Key, "tls-key", "", "a `FILE` with the certificate's key")
	f.BoolVar(&p.Open, "open", false,
		"allow --listen without TLS, and --page, on an address that other machines can reach")
	f.StringVar(&p.Page, "page", service.DefaultPage, "show the fleet at `HOST:PORT`; - means no page")
	f.StringVar(&p.PageToken, "page-token", "", "a `FILE` with a token that requests for the page must have")
	f.StringSliceVar(&p.PageNames, "page-name", nil,
		"answer requests for the page at this host `NAME`, too; repeatable")
	f.StringVar(&p.NATS, "nats", "", "use the NATS servers at `URL`, several with commas, and start no broker")
	f.StringVar(&p.Seed, "key", "", "with --nats: a `FILE` with the collector's nkey seed")
	f.StringVar(&p.TLS.CA, "ca", "", "with --nats: a `FILE` with the authorities that check the servers' certificates")
	f.IntVar(&p.Replicas, "replicas", 1, "keep each batch on `N` brokers of a cluster")
	f.DurationVar(&p.Silent, "silent", 5*time.Minute, "report a host that was silent for `TIME`")
	f.DurationVar(&p.Abandon, "abandon", 24*time.Hour, "end the streams of a host that was silent for `TIME`")
	f.StringVar(&p.Program, "alarm", "", "run `PROGRAM` HOST SECONDS when a host is silent")
	f.DurationVar(&p.Sync, "sync", 2*time.Second,
		"sync the broker's file every `TIME`; 0 means before each answer to an agent")
	f.Var(&brokerMax, "broker-bytes", "the most bytes that the broker keeps; 0 means 4G")
	f.Var(&spare, "min-free", "the space to leave free on the disk; 0 means 64M")
	f.BoolVar(&p.BrokerOnly, "broker-only", false, "run only a broker of a cluster")
	f.StringVar(&p.Name, "name", "", "with --cluster: the `NAME` of this broker")
	f.StringVar(&p.Cluster, "cluster", "", "run a broker of a cluster, and listen for the other brokers on `HOST:PORT`")
	f.StringSliceVar(&p.Peers, "peer", nil, "with --cluster: the address of another broker, `HOST:PORT`; repeatable")
	f.StringVar(&p.ClusterTLS.Cert, "cluster-cert", "", "with --cluster: a `FILE` with the certificate")
	f.StringVar(&p.ClusterTLS.Key, "cluster-key", "", "with --cluster: a `FILE` with the certificate's key")
	f.StringVar(&p.ClusterTLS.CA, "cluster-ca", "",
		"with --cluster: accept only brokers whose certificate is from an authority in `FILE`")
	cmd.AddCommand(newEnrol(c, p), newRevoke(c, p), newKeys(c, p))
	for _, sub := range cmd.Commands() {
		cli.FinishCommand(sub)
	}
	return cmd
}
