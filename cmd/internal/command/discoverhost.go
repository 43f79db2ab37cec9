// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/causal/throttle/hosts"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/record/throttlerun"
)

func newDiscoverHost(c *cli.Console) *cobra.Command {
	var hub, secret, name string
	cmd := &cobra.Command{
		Use:   "discover-host --hub ADDRESS --secret FILE",
		Short: "Run and record a part of an application on several hosts",
		Long: `Discover-host joins a run that iotape discover --hosts started. It starts the command on
this host, records it or holds its calls as requested, and ends. iotape discover --hosts
starts it. Start it by hand if only another program can start programs on all hosts.`,
		Example:     `  iotape discover-host --hub 10.0.0.1:7072 --secret /shared/secret --name a`,
		Args:        cobra.NoArgs,
		Annotations: cli.Exits("0  its part is done", "2  could not be done"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // see discover
			// A hub that was killed reads no messages any more: what is here is to be
			// ended and removed none the less.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			work, err := wholefile.TempDir("iotape-part")
			if err != nil {
				return err
			}
			defer work.Close()
			tape := filepath.Join(work.Temp, "part.tape")
			return hosts.Join(cmd.Context(), hub, secret, name,
				func(ctx context.Context, t *hosts.Task) (string, error) {
					return throttlerun.RecordPart(ctx, c.Reporter(), cli.Program(), t, tape)
				})
		},
	}
	teamFlags(cmd, "discover", &hub, &secret, &name)
	return cmd
}
