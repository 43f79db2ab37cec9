package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe/wire"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/serve"
)

// serving is what to show, and to whom.
type serving struct {
	listen    listenFlags
	address   string
	tokenFile string
	serve.Options
}

func newServe(c *console) *cobra.Command {
	x := serving{listen: listenFlags{wire.ListenOptions{Risk: "whoever sees a request can then read the tapes"}}}
	cmd := &cobra.Command{
		Use:   "serve TAPE...",
		Short: "Show tapes in a browser: what ran when, every call, what caused it, and all reports",
		Long: `Serve prints the address of a page with what TAPEs have, and answers it until it is
interrupted. The page has a picture of all calls by thread over time, which can be zoomed
from the whole to one call, with arrows for causes; of a call all fields, its content, and
calls with similar content; and below the sections of iotape report.

The address has a token without which nothing is answered: a random one, or that of
--token-file. Without --listen only this machine is listened to. Others can be let in with
tls://, or by ssh -L.

What it takes to draw is kept in each tape, in a file named timeline, if that can be
written; the next time the page is there at once.`,
		Example: `  iotape serve db.tape
  iotape serve client.tape server.tape
  iotape serve db.tape --replay again.json        # of iotape replay --json
  iotape serve db.tape --listen tls://0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem --name box.example.org`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: exits("0  interrupted", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := openTapes(cmd.Context(), args)
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
	x.listen.add(cmd)
	f.StringVar(&x.address, "listen", "127.0.0.1:0", "answer at `ADDRESS`: HOST:PORT, tls://HOST:PORT or unix:PATH; port 0 is any that is free")
	f.StringVar(&x.tokenFile, "token-file", "", "ask for the token in `FILE`, of 16 characters and more")
	f.StringSliceVar(&x.Names, "name", nil, "answer who asks for `HOST`, too; addresses, localhost and the machine's name always work")
	f.StringArrayVar(&x.Replays, "replay", nil, "show a replay beside the recording: `FILE` is what iotape replay --json or iotape compare --json printed; repeatable")
	return cmd
}

func (x *serving) run(ctx context.Context, c *console, tapes []*trace.Tape) (err error) {
	o := &x.Options
	if o.Token, err = serve.Token(x.tokenFile); err != nil {
		return usageIf[*serve.TokenError](err)
	}
	o.TLS = strings.HasPrefix(x.address, "tls://")
	ln, err := x.listen.listen(ctx, x.address)
	if err != nil {
		return err
	}
	defer ln.Close()
	progress := c.progress(report.Count)
	defer progress.Done()
	o.Progress = func(done, total uint64) { progress.Update("reading", int64(done), int64(total)) }
	return serve.Run(ctx, ln, tapes, o, func(url string) {
		progress.Done()
		fmt.Fprintln(c.out, url)
	})
}
