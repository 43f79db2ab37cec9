package main

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
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/predicate"
)

// following is what to follow, and how to show it.
type following struct {
	from, to, same string
	json, dot, svg bool
	numbers        bool
	expect         []string
	options        flow.Options
	timing         bool
}

func newFlow(c *console) *cobra.Command {
	var r following
	cmd := &cobra.Command{
		Use:   "flow TAPE...",
		Short: "Follow data through processes, sockets and disks",
		Long: `Flow finds out where data came from and went to, on all hosts whose TAPEs are given:
what was sent is received (by the bytes of each connection), what was written to a file
is read there (by offsets), and what a process took in it gives out again, whole, in
part, or changed (by content). Order is that of cause, as in iotape order.

--from says where to begin: an event (12, or 2:12 of the second TAPE), a file by its
path or the end of it, a connection by its address. --to says where to end; alone, it
asks where that came from. --same lists who else read or wrote the same content.

What data shows is reported in any case: content that was changed on the network
(altered), on the disk (corrupted) or by a process between receiving and giving out
(changed), replicas that differ, plaintext where nothing should be readable, sends of
what was received nowhere, data written more than once, files read again in the same
or another order. Without content in the tapes there are order and places only.

--expect asks whether something is so: 'replicas == 3', 'wrong == 0 and path >= 4';
--numbers lists what it can ask for.`,
		Example: `  iotape flow client.tape server.tape
  iotape flow client.tape server.tape --from 1:57
  iotape flow server.tape --to /srv/store.db --svg >store.svg
  iotape flow a.tape b.tape c.tape --expect 'replicas == 3 and wrong == 0'`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: exits("0  done; with --expect: it is so", "1  with --expect: it is not so", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), c, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.from, "from", "", "follow what moved at `WHERE`: an event, a file, a connection")
	f.StringVar(&r.to, "to", "", "show the ways that end at `WHERE`")
	f.StringVar(&r.same, "same", "", "list all moves of the same content as at `WHERE`")
	f.StringArrayVar(&r.expect, "expect", nil, "exit with 1 unless `EXPRESSION` holds; can be repeated")
	f.StringArrayVar(&r.options.Encrypted, "encrypted", nil, "nothing may be readable in files and connections with `NAME` in their names; can be repeated")
	f.Float64Var(&r.options.Threshold, "threshold", 0.8, "part of the bytes, 0 to 1, from which on content is the same, but changed")
	f.BoolVar(&r.json, "json", false, "one JSON object")
	f.BoolVar(&r.dot, "dot", false, "the path as a graph for Graphviz")
	f.BoolVar(&r.svg, "svg", false, "the path as a picture")
	f.BoolVar(&r.numbers, "numbers", false, "list what --expect can ask for, and the values")
	f.BoolVar(&r.timing, "timing", false, "say what took how long, on standard error")
	cmd.MarkFlagsMutuallyExclusive("json", "dot", "svg", "numbers")
	cmd.MarkFlagsMutuallyExclusive("same", "from")
	cmd.MarkFlagsMutuallyExclusive("same", "to")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if (r.dot || r.svg) && r.from == "" && r.to == "" && r.same == "" {
			return usageError{errors.New("--dot and --svg draw a path: say --from or --to")}
		}
		return nil
	}
	return cmd
}

func (r *following) run(ctx context.Context, c *console, args []string) error {
	var exprs []*predicate.Expr
	for _, s := range r.expect {
		x, err := predicate.Parse(s)
		if err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
		exprs = append(exprs, x)
	}
	tapes, closeAll, err := openTapes(ctx, args)
	defer closeAll()
	if err != nil {
		return err
	}
	if r.timing {
		begin, last := time.Now(), "open"
		r.options.Progress = func(step string) {
			c.say("%s: %.2f s", last, time.Since(begin).Seconds())
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
		return usageIf[*flow.SelectError](err)
	}
	err = c.print(func(w *bufio.Writer) error {
		switch {
		case r.json:
			return show.JSON(w, f, path)
		case r.dot:
			return show.Dot(w, f, path)
		case r.svg:
			return show.SVG(w, f, path)
		case r.numbers:
			return show.Numbers(w, f, path)
		}
		return show.Text(w, f, path)
	})
	if err != nil {
		return err
	}
	for _, x := range exprs {
		ok, err := f.Expect(x, path)
		if err != nil {
			return hint.With(fmt.Errorf("--expect: %w", err), "iotape flow --numbers lists what it can ask for")
		}
		if !ok {
			return &statusError{exitFound, fmt.Errorf("not as expected: %s", x)}
		}
	}
	return nil
}
