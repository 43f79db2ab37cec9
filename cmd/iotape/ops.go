package main

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/optable"
)

func newOps(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "List the operations that iotape knows",
		Long: `Ops lists the operation table: every system call that iotape knows by its arguments, which
memory of it is recorded, and what a replay does with it. Any other call is recorded
with its number and raw arguments.`,
		Example: `  iotape ops
  iotape ops --json | jq -r 'select(.replay != "native") | "\(.name): \(.why)"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.result(either(asJSON, optable.WriteJSON, optable.WriteText), true)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}
