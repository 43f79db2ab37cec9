// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/flow/show"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/predicate"
)

// following is what to follow, and how to show it.
type following struct {
	from, to, same string
	json, dot, svg bool
	numbers, story bool
	expect         []string
	options        flow.Options
	timing         bool
}

func newFlow(c *cli.Console) *cobra.Command {
	var r following
	cmd := &cobra.Command{
		Use:   "flow TAPE...",
		Short: "Follow data through processes, sockets and disks",
		Long: `Flow finds where data came from and where it went, on all hosts whose TAPEs are given.
It follows data from sender to receiver (by the bytes of each connection), from a write
to a read of a file (by offsets), and through a process that forwards what it received,
whole, in part or changed (by content). The order of events is causal, as in iotape
order.

--from selects the start: an event (12, or 2:12 of the second TAPE), a file by its path
or the end of its path, or a connection by its address. --to selects the end. With --to
alone, flow shows where the data came from. --same lists all processes that read or
wrote the same content.

Flow always reports its findings: content that was changed on the network (altered), on
the disk (corrupted) or by a process between receiving and sending (changed); replicas
that differ; messages that a process did not pass on, or only in part, twice or in
another order; answers with old versions; plaintext that should not be readable; sent
data that was not received before; data that was written more than once; and files that
were read again in the same or another order. Without content in the tapes, flow has
only order and places.

--expect tests a condition, such as 'replicas == 3' or 'wrong == 0 and path >= 4'.
--numbers lists the numbers that it can use. --story tells each finding that is wrong as
text for a ticket: where the data came from, where it changed, and where it went.`,
		Example: `  iotape flow client.tape server.tape
  iotape flow client.tape server.tape --from 1:57
  iotape flow server.tape --to /srv/store.db --svg >store.svg
  iotape flow a.tape b.tape c.tape --expect 'replicas == 3 and wrong == 0'`,
		Args: cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  done; with --expect: the expression is true",
			"1  with --expect: the expression is false", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), c, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.from, "from", "", "follow the data that moved at `WHERE`: an event, a file or a connection")
	f.StringVar(&r.to, "to", "", "show the paths of data that end at `WHERE`")
	f.StringVar(&r.same, "same", "", "list all moves of the content that moved at `WHERE`")
	f.StringArrayVar(&r.expect, "expect", nil, "exit with status 1 unless `EXPRESSION` is true; repeatable")
	f.StringArrayVar(&r.options.Encrypted, "encrypted", nil,
		"report readable data in files and connections with `NAME` in their names; repeatable")
	f.Float64Var(&r.options.Threshold, "threshold", 0.8,
		"the share of equal bytes, from 0 to 1, from which content counts as the same, but changed")
	f.BoolVar(&r.options.Decode, "decode", false,
		"compare what is compressed with gzip, zstd, snappy or lz4 as it was before")
	f.BoolVar(&r.json, "json", false, "print one JSON object")
	f.BoolVar(&r.dot, "dot", false, "print the path as a graph for Graphviz")
	f.BoolVar(&r.svg, "svg", false, "print the path as a picture")
	f.BoolVar(&r.numbers, "numbers", false, "list the numbers that --expect can use, with their values")
	f.BoolVar(&r.story, "story", false, "print the way of the data of each finding that is wrong, as text for a ticket")
	f.BoolVar(&r.timing, "timing", false, "print the time of each step on standard error")
	cmd.MarkFlagsMutuallyExclusive("json", "dot", "svg", "numbers", "story")
	cmd.MarkFlagsMutuallyExclusive("same", "from")
	cmd.MarkFlagsMutuallyExclusive("same", "to")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if (r.dot || r.svg) && r.from == "" && r.to == "" && r.same == "" {
			return cli.Usage(errors.New("--dot and --svg draw a path: use --from, --to or --same"))
		}
		return nil
	}
	return cmd
}

func (r *following) run(ctx context.Context, c *cli.Console, args []string) error {
	var exprs []*predicate.Expr
	for _, s := range r.expect {
		x, err := predicate.Parse(s)
		if err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
		exprs = append(exprs, x)
	}
	tapes, closeAll, err := cli.OpenHosts(ctx, args)
	defer closeAll()
	if err != nil {
		return err
	}
	if r.timing {
		begin, last := time.Now(), "open"
		r.options.Progress = func(step string) {
			c.Say("%s: %.2f s", last, time.Since(begin).Seconds())
			begin, last = time.Now(), step
		}
	}
	// Most of what it needs stays until the end: room for as much garbage would be wasted.
	debug.SetGCPercent(20)
	f, err := flow.Load(ctx, tapes, &r.options)
	if err != nil {
		return err
	}
	path, err := f.Find(ctx, r.from, r.to, r.same)
	if err != nil {
		return cli.UsageIf[*flow.SelectError](err)
	}
	err = c.Print(func(w *bufio.Writer) error {
		switch {
		case r.json:
			return show.JSON(w, f, path)
		case r.dot:
			return show.Dot(w, f, path)
		case r.svg:
			return show.SVG(w, f, path)
		case r.numbers:
			return show.Numbers(w, f, path)
		case r.story:
			return show.Stories(w, f)
		}
		return show.Text(w, f, path)
	})
	if err != nil {
		return err
	}
	for _, x := range exprs {
		ok, err := f.Expect(x, path)
		if err != nil {
			return hint.With(fmt.Errorf("--expect: %w", err), "iotape flow --numbers lists the numbers that it can use")
		}
		if !ok {
			return cli.Status(cli.ExitFound, fmt.Errorf("not as expected: %s", x))
		}
	}
	return nil
}
