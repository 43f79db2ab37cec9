package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/pipe/chain"
)

func newKeygen(c *console) *cobra.Command {
	var sum bool
	var out string
	cmd := &cobra.Command{
		Use:   "keygen -o FILE",
		Short: "Make keys: a pair for encryption, or one for checksums",
		Long: `Keygen writes a secret key to FILE, which must not exist and which only you can
read, and prints what may be public: the recipient age1… to encrypt for, or with
--checksum the name of the key, as streams have it. Secret keys of age-keygen are the
same.`,
		Example: `  iotape keygen -o reader.key > recipient
  iotape record -o db.tape --pipe zstd,encrypt:@recipient -- ./server
  iotape seal db.tape.partial --identity reader.key
  iotape keygen --checksum -o sum.key`,
		Args:        cobra.NoArgs,
		Annotations: exits("0  made", "2  not made"),
		RunE: func(cmd *cobra.Command, args []string) error {
			public, err := chain.CreateKeyFile(out, sum)
			if err != nil {
				return err
			}
			return c.print(func(w *bufio.Writer) error { _, err := fmt.Fprintln(w, public); return err })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `FILE` to make")
	f.BoolVar(&sum, "checksum", false, "make a key for checksums")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
