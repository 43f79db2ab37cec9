// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/service"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/httpguard"
)

func newFleet(c *cli.Console) *cobra.Command {
	var asJSON bool
	var address, tokenFile string
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show the hosts that send to a collector, their rates and losses",
		Long: `Fleet shows the hosts of a collector on this machine: when the collector last heard each
host, how much the host sends, how much of it is stored, and what was lost and why. The
same data is a page at the collector's --page, and metrics for Prometheus at its
/metrics.`,
		Example: `  iotape fleet
  iotape fleet --json | jq -r '.hosts[] | select(.state == "silent") | .host'`,
		Args: cobra.NoArgs,
		Annotations: cli.Exits("0  no expected host is silent, and the collector stores",
			"1  a host is silent, or the collector stores nothing of one or of all hosts",
			"2  the collector did not answer"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !strings.Contains(address, "://") {
				address = "http://" + address
			}
			token := ""
			if tokenFile != "" {
				var err error
				if token, err = httpguard.ReadToken(tokenFile); err != nil {
					return cli.UsageIf[*httpguard.TokenError](err)
				}
			}
			f, err := collector.Get(cmd.Context(), strings.TrimRight(address, "/"), token)
			if err != nil {
				return hint.With(err, "a collector shows the fleet at its --page")
			}
			write := cli.Either(asJSON, service.WriteFleetJSON, service.WriteFleet)
			return c.Result(func(w io.Writer) error { return write(w, f) }, service.Well(f))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; times in ns, rates per second")
	cmd.Flags().StringVar(&address, "collector", service.DefaultPage,
		"the address of the collector's page, `HOST:PORT`")
	cmd.Flags().StringVar(&tokenFile, "token", "", "a `FILE` with the token that the page wants")
	return cmd
}
