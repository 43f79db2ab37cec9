// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
)

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
			name, err := cli.Beside("iotape-agent")
			if err != nil {
				return hint.With(err, "make build makes it, beside iotape")
			}
			return fmt.Errorf("%s: %w", name, syscall.Exec(name, append([]string{name}, args...), os.Environ()))
		},
	}
}
