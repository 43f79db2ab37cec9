package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// annotating is what to do with the annotations of a tape.
type annotating struct {
	text, json bool
	from       string
	pids       []uint
}

func newAnnotate(c *console) *cobra.Command {
	var a annotating
	cmd := &cobra.Command{
		Use:   "annotate TAPE",
		Short: "Find out which event had to wait for which, and how long threads computed",
		Long: `Annotate finds in one recorded run what its threads waited for: wake-ups (record
--wakeups), the bytes of pipes and sockets, child processes, locks on files, names and
bytes of files; and how long they computed and slept. What follows from the rest is
left out. The annotations are stored in the tape, where replay --order causal finds
them, and summed up.

--text writes them as text, which can be edited: COMPUTE, WAIT and SLEEP before an
event, SIGNAL behind it. --from reads it back, and refuses what a replay could not come
to the end of: events that wait for each other are named.`,
		Example: `  iotape record --wakeups -o app.tape -- ./app
  iotape annotate app.tape
  iotape annotate app.tape --text > app.txt
  iotape annotate app.tape --from app.txt`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  annotated", "1  annotated, but events were lost, so dependencies may be missing", "2  could not be done; the tape is as it was"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			switch {
			case a.from != "":
				return a.read(c, t)
			case a.text:
				return a.print(c, t)
			}
			return a.run(c, t)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&a.text, "text", false, "write the annotations that are stored, or those that were, as text")
	f.StringVar(&a.from, "from", "", "take the annotations from `FILE`, text as --text writes it")
	f.UintSliceVar(&a.pids, "pid", nil, "with --text, only the events of these processes or threads")
	f.BoolVar(&a.json, "json", false, "one JSON object, with times in ns")
	cmd.MarkFlagsMutuallyExclusive("text", "json", "from")
	return cmd
}

// run finds the annotations, stores them and sums them up.
func (a *annotating) run(c *console, t *trace.Tape) error {
	notes, sum, err := causal.Annotate(t.Events())
	if err != nil {
		return err
	}
	if err := storeNotes(c, t, notes); err != nil {
		return err
	}
	err = c.print(func(w *bufio.Writer) error {
		if a.json {
			return annotateJSON(w, t, sum)
		}
		return annotateText(w, t, sum)
	})
	if err != nil {
		return err
	}
	if sum.Woken == 0 {
		c.hint("there are no wake-ups in the tape; iotape record --wakeups records them")
	}
	if sum.Losses > 0 || len(t.Manifest().Losses) > 0 {
		return &statusError{Status: exitFound}
	}
	return nil
}

// storeNotes writes annotations to the tape, unless it is one for the moment.
func storeNotes(c *console, t *trace.Tape, notes *causal.Annotations) error {
	if st, err := os.Stat(t.Name()); err == nil && !st.IsDir() {
		c.say("%s is no tape: the annotations are not stored", t.Name())
		return nil
	}
	return notes.Write(t)
}

// read stores annotations that stand in a text.
func (a *annotating) read(c *console, t *trace.Tape) error {
	f, err := os.Open(a.from)
	if err != nil {
		return err
	}
	defer f.Close()
	notes, err := causal.ReadText(f, t.Events())
	if err != nil {
		return fmt.Errorf("%s: %w", a.from, err)
	}
	return storeNotes(c, t, notes)
}

// print writes the annotations as text.
func (a *annotating) print(c *console, t *trace.Tape) error {
	notes, err := causal.Read(t)
	if errors.Is(err, fs.ErrNotExist) {
		notes, _, err = causal.Annotate(t.Events())
	}
	if err != nil {
		return err
	}
	m := t.Manifest()
	var scratch []byte
	pr := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, Hosts: m.Hosts, StartNS: m.FirstNS, MaxBytes: 32, Content: func(b *event.Buf, n int) []byte {
		scratch = content(t, b, n, scratch[:0])
		return scratch
	}})
	wanted := func(e *event.Event) bool {
		return len(a.pids) == 0 || slices.Contains(a.pids, uint(e.PID)) || slices.Contains(a.pids, uint(e.TID))
	}
	return c.print(func(w *bufio.Writer) error { return notes.WriteText(w, t.Events(), wanted, pr.Append) })
}

type nodeJSON struct {
	Host      string `json:"host"`
	PID       uint32 `json:"pid"`
	TID       uint32 `json:"tid"`
	Comm      string `json:"comm"`
	ComputeNS int64  `json:"compute_ns"`
	StorageNS int64  `json:"storage_ns"`
	SyncNS    int64  `json:"sync_ns"`
	SleepNS   int64  `json:"sleep_ns"`
	DelayNS   int64  `json:"delay_ns"`
}

func annotateJSON(w *bufio.Writer, t *trace.Tape, s *causal.Summary) error {
	v := struct {
		Version int               `json:"version"`
		Events  uint64            `json:"events"`
		Found   map[string]uint64 `json:"found"`
		Waits   uint64            `json:"waits"`
		Losses  uint64            `json:"loss_marks"`
		Elapsed int64             `json:"elapsed_ns"`
		Explain int64             `json:"explained_ns"`
		Path    pathJSON          `json:"path"`
		Nodes   []nodeJSON        `json:"nodes"`
	}{1, s.Events, map[string]uint64{}, s.Waits, s.Losses, s.ElapsedNS, s.ExplainedNS, pathJSON(s.Path), []nodeJSON{}}
	for r, n := range s.Reasons {
		v.Found[r.String()] = n
	}
	for _, n := range s.Nodes {
		v.Nodes = append(v.Nodes, nodeJSON{t.Host(n.Host).Host, n.PID, n.TID, n.Comm, n.Compute, n.Storage, n.Sync, n.Sleep, n.Delay})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// pathJSON is what the explained time is made of.
type pathJSON struct {
	Compute int64 `json:"compute_ns"`
	Storage int64 `json:"storage_ns"`
	Sleep   int64 `json:"sleep_ns"`
}

// writeExplained says how much of the run's time the annotations explain, and by what.
func writeExplained(w io.Writer, s *causal.Summary) {
	p := &s.Path
	fmt.Fprintf(w, "they explain %s of the %s that the run took: %s of computing, %s of storage and %s of sleep, one after the other\n",
		report.Duration(s.ExplainedNS), report.Duration(s.ElapsedNS), report.Duration(p.Compute), report.Duration(p.Storage), report.Duration(p.Sleep))
}

func annotateText(w *bufio.Writer, t *trace.Tape, s *causal.Summary) error {
	found, why := uint64(0), ""
	for r, n := range s.Reasons {
		found += n
		why += fmt.Sprintf(", %s %s", report.Count(n), r)
	}
	if why != "" {
		why = " (" + why[2:] + ")"
	}
	fmt.Fprintf(w, "%s events of %s: %s between them%s, %s after the reduction\n", report.Count(s.Events), report.Plural(len(s.Nodes), "thread", "threads"),
		report.Plural(found, "dependency", "dependencies"), why, report.Count(s.Waits))
	if s.ElapsedNS > 0 {
		writeExplained(w, s)
	}
	if s.Losses > 0 {
		fmt.Fprintf(w, "events were lost in %s: dependencies may be missing\n", report.Plural(s.Losses, "place", "places"))
	}
	w.WriteByte('\n')
	table := report.Table{Head: []string{"pid", "tid", "computing", "storage", "waiting", "asleep", "delayed", "command"}, Right: 7}
	if len(t.Manifest().Hosts) > 1 {
		table.Head[7] = "host: command"
	}
	for _, n := range s.Nodes {
		name := report.Printable(n.Comm)
		if len(t.Manifest().Hosts) > 1 {
			name = report.Printable(t.Host(n.Host).Host) + ": " + name
		}
		table.Add(strconv.Itoa(int(n.PID)), strconv.Itoa(int(n.TID)), report.Duration(n.Compute), report.Duration(n.Storage),
			report.Duration(n.Sync), report.Duration(n.Sleep), report.Duration(n.Delay), name)
	}
	return table.Write(w)
}
