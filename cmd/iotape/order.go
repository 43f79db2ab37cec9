// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/order"
	"github.com/iotape/iotape/format/printtape"
	"github.com/iotape/iotape/trace"
)

// ordering is what to say of the order of events.
type ordering struct {
	events, json bool
	before       []string
}

func newOrder(c *console) *cobra.Command {
	var r ordering
	cmd := &cobra.Command{
		Use:   "order TAPE...",
		Short: "Order the events of several hosts by cause, without their clocks",
		Long: `Order finds which events of all TAPEs must have come before which. It uses the order
within a thread, and the order from fork to start, from end to wait, from connect to
accept, from sending bytes to receiving them, and from waker to woken thread. It prints
how far apart the clocks of the hosts are, and all contradictions: received data that
was not sent, and events that come before themselves. It counts the streams whose other
side is in no tape.

--events lists all events, each after all events that it depends on, with its logical
clock: the length of the longest chain of events before it. --before A,B prints whether
event A happened before event B. Name an event by its number in its tape, as in iotape
print --json; 2:1000 is event 1000 of the second TAPE.

iotape merge joins tapes by their clocks. iotape convert writes one for ShiViz.`,
		Example: `  iotape order client.tape server.tape
  iotape order zookeeper.log --events
  iotape order client.tape server.tape --before 1:200,2:40`,
		Args: cobra.MinimumNArgs(1),
		Annotations: exits("0  ordered, without contradictions; with --before: A happened before B",
			"1  there are contradictions; with --before: A did not happen before B", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := openTapes(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			return r.run(c, tapes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&r.events, "events", false, "list the events in causal order")
	f.StringSliceVar(&r.before, "before", nil, "print whether, of the events `A,B`, A happened before B")
	f.BoolVar(&r.json, "json", false, "print one JSON object; with --events, one for each event")
	cmd.MarkFlagsMutuallyExclusive("events", "before")
	return cmd
}

func (r *ordering) run(c *console, tapes []*trace.Tape) error {
	if n := len(r.before); n != 0 && n != 2 {
		return usageError{fmt.Errorf("--before needs two events, as in --before 1:200,2:40")}
	}
	o, err := order.Load(tapes)
	if err != nil {
		return err
	}
	var pair [2]int
	for i, s := range r.before {
		if pair[i], err = o.Position(s); err != nil {
			return usageError{fmt.Errorf("--before: %w", err)}
		}
	}
	wrong := o.Contradicts()
	if len(r.before) > 0 {
		wrong = !o.HappenedBefore(pair[0], pair[1])
	}
	err = c.print(func(w *bufio.Writer) error {
		switch {
		case len(r.before) > 0:
			return o.WriteRelation(w, pair[0], pair[1], r.json)
		case r.events && r.json:
			return o.WriteEvents(w, nil)
		case r.events:
			return o.WriteEvents(w, printtape.Lines())
		case r.json:
			return o.WriteJSON(w)
		}
		return o.WriteText(w)
	})
	return ended(err, !wrong)
}
