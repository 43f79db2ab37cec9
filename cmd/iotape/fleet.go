// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

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

// newAgent runs the agent, which is a program of its own: small, static, and without
// what a host that is recorded has no use for.
func newAgent(*cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "agent [ARG...]",
		Short: "Run iotape-agent: record this host, and send to a collector",
		Long: `Agent runs iotape-agent with the arguments that follow. It finds iotape-agent beside
this program or in PATH. See iotape agent --help and docs/fleet.md.`,
		Example:            "  iotape agent --config /etc/iotape/agent.toml\n  iotape agent install --print",
		DisableFlagParsing: true,
		Annotations:        cli.Exits("N  the exit status of iotape-agent", "2  iotape-agent was not found"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if exe, err := os.Executable(); err == nil {
				name = filepath.Join(filepath.Dir(exe), "iotape-agent")
			}
			if _, err := os.Stat(name); err != nil {
				if name, err = exec.LookPath("iotape-agent"); err != nil {
					return hint.With(err, "make build makes it, beside iotape")
				}
			}
			return fmt.Errorf("%s: %w", name, syscall.Exec(name, append([]string{name}, args...), os.Environ()))
		},
	}
}
