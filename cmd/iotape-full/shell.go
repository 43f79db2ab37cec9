// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/buildinfo"
)

func newCompletion(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a shell script that completes commands and flags",
		Example: `  iotape completion bash > /etc/bash_completion.d/iotape
  source <(iotape completion zsh)`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.Out, true)
			case "zsh":
				return root.GenZshCompletion(c.Out)
			default:
				return root.GenFishCompletion(c.Out, true)
			}
		},
	}
}

func newMan(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages into a directory",
		Example: `  iotape man /usr/local/share/man/man1
  iotape man . && man ./iotape-record.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			for _, sub := range root.Commands() {
				if s := sub.Annotations[cli.ExitStatus]; s != "" {
					sub.Long += "\n\nExit status:\n\n" + s
				}
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "IOTAPE", Section: "1",
				Source: buildinfo.Program("iotape")}, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
