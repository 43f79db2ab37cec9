// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/httpguard"
	"github.com/iotape/iotape/pipe/wire"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/serve"
)

// serving is what to show, and to whom.
type serving struct {
	listen    cli.ListenFlags
	address   string
	tokenFile string
	serve.Options
}

func newServe(c *cli.Console) *cobra.Command {
	x := serving{listen: cli.ListenFlags{ListenOptions: wire.ListenOptions{
		Risk: "anyone who sees a request can then read the tapes"}}}
	cmd := &cobra.Command{
		Use:   "serve TAPE...",
		Short: "Show tapes in a browser: a timeline of all calls, their causes, and all reports",
		Long: `Serve prints the address of a page about the TAPEs, and serves the page until it is
interrupted. The page has a picture of all calls by thread over time. You can zoom from
the whole recording to one call. Arrows show causes. For a call, the page shows all
fields, its content, and calls with similar content. Below are the sections of iotape
report.

The address contains a token: a random one, or the one in --token-file. Serve answers no
request without it. By default serve listens on this machine only. To give others access,
use --listen with tls://, or ssh -L.

Serve stores the data for drawing in each tape, in a file named timeline, if it can write
there. The next start is then faster.`,
		Example: `  iotape serve db.tape
  iotape serve client.tape server.tape
  iotape serve db.tape --replay again.json        # from iotape replay --json
  iotape serve db.tape --listen tls://0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem --name box.example.org`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  interrupted", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := cli.OpenHosts(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			err = x.run(cmd.Context(), c, tapes)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	x.listen.Add(cmd)
	f.StringVar(&x.address, "listen", "127.0.0.1:0",
		"listen on `ADDRESS`: HOST:PORT, tls://HOST:PORT or unix:PATH; port 0 means any free port")
	f.StringVar(&x.tokenFile, "token-file", "", "require the token in `FILE`, which has at least 16 characters")
	f.StringSliceVar(&x.Names, "name", nil,
		"also accept requests for `HOST`; addresses, localhost and the machine's name always work")
	f.StringArrayVar(&x.Replays, "replay", nil,
		"show a replay beside the recording: `FILE` is the output of iotape replay --json or iotape compare --json; "+
			"repeatable")
	return cmd
}

func (x *serving) run(ctx context.Context, c *cli.Console, tapes []*trace.Tape) (err error) {
	o := &x.Options
	if o.Token, err = serve.Token(x.tokenFile); err != nil {
		return cli.UsageIf[*httpguard.TokenError](err)
	}
	o.TLS = strings.HasPrefix(x.address, "tls://")
	ln, err := x.listen.Listen(ctx, x.address)
	if err != nil {
		return err
	}
	defer ln.Close()
	progress := c.Progress(report.Count)
	defer progress.Done()
	o.Progress = func(done, total uint64) { progress.Update("reading", int64(done), int64(total)) }
	return serve.Run(ctx, ln, tapes, o, func(url string) {
		progress.Done()
		fmt.Fprintln(c.Out, url)
	})
}
