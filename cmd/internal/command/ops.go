// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/optable"
	"github.com/iotape/iotape/cmd/internal/cli"
)

func newOps(c *cli.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "List the operations that iotape knows",
		Long: `Ops lists the operation table. It has every system call whose arguments iotape knows,
the memory that iotape records for it, and what a replay does with it. iotape records
all other calls with their numbers and raw arguments.`,
		Example: `  iotape ops
  iotape ops --json | jq -r 'select(.replay != "native") | "\(.name): \(.why)"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Result(cli.Either(asJSON, optable.WriteJSON, optable.WriteText), true)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}
