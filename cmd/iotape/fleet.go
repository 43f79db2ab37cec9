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

	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/service"
	"github.com/iotape/iotape/internal/hint"
)

func newFleet(c *console) *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show the hosts that send to a collector, their rates and losses",
		Long: `Fleet asks a collector on this machine how its hosts are: when each was last heard of,
how much it sends, how much of it is stored, and what was lost and why. The same is a page
at the collector's --page, and metrics for Prometheus at its /metrics.`,
		Example: `  iotape fleet
  iotape fleet --json | jq -r '.hosts[] | select(.state == "silent") | .host'`,
		Args: cobra.NoArgs,
		Annotations: exits("0  every host that is expected to is heard, and the collector stores",
			"1  a host is silent, or nothing is stored of one or of all", "2  the collector could not be asked"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !strings.Contains(address, "://") {
				address = "http://" + address
			}
			f, err := collector.Get(cmd.Context(), strings.TrimRight(address, "/"))
			if err != nil {
				return hint.With(err, "a collector shows the fleet at its --page")
			}
			write := either(asJSON, service.WriteFleetJSON, service.WriteFleet)
			return c.result(func(w io.Writer) error { return write(w, f) }, service.Well(f))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object; times in ns, rates per second")
	cmd.Flags().StringVar(&address, "collector", service.DefaultPage, "the collector's page is at `HOST:PORT`")
	return cmd
}

// newAgent runs the agent, which is a program of its own: small, static, and without
// what a host that is recorded has no use for.
func newAgent(*console) *cobra.Command {
	return &cobra.Command{
		Use:   "agent [ARG...]",
		Short: "Record this host, and send it to a collector: runs iotape-agent",
		Long: `Agent runs iotape-agent, which is beside this program or in PATH, with the arguments that
follow. See iotape agent --help, and docs/fleet.md.`,
		Example:            "  iotape agent --config /etc/iotape/agent.toml\n  iotape agent install --print",
		DisableFlagParsing: true,
		Annotations:        exits("N  that of iotape-agent", "2  it was not found"),
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
