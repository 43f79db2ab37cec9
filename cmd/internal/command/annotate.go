// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/waits"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/printtape"
	"github.com/iotape/iotape/trace"
)

// annotating is what to do with the annotations of a tape.
type annotating struct {
	text, json bool
	from       string
	pids       []uint
}

func newAnnotate(c *cli.Console) *cobra.Command {
	var a annotating
	cmd := &cobra.Command{
		Use:   "annotate TAPE",
		Short: "Find what each event waited for, and how long threads computed",
		Long: `Annotate finds in a recorded run what its threads waited for, and how long they computed
and slept. Threads wait for wake-ups (record --wakeups), the bytes of pipes and sockets,
child processes, locks on files, and names and bytes of files. Annotate omits the
dependencies that follow from others. It stores the annotations in the tape, for iotape
replay --order causal, and prints a summary.

--text writes the annotations as text that you can edit: COMPUTE, WAIT and SLEEP before
an event, SIGNAL after it. --from reads this text. It refuses annotations with which a
replay could not finish, and names the events that wait for each other.`,
		Example: `  iotape record --wakeups -o app.tape -- ./app
  iotape annotate app.tape
  iotape annotate app.tape --text > app.txt
  iotape annotate app.tape --from app.txt`,
		Args: cobra.ExactArgs(1),
		Annotations: cli.Exits("0  annotated", "1  annotated, but events were lost, so dependencies may be missing",
			"2  could not be done; the tape is unchanged"),
		RunE: cli.WithTape(func(cmd *cobra.Command, t *trace.Tape) error {
			switch {
			case a.from != "":
				notes, err := waits.ReadFile(t, a.from)
				if err != nil {
					return err
				}
				return storeNotes(c, t, notes)
			case a.text:
				return c.Print(func(w *bufio.Writer) error { return waits.WriteNotes(w, t, a.pids, printtape.Line(t)) })
			}
			return a.run(c, t)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&a.text, "text", false,
		"write the stored annotations as text, or, if none are stored, those that annotate finds")
	f.StringVar(&a.from, "from", "", "read the annotations from `FILE`, in the form of --text")
	cli.AddPIDs(f, &a.pids, "with --text: only events of the process or thread `PID`, or of several with commas")
	f.BoolVar(&a.json, "json", false, "print one JSON object, with times in ns")
	cmd.MarkFlagsMutuallyExclusive("text", "json", "from")
	return cmd
}

// run finds the annotations, stores them and sums them up.
func (a *annotating) run(c *cli.Console, t *trace.Tape) error {
	notes, sum, err := causal.Annotate(t.Events())
	if err != nil {
		return err
	}
	if err := storeNotes(c, t, notes); err != nil {
		return err
	}
	write := cli.Either(a.json, waits.WriteJSON, waits.WriteText)
	err = c.Result(func(w io.Writer) error { return write(w, t, sum) }, true)
	if err != nil {
		return err
	}
	if sum.Woken == 0 {
		c.Hint("the tape has no wake-ups; iotape record --wakeups records them")
	}
	return cli.Ended(nil, sum.Losses == 0 && len(t.Manifest().Losses) == 0)
}

// storeNotes writes annotations to the tape, unless it is one for the moment.
func storeNotes(c *cli.Console, t *trace.Tape, notes *causal.Annotations) error {
	stored, err := waits.Store(t, notes)
	if err == nil && !stored {
		c.Say("%s is not a tape: the annotations are not stored", t.Name())
	}
	return err
}
