// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/pipe/chain"
)

// TakeKeys gives a command the flags with which it reads streams that were piped.
func TakeKeys(cmd *cobra.Command) {
	var identities, keys []string
	f := cmd.Flags()
	f.StringArrayVar(&identities, "identity", nil,
		"decrypt streams with the secret keys in `FILE`, or in a variable as env:NAME; repeatable")
	f.StringArrayVar(&keys, "key", nil,
		"verify streams with the checksum keys in `FILE`, or in a variable as env:NAME; repeatable")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := chain.ReadKeys(identities, keys)
		if err != nil {
			return err
		}
		cmd.SetContext(chain.WithKeys(cmd.Context(), k))
		return run(cmd, args)
	}
}
