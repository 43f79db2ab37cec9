package main

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/replay/hosts"
)

func newReplayHost() *cobra.Command {
	var hub, secret, name string
	cmd := &cobra.Command{
		Use:   "replay-host --hub ADDRESS --secret FILE",
		Short: "Make a part of the calls of a replay of several hosts",
		Long: `Replay-host joins the replay that iotape replay --hosts has begun, makes its part of the
calls, and ends. Replay --hosts launches it itself; by hand it is of use where only
another program can start programs on all hosts.`,
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
	f.StringVar(hub, "hub", "", "`ADDRESS:PORT` that "+of+" listens on")
	f.StringVar(secret, "secret", "", "`FILE` with the secret of its hosts; - for a line on the standard input")
	f.StringVar(name, "name", "", "what "+of+" calls this host")
	for _, needed := range []string{"hub", "secret"} {
		_ = cmd.MarkFlagRequired(needed)
	}
}
