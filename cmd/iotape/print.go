package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// printing is what to print of a tape, and how.
type printing struct {
	json, csv bool
	clock     string
	from, to  uint64
	pids      []uint
	filter    filterFlags
	o         stracetext.Options
}

func newPrint(c *console) *cobra.Command {
	var p printing
	cmd := &cobra.Command{
		Use:   "print TAPE",
		Short: "Print the events, like strace does",
		Long: `Print writes the events of a tape, one a line, in the form of strace(1): thread,
time, call with its arguments, result, and how long it took. --json writes one
object per line and --csv a table; their fields are described in docs/print.md.
--filter picks events (docs/filters.md).`,
		Example: `  iotape print git.tape
  iotape print git.tape --from 1000 --to 1100 --max-bytes 200
  iotape print git.tape --filter 'class = namespace and failed'
  iotape print git.tape --json | jq -r 'select(.errno == "ENOENT") | .args.path'`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  printed", "1  printed but for damaged parts", "2  could not be printed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.o.Clock = stracetext.Clock(p.clock)
			switch p.o.Clock {
			case stracetext.Elapsed, stracetext.Wall, stracetext.Unix, stracetext.NoClock:
			default:
				return usageError{fmt.Errorf("time %q is neither elapsed, wall, unix nor none", p.clock)}
			}
			t, err := openTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			return p.run(c, t)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.json, "json", false, "one JSON object per line")
	f.BoolVar(&p.csv, "csv", false, "a table of comma-separated values")
	f.IntVar(&p.o.MaxBytes, "max-bytes", 32, "show the first `N` bytes of each buffer; -1 is all")
	f.BoolVarP(&p.o.Verbose, "verbose", "v", false, "show all fields of structures, all entries of directories")
	f.StringVar(&p.clock, "time", "elapsed", "`WHICH` time stands at the start of a line: elapsed, wall, unix or none")
	f.Uint64Var(&p.from, "from", 0, "first event, by its `SEQ`uence number")
	f.Uint64Var(&p.to, "to", math.MaxUint64, "last event, by its `SEQ`uence number")
	f.Lookup("to").DefValue = ""
	f.UintSliceVar(&p.pids, "pid", nil, "only these processes or threads")
	p.filter.add(f)
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

func (p *printing) run(c *console, t *trace.Tape) error {
	m := t.Manifest()
	p.o.Hosts, p.o.StartNS = m.Hosts, m.FirstNS
	if p.o.MaxBytes == 0 {
		p.o.MaxBytes = 1
	}
	var scratch []byte
	p.o.Content = func(b *event.Buf, n int) []byte {
		scratch = content(t, b, n, scratch[:0])
		return scratch
	}
	pr := stracetext.New(&p.o)
	write := pr.Append
	switch {
	case p.json:
		write = pr.AppendJSON
	case p.csv:
		write = pr.AppendCSV
	}
	if len(p.pids) > 0 {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.pids), " ", ", "), "[]")
		p.filter.texts = append(p.filter.texts, fmt.Sprintf("pid in {%s} or tid in {%s}", list, list))
	}
	graph, err := p.filter.graph(c, t)
	if err != nil {
		return err
	}
	wanted := func(*event.Event) bool { return true }
	follows := false
	if graph != nil {
		m := graph.NewMatcher()
		defer func() { c.unknownPrograms(m) }()
		wanted, follows = m.Match, graph.Follows()
	}
	damaged := 0
	err = c.print(func(w *bufio.Writer) error {
		if p.csv {
			w.WriteString(stracetext.CSVHeader)
		}
		r := t.NewEventReader()
		if p.from > 0 && !follows {
			if err := r.Seek(p.from); err != nil {
				return err
			}
		}
		var e event.Event
		var line []byte
		for {
			switch err := r.Next(&e); {
			case err == io.EOF:
				return nil
			case errors.Is(err, trace.ErrCorrupt) || errors.Is(err, trace.ErrTruncated):
				if err := w.Flush(); err != nil {
					return err
				}
				damaged++
				c.say("%v", err)
				continue
			case err != nil:
				return err
			}
			if e.Seq > p.to {
				return nil
			}
			if !wanted(&e) || e.Seq < p.from {
				continue
			}
			line = write(line[:0], &e)
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
	})
	if err == nil && damaged > 0 {
		return &statusError{Status: exitFound}
	}
	return err
}

// content returns the first n bytes of a buffer, zeros where they are missing or
// damaged.
func content(t *trace.Tape, b *event.Buf, n int, dst []byte) []byte {
	dst, _ = t.ContentRange(b, 0, n, dst)
	return dst
}
