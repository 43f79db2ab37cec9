// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/chain"
)

func newKeygen(c *cli.Console) *cobra.Command {
	var sum bool
	var out string
	cmd := &cobra.Command{
		Use:   "keygen -o FILE",
		Short: "Make a key pair for encryption, or a key for checksums",
		Long: `Keygen writes a secret key to FILE, which must not exist, and which only you can read.
It prints the public part: the recipient age1… to encrypt for, or with --checksum the
name of the key, as streams have it. The secret keys have the format of age-keygen.`,
		Example: `  iotape keygen -o reader.key > recipient
  iotape record -o db.tape --pipe zstd,encrypt:@recipient -- ./server
  iotape seal db.tape.partial --identity reader.key
  iotape keygen --checksum -o sum.key`,
		Args:        cobra.NoArgs,
		Annotations: cli.Exits("0  the key is made", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			public, err := chain.CreateKeyFile(out, sum)
			if err != nil {
				return err
			}
			return c.Print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, public); return err })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `FILE` to make")
	f.BoolVar(&sum, "checksum", false, "make a key for checksums")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
