// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/order"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/printtape"
	"github.com/iotape/iotape/trace"
)

func newOrder(c *cli.Console) *cobra.Command {
	var q order.Request
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
		Annotations: cli.Exits("0  ordered, without contradictions; with --before: A happened before B",
			"1  there are contradictions; with --before: A did not happen before B", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := cli.OpenHosts(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			return answerOrder(c, tapes, &q)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&q.Events, "events", false, "list the events in causal order")
	f.StringSliceVar(&q.Before, "before", nil, "print whether, of the events `A,B`, A happened before B")
	f.BoolVar(&q.JSON, "json", false, "print one JSON object; with --events, one for each event")
	cmd.MarkFlagsMutuallyExclusive("events", "before")
	return cmd
}

func answerOrder(c *cli.Console, tapes []*trace.Tape, q *order.Request) error {
	o, err := order.Load(tapes)
	if err != nil {
		return err
	}
	q.Print = printtape.Lines()
	var good bool
	err = c.Print(func(w *bufio.Writer) (err error) {
		good, err = o.Answer(w, q)
		return err
	})
	return cli.Ended(cli.UsageIf[*order.RequestError](err), good)
}
