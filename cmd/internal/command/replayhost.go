// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/replay/hosts"
)

func newReplayHost() *cobra.Command {
	var hub, secret, name string
	cmd := &cobra.Command{
		Use:   "replay-host --hub ADDRESS --secret FILE",
		Short: "Make a part of the calls of a replay on several hosts",
		Long: `Replay-host joins the replay that iotape replay --hosts started, makes its part of the
calls, and ends. iotape replay --hosts starts it. Start it by hand if only another
program can start programs on all hosts.`,
		Example: `  iotape replay-host --hub 10.0.0.1:7071 --secret /shared/secret`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return hosts.Join(cmd.Context(), hub, secret, name)
		},
	}
	teamFlags(cmd, "replay", &hub, &secret, &name)
	return cmd
}

// teamFlags adds what a helper on a host is told of the team that it joins; of is the
// command whose team it is.
func teamFlags(cmd *cobra.Command, of string, hub, secret, name *string) {
	f := cmd.Flags()
	f.StringVar(hub, "hub", "", "the `ADDRESS:PORT` on which "+of+" listens")
	f.StringVar(secret, "secret", "", "a `FILE` with the secret of the hosts; - means a line of standard input")
	f.StringVar(name, "name", "", "the name that "+of+" gives this host")
	for _, needed := range []string{"hub", "secret"} {
		_ = cmd.MarkFlagRequired(needed)
	}
}
